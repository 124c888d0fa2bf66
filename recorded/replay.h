/*
 * recorded/replay.h - the graph of what waits for what, inside
 *
 * An event is the begin (2 i) or the end (2 i + 1) of a call or an operation, or the
 * moment when a collective has begun on all its ranks, or the end of a pass of a stage
 * that was not recorded. Each rank's calls come first, then its operations; the meetings
 * of collectives follow all ranks, and then the passes.
 */
#ifndef RECORDED_REPLAY_H
#define RECORDED_REPLAY_H

#include "recorded/recording.h"

/* What a lag is made of, besides its fixed part. */
enum lag_kind {
	LAG_FIXED,
	LAG_HOST,  /* time of the host: times host_factor */
	LAG_OP,	   /* the operation's own time, at ->to */
	LAG_SHARE, /* a share of the operation's time, at ->from */
	LAG_PASS,  /* the time of a recorded pass; ->lag is its number */
};

struct edge {
	uint32_t from, to;
	ft_ps lag;
	enum lag_kind kind;
};

struct rank {
	const struct ft_recording *r;
	uint32_t first_call, first_op; /* events */
	ft_ps shift;		       /* onto the first rank's clock */
	uint8_t *cause;		       /* [op] enum ft_rec_cause */
	int32_t *meeting;	       /* [op] of collectives: or FT_REC_NONE */
	int32_t *step;		       /* [op] in which it was launched, or NONE */
};

struct meeting {
	size_t n; /* ranks that meet */
	ft_ps last_begin;
	bool parted; /* one of them would meet others, too: none meets */
};

/* A recorded forward or backward pass of one micro-batch: operations of a rank's busiest
 * stream, one behind another. */
struct pass {
	size_t rank, n;
	uint32_t *op;
	ft_ps duration; /* from the first's begin to the last's end */
};

struct ft_replay {
	struct arena mem;
	size_t n_ranks, n_events, n_meetings;
	struct rank *rank;
	struct meeting *meeting;
	uint32_t first_meeting;
	struct pass *pass; /* that stand for those of other stages */
	size_t n_passes, pass_cap;
	char stages[200]; /* which are not recorded, and what stands for them; or "" */
	struct table_rows edge;
	uint32_t *out, *out_edge; /* edges by what they come from */
	struct ft_replay_counts counts;
};

static inline uint32_t call_event(const struct rank *k, size_t call, bool end)
{
	return k->first_call + 2 * (uint32_t)call + end;
}

static inline uint32_t op_event(const struct rank *k, size_t op, bool end)
{
	return k->first_op + 2 * (uint32_t)op + end;
}

static inline void edge_add(struct ft_replay *p, uint32_t from, uint32_t to, ft_ps lag,
			    enum lag_kind kind)
{
	*(struct edge *)table_add(&p->mem, &p->edge) =
		(struct edge){ from, to, lag, kind };
}

/* ---- recorded/hosts.c: calls; recorded/waits.c: events; recorded/meet.c: ranks ---- */

void hosts_depend(struct ft_replay *p, struct rank *k);

/* For each operation the one of another stream that a call told it to wait for. */
int32_t *waits_find(struct ft_replay *p, const struct rank *k, struct arena *scratch);

/* recorded/replay.c: when a moment of the host, of the recording's clock, comes in a
 * replay: by the last call before it (or the first, if there is none before); where none was
 * recorded by the last operation. */
ft_ps replay_mark(const struct ft_replay *p, const struct ft_replayed *t, size_t rank,
		  ft_ps at);

/* recorded/depend.c: operations. */
void ops_depend(struct ft_replay *p, struct rank *k);

/* recorded/stages.c: stages of a pipeline that no file is of, after all other edges. */
void stages_lay_out(struct ft_replay *p);

/* recorded/replay.c: when each event comes as recorded, with all edges there are; in the
 * replay's memory. */
ft_ps *replay_as_recorded(struct ft_replay *p);

/* recorded/stage_marks.c: do marks say that backward passes are cut in two? */
bool marks_cut(const struct ft_recording *r);

/* recorded/told_layers.c: where in the model an operation is, if its kernel tells. */
enum told_pass { PASS_NOT_TOLD, PASS_FORWARD, PASS_BACKWARD };

struct told_place {
	enum told_pass pass;
	int64_t layer, micro_batch; /* -1: not told */
};

struct told_place told_place(const struct ft_recording *r, const struct ft_rec_op *op);

/* recorded/layers.c: is it a product, or attention; the stream on which these run longest. */
bool op_is_mark(const struct ft_rec_op *op);
int16_t busiest_stream(const struct ft_recording *r, struct arena *scratch);

/* recorded/alike.c: can the recordings be of one job? */
bool ranks_alike(const struct ft_replay *p, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Collectives that all ranks given recorded; before edges are made. */
bool ranks_meet(struct ft_replay *p, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Kernels that send or receive without arguments: those of a batch have none. */
size_t transfers_untold(const struct ft_replay *p);

#endif
