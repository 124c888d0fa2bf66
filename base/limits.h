/*
 * base/limits.h - every bound on what foretoken takes, in one list
 *
 * LIMITS(X) calls X(NAME, value, what, message): LIMIT_NAME is the value, message is
 * what an error of it says. docs/limits.md shows the same list; tests/test_limits.c
 * holds the two together and `tests/test_limits --write` writes the page.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* clang-format off */
#define LIMITS(X) \
	X(NAME_BYTES, 64, "bytes of a name (of a GPU, node, fabric, stack, model, price)", \
	  "is not a name") \
	X(YAML_BYTES, 16777216, "bytes of a YAML or JSON document", \
	  "is too large: more than") \
	X(YAML_DEPTH, 64, "maps and lists within each other in a document", \
	  "is nested too deeply") \
	X(YAML_VALUES, 1000000, "values of a document, aliases followed", \
	  "holds too many values") \
	X(EXTENDS, 32, "files that extend one another", \
	  "files extend one another") \
	X(CSV_BYTES, 67108864, "bytes of a CSV table", \
	  "is too large: more than") \
	X(CSV_COLUMNS, 1024, "columns of a CSV table", \
	  "this row has more than the") \
	X(CSV_CELLS, 8000000, "cells of a CSV table", \
	  "holds too many cells") \
	X(STREAM_BYTES, 67108864, "bytes read from a pipe or a device", \
	  "is too large: more than") \
	X(PROBE_BYTES, 268435456, "bytes of a probe's JSON lines", \
	  "is too large: more than") \
	X(LOG_BYTES, 67108864, "bytes of an nccl-tests log", \
	  "is too large: more than") \
	X(TRACE_MIB, 65536, "MiB of a recorded trace, unpacked", \
	  "unpacks to more than") \
	X(TRACE_FREE_MIB, 64, "MiB that a packed trace may unpack to whatever its size", \
	  "unpacks to more than") \
	X(TRACE_RATIO, 500, "times its packed size that a trace may unpack to beyond those", \
	  "unpacks to more than") \
	X(TRACE_EVENTS, 100000000, "operations, calls or operators of a recorded trace", \
	  "holds too many events") \
	X(TRACE_SECONDS, 100000, "seconds that an event of a recorded trace may take, or lie from the first one", \
	  "lies more than 100,000 s from the first one") \
	X(TRACE_LANES, 4096, "streams, or threads, of a recorded trace", \
	  "has too many streams or threads") \
	X(TRACE_TEXT_BYTES, 65536, "bytes of a name in a recorded trace, which is cut there, and of one event's arguments, which count as not recorded beyond", \
	  "no error") \
	X(TRACE_DEPTH, 64, "lists and maps within each other in a recorded trace", \
	  "is nested too deeply") \
	X(SVG_BYTES, 8388608, "bytes of a figure in a report", \
	  "is too large: more than") \
	X(IMPORT_GPUS, 256, "GPUs whose rows one table may hold", \
	  "has rows of more than") \
	X(STORE_ROWS, 200000, "measurements read from a store at once", \
	  "holds too many measurements") \
	X(FIT_ROWS, 50000, "measurements that a profile is fitted to", \
	  "more measurements than") \
	X(GRAPH_BYTES, 67108864, "bytes of a step graph's text", \
	  "is too large: more than") \
	X(GRAPH_WORDS, 24, "words on one line of a step graph", \
	  "too many words on one line") \
	X(GRAPH_WORKS, 20000, "works of a step graph's text", \
	  "too many works") \
	X(GRAPH_SEGMENTS, 100000, "segments of a step graph's text", \
	  "too many segments") \
	X(GRAPH_CLASSES, 8192, "classes of a step graph's text", \
	  "too many classes") \
	X(GRAPH_NUMBER, 1000000000, "a shape's edge, ranks of a class, times of a call or of what the host does in a step graph's text", \
	  "is not between") \
	X(GRAPH_OPS, 2000000, "ops, and calls, of a step graph's text", \
	  "too many ops or calls") \
	X(GPUS, 67108864, "GPUs of a cluster", \
	  "is not between") \
	X(SEQUENCE, 16777216, "tokens of a sequence", \
	  "is not between") \
	X(BATCH, 1073741824, "sequences of a batch", \
	  "is not between") \
	X(HIDDEN, 1048576, "hidden_size of a model", \
	  "is not between") \
	X(MLP, 16777216, "intermediate_size of a model", \
	  "is not between") \
	X(HEADS, 65536, "attention heads, key-value heads", \
	  "is not between") \
	X(HEAD_DIM, 65536, "dimensions of a head", \
	  "is not between") \
	X(LAYERS, 16384, "layers of a model", \
	  "is not between") \
	X(EXPERTS, 65536, "experts of a layer", \
	  "is not between") \
	X(VOCABULARY, 16777216, "words of a vocabulary", \
	  "is not between") \
	X(CHUNK_RUNS, 1048576, "stages x chunks a stage x micro-batches of a step", \
	  "is too much to simulate") \
	X(STEP_OPS, 20000000, "operations run in one simulated step", \
	  "is too much to simulate") \
	X(TIMELINE_OPS, 2000000, "operations run in one simulated step with --timeline", \
	  "is too much to draw") \
	X(GOAL_LINES, 20000000, "lines of a step written as GOAL, about", \
	  "is too much to write") \
	X(STEP_EVENTS, 200000000, "events of one simulated step", \
	  "is too much to simulate") \
	X(STEP_TOKENS, 1000000000, "tokens of a recorded step, which trace replay is told", \
	  "is not a number from 1 to") \
	X(STREAM_OPS, 1000000, "operations that wait on one stream", \
	  "operations wait on one stream") \
	X(STEP_DAYS, 10, "days that a simulated step may take", \
	  "takes longer than") \
	X(OPTION_WORDS, 256, "arguments of one kind in a command", \
	  "of these") \
	X(SERVE_BODY_BYTES, 262144, "bytes of the body of a request to serve", \
	  "is too large: more than") \
	X(SERVE_HEAD_BYTES, 32768, "bytes of memory for the head of a request to serve", \
	  "HTTP status 413, 414 or 431") \
	X(SERVE_CONNECTIONS, 64, "connections that serve holds at once; more wait", \
	  "") \
	X(SERVE_SPARE, 16, "of these connections that serve keeps free: else it ends the one that has been without a whole request for longest", \
	  "") \
	X(SERVE_WORKERS, 8, "requests that serve computes at once", \
	  "answers are being computed; try again in a second") \
	X(SERVE_WORK_S, 20, "seconds in which serve computes an answer", \
	  "takes longer than") \
	X(SERVE_PLANS, 2, "searches for plans that serve runs at once", \
	  "searches are running; try again when one has ended") \
	X(SERVE_PLAN_S, 60, "seconds in which serve searches for plans; what was found until then is told", \
	  "") \
	X(SERVE_PLAN_CANDIDATES, 200000, "legal plans among which serve searches", \
	  "legal plans are too many here") \
	X(HOST_THREADS, 1024, "threads of a processor that a rank's update may use", \
	  "is not between") \
	X(SERVE_PLAN_THREADS, 4, "threads of a search by serve", \
	  "") \
	X(SERVE_WORK_MIB, 1024, "MiB of memory in which serve computes an answer", \
	  "takes more memory than") \
	X(SERVE_ANSWER_MIB, 256, "MiB of an answer of serve", \
	  "the answer is larger than") \
	X(SERVE_IDLE_S, 5, "seconds that serve waits for a silent client", \
	  "") \
	X(SERVE_REQUEST_S, 30, "seconds in which a client sends a request whole, and takes its answer", \
	  "")
/* clang-format on */

#define LIMITS_VALUE(name, value, what, message) LIMIT_##name = (value),
enum limit { LIMITS(LIMITS_VALUE) };
#undef LIMITS_VALUE

#endif
