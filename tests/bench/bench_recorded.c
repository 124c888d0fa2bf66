/*
 * tests/bench/bench_recorded.c - reading a large recording, and replaying it
 *
 * A made-up step of one rank: 333,000 launches and as many kernels on two streams,
 * about 150 MB of Kineto's JSON; read, ordered, replayed. Memory is the most that the
 * program ever held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "foretoken/recorded.h"

enum { KERNELS = 333000 };

static void write_events(FILE *f)
{
	fputs("{\"deviceProperties\":[{\"name\":\"NVIDIA H200\"}],\"traceEvents\":[\n",
	      f);
	for (int64_t i = 0; i < KERNELS; i++) {
		fprintf(f,
			"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "
			"\"cudaLaunchKernel\", \"pid\": 588, \"tid\": 588, \"ts\": %" PRId64
			".%03d, \"dur\": 4.500, \"args\": {\"External id\": %" PRId64
			", \"cbid\": 211, \"correlation\": %" PRId64 "}},\n",
			1790857026000000 + 8 * i, (int)(i % 7), i, i);
		fprintf(f,
			"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
			"at::native::vectorized_elementwise_kernel<%d>\", \"pid\": 0, "
			"\"tid\": %d, \"ts\": %" PRId64
			".%03d, \"dur\": 15.250, \"args\": "
			"{\"External id\": %" PRId64 ", \"queued\": 0, \"device\": 0, "
			"\"context\": 1, \"stream\": %d, \"correlation\": %" PRId64
			", \"registers per thread\": 32, \"grid\": [320, 1, 1], "
			"\"block\": [512, 1, 1]}}%s\n",
			(int)(i % 97), i % 2 ? 7 : 20, 1790857026000020 + 8 * i,
			(int)(i % 11), i, i % 2 ? 7 : 20, i,
			i + 1 < KERNELS ? "," : "");
	}
	fputs("]}\n", f);
}

int main(void)
{
	char path[64];
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_recording *r;
	struct ft_replay *p;
	struct ft_replay_times times;
	struct rusage use;
	struct stat st;
	double start, read, ordered;
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/foretoken-bench-%d.json", (int)getpid());
	f = fopen(path, "w");
	if (!f)
		return 1;
	write_events(f);
	if (fclose(f) || stat(path, &st))
		return 1;
	start = clock_now_s();
	r = ft_recording_read(path, &err);
	read = clock_now_s() - start;
	unlink(path);
	if (!r || getrusage(RUSAGE_SELF, &use))
		return 1;
	printf("recording of %.0f MB, %d launches and kernels: read in %.2f s, %ld MB held\n",
	       (double)st.st_size / 1e6, KERNELS, read, use.ru_maxrss / 1024);
	start = clock_now_s();
	p = ft_replay_build((const struct ft_recording *const[]){ r }, 1, &err);
	ordered = clock_now_s() - start;
	if (!p)
		return 1;
	times = ft_replay_recorded(p, &mem);
	start = clock_now_s();
	ft_replay_run(p, &times, &mem);
	printf("the same: ordered in %.2f s, replayed in %.2f s\n", ordered,
	       clock_now_s() - start);
	arena_release(&mem);
	ft_replay_free(p);
	ft_recording_free(r);
	return 0;
}
