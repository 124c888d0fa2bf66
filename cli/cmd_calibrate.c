/* cli/cmd_calibrate.c - foretoken calibrate ACTION: measurements to GPU profiles */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/json_text.h"
#include "cli/calibrate.h"

/* ---- import, runs, show, diff, export ----------------------------------------- */

/* An option that is given and does nothing with files of the format; NULL: all do something. */
static const char *idle_in_format(const struct calibrate_args *a, enum ft_import format)
{
	bool probe = format == FT_IMPORT_PROBE; /* its lines say it themselves */

	return probe && a->device		 ? "device" :
	       probe && a->date			 ? "date" :
	       probe && a->fabric		 ? "fabric" :
	       probe && a->published		 ? "published" :
	       format != FT_IMPORT_CSV && a->gpu ? "gpu" :
						   NULL;
}

static int do_import(const struct calibrate_args *a, struct ft_store *store)
{
	enum ft_import format = FT_IMPORT_PROBE;
	struct ft_error err;
	const char *idle;

	if (a->format && !ft_import_find(a->format, &format)) {
		fprintf(stderr,
			"foretoken: error: '%s' is not a format; known: "
			"probe, csv, nccl-tests, attention, kineto\n",
			a->format);
		return 64;
	}
	idle = idle_in_format(a, format);
	if (idle) {
		fprintf(stderr,
			"foretoken: error: --%s does nothing with files of the format "
			"%s\n",
			idle, a->format ? a->format : "probe");
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
		printf("%s: %zu measurement%s\n", path, n, n == 1 ? "" : "s");
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
				"foretoken: error: a run: '%.40s' is not a whole number of at least 1\n",
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
	bool bus = false;

	if (!a->gpu) {
		fputs("foretoken: error: plot needs --gpu\n", stderr);
		return 64;
	}
	if (!ft_calibrate_plot(store, a->gpu, a->device, folder, &bus, &err))
		return complain(&err);
	printf("%s/gemm.svg %s/residuals.svg", folder, folder);
	if (bus)
		printf(" %s/busbw.svg", folder);
	putchar('\n');
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

	calibrate_parse(argc, argv, &a);
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		if (strcmp(actions[i].name, a.word.word[0]))
			continue;
		store = file_for_sqlite("--store", a.store, &err) ?
				ft_store_open(a.store, actions[i].creates, &err) :
				NULL;
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
