/* tests/bench/bench_step.c - whole steps: load, build, simulate, price */
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>

#include "base/arena.h"
#include "base/node.h"
#include <stdio.h>

#include "base/clock.h"
#include "foretoken/study.h"

static const struct {
	const char *name, *text;
} cases[] = {
	{ "GPT-3 175B, 4,096 H100, tp 8 pp 16, 1f1b",
	  "{model: gpt3-175b, cluster: {gpu: h100-sxm, gpus: 4096}, stack: nemo-24, "
	  "training: {sequence_length: 2048, global_batch_size: 1536, "
	  "parallel: {tp: 8, pp: 16}, schedule: 1f1b}}" },
	{ "Llama 3.1 405B, 16,384 H100, tp 8 pp 16 vpp 8",
	  "{model: llama3.1-405b, cluster: {gpu: h100-sxm, gpus: 16384}, stack: "
	  "nemo-24.11, training: {sequence_length: 8192, global_batch_size: 2048, "
	  "parallel: {tp: 8, pp: 16, vpp: 8}}}" },
	{ "GPT-3 175B, 100,352 H100, Spectrum-X, tp 8 pp 16",
	  "{model: gpt3-175b, cluster: {gpu: h100-sxm, gpus: 100352, fabric: "
	  "spectrum-x-400-rail}, stack: nemo-24, training: {sequence_length: 2048, "
	  "global_batch_size: 25088, parallel: {tp: 8, pp: 16}}}" },
	{ "the 405B, hashed, scattered, two slow GPUs",
	  "{model: llama3.1-405b, cluster: {gpu: h100-sxm, gpus: 16384, fabric: "
	  "roce-400-rail, imperfections: {placement: scattered, slow_gpus: "
	  "[{gpu: 5, speed_frac: 0.8}, {gpu: 9000, speed_frac: 0.9}]}}, stack: "
	  "nemo-24.11, training: {sequence_length: 8192, global_batch_size: 2048, "
	  "parallel: {tp: 8, pp: 16, vpp: 8}}}" },
	{ "the 100,352, hashed, scattered",
	  "{model: gpt3-175b, cluster: {gpu: h100-sxm, gpus: 100352, fabric: "
	  "roce-400-rail, imperfections: {placement: scattered}}, stack: nemo-24, "
	  "training: {sequence_length: 2048, global_batch_size: 25088, "
	  "parallel: {tp: 8, pp: 16}}}" },
	{ "DeepSeek-V3, 256 experts, 2,048 H100, pp 16 ep 64",
	  "{model: deepseek-v3, cluster: {gpu: h100-sxm, gpus: 2048}, training: "
	  "{sequence_length: 4096, global_batch_size: 8192, parallel: {pp: 16, ep: "
	  "64}}}" },
	{ "Llama 3 8B, 8 H200, fsdp, compiled",
	  "{model: llama3-8b, cluster: {gpu: h200, gpus: 8, fabric: none}, stack: "
	  "torch-2.11-compile, training: {sequence_length: 4096, "
	  "global_batch_size: 16, micro_batch_size: 2, sharding: fsdp}}" },
	{ "Llama 3 8B, 8 H100, 512 micro-batches",
	  "{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, stack: nemo-24, "
	  "training: {sequence_length: 8192, global_batch_size: 4096}}" },
};

static bool once(const char *text, double *events, double *step)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_outcome o;
	struct node *n = node_read_text(&mem, "bench", text, strlen(text), &err);
	struct ft_scenario *s =
		n ? ft_scenario_from(shelf, n, "bench", true, &err) : NULL;
	bool ok = s && ft_study_simulate(s, NULL, NULL, &o, &err);

	if (ok) {
		*events = (double)o.run->events;
		*step = o.step_s;
		ft_outcome_release(&o);
	} else {
		fprintf(stderr, "%s\n", err.text);
	}
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return ok;
}

int main(void)
{
	arena_keep_pages();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double best = 1e9, events = 0, step = 0;
		struct rusage use;

		for (int k = 0; k < 5; k++) {
			double t = clock_now_s();

			if (!once(cases[i].text, &events, &step))
				return 1;
			t = clock_now_s() - t;
			best = t < best ? t : best;
		}
		getrusage(RUSAGE_SELF, &use);
		printf("step %-48s %7.1f ms, %7.0f k events, %5.1f M/s, %4ld MB\n",
		       cases[i].name, best * 1e3, events * 1e-3, events / best * 1e-6,
		       use.ru_maxrss / 1024);
	}
	return 0;
}
