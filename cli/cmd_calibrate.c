/* cli/cmd_calibrate.c - foretoken calibrate ACTION: measurements to GPU profiles */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json_text.h"
#include "cli/calibrate.h"

enum {
	BASE = 256,
	DEVICE,
	FORMAT,
	SOURCE,
	DATE,
	FABRIC,
	ONLY,
	PROBE,
	LIMIT,
	COLLECTIVES,
	QUICK,
	PUBLISHED,
	WITH_IN_STEP
};

static const struct argp_option options[] = {
	{ "store", 's', "FILE", 0, "The file of measurements (default: calibrate.db)",
	  0 },
	{ "backend", 'b', "NAME", 0, "probe: cuda, hip, cpu or fake", 0 },
	{ "quick", QUICK, NULL, 0, "probe: measure few, small shapes", 0 },
	{ "limit", LIMIT, "SECONDS", 0, "probe: stop after this time", 0 },
	{ "probe", PROBE, "FILE", 0, "probe: path of the program foretoken-probe", 0 },
	{ "format", FORMAT, "NAME", 0,
	  "import: probe, csv, nccl-tests, "
	  "attention or kineto",
	  0 },
	{ "source", SOURCE, "TEXT", 0, "import: source of the rows", 0 },
	{ "date", DATE, "YYYY-MM-DD", 0, "import: date of the measurement", 0 },
	{ "published", PUBLISHED, NULL, 0,
	  "import: the rows were published by others; "
	  "each row names its source",
	  0 },
	{ "fabric", FABRIC, "NAME", 0,
	  "import: nvlink, nvlink-no-nvls, xgmi, "
	  "pcie",
	  0 },
	{ "device", DEVICE, "TEXT", 0,
	  "Only rows of this device; import: name of the device", 0 },
	{ "run", 'r', "N", 0, "show, export: only this run", 0 },
	{ "name", 'n', "NAME", 0, "fit: name of the profile", 0 },
	{ "base", BASE, "NAME", 0,
	  "fit: profile that gives what was not measured "
	  "(default: the one of --name)",
	  0 },
	{ "only", ONLY, "FAMILY,...", 0,
	  "fit: gemm, attention, memory, "
	  "collectives, sustained, launch, interference, layout, accumulate",
	  0 },
	{ "with-in-step", WITH_IN_STEP, NULL, 0,
	  "fit: use kernels of recorded "
	  "training steps, too",
	  0 },
	{ "out", 'o', "DIR", 0, "fit, plot: folder for the files (default: .)", 0 },
	{ "gpu", 'g', "NAME", 0,
	  "export, plot: the profile; import: only rows of "
	  "this GPU",
	  0 },
	{ "collectives", COLLECTIVES, NULL, 0,
	  "export: collectives instead of "
	  "kernels",
	  0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 },
};

/* Options that take a word, and flags: where each goes. */
#define AT(member) offsetof(struct calibrate_args, member)
static const struct {
	int key;
	size_t at;
} word_options[] = {
	{ 's', AT(store) },    { 'b', AT(backend) },	{ LIMIT, AT(limit) },
	{ PROBE, AT(probe) },  { FORMAT, AT(format) },	{ SOURCE, AT(source) },
	{ DATE, AT(date) },    { FABRIC, AT(fabric) },	{ DEVICE, AT(device) },
	{ 'n', AT(name) },     { BASE, AT(base) },	{ ONLY, AT(only) },
	{ 'o', AT(folder) },   { 'g', AT(gpu) },
}, flags[] = {
	{ QUICK, AT(quick) },	    { PUBLISHED, AT(published) },
	{ WITH_IN_STEP, AT(with_in_step) }, { COLLECTIVES, AT(collectives) },
	{ 'j', AT(json) },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct calibrate_args *a = state->input;

	for (size_t i = 0; i < sizeof(word_options) / sizeof(*word_options); i++)
		if (word_options[i].key == key) {
			*(const char **)(void *)((char *)a + word_options[i].at) = arg;
			return 0;
		}
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (flags[i].key == key) {
			*(bool *)((char *)a + flags[i].at) = true;
			return 0;
		}
	switch (key) {
	case 'r':
		if (!whole_argument(arg, 1, INT64_MAX, &a->run))
			argp_error(state, "--run: '%s' is no number of a run", arg);
		return 0;
	case ARGP_KEY_ARG:
		words_add(&a->word, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (!a->word.n)
			argp_error(state, "an action is missing: probe, import, runs, "
					  "show, diff, export, fit or plot");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"probe\nimport FILE...\nruns\nshow\ndiff RUN RUN\nexport\nfit\nplot",
	"Time this machine's GPUs, keep the measurements and fit a profile to them."
	"\vUsual order: probe, then fit --name mygpu --base h100-sxm, then plot --gpu "
	"./mygpu.yaml. docs/calibrate.md explains each step.",
	NULL,
	NULL,
	NULL,
};

/* ---- import, runs, show, diff, export ----------------------------------------- */

static int do_import(const struct calibrate_args *a, struct ft_store *store)
{
	enum ft_import format = FT_IMPORT_PROBE;
	struct ft_error err;

	if (a->format && !ft_import_find(a->format, &format)) {
		fprintf(stderr,
			"foretoken: error: '%s' is not a format; known: "
			"probe, csv, nccl-tests, attention, kineto\n",
			a->format);
		return 64;
	}
	for (size_t i = 1; i < a->word.n; i++) {
		const char *path = a->word.word[i];
		struct ft_probe_run run = {
			.backend = a->format ? a->format : "probe",
			.device = a->device ? a->device : "",
			.date = a->date ? a->date : "",
			.driver = "",
			.fabric = a->fabric ? a->fabric : "",
			.libraries = "",
			.source = a->source ? a->source : path,
			.gpu = a->gpu,
			.provenance = a->published ? "published" : "measured",
		};
		size_t n;

		if (!ft_store_import(store, format, path, &run, &n, &err))
			return complain(&err);
		printf("%s: %zu measurements\n", path, n);
	}
	return finish_output();
}

static int print_json(json_t *top)
{
	if (json_dumpf(top, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12)))
		return finish_output(), 1;
	putchar('\n');
	json_decref(top);
	return finish_output();
}

static int print_runs(const struct ft_probe_run *r, size_t n)
{
	json_t *top = json_object(), *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "run", json_integer(r[i].id));
		json_object_set_new(o, "date", json_of_text(r[i].date));
		json_object_set_new(o, "backend", json_of_text(r[i].backend));
		json_object_set_new(o, "provenance", json_of_text(r[i].provenance));
		json_object_set_new(o, "device", json_of_text(r[i].device));
		json_object_set_new(o, "cells", json_integer(r[i].n_cells));
		json_object_set_new(o, "ok", json_integer(r[i].n_ok));
		json_object_set_new(o, "libraries", json_of_text(r[i].libraries));
		json_array_append_new(list, o);
	}
	json_object_set_new(top, "runs", list);
	return print_json(top);
}

static int do_runs(const struct calibrate_args *a, struct ft_store *store)
{
	struct ft_error err;
	size_t n;
	const struct ft_probe_run *r = ft_store_runs(store, &n, &err);

	if (!r)
		return complain(&err);
	if (a->json)
		return print_runs(r, n);
	printf("%4s  %-10s  %-10s  %-9s  %-24s  %6s  %6s  %s\n", "run", "date",
	       "backend", "kind", "device", "cells", "ok", "libraries");
	for (size_t i = 0; i < n; i++)
		printf("%4lld  %-10s  %-10s  %-9s  %-24s  %6lld  %6lld  %s\n",
		       (long long)r[i].id, r[i].date, r[i].backend, r[i].provenance,
		       r[i].device, (long long)r[i].n_cells, (long long)r[i].n_ok,
		       r[i].libraries);
	return finish_output();
}

static int do_show(const struct calibrate_args *a, struct ft_store *store)
{
	struct ft_error err;
	size_t n;
	const struct ft_measurement *m =
		ft_store_measurements(store, a->device, a->run, &n, &err);

	if (!m)
		return complain(&err);
	printf("%-64s %12s %12s %12s  %s\n", "cell", "time_us", "p10_us", "p90_us",
	       "status");
	for (size_t i = 0; i < n; i++)
		printf("%-64s %12.3f %12.3f %12.3f  %s%s%s\n", m[i].cell, m[i].time_us,
		       m[i].p10_us, m[i].p90_us, m[i].status, m[i].why[0] ? ": " : "",
		       m[i].why);
	return finish_output();
}

/* Cells of two runs side by side: both lists are sorted by name. */
static int do_diff(const struct calibrate_args *a, struct ft_store *store)
{
	const struct ft_measurement *m[2];
	struct ft_error err;
	size_t n[2], at[2] = { 0, 0 };

	if (a->word.n != 3) {
		fputs("foretoken: error: diff needs two runs, as `foretoken "
		      "calibrate runs` numbers them\n",
		      stderr);
		return 64;
	}
	for (int i = 0; i < 2; i++) {
		int64_t run;

		if (!whole_argument(a->word.word[i + 1], 1, INT64_MAX, &run)) {
			fprintf(stderr,
				"foretoken: error: '%.40s' is no number of a run\n",
				a->word.word[i + 1]);
			return 64;
		}
		m[i] = ft_store_measurements(store, NULL, run, &n[i], &err);
		if (!m[i])
			return complain(&err);
	}
	printf("%-64s %12s %12s %9s\n", "cell", "first_us", "second_us", "change");
	while (at[0] < n[0] && at[1] < n[1]) {
		const struct ft_measurement *x = &m[0][at[0]], *y = &m[1][at[1]];
		int order = strcmp(x->cell, y->cell);

		if (!order && x->time_us > 0 && y->time_us > 0)
			printf("%-64s %12.3f %12.3f %+8.1f%%\n", x->cell, x->time_us,
			       y->time_us, 100 * (y->time_us / x->time_us - 1));
		at[0] += order <= 0;
		at[1] += order >= 0;
	}
	return finish_output();
}

static int do_export(const struct calibrate_args *a, struct ft_store *store)
{
	struct ft_error err;

	if (!a->gpu) {
		fputs("foretoken: error: export needs --gpu\n", stderr);
		return 64;
	}
	if (!ft_store_export(
		    store,
		    &(struct ft_export){ a->device, a->run, a->gpu,
					 a->collectives ? "collectives" : "kernels" },
		    stdout, &err))
		return complain(&err);
	return finish_output();
}

/* ---- fit, plot ------------------------------------------------------------------ */

/* 0 when a word is none of them. */
static int families_of(const char *only)
{
	static const char *const names[] = {
		"gemm",	  "attention",	  "memory", "collectives", "sustained",
		"launch", "interference", "layout", "accumulate"
	};
	int families = 0;

	if (!only)
		return FT_FIT_ALL;
	while (*only) {
		size_t n = strcspn(only, ","), i = 0;

		while (i < 9 && (strlen(names[i]) != n || memcmp(names[i], only, n)))
			i++;
		if (i == 9)
			return 0;
		families |= 1 << i;
		only += n + (only[n] == ',');
	}
	return families;
}

static int print_fit(const struct ft_fit *fit)
{
	json_t *top = json_object(), *list = json_array();

	for (size_t i = 0; i < fit->n_groups; i++) {
		const struct ft_fit_error *e = &fit->group[i];
		json_t *o = json_object();

		json_object_set_new(o, "family", json_of_text(e->family));
		json_object_set_new(o, "n", json_integer((json_int_t)e->n));
		json_object_set_new(o, "mape", json_real(e->mape));
		json_object_set_new(o, "median", json_real(e->median));
		json_object_set_new(o, "p90", json_real(e->p90));
		json_object_set_new(o, "bias", json_real(e->bias));
		json_array_append_new(list, o);
	}
	json_object_set_new(top, "held_out", list);
	return print_json(top);
}

static int do_fit(const struct calibrate_args *a, struct ft_store *store)
{
	struct ft_fit_options o = {
		.name = a->name,
		.base = a->base ? a->base : a->name,
		.folder = a->folder ? a->folder : ".",
		.device = a->device,
		.families = families_of(a->only),
		.with_in_step = a->with_in_step,
	};
	struct ft_error err;
	struct ft_fit fit;

	if (!a->name || !o.families) {
		fputs("foretoken: error: fit needs --name; --only takes gemm, "
		      "attention, memory, collectives, sustained, launch, "
		      "interference, layout, accumulate\n",
		      stderr);
		return 64;
	}
	if (!ft_fit(store, &o, &fit, &err))
		return complain(&err);
	if (fit.note[0])
		fprintf(stderr, "foretoken: note: %s\n", fit.note);
	if (a->json)
		return print_fit(&fit);
	printf("held out, whole weight shapes, five folds\n"
	       "%-36s %6s %8s %8s %8s %8s\n",
	       "family", "n", "MAPE", "median", "p90", "bias");
	for (size_t i = 0; i < fit.n_groups; i++) {
		const struct ft_fit_error *e = &fit.group[i];

		printf("%-36s %6zu %8.4f %8.4f %8.4f %+8.4f\n", e->family, e->n,
		       e->mape, e->median, e->p90, e->bias);
	}
	puts("");
	return finish_output();
}

static int do_plot(const struct calibrate_args *a, struct ft_store *store)
{
	const char *folder = a->folder ? a->folder : ".";
	struct ft_error err;

	if (!a->gpu) {
		fputs("foretoken: error: plot needs --gpu\n", stderr);
		return 64;
	}
	if (!ft_calibrate_plot(store, a->gpu, a->device, folder, &err))
		return complain(&err);
	printf("%s/gemm.svg %s/residuals.svg %s/busbw.svg\n", folder, folder, folder);
	return finish_output();
}

static const struct action {
	const char *name;
	int (*run)(const struct calibrate_args *a, struct ft_store *store);
	bool creates;
} actions[] = {
	{ "probe", calibrate_probe, true }, { "import", do_import, true },
	{ "runs", do_runs, false },	    { "show", do_show, false },
	{ "diff", do_diff, false },	    { "export", do_export, false },
	{ "fit", do_fit, false },	    { "plot", do_plot, false },
};

int cmd_calibrate(int argc, char **argv)
{
	struct calibrate_args a = { .store = "calibrate.db" };
	struct ft_store *store;
	struct ft_error err;
	int code;

	parse_arguments(&argp, argc, argv, &a);
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		if (strcmp(actions[i].name, a.word.word[0]))
			continue;
		store = ft_store_open(a.store, actions[i].creates, &err);
		if (!store)
			return complain(&err);
		code = actions[i].run(&a, store);
		ft_store_close(store);
		return code;
	}
	fprintf(stderr,
		"foretoken: error: calibrate has no action '%s'; known: probe, "
		"import, runs, show, diff, export, fit, plot\n",
		a.word.word[0]);
	return 64;
}
