/* cli/shared.c - arguments that several commands take: words, --set, --json */
#include "cli/commands.h"

#define SET_OPTION \
	{ \
		"set", 's', "KEY=VALUE", 0, "Override a key, e.g. cluster.gpus=2048", \
			0 \
	}

static const struct argp_option set_options[] = { SET_OPTION, { 0 } };

static const struct argp_option options[] = {
	SET_OPTION,
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct shared *s = state->input;

	switch (key) {
	case 's':
		words_add(&s->set, arg, state);
		return 0;
	case 'j':
		s->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (s->word.n == s->most)
			argp_error(state, "'%s' is too much: at most %zu %s", arg,
				   s->most, s->what);
		words_add(&s->word, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (s->word.n < s->least)
			argp_error(state, "%s %s is missing",
				   s->word.n ? "one more" : "a", s->what);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp shared_argp = { options, parse, NULL, NULL, NULL, NULL, NULL };
const struct argp shared_set_argp = {
	set_options, parse, NULL, NULL, NULL, NULL, NULL
};
