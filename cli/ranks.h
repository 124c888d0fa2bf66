/*
 * cli/ranks.h - a command that several processes share, started by mpirun
 *
 * Rank 0 reads, writes and prints as one process does; the others are silent. Where the
 * program was started alone, all of this does nothing.
 */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <stdbool.h>

#include "foretoken/study_ranks.h"

struct mpi_plugin;

struct ranks_session {
	struct mpi_plugin *plugin; /* NULL: alone */
	struct ft_ranks *ranks;	   /* NULL: alone */
};

/* false: it was told, with what to do. */
bool ranks_session_open(struct ranks_session *session)
	__attribute__((warn_unused_result));

/* Threads of a rank, where nobody said: one; alone 0, for all cores. */
int ranks_session_threads(const struct ranks_session *session);

/* All ranks have ended; failed: why this one had to (NULL). status: the command's, which is
 * returned; where a rank was lost, the program ends here. */
int ranks_session_close(struct ranks_session *session, const struct ft_error *failed,
			int status);

#endif
