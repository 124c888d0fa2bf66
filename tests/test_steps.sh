#!/bin/sh
# tests/test_steps.sh - all drawings of a step against the graph that `trace show` prints of it
. "$(dirname "$0")/tap.sh"
drawn() { # RANK SCENARIO [OPTION...]: of both timelines and both charts each slice, counter, box and band
	rank=$1
	shift
	$f trace show "$@" >"$tmp/graph" && $f simulate -q "$@" --timeline "$tmp/c.json" --json >"$tmp/a.json" &&
		$f simulate -q "$@" --timeline "$tmp/k.json" --timeline-format kineto --timeline-rank "$rank" >"$tmp/o" &&
		$f simulate -q "$@" --timeline "$tmp/g.svg" >"$tmp/o" &&
		$f simulate -q "$@" --timeline "$tmp/m.svg" --timeline-format memory >"$tmp/o" &&
		python3 tests/steps.py "$tmp/graph" "$tmp/c.json" "$tmp/k.json" "$rank" "$tmp/g.svg" "$tmp/m.svg" "$tmp/a.json"
}
scenario() { # NAME MODEL CLUSTER STACK TRAINING
	printf 'model: {%s}\ncluster: {%s}\nstack: %s\ntraining: {sequence_length: 1024, micro_batch_size: 1, %s}\n' "$2" "$3" "$4" "$5" >"$tmp/$1.yaml"
}
scenario hosts 'name: gpt-1.5b' 'gpu: mi300x, gpus: 16' torch-2.11-compile 'global_batch_size: 16, sharding: hsdp, shard: 8, parallel: {pp: 2}'
scenario folded 'name: llama3-8b, num_hidden_layers: 16' 'gpu: h100-sxm, gpus: 4' torch-2.11-eager 'global_batch_size: 8, schedule: zbv, parallel: {pp: 4, vpp: 2}'
scenario copies 'name: llama3-8b, num_hidden_layers: 4' 'gpu: h100-sxm, gpus: 32' torch-2.11-eager 'global_batch_size: 32, sharding: fsdp, step_start: together, offload_layers: 2, precision: fp8, parallel: {tp: 2, cp: 2}'
scenario experts 'name: mixtral-8x7b, num_hidden_layers: 2' 'gpu: h200, gpus: 16' megatron-core-moe-2025 'global_batch_size: 16, sharding: zero1, step_start: together, parallel: {tp: 2, ep: 4}'
ok "where hosts set the pace the drawn step is as long as the answer's" drawn 8 "$tmp/hosts.yaml"
ok "and without a pipeline, layers run again" drawn 8 "$tmp/hosts.yaml" --set training.parallel.pp=1 --set training.recompute=full
ok "stages in a V" drawn 1 "$tmp/folded.yaml"
ok "some backwards of them whole" drawn 2 "$tmp/folded.yaml" --set training.schedule=dualpipev
ok "chunks of layers" drawn 0 "$tmp/folded.yaml" --set training.schedule=1f1b --set training.parallel.pp=2
ok "shards, copies to host memory, halves of a sequence, products of FP8" drawn 3 "$tmp/copies.yaml"
ok "experts and tensor parallel" drawn 0 "$tmp/experts.yaml"
ok "micro-batches side by side" drawn 8 "$tmp/experts.yaml" --set training.overlap.ep=true --set training.global_batch_size=64 --set training.parallel.pp=1
ok "adapters, one rank" drawn 0 examples/17-best-plan/lora.yaml --set training.global_batch_size=16
finish
