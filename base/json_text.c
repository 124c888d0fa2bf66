/* base/json_text.c - character by character, where a text is not UTF-8 as a whole */
#include "base/json_text.h"

#include "base/arena.h"

/* How many bytes the character at s has; 0: it is none of UTF-8. */
static size_t character(const char *s)
{
	for (size_t n = 1; n <= 4; n++) {
		json_t *one = json_stringn(s, n);

		json_decref(one);
		if (one)
			return n;
		if (!s[n])
			break;
	}
	return 0;
}

json_t *json_of_text(const char *text)
{
	json_t *value = json_string(text);
	struct arena mem = { 0 };
	char *copy;

	if (value)
		return value;
	copy = arena_text(&mem, text);
	for (char *s = copy; *s;) {
		size_t n = character(s);

		if (!n)
			*s = '?';
		s += n ? n : 1;
	}
	value = json_string(copy);
	arena_release(&mem);
	return value;
}
