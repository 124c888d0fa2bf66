#!/bin/sh
# tests/test_replayed.sh - a step's graph as text, read back and run, gives the answer that the scenario gives: all of it, byte for byte
. "$(dirname "$0")/tap.sh"
back() { # SCENARIO SETTING... whose answer is in a.json
	$f trace show "$@" >"$tmp/graph" && $f trace replay "$@" --graph "$tmp/graph" --json >"$tmp/b.json" &&
		[ -s "$tmp/a.json" ] && cmp "$tmp/a.json" "$tmp/b.json"
}
same() {
	$f simulate "$@" --json >"$tmp/a.json" && back "$@"
}
n=0
for s in examples/*/*.yaml; do
	grep -q '^training:' "$s" || continue
	n=$((n + 1))
	! asked 3 || ok "of $s" same "$s"
done
ok "these are the examples' scenarios" [ $n -gt 25 ]
set_all() { # SCENARIO KEY=VALUE...
	s=$1
	shift
	for x; do
		set -- "$@" --set "$x"
		shift
	done
	same "$s" "$@"
}
each() { # SCENARIO, then a variant a line: KEY=VALUE ...
	while read -r line; do
		! asked 3 || ok "with $line" set_all "$1" $line
	done
}
# a stack whose host does much, at small sizes
each examples/15-recorded-step/scenario.yaml <<'Y'
cluster.gpus=8 training.global_batch_size=32 training.sharding=hsdp training.shard=4
cluster.gpus=8 training.global_batch_size=32 training.parallel.tp=2 training.parallel.cp=2
cluster.gpus=8 training.global_batch_size=32 training.parallel.pp=4 training.parallel.vpp=2 training.sharding=ddp model.num_hidden_layers=16
cluster.gpus=8 training.global_batch_size=32 training.parallel.pp=4 training.parallel.vpp=2 training.schedule=zbv training.sharding=zero1 model.num_hidden_layers=16
training.recompute=full
training.recompute=selective
training.precision=fp8
training.step_start=steady
training.optimizer=muon
training.micro_batch_size=2 training.global_batch_size=8
training.lora.rank=16
training.lora.rank=8 training.lora.targets=all training.lora.dropout=true training.lora.frozen_precision=fp8
training.offload_layers=2
training.offload_layers=4
stack=megatron-core training.cuda_graphs=partial
stack=megatron-core training.cuda_graphs=full
cluster.gpus=1 training.global_batch_size=1 training.sharding=none stack=torch-2.11-compile training.cuda_graphs=full
cluster.gpus=1 stack=torch-2.11-compile-whole training.sharding=none training.master_weights=false model.tie_word_embeddings=true
training.gradient_dtype=fp32
training.reshard_after_forward=false
training.overlap.param_gather=false training.sharding=zero1
training.overlap.dp=false training.sharding=ddp
training.sharding=zero2 training.master_weights=true
Y
each examples/08-mixture-of-experts/mixtral.yaml <<'Y'
training.parallel.ep=4
training.moe_dispatcher=deepep
stack=generic
stack=megatron-bridge-26
Y
# every model; every stack, in each plan that it runs, on either vendor's GPUs; attention of Blackwell's alone on one of those
any() { # the first of these that the program takes, at least
	tried=0
	for gpu in h100-sxm mi300x b200; do
		[ $gpu != b200 ] || [ $tried = 0 ] || continue
		for plan in "sharding: fsdp" "sharding: ddp" "sharding: zero2" "sharding: zero1, precision: fp8, parallel: {tp: 4, pp: 2}"; do
			printf 'cluster: {gpu: %s, gpus: 64}\n%s\ntraining: {sequence_length: 2048, global_batch_size: 64, %s}\n' $gpu "$1" "$plan" >"$tmp/m.yaml"
			$f simulate "$tmp/m.yaml" --json >"$tmp/a.json" 2>"$tmp/o" || continue
			tried=$((tried + 1))
			back "$tmp/m.yaml" || { cat "$tmp/m.yaml" >&2; return 1; }
		done
	done
	[ $tried -gt 0 ]
}
for m in models/*.yaml; do
	grep -q '^hidden_size:' "$m" || continue
	m=${m##*/}
	! asked 3 || ok "of ${m%.yaml}" any "model: ${m%.yaml}"
done
for m in stacks/*.yaml; do
	m=${m##*/}
	! asked 3 || ok "with ${m%.yaml}" any "model: {name: llama3-8b, num_hidden_layers: 4}
stack: ${m%.yaml}"
done
finish
