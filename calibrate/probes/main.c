/*
 * calibrate/probes/main.c - foretoken-probe: times the planned cells on one backend
 *
 * stdout (or --out) gets JSON lines, stderr gets talk. Links neither GSL nor
 * libforetoken. Exit 0 done, 1 failed, 64 wrong usage, 77 nothing to probe on
 * (no device, no driver, no plug-in).
 */
#include <argp.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "calibrate/probes/plan.h"
#include "calibrate/probes/write.h"

enum { EXIT_ABSENT = 77, EXIT_USAGE = 64 };

struct options {
	const char *backend, *out, *done, *date;
	enum probe_effort effort;
	unsigned kinds;
	int most_devices;
	double limit_s;
	bool list;
	struct probe_method method;
};

static const struct argp_option known[] = {
	{ "backend", 'b', "NAME", 0, "cuda, hip, cpu or fake (default cpu)", 0 },
	{ "out", 'o', "FILE", 0, "Append to FILE, and skip what it holds", 0 },
	{ "done", 'd', "FILE", 0, "Skip the cells that FILE names", 0 },
	{ "only", 'k', "KIND,...", 0,
	  "gemm, attention, memory, launch, "
	  "transfer, collective, beside",
	  0 },
	{ "quick", 'q', NULL, 0, "Few and small cells", 0 },
	{ "devices", 'n', "N", 0, "Use at most N devices", 0 },
	{ "limit", 'l', "SECONDS", 0, "Stop after so long; a later run goes on", 0 },
	{ "cell", 'c', "SECONDS", 0, "Time for one cell (default 0.03)", 0 },
	{ "sustained", 's', "SECONDS", 0, "Of sustained cells (default 2.5)", 0 },
	{ "seed", 'r', "N", 0, "Of the order and the data (default 1)", 0 },
	{ "date", 't', "YYYY-MM-DD", 0, "Written into the run (default today)", 0 },
	{ "plan", 'p', NULL, 0, "Print the cells instead", 0 },
	{ 0 },
};

static unsigned kinds_of(char *list, struct argp_state *state)
{
	unsigned kinds = 0;
	char *rest;

	for (char *w = strtok_r(list, ",", &rest); w; w = strtok_r(NULL, ",", &rest)) {
		int k = 0;

		while (k < PROBE_KINDS &&
		       strcmp(w, probe_kind_name((enum probe_kind)k)))
			k++;
		if (k == PROBE_KINDS)
			argp_error(state, "'%s' is not a kind of cell", w);
		kinds |= 1u << k;
	}
	return kinds;
}

static double seconds(const char *arg, struct argp_state *state)
{
	char *end;
	double v = strtod(arg, &end);

	if (*end || !(v > 0 && v <= 1e9))
		argp_error(state, "'%s' is not a number of seconds above zero", arg);
	return v;
}

static int whole(const char *arg, struct argp_state *state)
{
	char *end;
	long v = strtol(arg, &end, 10);

	if (*end || v < 1 || v > INT32_MAX)
		argp_error(state, "'%s' is not a whole number from 1", arg);
	return (int)v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'b':
		o->backend = arg;
		return 0;
	case 'o':
		o->out = arg;
		return 0;
	case 'd':
		o->done = arg;
		return 0;
	case 'k':
		o->kinds = kinds_of(arg, state);
		return 0;
	case 'q':
		o->effort = PROBE_QUICK;
		return 0;
	case 'n':
		o->most_devices = whole(arg, state);
		return 0;
	case 'l':
		o->limit_s = seconds(arg, state);
		return 0;
	case 'c':
		o->method.cell_s = seconds(arg, state);
		return 0;
	case 's':
		o->method.sustained_s = seconds(arg, state);
		return 0;
	case 'r':
		o->method.seed = (uint64_t)whole(arg, state);
		return 0;
	case 't':
		o->date = arg;
		return 0;
	case 'p':
		o->list = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A plug-in's code is run: its name is letters and digits, no way to elsewhere. */
static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return n && n < 32 && !name[n];
}

/* Beside this program first, then wherever the loader looks. */
static const struct probe_backend *plug_in(const char *name)
{
	char self[4096], path[4300];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	probe_get_fn *get = NULL;
	void *lib = NULL;

	if (!is_name(name)) {
		fprintf(stderr, "foretoken-probe: '%.32s' is not a backend\n", name);
		return NULL;
	}
	if (len > 0) {
		self[len] = '\0';
		*strrchr(self, '/') = '\0';
		snprintf(path, sizeof(path), "%s/libft_%s.so", self, name);
		if (!access(path, R_OK))
			lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		else
			lib = dlopen(strrchr(path, '/') + 1, RTLD_NOW | RTLD_LOCAL);
	}
	if (lib)
		*(void **)&get = dlsym(lib, PROBE_GET);
	if (get && get()->abi == PROBE_ABI)
		return get();
	fprintf(stderr,
		"foretoken-probe: the backend '%s' cannot be loaded: "
		"%s; build it on this machine with `make probes`\n",
		name, get ? "its plug-in is of another version" : dlerror());
	return NULL;
}

static const struct probe_backend *backend_named(const char *name)
{
	if (!strcmp(name, "cpu"))
		return probe_cpu();
	if (!strcmp(name, "fake"))
		return probe_fake();
	return plug_in(name);
}

/* One line that rewrites itself, on a terminal, after two seconds. */
static void progress(size_t at, size_t n, double since_s, bool last)
{
	double spent = probe_now_s() - since_s;

	if (!isatty(2) || (spent < 2 && !last))
		return;
	fprintf(stderr, "\r%5zu of %zu cells, %.0f s left   %s", at, n,
		at ? spent / (double)at * (double)(n - at) : 0.0, last ? "\n" : "");
}

static void rest(const struct probe_method *m, double busy_s)
{
	double s = m->rest_frac * busy_s;
	struct timespec t;

	s = s > 0.2 ? 0.2 : s;
	t.tv_sec = 0;
	t.tv_nsec = (long)(s * 1e9);
	if (s > 0)
		nanosleep(&t, NULL);
}

struct tally {
	size_t of[PROBE_ABSENT + 1];
};

static bool cannot_write(void)
{
	fprintf(stderr,
		"foretoken-probe: cannot write the measurements: %s; "
		"free some space and run it again, it goes on where it "
		"stopped\n",
		strerror(errno));
	return false;
}

static bool run_cells(const struct options *o, const struct probe_plan *plan,
		      const struct probe_done *done,
		      const struct probe_backend *backend,
		      struct probe_session *session, FILE *out, struct tally *tally)
{
	double since = probe_now_s();

	for (size_t i = 0; i < plan->n; i++) {
		struct probe_time time = { .relative_error = -1,
					   .clock_mhz = -1,
					   .power_w = -1,
					   .temperature_c = -1 };
		char id[PROBE_CELL_ID], why[512] = "";
		enum probe_status status;
		double start = probe_now_s();

		probe_cell_id(&plan->cell[i], id);
		if (probe_done_has(done, id))
			continue;
		if (o->limit_s > 0 && start - since > o->limit_s)
			break;
		status = backend->run(session, &plan->cell[i], &o->method, &time, why,
				      sizeof(why));
		tally->of[status]++;
		if (status == PROBE_WRONG || status == PROBE_FAILED)
			fprintf(stderr, "foretoken-probe: %s: %s\n", id, why);
		if (!probe_write_cell(out, &plan->cell[i], status, &time, why))
			return cannot_write();
		progress(i + 1, plan->n, since, i + 1 == plan->n);
		rest(&o->method, probe_now_s() - start);
	}
	return true;
}

static int list_cells(const struct probe_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		char id[PROBE_CELL_ID];

		probe_cell_id(&plan->cell[i], id);
		puts(id);
	}
	return fflush(stdout) ? 1 : 0;
}

/* A pipe or a device holds no cells; one without an end would be read for ever. */
static bool read_done(struct probe_done *done, const char *path, bool must)
{
	FILE *in = path ? fopen(path, "r") : NULL;
	struct stat st;
	bool ok = true;

	if (in) {
		if (!fstat(fileno(in), &st) && S_ISREG(st.st_mode))
			ok = probe_done_read(done, in);
		fclose(in);
	} else if (path && must) {
		fprintf(stderr, "foretoken-probe: %s: %s\n", path, strerror(errno));
		ok = false;
	}
	return ok;
}

static FILE *open_out(const char *path)
{
	FILE *out = path ? fopen(path, "a") : stdout;

	if (!out)
		fprintf(stderr, "foretoken-probe: %s: %s\n", path, strerror(errno));
	/* a line that broke off must not swallow the next */
	if (out && path && !fseek(out, 0, SEEK_END) && ftell(out) > 0)
		putc('\n', out);
	return out;
}

static int probe(struct options *o, const struct probe_backend *backend,
		 struct probe_session *session, struct probe_device *device)
{
	struct probe_done done = { 0 };
	struct probe_plan plan;
	struct tally tally = { { 0 } };
	FILE *out;
	int code = 1;

	if (o->most_devices && device->devices > o->most_devices)
		device->devices = o->most_devices;
	if (!probe_plan_make(&plan, o->effort, o->kinds, device, o->method.seed))
		abort();
	if (read_done(&done, o->out, false) && read_done(&done, o->done, true) &&
	    (out = open_out(o->out))) {
		code = !(probe_write_run(out, backend, device, &o->method, o->date) ||
			 cannot_write()) ||
		       !run_cells(o, &plan, &done, backend, session, out, &tally);
		if (o->out && fclose(out))
			code = !cannot_write();
	}
	fprintf(stderr,
		"foretoken-probe: %s: %zu measured, %zu already there, "
		"%zu unsupported, %zu too large, %zu wrong, %zu failed\n",
		device->name, tally.of[PROBE_OK], done.n, tally.of[PROBE_UNSUPPORTED],
		tally.of[PROBE_NO_MEMORY], tally.of[PROBE_WRONG],
		tally.of[PROBE_FAILED]);
	probe_done_free(&done);
	probe_plan_free(&plan);
	return code;
}

/* The cells of a machine as NVIDIA's are, which is not asked. */
static int list_plan(const struct options *o)
{
	struct probe_device device = { .fused = "cudnn", .fused_fp8 = true };
	struct probe_plan plan;
	int code;

	device.devices = o->most_devices ? o->most_devices : 1;
	if (!probe_plan_make(&plan, o->effort, o->kinds, &device, o->method.seed))
		abort();
	code = list_cells(&plan);
	probe_plan_free(&plan);
	return code;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		known,
		parse,
		NULL,
		"Time kernels, copies and collectives on "
		"this machine; one JSON line each.",
		NULL,
		NULL,
		NULL,
	};
	struct options o = {
		.backend = "cpu",
		.effort = PROBE_FULL,
		.kinds = ~0u,
		.method = { .warm_up = 3,
			    .least_reps = 5,
			    .most_reps = 50,
			    .cell_s = 0.03,
			    .sustained_s = 2.5,
			    .rest_frac = 0.5,
			    .seed = 1 },
	};
	const struct probe_backend *backend;
	struct probe_session *session = NULL;
	struct probe_device device = { 0 };
	enum probe_status status;
	char why[512] = "", today[16];
	time_t now = time(NULL);
	struct tm day;
	int code;

	argp_err_exit_status = EXIT_USAGE;
	strftime(today, sizeof(today), "%Y-%m-%d", gmtime_r(&now, &day));
	o.date = today;
	if (argp_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (o.list)
		return list_plan(&o);
	backend = backend_named(o.backend);
	if (!backend)
		return EXIT_ABSENT;
	status = backend->open(&session, o.method.seed, &device, why, sizeof(why));
	if (status != PROBE_OK) {
		fprintf(stderr, "foretoken-probe: %s: %s\n", backend->name, why);
		return status == PROBE_ABSENT ? EXIT_ABSENT : 1;
	}
	code = probe(&o, backend, session, &device);
	backend->close(session);
	return code;
}
