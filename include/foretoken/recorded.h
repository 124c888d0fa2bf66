/*
 * foretoken/recorded.h - steps that a profiler recorded: what ran, when, and what
 * waited for what
 *
 * A recording is what one rank's file holds: operations of the GPU, the calls of the
 * host that launched them, and the operators and annotations that say what they were
 * for. Times are picoseconds from the earliest event that is kept.
 *
 *   host    |L|L|L|...|S--------wait--------|      calls, in the order of their start
 *   stream 7    |####|##|  |#####|                 operations, one after another
 *   stream 34       |=====|                        joined to calls by correlation
 *
 * A step of several ranks is a set of recordings, replayed together.
 */
#ifndef FORETOKEN_RECORDED_H
#define FORETOKEN_RECORDED_H

#include <stdint.h>
#include <stdio.h>

#include "foretoken/base.h"
#include "foretoken/traces.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FT_REC_NONE = -1 };

/* What an operation of the GPU is, for breakdowns and what-ifs. */
enum ft_rec_class {
	FT_REC_GEMM,	  /* products and convolutions */
	FT_REC_ATTENTION, /* fused attention, state-space scans */
	FT_REC_MEMORY,	  /* bound by memory bandwidth */
	FT_REC_OPTIMIZER, /* the update of weights; bound by memory bandwidth */
	FT_REC_COLLECTIVE,
	FT_REC_COPY,  /* copies and fills by the runtime */
	FT_REC_OTHER, /* not told by name nor operator: keeps its time */
	FT_REC_CLASSES
};

const char *ft_rec_class_name(enum ft_rec_class c);
bool ft_rec_class_find(const char *name, enum ft_rec_class *c);

/* What a call of the host is. Calls of other kinds are not kept: their time is part of
 * the pause before the next one that is. */
enum ft_rec_call_kind {
	FT_REC_LAUNCH, /* of kernels, copies and fills, or of a graph of them */
	FT_REC_RECORD, /* of an event */
	FT_REC_WAIT,   /* a stream is told to wait for an event */
	FT_REC_SYNC_EVENT,
	FT_REC_SYNC_STREAM,
	FT_REC_SYNC_DEVICE,
	FT_REC_ALLOCATION, /* memory of the GPU taken, or given back */
	FT_REC_CALL_KINDS
};

/* Something that ran on the GPU. Numbers index the recording's tables. */
struct ft_rec_op {
	ft_ps start, duration;
	int64_t correlation, external_id; /* FT_REC_NONE: not told */
	int32_t name, args;		  /* texts; args: JSON or FT_REC_NONE */
	int32_t call;			  /* that launched it, or FT_REC_NONE */
	int32_t work;			  /* of its operator, or FT_REC_NONE */
	int16_t stream;
	uint8_t is_copy; /* a copy or fill by the runtime, not a kernel */
	uint8_t rec_class;
	uint8_t in_fsdp;  /* launched where FSDP gathers or reduces */
	uint8_t on_shard; /* works on what this rank holds of sharded weights */
};

/* A call of the host. */
struct ft_rec_call {
	ft_ps start, duration;
	int64_t correlation, external_id;
	int32_t name;
	int32_t waits_for; /* WAIT: the call that recorded its event, where told; or NONE */
	int16_t thread;
	int16_t stream; /* of waits and synchronisations, where told; or NONE */
	uint8_t kind;
};

/* An operator of the framework, or an annotation of a program. */
struct ft_rec_span {
	ft_ps start, duration;
	int64_t id;	    /* External id */
	int32_t name, args; /* args: JSON of what it was given, or FT_REC_NONE */
	int16_t thread;
};

/* A step as it was marked: by an annotation "ProfilerStep#6", else "all". */
struct ft_rec_step {
	ft_ps begin, end; /* of the annotation; of all that ran */
	int32_t name;
	bool marked;
};

/* What was repaired or could not be told, counted. */
struct ft_rec_counts {
	int64_t events, kept;	   /* of the file; in the tables */
	int64_t unknown_phases;	   /* other than complete, instant, flow, metadata */
	int64_t negative;	   /* durations below 0, taken as 0 */
	int64_t without_call;	   /* operations that no recorded call launched */
	int64_t without_op;	   /* launches of which no operation is recorded */
	int64_t before_call;	   /* operations that start before their launch */
	int64_t twice;		   /* operations and calls told again, left out */
	int64_t other_gpus;	   /* events of a file's other GPUs, left out */
	int64_t overlapping_steps; /* cut where the next begins */
	int64_t empty_steps;	   /* marks in which nothing was launched, left out */
};

struct ft_recording;

/* Kineto JSON or that of JAX's profiler, plain, gzip or zstd, or Nsight Systems' SQLite export, told by
 * its first bytes; Chakra's execution traces, told by their names' end, ".et". NULL on error. */
struct ft_recording *ft_recording_read(const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Kineto JSON from a stream, which is closed; called: its name in messages. */
struct ft_recording *ft_recording_read_stream(FILE *from, const char *called,
					      struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_recording_free(struct ft_recording *recording);

/* Does a file look like a recording: packed, or JSON with a profiler's keys? */
bool ft_recording_is(const char *path);

const char *ft_recording_file(const struct ft_recording *r);
const char *ft_recording_device(const struct ft_recording *r); /* "": not told */
int64_t ft_recording_rank(const struct ft_recording *r);       /* or FT_REC_NONE */
int64_t ft_recording_world(const struct ft_recording *r);      /* or FT_REC_NONE */
const struct ft_rec_counts *ft_recording_counts(const struct ft_recording *r);

size_t ft_recording_ops(const struct ft_recording *r);
size_t ft_recording_calls(const struct ft_recording *r);
size_t ft_recording_spans(const struct ft_recording *r); /* operators */
size_t ft_recording_annotations(const struct ft_recording *r);
size_t ft_recording_streams(const struct ft_recording *r);
size_t ft_recording_steps(const struct ft_recording *r); /* at least one */

/* In the order of the file; ft_recording_op_at and _call_at by start. */
const struct ft_rec_op *ft_recording_op(const struct ft_recording *r, size_t i);
const struct ft_rec_call *ft_recording_call(const struct ft_recording *r, size_t i);
size_t ft_recording_op_at(const struct ft_recording *r, size_t i);
size_t ft_recording_call_at(const struct ft_recording *r, size_t i);
const struct ft_rec_span *ft_recording_annotation(const struct ft_recording *r,
						  size_t i);
/* Annotations of an optimizer's steps, by start, without the passes that may run inside of one. */
size_t ft_recording_updates(const struct ft_recording *r);
const struct ft_rec_span *ft_recording_update(const struct ft_recording *r, size_t i);
const struct ft_rec_step *ft_recording_step(const struct ft_recording *r, size_t i);
const char *ft_recording_text(const struct ft_recording *r,
			      int32_t text); /* NONE: "" */
int64_t ft_recording_stream(const struct ft_recording *r,
			    int16_t stream); /* its number */

/* The operator that launched an operation; NULL: not recorded. */
const struct ft_rec_span *ft_recording_operator(const struct ft_recording *r,
						const struct ft_rec_op *op);

/* A collective as the profiler described it. */
struct ft_rec_collective {
	enum ft_collective op; /* FT_COLLECTIVES: none of ours */
	const char *name;      /* "_allgather_base", "all_to_all", "send" ... */
	const char *group, *about,
		*ranks;	   /* its number, description, "[0, 1]"; or "" */
	int64_t size;	   /* ranks of the group; 0: not told */
	double bytes;	   /* as nccl-tests counts; 0: not told */
	const char *dtype; /* "bf16" ...; "": none of ours */
	int64_t peer;	   /* of send and receive: the other's rank; or FT_REC_NONE */
	bool sends;	   /* else receives, or is neither */
	struct ft_rec_collective *also; /* another send or receive of the same kernel */
};

/* NULL: the operation is no collective, or its arguments were not recorded. */
const struct ft_rec_collective *ft_recording_collective(const struct ft_recording *r,
							const struct ft_rec_op *op);

/* Which one it is, by its arguments or else by its kernel's name; FT_COLLECTIVES: no collective, or not told. */
enum ft_collective ft_recording_collective_op(const struct ft_recording *r,
					      const struct ft_rec_op *op);

/* The work of an operation, from its operator's recorded shapes. */
struct ft_rec_work {
	struct ft_work work;
	double rows, row; /* memory-bound: rows, and elements of one; 0: not told */
	bool exact; /* by the operator's own law; else by its arguments' bytes alone */
};

/* NULL: shapes were not recorded, or say too little. Kernels of one operator share it. */
const struct ft_rec_work *ft_recording_work(const struct ft_recording *r,
					    const struct ft_rec_op *op);

/* ---- replay -------------------------------------------------------------------------- */

/*
 * What must be over before a call or an operation begins, and by how much it followed
 * in the recording. With t of begin B and end E, over all that x waits for:
 *
 *   t(x) = max over y of t(y) + lag(y, x)
 *
 * The lag of what x waited for last is as recorded, so that a replay with nothing
 * changed gives the recorded times; of the others it is the least that the recording
 * shows. What waited for room waited for a share of the kernel that held it. Hosts make their calls in the recorded order, one after another or handed from
 * thread to thread; operations wait for their launch, their stream, and for events.
 */
struct ft_replay;

enum ft_rec_cause { /* what an operation waited for last */
		    FT_REC_BY_LAUNCH,
		    FT_REC_BY_STREAM,
		    FT_REC_BY_EVENT, /* an operation of another stream */
		    FT_REC_BY_ROOM, /* compute units that a kernel of another stream held */
		    FT_REC_BY_NOTHING, /* a gap that nothing recorded explains; or the first */
		    FT_REC_CAUSES
};

/* How the order was found, over all ranks. */
struct ft_replay_counts {
	int64_t waits_told;	  /* the profiler said for which event */
	int64_t waits_by_time;	  /* the operation began as another's ended */
	int64_t waits_by_order;	  /* the stream of the last event recorded before */
	int64_t waits_unresolved; /* for nothing that could be found */
	int64_t gaps;		  /* pauses of the GPU that nothing explains, above */
	ft_ps gaps_ps;		  /* 10 us, and their sum */
	int64_t matched;	  /* collectives found on all ranks given */
	int64_t unmatched;	  /* whose peers are not recorded, or do not fit */
};

/* Recordings of the same step by n ranks; they must outlive it. NULL on error: two
 * files of one rank, or steps that are not the same. */
struct ft_replay *ft_replay_build(const struct ft_recording *const *recording, size_t n,
				  struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_replay_free(struct ft_replay *replay);

/* Stages of a pipeline that no recording is of run the passes of the nearest one that is
 * there, so that what the others receive from them changes with what changes. Says which in
 * ft_replay_stages; "": none is missing. Not for what is written for other simulators. */
bool ft_replay_lay_out(struct ft_replay *replay, struct ft_error *err)
	__attribute__((warn_unused_result));
const char *ft_replay_stages(const struct ft_replay *replay);

size_t ft_replay_ranks(const struct ft_replay *replay);
const struct ft_recording *ft_replay_recording(const struct ft_replay *replay,
					       size_t rank);
const struct ft_replay_counts *ft_replay_counts(const struct ft_replay *replay);

/* On how many ranks this collective was found: all of its group that are given; or 0. */
size_t ft_replay_meets(const struct ft_replay *replay, size_t rank, size_t op);

/* What is replayed instead of what was recorded. Of a collective found on all ranks a
 * time counts from when the last of them begins; of all else it is the whole duration. */
struct ft_replay_times {
	ft_ps **op;	    /* [rank][op] */
	double host_factor; /* on pauses and calls of the hosts */
};

/* The recorded times, to be changed; owned by the replay's caller through mem. */
struct arena;

/* [calls] in which the host waits for the GPU: synchronisations, copies of pageable memory,
 * launches into a full queue. In mem. */
bool *ft_recording_host_waits(const struct ft_recording *recording, struct arena *mem);
struct ft_replay_times ft_replay_recorded(const struct ft_replay *replay,
					  struct arena *mem);

/* When each operation and call began and ended. */
struct ft_replayed {
	ft_ps **op_begin, **op_end, **call_begin, **call_end; /* [rank][...] */
};

/* As recorded, on one clock; as replayed, all in mem. */
struct ft_replayed ft_replay_as_recorded(const struct ft_replay *replay,
					 struct arena *mem);
struct ft_replayed ft_replay_run(const struct ft_replay *replay,
				 const struct ft_replay_times *times,
				 struct arena *mem);

/* From when to when a step of a rank went. */
struct ft_rec_window {
	ft_ps from, to;
};
struct ft_rec_window ft_replay_step(const struct ft_replay *replay,
				    const struct ft_replayed *times, size_t rank,
				    size_t step);

/* A rank as replayed, in the shape of the file that was read (Kineto's JSON): calls and
 * operations at their new times, operators where their operation is launched, steps'
 * marks. device: the name of its GPU. Times have six decimals: picoseconds, exactly. */
void ft_replay_write(const struct ft_replay *replay, const struct ft_replayed *times,
		     size_t rank, const char *device, FILE *out);

/* A rank as recorded, as an execution trace of MLCommons' Chakra: a node for each call and
 * operation, with what it depends on. */
void ft_replay_write_chakra(const struct ft_replay *replay, size_t rank, FILE *out);

/* All ranks as GOAL, LogGOPSim's text, numbered as given. A statement for each begin and end of a
 * call or operation, which requires what it depends on and lasts from the latest of that to
 * when it was recorded; so a run of it gives the recorded times, but that nothing
 * begins before what it requires has ended. Of collectives that all ranks of their group
 * recorded the transfer is sends and receives of a ring instead, and of sends that both ends
 * recorded a message. *messages: how many collectives are so; *kept: how many keep their
 * time. */
void ft_replay_write_goal(const struct ft_replay *replay, FILE *out, int64_t *messages,
			  int64_t *kept);

/* ---- on another GPU ------------------------------------------------------------------------ */

struct ft_gpu;

/*
 * How much longer an operation takes on another GPU, by the profiles of both:
 *   ratio = predicted(to, work) / predicted(from, work)
 * with the work of its operator where shapes were recorded, else a stand-in of its
 * class that the recording's GPU is predicted to take as long for: a cube of a product,
 * causal attention of 32 heads of 128, so many bytes.
 */
struct ft_retiming;

enum ft_retimed_by {
	FT_RETIMED_BY_WORK,
	FT_RETIMED_BY_STAND_IN,
	FT_RETIMED_NOT /* keeps its time: another class, or a format a GPU lacks */
};

struct ft_retiming *ft_retiming_new(const struct ft_gpu *from, const struct ft_gpu *to);
void ft_retiming_free(struct ft_retiming *retiming);

/* What is left of an operation's work, 1: all of it. */
struct ft_rec_left {
	double bytes_frac;   /* of memory-bound ones */
	double columns_frac; /* of products: features that come out */
	double inner_frac;   /* likewise: features that go in */
	double heads_frac;   /* of attention */
};

/* left NULL: all. spread_frac: one standard deviation of the ratio. */
enum ft_retimed_by ft_retime(struct ft_retiming *retiming, const struct ft_recording *r,
			     const struct ft_rec_op *op, const struct ft_rec_left *left,
			     double *ratio, double *spread_frac);

/* ---- where a step's time went ------------------------------------------------------------ */

/* Of one rank. Every instant counts once, the first that applies: an optimizer's kernel
 * runs, another kernel or copy, a collective (exposed; send and receive: bubble, but not
 * among context ranks), or nothing: then by what the next operation waited for. The first
 * four and idle add up to the step. */
struct ft_rec_where {
	double step_s;
	double optimizer_s, compute_s, exposed_s, bubble_s;
	double idle_s[FT_REC_CAUSES];	/* FT_REC_BY_LAUNCH: the host was late */
	double tail_s;			/* idle after the last operation */
	double collective_s;		/* some collective runs, hidden or not */
	double class_s[FT_REC_CLASSES]; /* durations, added up; */
	double sendrecv_s;		/* of collectives' what may be a bubble */
	int64_t class_n[FT_REC_CLASSES];
	int64_t launches;      /* calls, of ft_replay_calls; 0 without */
	double call_s, sync_s; /* likewise: in launches; in synchronisations */
	int64_t allocations;   /* likewise: memory taken or given back; its time */
	double allocation_s;
	double latency_s;   /* launch to begin where the stream was idle: median */
	double queued_mean; /* operations launched and not begun, over time */
	int64_t queued_most;
};

struct ft_rec_where ft_replay_where(const struct ft_replay *replay,
				    const struct ft_replayed *times, size_t rank,
				    struct ft_rec_window window);

/* Adds a step's calls, those between its marks: where the host runs ahead, they are made
 * before its window. */
void ft_replay_calls(const struct ft_replay *replay, const struct ft_replayed *times,
		     size_t rank, size_t step, struct ft_rec_where *to);

/* Of one rank in the collectives of a window that all ranks given recorded: how long it
 * waited for the last to come, how long it then took; how often it was the last; by how much its
 * clock runs ahead of the first rank's, from the ends. */
struct ft_rec_skew {
	double waiting_s, transfer_s, met, last;
	double clock_s;
};

struct ft_rec_skew ft_replay_skew(const struct ft_replay *replay,
				  const struct ft_replayed *times, size_t rank,
				  struct ft_rec_window window);

/* Kernels of one name and class in a window, by falling time; all in mem. */
struct ft_rec_kernel {
	int32_t name;
	enum ft_rec_class rec_class;
	int64_t n;
	double time_s, shortest_s, longest_s;
};

struct ft_rec_kernel *ft_replay_kernels(const struct ft_replay *replay, size_t rank,
					const struct ft_replayed *times,
					struct ft_rec_window window, struct arena *mem,
					size_t *n);

/* ---- layers ------------------------------------------------------------------------------- */

/*
 * Profilers do not mark layers, but layers repeat. Of a step's products and attention, in
 * the order in which they begin on the stream that has most of them, a stretch is a run of
 * layers if it is the same names at least twice, one behind another; the shortest such
 * names are the layer. A run whose layer has one and a half times the operations of the
 * shortest layer, or a kernel that is called backward, is a backward pass. All runs are
 * multiples of the shortest, which is the number of layers; else the longest is, and what
 * others lack lies beside them with other kernels, or is cut off by the step's ends.
 *
 *   embed | q k v a o g u d | q k v a o g u d | head ...      4 of these: 4 layers
 *
 * A layer lasts from the begin of its first operation to that of the next layer; the last
 * of a run as many operations of the stream as the one before it, or to the next product.
 */
struct ft_rec_layer {
	bool backward;
	int64_t layer; /* from 0, in the order of the forward pass */
	struct ft_rec_window window;
};

#define FT_LAYERS_CUT "backward passes are cut in two, so that no layer repeats whole"

struct ft_rec_layers {
	size_t n;
	struct ft_rec_layer *layer; /* by time; all passes of the step */
	int64_t layers;		    /* of one pass; 0: not found, and why */
	int64_t in_forward,
		in_backward; /* products and attention of a layer; 0: no such pass */
	const char *why;
};

/* Kernels of our own timelines tell their layers, all of them, whether they repeat or not. They last as
 * those that are found by repetition, the last of a pass as long as its own operations. No profiler
 * tells them. in_forward and in_backward are of the first layer. In mem. */
struct ft_rec_layers ft_replay_told_layers(const struct ft_replay *replay,
					   const struct ft_replayed *times, size_t rank,
					   struct ft_rec_window window,
					   struct arena *mem);

/* Of one step of a rank; in mem. */
struct ft_rec_layers ft_replay_layers(const struct ft_replay *replay,
				      const struct ft_replayed *times, size_t rank,
				      struct ft_rec_window window, struct arena *mem);

#ifdef __cplusplus
}
#endif
#endif
