/* tests/test_emit.c - a plan as the arguments of frameworks: each line that it must write */
#include "tests/check.h"

#include "base/text.h"
#include "foretoken/reports.h"
#include "foretoken/study.h"

enum { SETS = 8, LINES = 10 };

/* Of examples/07-edit-a-step with these keys set; "!" before a line: it must not be there. */
struct emitted {
	enum ft_framework framework;
	const char *set[SETS];
	const char *line[LINES];
};

static char *arguments_of(const struct emitted *e)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err = { 0 };
	struct ft_scenario *s;
	size_t n = 0, len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	while (n < SETS && e->set[n])
		n++;
	s = ft_scenario_load(shelf, "examples/07-edit-a-step/scenario.yaml", e->set, n,
			     true, &err);
	ok_or_say(s, err);
	ft_report_plan_arguments(out, s, e->framework);
	fclose(out);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return text;
}

/* The line stands there whole, wherever indented. */
static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++) {
		const char *begin = at;

		while (begin > text && begin[-1] == ' ')
			begin--;
		if ((begin == text || begin[-1] == '\n') && at[n] == '\n')
			return true;
	}
	return false;
}

static void all_hold(const struct emitted *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *text = arguments_of(&e[i]);

		for (size_t k = 0; k < LINES && e[i].line[k]; k++) {
			bool not = e[i].line[k][0] == '!';

			if (has_line(text, e[i].line[k] + not ) == not )
				fail_msg("case %zu: %s'%s' in\n%s", i, not ? "" : "no ",
					 e[i].line[k] + not, text);
		}
		free(text);
	}
}
#define ALL_HOLD(cases) ((void)state, all_hold(cases, sizeof(cases) / sizeof(*(cases))))

static void megatron_is_told_how_ranks_are_split(void **state)
{
	static const struct emitted cases[] = {
		{ FT_MEGATRON,
		  { "training.parallel.tp=2", "training.parallel.pp=2",
		    "training.parallel.vpp=2", "training.parallel.cp=2",
		    "training.sharding=ddp" },
		  { "--tensor-model-parallel-size 2",
		    "--pipeline-model-parallel-size 2",
		    "--num-virtual-stages-per-pipeline-rank 2",
		    "--context-parallel-size 2", "--sequence-parallel",
		    "!--expert-model-parallel-size 1",
		    "!--account-for-embedding-in-pipeline-split" } },
		{ FT_NEMO,
		  { "training.parallel.pp=2", "training.parallel.vpp=2",
		    "training.sharding=ddp" },
		  { "virtual_pipeline_model_parallel_size: 2", "overlap_p2p_comm: true",
		    "batch_p2p_comm: false", "ddp:",
		    "# not mapped: precision bf16: choose the recipe's "
		    "mixed_precision",
		    "!accumulate_allreduce_grads_in_fp32: true" } },
		{ FT_MEGATRON,
		  { "training.parallel.pp=2", "training.sharding=ddp",
		    "training.parallel.stage_layers=[10,22]" },
		  { "--pipeline-model-parallel-layout "
		    "\"Etttttttttt|ttttttttttttttttttttttL\"",
		    "!--num-virtual-stages-per-pipeline-rank 1" } },
		{ FT_MEGATRON,
		  { "training.parallel.pp=4", "training.sharding=ddp",
		    "training.micro_batch_size=1",
		    "training.parallel.stage_layers=[7,9,9,7]" },
		  { "--pipeline-model-parallel-layout "
		    "\"Ettttttt|(ttttttttt|)*2tttttttL\"" } },
		{ FT_MEGATRON,
		  { "training.parallel.pp=4", "training.sharding=ddp",
		    "training.parallel.vpp=3", "model=deepseek-v3",
		    "training.micro_batch_size=1", "model.num_hidden_layers=15",
		    "model.num_nextn_predict_layers=1" },
		  { "--pipeline-model-parallel-layout "
		    "\"Et|(tt|)*3(t|)*7tmL\"",
		    "!--num-virtual-stages-per-pipeline-rank 3" } },
		{ FT_NEMO,
		  { "training.parallel.pp=2", "training.sharding=ddp",
		    "training.parallel.stage_layers=[15,17]" },
		  { "pipeline_model_parallel_layout: "
		    "\"Ettttttttttttttt|tttttttttttttttttL\"" } },
		{ FT_MEGATRON,
		  { "training.parallel.pp=4", "training.sharding=ddp",
		    "training.micro_batch_size=1", "model.num_hidden_layers=30",
		    "training.parallel.stage_layers=[7,8,8,7]" },
		  { "--account-for-embedding-in-pipeline-split",
		    "--account-for-loss-in-pipeline-split",
		    "!--pipeline-model-parallel-layout "
		    "\"Ettttttt|(tttttttt|)*2tttttttL\"" } },
		{ FT_MEGATRON,
		  { "training.parallel.pp=2", "training.sharding=ddp",
		    "training.schedule=gpipe", "training.overlap.pp=false",
		    "training.pipeline_flushes=2" },
		  { "# not mapped: schedule: gpipe; Megatron Core runs 1F1B",
		    "# not mapped: pipeline_flushes: 2; Megatron Core drains a pipeline "
		    "once a step",
		    "--no-overlap-p2p-communication" } },
		{ FT_MEGATRON,
		  { "training.parallel.pp=2", "training.parallel.vpp=2",
		    "training.sharding=ddp", "training.schedule=dualpipev",
		    "training.micro_batch_size=1" },
		  { "# not mapped: schedule: dualpipev; Megatron Core runs 1F1B" } },
		{ FT_MEGATRON,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.parallel.etp=2", "training.parallel.tp=2",
		    "training.overlap.tp=true", "training.overlap.ep=true",
		    "stack=megatron-bridge-26.02", "training.sharding=zero1" },
		  { "--expert-model-parallel-size 4", "--expert-tensor-parallel-size 2",
		    "--tp-comm-overlap", "--overlap-moe-expert-parallel-comm" } },
		{ FT_MEGATRON,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.sharding=zero1" },
		  { "--expert-model-parallel-size 4", "--expert-tensor-parallel-size 1",
		    "!--tp-comm-overlap", "!--overlap-moe-expert-parallel-comm" } },
	};

	ALL_HOLD(cases);
}

static void megatron_is_told_what_is_sharded(void **state)
{
	static const struct emitted cases[] = {
		{ FT_MEGATRON,
		  { "training.sharding=zero1", "training.overlap.param_gather=true" },
		  { "--use-distributed-optimizer", "--overlap-grad-reduce",
		    "--overlap-param-gather", "!--use-megatron-fsdp" } },
		{ FT_MEGATRON,
		  { "training.sharding=ddp", "training.overlap.dp=false" },
		  { "!--use-distributed-optimizer", "!--overlap-grad-reduce",
		    "!--overlap-param-gather", "!--use-megatron-fsdp" } },
		{ FT_MEGATRON,
		  { "training.sharding=zero2" },
		  { "--use-megatron-fsdp",
		    "--data-parallel-sharding-strategy optim_grads",
		    "--use-distributed-optimizer", "--ckpt-format fsdp_dtensor" } },
		{ FT_PRIMUS,
		  { "training.sharding=fsdp" },
		  { "modules:", "use_megatron_fsdp: true",
		    "data_parallel_sharding_strategy: optim_grads_params",
		    "!num_distributed_optimizer_instances: 1" } },
		{ FT_MEGATRON,
		  { "training.sharding=hsdp", "training.shard=4" },
		  { "--num-distributed-optimizer-instances 4" } },
		{ FT_MEGATRON,
		  { "cluster.gpus=1", "training.sharding=zero1" },
		  { "!--overlap-grad-reduce", "--use-distributed-optimizer" } },
	};

	ALL_HOLD(cases);
}

/* Overlaps of tensors and stages are fields of the model, not of ddp. */
static void nemo_has_each_overlap_where_it_belongs(void **state)
{
	static const struct emitted e = {
		FT_NEMO,
		{ "training.parallel.tp=2", "training.parallel.pp=2",
		  "training.overlap.tp=true", "training.sharding=zero1" },
		{ NULL }
	};
	char *text = arguments_of(&e), *ddp = strstr(text, "\nddp:\n");

	(void)state;
	assert_non_null(ddp);
	assert_non_null(strstr(ddp, "overlap_grad_reduce: true"));
	*ddp = '\0';
	assert_non_null(strstr(text, "tp_comm_overlap: true"));
	assert_non_null(strstr(text, "overlap_p2p_comm: false")); /* of one chunk */
	assert_null(strstr(text, "overlap_grad_reduce"));
	free(text);
}

static void megatron_is_told_what_runs_again(void **state)
{
	static const struct emitted cases[] = {
		{ FT_MEGATRON,
		  { "training.recompute=none" },
		  { "!--recompute-granularity none" } },
		{ FT_MEGATRON,
		  { "training.recompute=full" },
		  { "--recompute-granularity full", "--recompute-method uniform",
		    "--recompute-num-layers 1" } },
		{ FT_MEGATRON,
		  { "training.recompute=full", "training.recompute_layers=12",
		    "training.parallel.pp=2", "training.sharding=ddp" },
		  { "--recompute-method block", "--recompute-num-layers 6",
		    "!not mapped: recompute_layers" } },
		{ FT_MEGATRON,
		  { "training.recompute=full", "training.recompute_layers=12",
		    "training.parallel.pp=2", "training.parallel.vpp=2",
		    "training.sharding=ddp" },
		  { "--recompute-method block", "--recompute-num-layers 3" } },
		{ FT_MEGATRON,
		  { "training.recompute=full", "training.recompute_layers=11",
		    "training.parallel.pp=2", "training.sharding=ddp" },
		  { "# not mapped: recompute_layers: 11 over 2 chunks",
		    "--recompute-method block", "--recompute-num-layers 6" } },
		{ FT_MEGATRON,
		  { "training.recompute=selective",
		    "training.recompute_modules=[core_attn, layernorm]" },
		  { "--recompute-granularity selective",
		    "--recompute-modules core_attn layernorm",
		    "!--recompute-method uniform" } },
		{ FT_NEMO,
		  { "training.recompute=selective",
		    "training.recompute_modules=[core_attn, layernorm]" },
		  { "recompute_modules: [core_attn, layernorm]" } },
		{ FT_MEGATRON,
		  { "training.recompute=selective",
		    "training.recompute_modules=[moe_act]" },
		  { "# not mapped: recompute_modules: the activation of a dense "
		    "MLP",
		    "!--recompute-modules moe_act" } },
		{ FT_MEGATRON,
		  { "training.recompute=selective", "model=mixtral-8x7b",
		    "training.recompute_modules=[moe_act]" },
		  { "--recompute-modules moe_act" } },
	};

	ALL_HOLD(cases);
}

static void megatron_is_told_the_formats(void **state)
{
	static const struct emitted cases[] = {
		{ FT_MEGATRON,
		  { "training.precision=bf16", "training.gradient_dtype=fp32" },
		  { "--bf16", "--accumulate-allreduce-grads-in-fp32",
		    "--seq-length 4096", "--micro-batch-size 2",
		    "--global-batch-size 32", "!--fp8-format hybrid" } },
		{ FT_MEGATRON,
		  { "training.gradient_dtype=bf16", "training.master_dtype=remainder" },
		  { "--bf16", "--grad-reduce-in-bf16", "--exp-avg-dtype fp32",
		    "!--main-params-dtype fp16" } },
		{ FT_MEGATRON,
		  { "training.precision=fp16", "training.gradient_dtype=fp16" },
		  { "--fp16", "!--bf16", "!--accumulate-allreduce-grads-in-fp32" } },
		{ FT_MEGATRON,
		  { "training.moment_dtype=bf16", "training.master_dtype=fp16" },
		  { "--exp-avg-sq-dtype bf16", "--main-params-dtype fp16" } },
		{ FT_MEGATRON,
		  { "training.precision=fp8", "training.fp8_recipe=delayed" },
		  { "--bf16", "--fp8-format hybrid", "--fp8-recipe delayed" } },
		{ FT_MEGATRON,
		  { "training.precision=fp8", "training.fp8_recipe=delayed",
		    "stack=megatron-core", "training.sharding=zero1" },
		  { "!--fp8-param-gather" } },
		{ FT_MEGATRON,
		  { "training.precision=fp8", "stack=nemo-25.07",
		    "training.sharding=zero1" },
		  { "--fp8-param-gather", "!--reuse-grad-buf-for-mxfp8-param-ag" } },
		{ FT_MEGATRON,
		  { "training.precision=mxfp8", "stack=nemo-25.07", "cluster.gpu=b200",
		    "training.sharding=zero1" },
		  { "--fp8-param-gather", "--reuse-grad-buf-for-mxfp8-param-ag" } },
		{ FT_MEGATRON,
		  { "training.precision=fp8", "stack=nemo-25.07",
		    "training.sharding=ddp" },
		  { "!--fp8-param-gather",
		    "# not mapped: weights in 8 bit alone, without a distributed "
		    "optimizer" } },
		{ FT_PRIMUS,
		  { "training.precision=fp8", "training.fp8_recipe=tensorwise" },
		  { "fp8: hybrid", "fp8_recipe: tensorwise", "bf16: true" } },
		{ FT_MEGATRON,
		  { "cluster.gpu=b200", "training.precision=nvfp4",
		    "training.cuda_graphs=full", "stack=nemo-25.07" },
		  { "# not mapped: precision: nvfp4",
		    "# not mapped: cuda_graphs: full" } },
		{ FT_MEGATRON,
		  { "training.sharding=fsdp", "training.reshard_after_forward=false" },
		  { "# not mapped: reshard_after_forward: false" } },
		{ FT_MEGATRON,
		  { "training.sharding=hsdp", "training.shard=4",
		    "training.reshard_after_forward=false" },
		  { "# not mapped: reshard_after_forward: false" } },
		{ FT_NEMO,
		  { "training.precision=bf16" },
		  { "!fp8_dot_product_attention: true" } },
		{ FT_MEGATRON,
		  { "training.precision=fp8", "training.attention_precision=fp8" },
		  { "# not mapped: attention_precision: fp8" } },
		{ FT_MEGATRON,
		  { "model=mixtral-8x7b", "training.precision=fp8",
		    "training.expert_precision=bf16" },
		  { "# not mapped: expert_precision: bf16" } },
		{ FT_MEGATRON,
		  { "training.sharding=fsdp" },
		  { "!# not mapped: attention_precision: bf16",
		    "!# not mapped: reshard_after_forward: false" } },
		{ FT_MEGATRON,
		  { "training.offload_layers=4", "training.recompute=none" },
		  { "# not mapped: offload_layers: 4" } },
	};

	ALL_HOLD(cases);
}

static void torchtitan_is_told_the_same(void **state)
{
	static const struct emitted cases[] = {
		{ FT_TORCHTITAN,
		  { "training.parallel.tp=2", "training.overlap.tp=true" },
		  { "local_batch_size = 2", "global_batch_size = 32", "seq_len = 4096",
		    "pipeline_parallel_degree = 1", "tensor_parallel_degree = 2",
		    "enable_async_tensor_parallel = true", "enable = true",
		    "data_parallel_replicate_degree = 1",
		    "data_parallel_shard_degree = 8",
		    "fsdp_reshard_after_forward = \"always\"" } },
		{ FT_TORCHTITAN,
		  { "training.parallel.pp=2", "training.micro_batch_size=1",
		    "training.sharding=ddp", "training.schedule=gpipe",
		    "training.pipeline_flushes=2" },
		  { "local_batch_size = 2", "pipeline_parallel_degree = 2",
		    "pipeline_parallel_schedule = \"GPipe\"",
		    "pipeline_parallel_microbatch_size = 1",
		    "pipeline_parallel_layers_per_stage = 16",
		    "data_parallel_replicate_degree = 8",
		    "data_parallel_shard_degree = 1",
		    "!fsdp_reshard_after_forward = \"always\"" } },
		{ FT_TORCHTITAN,
		  { "training.parallel.pp=2", "training.schedule=zero-bubble",
		    "training.sharding=ddp", "training.parallel.stage_layers=[15,17]" },
		  { "pipeline_parallel_schedule = \"InterleavedZeroBubble\"",
		    "# not mapped: layers are not even over the pipeline's "
		    "stages" } },
		{ FT_TORCHTITAN,
		  { "training.parallel.pp=2", "training.parallel.vpp=2",
		    "training.schedule=interleaved", "training.sharding=ddp" },
		  { "pipeline_parallel_schedule = \"Interleaved1F1B\"",
		    "pipeline_parallel_layers_per_stage = 8" } },
		{ FT_TORCHTITAN,
		  { "training.parallel.pp=2", "training.parallel.vpp=2",
		    "training.schedule=dualpipev", "training.sharding=ddp",
		    "training.micro_batch_size=1" },
		  { "pipeline_parallel_schedule = \"DualPipeV\"",
		    "pipeline_parallel_layers_per_stage = 8" } },
		{ FT_TORCHTITAN,
		  { "training.parallel.pp=2", "training.schedule=1f1b",
		    "training.sharding=ddp" },
		  { "pipeline_parallel_schedule = \"1F1B\"" } },
		{ FT_TORCHTITAN,
		  { "training.sharding=hsdp", "training.shard=8",
		    "training.parallel.cp=2", "training.reshard_after_forward=false" },
		  { "data_parallel_replicate_degree = 2",
		    "data_parallel_shard_degree = 4",
		    "fsdp_reshard_after_forward = \"never\"" } },
		{ FT_TORCHTITAN,
		  { "training.sharding=zero2", "training.precision=fp8",
		    "training.offload_layers=2" },
		  { "# not mapped: sharding: zero2",
		    "# not mapped: precision: fp8, scaling delayed",
		    "# not mapped: offload_layers: 2" } },
		{ FT_TORCHTITAN,
		  { "training.recompute=selective",
		    "training.recompute_modules=[core_attn]" },
		  { "mode = \"selective\"", "selective_ac_option = \"op\"",
		    "# not mapped: recompute_modules" } },
		{ FT_TORCHTITAN,
		  { "training.recompute=full", "training.recompute_layers=12" },
		  { "mode = \"full\"", "# not mapped: recompute_layers: 12",
		    "!selective_ac_option = \"op\"" } },
		{ FT_TORCHTITAN,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.parallel.etp=2", "training.parallel.tp=2" },
		  { "expert_parallel_degree = 4", "# not mapped: etp 2" } },
	};

	ALL_HOLD(cases);
}

/* Nothing of a plan is dropped: what has no name is said. */
static void experts_and_the_rest_are_told_too(void **state)
{
	static const struct emitted cases[] = {
		{ FT_MEGATRON,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.moe_dispatcher=deepep",
		    "training.moe_capacity_factor=1.5",
		    "training.moe_force_balance=true", "training.grouped_experts=true",
		    "training.fused_experts=true" },
		  { "--moe-token-dispatcher-type flex",
		    "--moe-flex-dispatcher-backend deepep",
		    "# not mapped: moe_capacity_factor: 1.5 with deepep, which "
		    "Megatron refuses to pad",
		    "--moe-router-force-load-balancing", "--moe-grouped-gemm",
		    "# not mapped: fused_experts: true" } },
		{ FT_PRIMUS,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.moe_dispatcher=alltoall",
		    "training.grouped_experts=false" },
		  { "moe_token_dispatcher_type: alltoall", "!moe_grouped_gemm: true",
		    "!moe_flex_dispatcher_backend: deepep" } },
		{ FT_NEMO,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.moe_dispatcher=hybridep", "training.precision=fp8",
		    "training.attention_precision=fp8",
		    "training.fp8_recipe=tensorwise", "training.gradient_dtype=fp32",
		    "training.offload_layers=2" },
		  { "moe_flex_dispatcher_backend: hybridep",
		    "fp8_dot_product_attention: true", "grad_reduce_in_fp32: true",
		    "cpu_offloading: true", "cpu_offloading_num_layers: 2",
		    "# not mapped: precision fp8, scaling tensorwise: choose the recipe's "
		    "mixed_precision" } },
		{ FT_MEGATRON,
		  { "training.lora={rank: 8, targets: attention}",
		    "training.optimizer=muon", "training.master_weights=false",
		    "training.overlap.copy_engines=true" },
		  { "# not mapped: optimizer: muon", "# not mapped: lora: rank 8",
		    "# not mapped: master_weights: false",
		    "# not mapped: overlap.copy_engines: true" } },
		{ FT_NEMO,
		  { "training.optimizer=muon", "training.gradient_dtype=bf16",
		    "training.parallel.pp=2", "training.sharding=ddp",
		    "training.offload_layers=2" },
		  { "# not mapped: optimizer: muon", "grad_reduce_in_fp32: false",
		    "# not mapped: offload_layers: 2", "!cpu_offloading: true" } },
		{ FT_TORCHTITAN,
		  { "model=mixtral-8x7b", "training.parallel.ep=4",
		    "training.moe_dispatcher=deepep",
		    "training.moe_capacity_factor=1.5",
		    "training.moe_force_balance=true", "training.grouped_experts=false",
		    "training.fused_experts=true", "training.overlap.ep=true" },
		  { "expert_parallel_comm_backend = \"deepep\"",
		    "moe_force_load_balance = true",
		    "# not mapped: moe_capacity_factor: 1.5",
		    "# not mapped: grouped_experts: false",
		    "# not mapped: fused_experts: true",
		    "# not mapped: overlap.ep: true" } },
		{ FT_TORCHTITAN,
		  { "training.lora={rank: 8, targets: attention}",
		    "training.optimizer=muon", "training.master_weights=false",
		    "training.gradient_dtype=bf16", "training.parallel.tp=2",
		    "training.sequence_parallel=false" },
		  { "dtype = \"bfloat16\"", "# not mapped: lora: rank 8",
		    "# not mapped: optimizer: muon",
		    "# not mapped: gradient_dtype: bf16",
		    "# not mapped: sequence_parallel: false" } },
		{ FT_TORCHTITAN,
		  { "training.parallel.pp=2", "training.sharding=ddp",
		    "training.overlap.pp=false", "training.cuda_graphs=full",
		    "training.overlap.copy_engines=true", "training.overlap.dp=false" },
		  { "# not mapped: overlap.pp: false",
		    "# not mapped: overlap.dp: false",
		    "# not mapped: cuda_graphs: full",
		    "# not mapped: overlap.copy_engines: true" } },
	};

	ALL_HOLD(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(megatron_is_told_how_ranks_are_split),
		cmocka_unit_test(megatron_is_told_what_is_sharded),
		cmocka_unit_test(nemo_has_each_overlap_where_it_belongs),
		cmocka_unit_test(megatron_is_told_what_runs_again),
		cmocka_unit_test(megatron_is_told_the_formats),
		cmocka_unit_test(torchtitan_is_told_the_same),
		cmocka_unit_test(experts_and_the_rest_are_told_too),
	};

	return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
