/* cli/shared.c - arguments that several commands take: words, --set, --json, --price */
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"

#define SET_OPTION \
	{ \
		"set", 's', "KEY=VALUE", 0, "Override a key, e.g. cluster.gpus=2048", \
			0 \
	}

#define QUIET_OPTION \
	{ \
		"quiet", 'q', NULL, 0, \
			"No progress and no remarks on standard error, but errors", 0 \
	}

static const struct argp_option set_options[] = { SET_OPTION, QUIET_OPTION, { 0 } };

static const struct argp_option options[] = {
	SET_OPTION,
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	QUIET_OPTION,
	{ 0 },
};

/* --days=3 and run.days=3 are one key. */
static const char *key_of(const char *set)
{
	return set + (text_begins_with(set, "run.") ? 4 :
		      text_begins_with(set, "--")   ? 2 :
						      0);
}

/* Of two words of one key the last counts, so that a script can add to what it was given. */
static void tell_twice(const struct words *set)
{
	for (size_t i = 0; i < set->n; i++)
		for (size_t k = i + 1; k < set->n; k++) {
			const char *first = key_of(set->word[i]);

			if (strncmp(first, key_of(set->word[k]),
				    strcspn(first, "=") + 1))
				continue;
			fprintf(stderr,
				"foretoken: %.*s is given twice: the last counts\n",
				(int)strcspn(set->word[i], "="), set->word[i]);
			break;
		}
}

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
	case 'q':
		s->quiet = true;
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
		if (!s->quiet)
			tell_twice(&s->set);
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

/* A word of --set, made from an option. */
__attribute__((format(printf, 3, 4))) static void add_set(
	struct shared *s, const struct argp_state *state, const char *fmt, ...)
{
	char *word = s->text + s->n_text;
	size_t room = sizeof(s->text) - s->n_text;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(word, room, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room)
		argp_error(state, "more than %zu bytes of options", sizeof(s->text));
	s->n_text += (size_t)n + 1;
	words_add(&s->set, word, state);
}

static error_t parse_price(int key, char *arg, struct argp_state *state)
{
	if (key != 'p')
		return ARGP_ERR_UNKNOWN;
	add_set(state->input, state, "--price %s", arg);
	return 0;
}

const struct argp price_argp = { price_options, parse_price, NULL, NULL,
				 NULL,		NULL,	     NULL };

enum { TOKENS = 0x100, DAYS, BUDGET, MEGAWATTS, FLOP };

static const struct argp_option asked_options[] = {
	{ "tokens", TOKENS, "N", 0,
	  "Tokens to train on; the answer then has days, dollars and the fleet", 1 },
	{ "days", DAYS, "D", 0, "Days that the training may take", 1 },
	{ "budget", BUDGET, "USD", 0, "Dollars that the training may cost", 1 },
	{ "megawatts", MEGAWATTS, "P", 0, "Power that the fleet may draw", 1 },
	{ "flop", FLOP, "N", 0, "Model FLOPs to spend, instead of tokens", 1 },
	{ 0 },
};

static error_t parse_asked(int key, char *arg, struct argp_state *state)
{
	bool bare;

	if (key < TOKENS || key > FLOP)
		return ARGP_ERR_UNKNOWN;
	/* a number with k, M, Ki ... at most; another unit is told as it was given */
	bare = !arg[strspn(arg, "+-.0123456789eE kKMGTPi")];
	add_set(state->input, state, "--%s=%s%s", asked_options[key - TOKENS].name, arg,
		key == BUDGET && bare ? "USD" : "");
	return 0;
}

static const struct argp asked_argp = { asked_options, parse_asked, NULL, NULL,
					NULL,	       NULL,	    NULL };

const struct argp_child priced_children[] = { { &shared_argp, 0, NULL, 0 },
					      { &price_argp, 0, NULL, 0 },
					      { 0 } };
const struct argp_child asked_children[] = { { &shared_argp, 0, NULL, 0 },
					     { &price_argp, 0, NULL, 0 },
					     { &asked_argp, 0, NULL, 0 },
					     { 0 } };
