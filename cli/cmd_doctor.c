/* cli/cmd_doctor.c - foretoken doctor */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/mpi.h"
#include "foretoken/serve.h"

static const struct {
	const char *program, *wanted_by, *package;
} programs[] = {
	{ "gnuplot", "reports and plots", "gnuplot-nox" },
	{ "sqlite3", "asking the tables of sweeps (four examples)", "sqlite3" },
	{ "jq", "one example, tests", "jq" },
	{ "mpirun", "sweep and plan as ranks of many machines", "openmpi-bin" },
	{ "python3", "make validate, make residuals, some tests", "python3" },
	{ "nvidia-smi", "calibrating an NVIDIA GPU of this machine",
	  "NVIDIA's driver" },
	{ "rocm-smi", "calibrating an AMD GPU of this machine", "ROCm" },
	{ "chromium", "tests that look at the report", "chromium" },
	{ "man", "foretoken-scenario(5) and the other pages", "man-db" },
};

/* What the build makes beside the program. */
static const struct {
	const char *name, *file, *missing, *wanted_by;
} parts[] = {
	{ "MPI", MPI_PLUGIN, "built without, install libopenmpi-dev and make again",
	  "what mpirun needs of this program" },
	{ "probes", "foretoken-probe", "not built, make probes",
	  "measuring this machine, calibrate probe" },
	{ "CUDA", "libft_cuda.so", "not built, make probes where CUDA and cuDNN are",
	  "the probes on an NVIDIA GPU" },
	{ "HIP", "libft_hip.so", "not built, make probes where ROCm is",
	  "the probes on an AMD GPU" },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is too much: doctor takes no argument", arg);
	return 0;
}

static const struct argp argp = {
	NULL,
	parse,
	"",
	"Show which optional programs and libraries are installed, and which commands use "
	"them. None of them is needed to simulate."
	"\vExample: foretoken doctor",
	NULL,
	NULL,
	NULL,
};

/* Where the program is found by PATH; NULL: nowhere. */
static const char *found(struct arena *mem, const char *program)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		const char *file = arena_printf(mem, "%.*s/%s", (int)n, path, program);

		if (n && !access(file, X_OK))
			return file;
		path += n + (path[n] == ':');
	}
	return NULL;
}

int cmd_doctor(int argc, char **argv)
{
	struct arena mem = { 0 };
	char file[PATH_MAX];
	struct ft_error err;
	const char *data;

	parse_arguments(&argp, argc, argv, NULL);
	data = file_find(&mem, "hw/gpus", "h100-sxm", NULL, &err);
	printf("%-11s %s\n", "data", data ? data : err.text);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		const char *at = found(&mem, programs[i].program);

		printf("%-11s %s%s%s: %s\n", programs[i].program,
		       at ? at : "not here, install ", at ? "" : programs[i].package,
		       "", programs[i].wanted_by);
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		printf("%-11s %s: %s\n", parts[i].name,
		       beside_program(parts[i].file, file, sizeof(file)) ?
			       file :
			       parts[i].missing,
		       parts[i].wanted_by);
	printf("%-11s %s: a local page and a JSON API\n", "serve",
	       ft_serve_can(&err) ? "ready" : err.text);
	arena_release(&mem);
	return data ? finish_output() : 1;
}
