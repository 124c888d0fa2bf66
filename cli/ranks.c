/* cli/ranks.c - was it started by mpirun? The plug-in for MPI, loaded and ended */
#include "cli/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/mpi.h"

/* Processes of the job, by what mpirun or srun says; 0: nobody says anything. */
static long started_as_one_of(void)
{
	/* Open MPI; MPICH and Intel MPI; PMIx, by Slurm */
	static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };
	const char *text;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if ((text = getenv(sizes[i])))
			return strtol(text, NULL, 10);
	text = getenv("SLURM_STEP_NUM_TASKS");
	return getenv("PMIX_RANK") && text ? strtol(text, NULL, 10) : 0;
}

static bool refuse(long ranks, const char *why)
{
	fprintf(stderr,
		"foretoken: error: started as one of %ld processes, but %s; install "
		"openmpi-bin (to build: libopenmpi-dev), or give each machine a --shard K/N\n",
		ranks, why);
	return false;
}

static struct mpi_plugin *load(const char *path, char *why, size_t n)
{
	/* global: Open MPI loads parts of its own, which want its symbols */
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	mpi_plugin_open *open = NULL;

	if (library)
		*(void **)&open = dlsym(library, MPI_PLUGIN_OPEN);
	if (open)
		return open(why, n);
	snprintf(why, n, "%s", dlerror());
	return NULL;
}

bool ranks_session_open(struct ranks_session *s)
{
	long ranks = started_as_one_of();
	char path[PATH_MAX], why[512] = "";

	*s = (struct ranks_session){ NULL, NULL };
	if (ranks <= 1)
		return true;
	if (!beside_program(MPI_PLUGIN, path, sizeof(path)))
		return refuse(ranks, "this foretoken was built without MPI");
	s->plugin = load(path, why, sizeof(why));
	if (!s->plugin)
		return refuse(ranks, why);
	if (s->plugin->channel.ranks != ranks) {
		s->plugin->close(s->plugin, true);
		return refuse(ranks, "by another MPI than the one it was built for");
	}
	s->ranks = ft_ranks_new(&s->plugin->channel);
	return true;
}

int ranks_session_threads(const struct ranks_session *s)
{
	return s->ranks ? 1 : 0;
}

int ranks_session_close(struct ranks_session *s, const struct ft_error *failed,
			int status)
{
	char lost[1024];
	bool all, first = ft_ranks_first(s->ranks);

	if (!s->ranks)
		return status;
	all = ft_ranks_end(s->ranks, failed, lost, sizeof(lost));
	ft_ranks_free(s->ranks);
	if (*lost)
		fprintf(stderr, "foretoken: %s; others did its work\n", lost);
	s->plugin->close(s->plugin, all);
	if (!first)
		status = 0; /* rank 0 tells how it ended */
	if (all)
		return status;
	fflush(stdout);
	_exit(status);
}
