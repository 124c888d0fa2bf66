/*
 * tests/test_laws.c - what must hold of collectives across nodes, whatever machine and library
 *
 * More bytes never take less time; a better network never more. Where a library is known to
 * choose by rules of its own, its choice may break that, and then the answer says so: the
 * regret. What holds without exception is said of time / (1 + regret), the best there is.
 */
#include "tests/ccl.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/algorithm.h"
#include "tests/simulated.h"

static const struct {
	const char *gpu, *fabric;
	const char *ccl[3];
} machine[] = {
	{ "h100-sxm", "ib-ndr-rail", { "nccl-2.20", "nccl-2.27", "nccl-2.30" } },
	{ "h100-sxm", "ib-ndr-rail-sharp", { "nccl-2.20", "nccl-2.30" } },
	{ "h200", "spectrum-x-400-rail", { "nccl-2.30" } },
	{ "a100-80g", "ib-hdr-rail", { "nccl-2.20", "nccl-2.30" } },
	{ "b200", "efa-400-rail", { "nccl-2.27", "nccl-2.30" } },
	{ "gb200", "ib-xdr-rail", { "nccl-2.30" } },
	{ "mi250", "ib-mi250-800", { "rccl-5", "rccl-6", "rccl-7" } },
	{ "mi300x", "roce-400-rail", { "rccl-6", "rccl-7" } },
	{ "mi355x", "roce-400-tor", { "rccl-7" } },
};

enum { MACHINES = sizeof(machine) / sizeof(*machine), SLACK_PERCENT = 1 };

static const double slack = 1 + SLACK_PERCENT / 100.0;

/* A cluster whose fabric and NICs may be changed. */
struct bench {
	struct arena mem;
	struct ft_cluster *cluster;
	struct ft_fabric fabric;
	const struct ft_fabric *own;
	double nic_bytes_per_s;
};

static void open_bench(struct bench *b, size_t i)
{
	const char *text;
	struct ft_error err;
	struct node *n;

	*b = (struct bench){ 0 };
	text = arena_printf(&b->mem, "{gpu: %s, gpus: 1152, fabric: %s}",
			    machine[i].gpu, machine[i].fabric);
	n = node_read_text(&b->mem, "c", text, strlen(text), &err);
	b->cluster = ft_cluster_load(n, &err);
	ok_or_say(b->cluster, err);
	b->own = b->cluster->fabric;
	b->nic_bytes_per_s = b->cluster->nic_bytes_per_s;
	b->fabric = *b->own;
	b->cluster->fabric = &b->fabric;
}

static void restore(struct bench *b)
{
	b->fabric = *b->own;
	b->cluster->nic_bytes_per_s = b->nic_bytes_per_s;
}

static void close_bench(struct bench *b)
{
	b->cluster->fabric = b->own;
	ft_cluster_free(b->cluster);
	arena_release(&b->mem);
}

static void faster_nics(struct bench *b)
{
	b->cluster->nic_bytes_per_s *= 2;
	b->fabric.port_bytes_per_s.value *= 2;
}

static void shorter_hops(struct bench *b)
{
	b->fabric.latency_s.value /= 2;
	b->fabric.hop_s.value /= 2;
	b->fabric.ring_step_s.value /= 2;
}

struct cell {
	double s, best_s; /* chosen; the best there is */
	bool ruled;	  /* the choice costs more than the slack, and says so */
};

static struct cell measure(const struct bench *b, const struct ft_ccl *ccl,
			   const struct ft_collective_call *call)
{
	struct ft_collective_result r;
	struct ft_error err;

	ok_or_say(ft_collective_predict(b->cluster, ccl, call, &r, &err), err);
	assert_true(r.regret_frac >= 0 && isfinite(r.duration.time_s));
	assert_true(r.domains > 1 && r.best_algorithm && r.best_protocol);
	if (!strcmp(r.chosen_by, "time"))
		assert_true(r.regret_frac < 1e-9);
	return (struct cell){ r.duration.time_s,
			      r.duration.time_s / (1 + r.regret_frac),
			      r.regret_frac > slack - 1 };
}

static void not_slower(struct cell now, struct cell than, const char *what, size_t m,
		       const char *ccl, const struct ft_collective_call *call)
{
	bool best = now.best_s <= slack * than.best_s;

	if (best && (now.ruled || now.s <= slack * than.s))
		return;
	fail_msg("%s, %s, %s: %s of %.0f bytes among %d: %s%.2f us against %.2f", what,
		 machine[m].gpu, ccl, ft_collective_name(call->op), call->bytes,
		 (int)call->shape.size, best ? "" : "best ", now.s * 1e6, than.s * 1e6);
}

typedef void check(struct bench *b, size_t m, const struct ft_ccl *ccl,
		   struct ft_collective_call *call);

/* Every op, every size, two ranks a node and all, packed and one a node. */
static void over_the_grid(check *holds)
{
	static const struct ft_group_shape shape[] = {
		{ 144, 1, true }, { 288, 1, true }, { 1152, 1, true }, { 16, 72, true }
	};

	for (size_t m = 0; m < MACHINES; m++) {
		struct bench b;

		open_bench(&b, m);
		for (int i = 0; i < 3 && machine[m].ccl[i]; i++) {
			struct ft_ccl *ccl = ccl_named(machine[m].ccl[i]);

			for (size_t k = 0; k < 4 * FT_COLLECTIVES; k++)
				for (double s = 1024; s <= 8e9; s *= 4) {
					struct ft_collective_call call = {
						.op = (enum ft_collective)(k / 4),
						.bytes = s,
						.shape = shape[k % 4],
					};

					holds(&b, m, ccl, &call);
				}
			ft_ccl_free(ccl);
		}
		close_bench(&b);
	}
}

static void grows(struct bench *b, size_t m, const struct ft_ccl *ccl,
		  struct ft_collective_call *call)
{
	struct cell one = measure(b, ccl, call), two;

	call->bytes *= 2;
	two = measure(b, ccl, call);
	call->bytes /= 2;
	/* either may be the one that a rule makes slow */
	one.ruled |= two.ruled;
	not_slower(one, two, "half the bytes", m, ccl->name, call);
}

static void more_bytes_never_take_less_time(void **state)
{
	(void)state;
	over_the_grid(grows);
}

static void gains_from_nics(struct bench *b, size_t m, const struct ft_ccl *ccl,
			    struct ft_collective_call *call)
{
	struct cell now = measure(b, ccl, call), than;

	than = now;
	faster_nics(b);
	now = measure(b, ccl, call);
	restore(b);
	not_slower(now, than, "twice the NIC", m, ccl->name, call);
}

static void faster_nics_never_cost_time(void **state)
{
	(void)state;
	over_the_grid(gains_from_nics);
}

static void gains_from_hops(struct bench *b, size_t m, const struct ft_ccl *ccl,
			    struct ft_collective_call *call)
{
	struct cell than = measure(b, ccl, call), now;

	shorter_hops(b);
	now = measure(b, ccl, call);
	restore(b);
	not_slower(now, than, "half the latency", m, ccl->name, call);
	/* and it is felt: no floor swallows a faster fabric */
	if (call->bytes <= 4096)
		assert_true(now.best_s < than.best_s);
}

static void shorter_hops_never_cost_time_and_are_felt(void **state)
{
	(void)state;
	over_the_grid(gains_from_hops);
}

static void gains_from_sharp(struct bench *b, size_t m, const struct ft_ccl *ccl,
			     struct ft_collective_call *call)
{
	struct cell than, now;

	b->fabric.sharp = false;
	than = measure(b, ccl, call);
	b->fabric.sharp = true;
	now = measure(b, ccl, call);
	restore(b);
	not_slower(now, than, "with SHARP", m, ccl->name, call);
}

static void sharp_never_costs_time(void **state)
{
	(void)state;
	over_the_grid(gains_from_sharp);
}

/* Asked for by name: what SHARP gathers is no slower than a ring, and gathers more slowly
 * among more domains. */
static void sharp_gathers_no_slower_than_rings(void **state)
{
	static const enum ft_collective ops[] = { FT_ALL_GATHER, FT_REDUCE_SCATTER };
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct bench b;

	(void)state;
	open_bench(&b, 1);
	for (int i = 0; i < 2; i++)
		for (double s = 65536; s <= 8e9; s *= 2) {
			double before = 0;

			for (int64_t n = 16; n <= 1024; n *= 2) {
				struct ft_collective_call call =
					call_of(ops[i], s, n, 1);
				struct cell sharp, ring;

				call.algorithm = "sharp";
				sharp = measure(&b, ccl, &call);
				call.algorithm = "ring";
				ring = measure(&b, ccl, &call);
				assert_true(sharp.s <= ring.s);
				assert_true(sharp.s >= before);
				before = sharp.s;
			}
		}
	close_bench(&b);
	ft_ccl_free(ccl);
}

/* The bus of a domain is the profile's, so it is changed in the group itself. */
static void a_faster_bus_never_costs_time(void **state)
{
	static const char *const generation[] = { "ampere", "hopper", "blackwell" };
	struct ft_ccl *ccl = ccl_named("nccl-2.30");

	(void)state;
	for (int i = 0; i < 3; i++)
		for (double bus = 50e9; bus < 4e12; bus *= 2)
			for (int op = 0; op < FT_COLLECTIVES; op++)
				for (double s = 1024; s < 8e9; s *= 4) {
					struct group g = {
						.ccl = ccl,
						.tuning = ft_ccl_tuning(ccl,
									generation[i]),
						.ranks = 256,
						.per_domain = 8,
						.domains = 32,
						.nic_bytes_per_s = 48.5e9,
						.bus_bytes_per_s = bus,
						.port_bytes_per_s = bus,
						.stretch = 1,
						.nvls = { 8, bus / 8, 48.5e9 },
					};
					struct ft_collective_call call = call_of(
						(enum ft_collective)op, s, 256, 1);
					double slow = choose_by_time(&g, &call).time_s;

					g.bus_bytes_per_s = g.port_bytes_per_s *= 2;
					assert_true(choose_by_time(&g, &call).time_s <=
						    slow);
				}
	ft_ccl_free(ccl);
}

/* On one node nothing runs through a NIC, though copies run where collectives do. */
static void one_node_needs_no_nic(void **state)
{
	static const struct {
		int gpus;
		const char *how;
	} of[] = {
		{ 1, "sharding: fsdp}, stack: transformers-5-eager" },
		{ 1, "sharding: none}, stack: torch-2.11-eager" },
		{ 8, "sharding: fsdp}, stack: torch-2.11-eager" },
		{ 8,
		  "sharding: zero1, parallel: {tp: 2, pp: 2}}, stack: megatron-core" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		double step_s[2];

		for (int j = 0; j < 2; j++) {
			char text[600];

			snprintf(
				text, sizeof(text),
				"{model: {name: llama3.2-1b, num_hidden_layers: 4}, cluster: "
				"{gpu: h200, gpus: %d, fabric: none, node: {extends: "
				"hgx-h200, nics: {speed: %d Gb/s}}}, training: "
				"{sequence_length: 4096, global_batch_size: 16, %s}",
				of[i].gpus, j ? 1600 : 200, of[i].how);
			step_s[j] = simulated_s(text, NULL);
		}
		assert_true(step_s[0] == step_s[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_bytes_never_take_less_time),
		cmocka_unit_test(faster_nics_never_cost_time),
		cmocka_unit_test(shorter_hops_never_cost_time_and_are_felt),
		cmocka_unit_test(sharp_never_costs_time),
		cmocka_unit_test(sharp_gathers_no_slower_than_rings),
		cmocka_unit_test(a_faster_bus_never_costs_time),
		cmocka_unit_test(one_node_needs_no_nic),
	};

	return cmocka_run_group_tests_name("laws of collectives", tests, NULL, NULL);
}
