/* cli/cmd_merge.c - foretoken merge INTO.db FROM.db... */
#include "cli/commands.h"
#include "foretoken/study.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct words *w = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		words_add(w, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (w->n < 2)
			argp_error(state, "INTO.db and a FROM.db are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	NULL,
	parse,
	"INTO.db FROM.db...",
	"Put the runs of several sweeps' files into one file, which is created if it does not "
	"exist. Runs that it already has are left out; of each file all runs are taken or none."
	"\vExample: foretoken merge all.db shard-1.db shard-2.db",
	NULL,
	NULL,
	NULL,
};

int cmd_merge(int argc, char **argv)
{
	struct words w = { 0 };
	struct ft_merge_result r;
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &w);
	if (!ft_study_merge(w.word[0], w.word + 1, w.n - 1, &r, &err))
		return complain(&err);
	printf("%zu file%s: %zu runs taken, %zu were there\n", r.files,
	       r.files == 1 ? "" : "s", r.rows, r.already);
	return finish_output();
}
