/* cli/shared.c - arguments that several commands take: words, --set, --json, --price */
#include <string.h>

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

static const struct argp_option price_options[] = {
	{ "price", 'p', "ITEM=USD", 0,
	  "Your own price of an item of the bill, instead of the book's", 0 },
	{ 0 },
};

static error_t parse_price(int key, char *arg, struct argp_state *state)
{
	struct shared *s = state->input;
	char *word = s->text + s->n_text;
	size_t room = sizeof(s->text) - s->n_text;
	int n;

	if (key != 'p')
		return ARGP_ERR_UNKNOWN;
	n = snprintf(word, room, "--price %s", arg);
	if (n < 0 || (size_t)n >= room)
		argp_error(state, "--price: more than %zu bytes of prices",
			   sizeof(s->text));
	s->n_text += (size_t)n + 1;
	words_add(&s->set, word, state);
	return 0;
}

const struct argp price_argp = { price_options, parse_price, NULL, NULL,
				 NULL,		NULL,	     NULL };
