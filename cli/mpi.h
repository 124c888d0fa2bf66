/*
 * cli/mpi.h - what the plug-in for MPI offers to the program
 *
 * The program knows no MPI: it loads the plug-in, which is linked with it, when it was
 * started as one of several ranks, so that it runs where no MPI is installed.
 */
#ifndef CLI_MPI_H
#define CLI_MPI_H

#include "foretoken/study_ranks.h"

#define MPI_PLUGIN "foretoken-mpi.so"
#define MPI_PLUGIN_OPEN "foretoken_mpi_open"

struct mpi_plugin {
	struct ft_channel channel;
	/* all_there: none of the ranks was lost, so that MPI may end as it wants to; else it is
	 * left alone, since it would wait for them, and the program has to end with _exit. */
	void (*close)(struct mpi_plugin *plugin, bool all_there);
};

/* NULL: why, of n bytes, says what is wrong. */
typedef struct mpi_plugin *mpi_plugin_open(char *why, size_t n);

#endif
