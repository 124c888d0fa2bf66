#!/bin/sh
# tests/test_products.sh - products of one generation of GPUs: rates.gemm_by_generation of a stack
. "$(dirname "$0")/tap.sh"
limit="timeout 20"
stack() { # NAME RATES [BASE]
	cat >"$tmp/$1.yaml" <<Y
extends: ${3:-megatron-core}
title: t
provenance: {kind: assumed, date: 2026-11-26}
rates: $2
Y
}
step() { # STACK GPU
	$limit $f simulate "$tmp/s.yaml" --set "stack=$1" --set "cluster.gpu=$2" --json | jq .step_s
}
cat >"$tmp/s.yaml" <<'Y'
model: llama3-8b
cluster: {gpus: 8}
training: {sequence_length: 4096, global_batch_size: 16, micro_batch_size: 1, sharding: zero1}
Y
same() {
	a=$(step "$1" "$3") b=$(step "$2" "$3")
	[ -n "$a" ] && [ "$a" = "$b" ]
}
differs() {
	! same "$@"
}
stack one '{gemm_by_generation: {hopper: 1.3}}'
stack all '{gemm: 1.3}'
ok "of the GPU's generation it is what gemm is" same "$tmp/one.yaml" "$tmp/all.yaml" h100-sxm
ok "on all GPUs of it" same "$tmp/one.yaml" "$tmp/all.yaml" h200
ok "and not what the stack was" differs "$tmp/one.yaml" megatron-core h100-sxm
for gpu in a100-80g b200; do
	ok "$gpu does not see it" same "$tmp/one.yaml" megatron-core $gpu
done
stack both '{gemm: 1.2, gemm_by_generation: {hopper: 1.3, ampere: 1.1}}'
stack low '{gemm: 1.1}'
stack mid '{gemm: 1.2}'
ok "beside gemm it counts for its own" same "$tmp/both.yaml" "$tmp/all.yaml" h100-sxm
ok "each generation for itself" same "$tmp/both.yaml" "$tmp/low.yaml" a100-80g
ok "and gemm for all others" same "$tmp/both.yaml" "$tmp/mid.yaml" b200
stack none '{gemm_by_generation: ~}' "$tmp/one.yaml"
ok "one that extends it can take it away" same "$tmp/none.yaml" megatron-core h100-sxm
stack more '{gemm: 1.2}' "$tmp/one.yaml"
ok "what it does not say stays" same "$tmp/more.yaml" "$tmp/all.yaml" h100-sxm
stack typo '{gemm_by_generation: {hoper: 1.3}}'
ok "a generation that nobody knows" fails 1 "typo.yaml:4:30: error: no communication library of the stack knows GPUs of the generation 'hoper'" \
	$f simulate "$tmp/s.yaml" --set "stack=$tmp/typo.yaml" --set cluster.gpu=h100-sxm
stack less '{gemm_by_generation: {hopper: -1}}'
ok "a negative one" fails 1 "less.yaml:4:38: error: .*negative" $f simulate "$tmp/s.yaml" --set "stack=$tmp/less.yaml" --set cluster.gpu=h100-sxm
# a fitted stack says the generation's factor anew, as gemm alone would do nothing there
{
	echo id,model.name,cluster.gpu,cluster.gpus,stack,training.sequence_length,training.micro_batch_size,training.global_batch_size,training.sharding,measured.step_s
	for n in 1024 2048 4096 8192; do
		for b in 1 2; do echo "$n-$b,llama3-8b,h200,8,torchtitan-2024,$n,$b,$((8 * b)),fsdp,1"; done
	done
} >"$tmp/plan.csv"
stack truth '{gemm_by_generation: {hopper: 1.3}}' torchtitan-2024
fitted() {
	$limit $f validate "$tmp/plan.csv" --set "stack=$tmp/truth.yaml" --json |
		jq -r '.rows[] | [.id, .predicted] | @csv' | tr -d '"' >"$tmp/took" &&
		awk -F, -v OFS=, 'NR == FNR { took[$1] = $2; next } FNR > 1 { $NF = took[$1] } 1' \
			"$tmp/took" "$tmp/plan.csv" >"$tmp/runs.csv" &&
		$f validate "$tmp/runs.csv" --fit-stack "$tmp/mine" >"$tmp/o" &&
		grep -q '^    hopper: 1\.[23]' "$tmp/mine.yaml" &&
		$f validate "$tmp/runs.csv" --set "stack=$tmp/mine.yaml" --json | jq -e '.summary.mape < 0.01' >"$tmp/o"
}
ok "a fit on such a generation is the stack that was fitted" fitted
finish
