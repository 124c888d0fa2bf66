/* tests/mistakes.h - models that are refused, with the place and the words of each message */
#ifndef TESTS_MISTAKES_H
#define TESTS_MISTAKES_H

#include "tests/config_json.h"

struct mistake {
	const char *yaml;
	int line, column;
	const char *text; /* is in the message */
};

static inline void refused(const struct mistake *wrong, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ft_error err = { .text = "" };

		assert_null(model_of_text(wrong[i].yaml, &err));
		if (err.line != wrong[i].line || err.column != wrong[i].column ||
		    !strstr(err.text, wrong[i].text))
			fail_msg("%s: %d:%d: %s", wrong[i].yaml, err.line, err.column,
				 err.text);
	}
}

#endif
