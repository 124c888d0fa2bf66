/* cli/cmd_collective.c - foretoken collective SCENARIO --op OP --bytes N */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/quantity.h"
#include "cli/commands.h"
#include "foretoken/reports.h"

enum { MOST_LINES = 4096, MOST_VALUES = 64 };

struct args {
	struct shared shared;
	const char *op, *bytes, *gpus, *plot, *stride;
	const char *algorithm, *protocol;
};

static const struct argp_option options[] = {
	{ "op", 'o', "OP[,OP]", 0,
	  "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
	  "sendrecv (default: all_reduce)",
	  0 },
	{ "bytes", 'b', "N[,N]", 0,
	  "Sizes as nccl-tests counts them, e.g. 16MiB,1GiB (default: 1 KiB to "
	  "1 GiB)",
	  0 },
	{ "gpus", 'g', "N[,N]", 0,
	  "Group size in ranks; told is the group from rank 0 on, while all of that size run, as in a step (default: all ranks)",
	  0 },
	{ "stride", 'n', "N", 0,
	  "Distance between members in ranks (default: 1); 8 takes one GPU of each 8-GPU node",
	  0 },
	{ "algorithm", 'a', "NAME", 0,
	  "One of those listed below (default: what the communication library or the "
	  "fabric chooses)",
	  0 },
	{ "protocol", 'r', "NAME", 0, "LL, LL128 or Simple (default: what is chosen)",
	  0 },
	{ "plot", 'p', "DIR", 0,
	  "Write DIR/busbw.svg, bandwidth by size, and busbw-by-gpus.svg", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		return 0;
	case 'o':
		a->op = arg;
		return 0;
	case 'b':
		a->bytes = arg;
		return 0;
	case 'g':
		a->gpus = arg;
		return 0;
	case 'n':
		a->stride = arg;
		return 0;
	case 'p':
		a->plot = arg;
		return 0;
	case 'a':
		a->algorithm = arg;
		return 0;
	case 'r':
		a->protocol = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The table of algorithms, behind the options. */
static char *help_filter(int key, const char *text, void *input)
{
	const char *what, *name;
	char *out = NULL;
	size_t len = 0;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC || !(f = open_memstream(&out, &len)))
		return (char *)(uintptr_t)text;
	fputs("Algorithms:\n", f);
	for (size_t i = 0; (name = ft_collective_algorithm(i, &what)); i++)
		fprintf(f, "  %-14s %s\n", name, what);
	fputs("\nExample: foretoken collective examples/01-first-answer/h100.yaml "
	      "--op all_reduce --bytes 16MiB,1GiB --gpus 8,64,512",
	      f);
	fclose(f);
	return out;
}

static const struct argp_child children[] = { { &shared_argp, 0, NULL, 0 }, { 0 } };

static const struct argp argp = {
	options,
	parse,
	"SCENARIO",
	"Predict collectives on a scenario's network, with the columns of nccl-tests. Only "
	"`cluster`, `stack` and `ccl` are read. Regret is how much longer the chosen algorithm "
	"takes than the fastest one."
	"\v",
	children,
	help_filter,
	NULL,
};

/* Is there something, and something on both sides of each comma? */
static bool has_pieces(const char *list, const char *option, struct ft_error *err)
{
	size_t n = strlen(list);

	if (!n)
		return ft_fail(err, NULL, "%s: the list is empty", option);
	return (list[0] != ',' && list[n - 1] != ',' && !strstr(list, ",,")) ||
	       ft_fail(err, NULL, "%s: a comma in '%.80s' has nothing beside it",
		       option, list);
}

/* Cut a list at its commas; each piece to number(). */
static bool list(const char *text, const char *option, double *out, size_t *n,
		 struct ft_error *err)
{
	bool bytes = !strcmp(option, "--bytes");
	char copy[1024], why[200], *save = NULL;

	if (strlen(text) >= sizeof(copy))
		return ft_fail(err, NULL, "%s: the list is too long", option);
	if (!has_pieces(text, option, err))
		return false;
	memcpy(copy, text, strlen(text) + 1);
	for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (*n == MOST_VALUES)
			return ft_fail(err, NULL, "%s: more than %d values", option,
				       (int)MOST_VALUES);
		if (!quantity_parse(p, DIM_NONE, &out[*n], why, sizeof(why)) &&
		    !(bytes &&
		      quantity_parse(p, DIM_BYTES, &out[*n], why, sizeof(why))))
			return ft_fail(err, NULL, "%s: %s", option, why);
		if (out[*n] < 1 || out[*n] > 1e18 || out[*n] != floor(out[*n]))
			return ft_fail(err, NULL,
				       "%s: '%s' is not a whole number "
				       "from 1 to 10^18",
				       option, p);
		(*n)++;
	}
	return true;
}

/* What is asked for: every size at every number of ranks, for one op after another. */
struct sweep {
	const struct ft_cluster *cluster;
	const struct ft_ccl *ccl;
	double bytes[MOST_VALUES], gpus[MOST_VALUES];
	size_t n_bytes, n_gpus;
	struct ft_collective_call call; /* the next one */
	struct ft_collective_line *line;
	size_t n;
};

static bool one_line(struct sweep *s, struct ft_error *err)
{
	const struct ft_cluster *c = s->cluster;
	struct ft_group_shape shape = s->call.shape;
	struct ft_collective_line *l = &s->line[s->n];

	if (s->n == MOST_LINES)
		return ft_fail(err, NULL, "too many lines");
	if ((double)(shape.size - 1) * (double)shape.stride + 1 > (double)c->ranks)
		return ft_fail(err, &c->gpus_mark,
			       "a group of %lld ranks%s, but the cluster has %lld",
			       (long long)shape.size,
			       shape.stride > 1 ? " so far apart" : "",
			       (long long)c->ranks);
	if (shape.size < 2)
		return ft_fail(err, NULL, "a collective takes at least 2 ranks%s",
			       shape.stride > 1 ?
				       ": with this --stride the cluster has 1" :
				       "");
	*l = (struct ft_collective_line){ .op = s->call.op,
					  .gpus = shape.size,
					  .bytes = s->call.bytes };
	s->n++;
	return ft_collective_predict(c, s->ccl, &s->call, &l->result, err);
}

static bool lines_of_op(struct sweep *s, struct ft_error *err)
{
	for (size_t g = 0; g < s->n_gpus; g++)
		for (size_t b = 0; b < s->n_bytes; b++) {
			s->call.shape.size = (int64_t)s->gpus[g];
			s->call.bytes = s->bytes[b];
			if (!one_line(s, err))
				return false;
		}
	return true;
}

static bool lines_of_ops(const char *list_of_ops, struct sweep *s, struct ft_error *err)
{
	char ops[256], *save = NULL;

	if (strlen(list_of_ops) >= sizeof(ops))
		return ft_fail(err, NULL, "--op: the list is too long");
	if (!has_pieces(list_of_ops, "--op", err))
		return false;
	memcpy(ops, list_of_ops, strlen(list_of_ops) + 1);
	for (char *p = strtok_r(ops, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (!ft_collective_find(p, &s->call.op))
			return ft_fail(err, NULL,
				       "there is no collective '%s'; "
				       "known: all_reduce, all_gather, "
				       "reduce_scatter, all_to_all, broadcast, "
				       "sendrecv",
				       p);
		if (!lines_of_op(s, err))
			return false;
	}
	return true;
}

static bool lines(const struct args *a, struct sweep *s, struct ft_error *err)
{
	double stride[MOST_VALUES] = { 1 };
	size_t n_strides = 0;

	for (double b = 1024; !a->bytes && b <= 1073741824.0; b *= 4)
		s->bytes[s->n_bytes++] = b;
	if (a->bytes && !list(a->bytes, "--bytes", s->bytes, &s->n_bytes, err))
		return false;
	if (a->stride && !list(a->stride, "--stride", stride, &n_strides, err))
		return false;
	if (n_strides > 1)
		return ft_fail(err, NULL, "--stride takes one value");
	if (!a->gpus)
		s->gpus[s->n_gpus++] = floor((double)s->cluster->ranks / stride[0]);
	else if (!list(a->gpus, "--gpus", s->gpus, &s->n_gpus, err))
		return false;
	s->call.shape.stride = (int64_t)stride[0];
	s->call.algorithm = a->algorithm;
	s->call.protocol = a->protocol;
	return lines_of_ops(a->op ? a->op : "all_reduce", s, err);
}

int cmd_collective(int argc, char **argv)
{
	struct sweep w = { 0 };
	struct ft_shelf *shelf;
	struct ft_scenario *s;
	struct args a = { .shared = { .what = "SCENARIO", .least = 1, .most = 1 } };
	struct ft_error err;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	s = ft_scenario_load(shelf, a.shared.word.word[0], a.shared.set.word,
			     a.shared.set.n, false, &err);
	w.line = allocated(calloc(MOST_LINES, sizeof(*w.line)));
	w.ccl = s ? ft_scenario_ccl(s, &err) : NULL;
	w.cluster = s ? s->cluster : NULL;
	ok = w.ccl && lines(&a, &w, &err);
	if (ok && a.plot)
		ok = ft_report_collectives_plot(a.plot, w.line, w.n, &err);
	if (ok && a.shared.json)
		ft_report_collectives_json(stdout, w.line, w.n);
	else if (ok)
		ft_report_collectives(stdout, w.line, w.n);
	free(w.line);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return ok ? finish_output() : complain(&err);
}
