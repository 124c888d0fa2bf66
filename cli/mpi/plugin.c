/*
 * cli/mpi/plugin.c - the channel of foretoken/study_ranks.h over MPI
 *
 * Nothing waits: a message is sent with MPI_Isend from a copy, and one receive stands for
 * each rank, so that one that dies in the middle of a message holds up nobody else. One
 * thread at a time calls, not always the same one: MPI_THREAD_SERIALIZED.
 */
#include "cli/mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

enum { TAG = 1 };

struct sent {
	struct sent *next;
	MPI_Request request;
	char bytes[];
};

struct incoming { /* from one rank */
	MPI_Request request;
	char *bytes; /* NULL: nothing is under way */
	size_t n;
};

struct mpi {
	struct mpi_plugin plugin; /* first: the handle */
	struct sent *sent;
	struct incoming *from; /* [ranks] */
	int next;	       /* whose turn it is */
	char *given;	       /* the message that the caller reads */
};

/* What has left is freed. */
static void sweep_sent(struct mpi *m)
{
	for (struct sent **at = &m->sent; *at;) {
		struct sent *s = *at;
		int gone = 0;

		if (MPI_Test(&s->request, &gone, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
		    gone) {
			*at = s->next;
			free(s);
		} else {
			at = &s->next;
		}
	}
}

static void send_to(void *context, int to, const void *bytes, size_t n)
{
	struct mpi *m = context;
	struct sent *s = malloc(sizeof(*s) + n);

	if (!s)
		abort();
	memcpy(s->bytes, bytes, n);
	s->next = NULL;
	if (MPI_Isend(s->bytes, (int)n, MPI_BYTE, to, TAG, MPI_COMM_WORLD,
		      &s->request) != MPI_SUCCESS) {
		free(s);
		return;
	}
	s->next = m->sent;
	m->sent = s;
	sweep_sent(m);
}

/* Begin to receive what this rank has sent, if it has. */
static bool begin(struct incoming *in, int from)
{
	MPI_Message message;
	MPI_Status status;
	int there = 0, n;

	if (MPI_Improbe(from, TAG, MPI_COMM_WORLD, &there, &message, &status) !=
		    MPI_SUCCESS ||
	    !there)
		return false;
	MPI_Get_count(&status, MPI_BYTE, &n);
	in->n = (size_t)n;
	in->bytes = malloc(in->n + 1);
	if (!in->bytes)
		abort();
	MPI_Imrecv(in->bytes, n, MPI_BYTE, &message, &in->request);
	return true;
}

static const void *take(void *context, int *from, size_t *n)
{
	struct mpi *m = context;
	int ranks = m->plugin.channel.ranks;

	free(m->given);
	m->given = NULL;
	sweep_sent(m);
	for (int i = 0; i < ranks; i++) {
		int rank = (m->next + i) % ranks, whole = 0;
		struct incoming *in = &m->from[rank];

		if (rank == m->plugin.channel.rank ||
		    (!in->bytes && !begin(in, rank)) ||
		    MPI_Test(&in->request, &whole, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
		    !whole)
			continue;
		m->next = rank;
		m->given = in->bytes;
		in->bytes = NULL;
		*from = rank;
		*n = in->n;
		return m->given;
	}
	m->next = (m->next + 1) % ranks;
	return NULL;
}

static void close_all(struct mpi_plugin *plugin, bool all_there)
{
	struct mpi *m = (struct mpi *)plugin;
	struct timespec moment = { 0, 1000000 };

	for (int i = 0; i < 200 && m->sent; i++) { /* the last words are on their way */
		sweep_sent(m);
		nanosleep(&moment, NULL);
	}
	if (all_there)
		MPI_Finalize();
}

__attribute__((visibility("default"))) mpi_plugin_open foretoken_mpi_open;

struct mpi_plugin *foretoken_mpi_open(char *why, size_t n)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int threads = 0;

	if (!m || MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads) !=
			  MPI_SUCCESS) {
		snprintf(why, n, "MPI cannot be started");
		free(m);
		return NULL;
	}
	if (threads < MPI_THREAD_SERIALIZED) {
		snprintf(why, n, "this MPI was built without threads");
		MPI_Finalize();
		free(m);
		return NULL;
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &m->plugin.channel.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m->plugin.channel.ranks);
	m->plugin.channel.context = m;
	m->plugin.channel.send = send_to;
	m->plugin.channel.take = take;
	m->plugin.close = close_all;
	m->from = calloc((size_t)m->plugin.channel.ranks, sizeof(*m->from));
	if (!m->from)
		abort();
	return &m->plugin;
}
