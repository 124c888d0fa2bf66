/* tests/made_recording.h - made-up recordings, and their replay */
#ifndef TESTS_MADE_RECORDING_H
#define TESTS_MADE_RECORDING_H

#include <stdarg.h>
#include <unistd.h>

#include "base/arena.h"
#include "foretoken/recorded.h"
#include "tests/check.h"

static inline const char *made_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/foretoken-recorded-%d", (int)getpid());
	return path;
}

/* Into a file, whose path it is; main unlinks it. */
static inline const char *put(const void *data, size_t n)
{
	FILE *f = fopen(made_path(), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	fclose(f);
	return made_path();
}

static inline struct ft_recording *read_text(const char *text)
{
	struct ft_error err;
	struct ft_recording *r = ft_recording_read(put(text, strlen(text)), &err);

	ok_or_say(r, err);
	return r;
}

/* Events of a rank, one call each; rank and world in distributedInfo. */
struct made {
	char text[16384];
	size_t n;
};

static inline void add(struct made *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	m->n += (size_t)vsnprintf(m->text + m->n, sizeof(m->text) - m->n, fmt, args);
	va_end(args);
	assert_true(m->n < sizeof(m->text));
}

static inline struct made begin(int rank)
{
	struct made m = { .n = 0 };

	add(&m,
	    "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\"}],"
	    "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},\"traceEvents\":[\n",
	    rank);
	return m;
}

static inline void call(struct made *m, const char *name, int correlation, double at,
			double dur)
{
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,\"tid\":1,"
	    "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"correlation\":%d}},\n",
	    name, at, dur, correlation);
}

static inline void kernel(struct made *m, const char *name, int correlation, int stream,
			  double at, double dur)
{
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,"
	    "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"stream\":%d,\"correlation\":%d",
	    name, stream, at, dur, stream, correlation);
	if (!strncmp(name, "nccl", 4))
		add(m,
		    ",\"Collective name\":\"allreduce\",\"In msg nelems\":1000,"
		    "\"Out msg nelems\":1000,\"Group size\":2,\"dtype\":\"Float\","
		    "\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1]\"");
	add(m, "}},\n");
}

static inline struct ft_recording *end(struct made *m)
{
	m->n -= 2; /* the last comma */
	add(m, "]}\n");
	return read_text(m->text);
}

static inline const struct ft_recording *const *one(struct ft_recording *r)
{
	static const struct ft_recording *of[1];

	of[0] = r;
	return of;
}

/* Every call and operation where it was, to the picosecond. */
static inline void is_as_recorded(const struct ft_replay *p)
{
	struct arena mem = { 0 };
	struct ft_replay_times times = ft_replay_recorded(p, &mem);
	struct ft_replayed was = ft_replay_as_recorded(p, &mem);
	struct ft_replayed is = ft_replay_run(p, &times, &mem);

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t i = 0; i < ft_recording_ops(r); i++) {
			assert_int_equal(is.op_begin[k][i], was.op_begin[k][i]);
			assert_int_equal(is.op_end[k][i], was.op_end[k][i]);
		}
		for (size_t i = 0; i < ft_recording_calls(r); i++)
			assert_int_equal(is.call_end[k][i], was.call_end[k][i]);
	}
	arena_release(&mem);
}

static inline ft_ps step_with(const struct ft_replay *p, const ft_ps *op, double host)
{
	struct arena mem = { 0 };
	struct ft_replay_times times = ft_replay_recorded(p, &mem);
	struct ft_replayed t;
	struct ft_rec_window w;

	for (size_t i = 0; op && i < ft_recording_ops(ft_replay_recording(p, 0)); i++)
		times.op[0][i] = op[i];
	times.host_factor = host;
	t = ft_replay_run(p, &times, &mem);
	w = ft_replay_step(p, &t, 0, 0);
	arena_release(&mem);
	return w.to - w.from;
}

#endif
