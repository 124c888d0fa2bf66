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
	const char *scenario, *op, *bytes, *gpus, *plot, *stride;
	struct ft_collective_choice by;
	struct words set;
	bool json;
};

static const struct argp_option options[] = {
	{ "op", 'o', "OP[,OP]", 0,
	  "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
	  "sendrecv; default all_reduce",
	  0 },
	{ "bytes", 'b', "N[,N]", 0,
	  "Sizes as nccl-tests counts them, e.g. 16MiB,1GiB; default 1 KiB to "
	  "1 GiB",
	  0 },
	{ "gpus", 'g', "N[,N]", 0, "Ranks, from the first; default all", 0 },
	{ "stride", 'n', "N", 0,
	  "Ranks from one member to the next; 8: one a node of eight; default 1", 0 },
	{ "algorithm", 'a', "NAME", 0,
	  "ring, tree, nvlstree, sharp, pat, hierarchical or direct; default what NCCL "
	  "or RCCL chooses",
	  0 },
	{ "protocol", 'r', "NAME", 0, "LL, LL128 or Simple; default likewise", 0 },
	{ "plot", 'p', "DIR", 0,
	  "Write DIR/busbw.svg, bandwidth by size, and busbw-by-gpus.svg", 0 },
	{ "set", 's', "KEY=VALUE", 0, "Override a key", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
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
		a->by.algorithm = arg;
		return 0;
	case 'r':
		a->by.protocol = arg;
		return 0;
	case 's':
		words_add(&a->set, arg, state);
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->scenario)
			argp_usage(state);
		a->scenario = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->scenario)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"SCENARIO",
	"Collectives on a scenario's network, with the columns of nccl-tests; only "
	"`cluster` is read."
	"\vExample: foretoken collective examples/01-first-answer/h100.yaml "
	"--op all_reduce --bytes 16MiB,1GiB --gpus 8,64,512",
	NULL,
	NULL,
	NULL,
};

/* Cut a list at its commas; each piece to number(). */
static bool list(const char *text, const char *option, double *out, size_t *n,
		 struct ft_error *err)
{
	bool bytes = !strcmp(option, "--bytes");
	char copy[1024], why[200], *save = NULL;

	if (strlen(text) >= sizeof(copy))
		return ft_fail(err, NULL, "%s: the list is too long", option);
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
				       "%s: '%s' is no whole number "
				       "from 1 to 10^18",
				       option, p);
		(*n)++;
	}
	return true;
}

static bool lines_of_op(const struct ft_cluster *c, struct ft_collective_choice by,
			enum ft_collective op, const double *bytes, size_t n_bytes,
			const double *gpus, size_t n_gpus, int64_t stride,
			struct ft_collective_line *line, size_t *n,
			struct ft_error *err)
{
	for (size_t g = 0; g < n_gpus; g++)
		for (size_t b = 0; b < n_bytes; b++) {
			struct ft_collective_line *l = &line[*n];
			struct ft_group_shape shape = { (int64_t)gpus[g], stride };
			double span = (gpus[g] - 1) * (double)stride + 1;

			if (*n == MOST_LINES)
				return ft_fail(err, NULL, "too many lines");
			if (span > (double)c->ranks)
				return ft_fail(err, &c->gpus_mark,
					       "a group of "
					       "%.0f ranks%s, but the cluster has "
					       "%lld",
					       gpus[g],
					       stride > 1 ? " so far apart" : "",
					       (long long)c->ranks);
			if (gpus[g] < 2)
				return ft_fail(err, NULL,
					       "a collective takes at "
					       "least 2 ranks");
			*l = (struct ft_collective_line){ .op = op,
							  .gpus = shape.size,
							  .bytes = bytes[b] };
			if (!ft_collective_by(c, op, bytes[b], shape, by, &l->result,
					      err))
				return false;
			(*n)++;
		}
	return true;
}

static bool lines(const struct args *a, const struct ft_cluster *c,
		  struct ft_collective_line *line, size_t *n, struct ft_error *err)
{
	double bytes[MOST_VALUES], gpus[MOST_VALUES], stride[MOST_VALUES] = { 1 };
	size_t n_bytes = 0, n_gpus = 0, n_strides = 0;
	char ops[256], *save = NULL;

	for (double b = 1024; !a->bytes && b <= 1073741824.0; b *= 4)
		bytes[n_bytes++] = b;
	if (a->bytes && !list(a->bytes, "--bytes", bytes, &n_bytes, err))
		return false;
	if (a->stride && !list(a->stride, "--stride", stride, &n_strides, err))
		return false;
	if (!a->gpus)
		gpus[n_gpus++] = floor((double)c->ranks / stride[0]);
	else if (!list(a->gpus, "--gpus", gpus, &n_gpus, err))
		return false;
	snprintf(ops, sizeof(ops), "%s", a->op ? a->op : "all_reduce");
	for (char *p = strtok_r(ops, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		enum ft_collective op;

		if (!ft_collective_find(p, &op))
			return ft_fail(err, NULL,
				       "there is no collective '%s'; "
				       "known: all_reduce, all_gather, "
				       "reduce_scatter, all_to_all, broadcast, "
				       "sendrecv",
				       p);
		if (!lines_of_op(c, a->by, op, bytes, n_bytes, gpus, n_gpus,
				 (int64_t)stride[0], line, n, err))
			return false;
	}
	return true;
}

int cmd_collective(int argc, char **argv)
{
	struct ft_collective_line *line = NULL;
	struct ft_shelf *shelf;
	struct ft_scenario *s;
	struct args a = { 0 };
	struct ft_error err;
	size_t n = 0;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	s = ft_scenario_load(shelf, a.scenario, a.set.word, a.set.n, false, &err);
	line = calloc(MOST_LINES, sizeof(*line));
	if (!line)
		out_of_memory();
	ok = s && lines(&a, s->cluster, line, &n, &err);
	if (ok && a.plot)
		ok = ft_report_collectives_plot(a.plot, line, n, &err);
	if (ok && a.json)
		ft_report_collectives_json(stdout, line, n);
	else if (ok)
		ft_report_collectives(stdout, line, n);
	free(line);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return ok ? finish_output() : complain(&err);
}
