#!/bin/sh
# tests/test_usage.sh - commands asked in the wrong way say how; trace and kernel, all of them
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
limit="timeout 20"
small="--set cluster.gpus=64 --set training.global_batch_size=64"

# ---- trace
ok "trace alone is wrong usage" fails 64 "show, replay, compare or export is missing" $f trace
ok "trace show wants a scenario" fails 64 "a SCENARIO or FILE is missing" $f trace show
ok "another verb is wrong usage" fails 64 "neither show, replay, compare nor export" $f trace dance $a
ok "replay wants a graph" fails 64 "graph FILE is missing" $f trace replay $a
ok "one scenario at a time" fails 64 "one SCENARIO at a time" $f trace show $a $a
ok "a graph that is not there" fails 1 "No such file" $f trace replay $a --graph "$tmp/none"
ok "a graph that is none" fails 1 "$tmp/g:1:" sh -c "echo hello >$tmp/g; $f trace replay $a --graph $tmp/g"
ok "a schedule that the stack does not have" fails 1 "zero-bubble cuts a backward in two, which stack" $f trace show $a --set training.schedule=zero-bubble --set training.parallel.vpp=1
ok "nor is dualpipev one of each stack" fails 1 "dualpipev cuts a backward in two, which stack" $f trace show $a --set training.schedule=dualpipev --set training.parallel.vpp=2
foundry="--set stack=llm-foundry-2023 --set training.parallel={}"
ok "a framework that splits data alone refuses a split of the model" fails 1 "parallel.cp 2: stack llm-foundry-2023 has no cp" $f simulate $a $foundry --set training.parallel.cp=2
ok "and a sharding that it lacks" fails 1 "sharding: zero1 is not in stack llm-foundry-2023, which has ddp, zero2, fsdp, hsdp$" $f simulate $a $foundry --set training.sharding=zero1
ok "nor does DeepSpeed of 2022 have zero3" fails 1 "sharding: fsdp is not in stack megatron-deepspeed-2022, which has ddp, zero1, zero2$" $f simulate $a --set stack=megatron-deepspeed-2022 --set training.parallel='{tp: 8}' --set training.sharding=zero3
ok "and so does a search of what is stated" fails 1 "stack llm-foundry-2023 has no tp" $f plan $a $foundry --set training.parallel.tp=8
ok "nor is a model split that nobody splits" fails 1 "parallel.pp 2: a model with hidden_size_per_layer_input is simulated with tp and pp 1" $f simulate $a --set model=gemma4-e4b --set 'training.parallel={pp: 2}' --set stack=megatron-core
ok "a graph that breaks inside a checkpoint is not taken for a compiled one" fails 1 "recompute: full with micro_batch_size 1 runs eagerly under stack transformers-5-compile-fa3" $f simulate $a \
	--set stack=transformers-5-compile-fa3 --set 'training.parallel={}' --set training.sharding=fsdp --set training.micro_batch_size=1 --set training.recompute=full
breaks="$f simulate $a -q --set stack=transformers-5-compile-fa3 --set training.parallel={} --set training.sharding=fsdp --set training.micro_batch_size=1"
ok "nor where all but some operations are recomputed" fails 1 "recompute: selective (op) with micro_batch_size 1 runs eagerly" $breaks --set training.recompute=selective
ok "attention alone may be, which is a kernel of its own" $breaks --set training.recompute=selective --set 'training.recompute_modules=[core_attn]'
ok "and a larger micro-batch" $breaks --set training.recompute=selective --set training.micro_batch_size=2 --set training.global_batch_size=2048
ok "but where no layer is recomputed" $f simulate $a -q --set stack=transformers-5-compile-fa3 --set 'training.parallel={}' --set training.sharding=fsdp --set training.micro_batch_size=1 --set training.recompute=full --set training.recompute_layers=0
ok "a scan computes all of its layers again or none" fails 1 "stack jax-0.11 scans its layers, which all recompute or none" $f simulate $a \
	--set stack=jax-0.11 --set training.parallel.tp=1 --set training.parallel.pp=1 --set training.parallel.vpp=1 --set training.sharding=fsdp --set training.recompute=full --set training.recompute_layers=1
ok "none of them is none" $f simulate $a -q --set stack=jax-0.11 --set training.parallel.tp=1 --set training.parallel.pp=1 --set training.parallel.vpp=1 --set training.sharding=fsdp --set training.recompute=full --set training.recompute_layers=0
routed="$f simulate $a -q --set model=mixtral-8x7b --set model.num_hidden_layers=4 --set training.parallel={} --set training.sharding=fsdp --set training.recompute=full"
ok "nothing groups the rows of experts in plain JAX" fails 1 "no kernel for groups of rows, each of 8 experts would run on all tokens" $routed --set stack=jax-0.11
ok "a capacity makes them products of one size" $routed --set stack=jax-0.11 --set training.moe_capacity_factor=1.25
ok "and MaxText has kernels" $routed --set stack=maxtext-2025
ok "a library that trains no tokens ahead refuses a model of them" fails 1 "trains no tokens ahead" $f simulate $a \
	--set 'model={name: glm4.5-air, num_hidden_layers: 4, num_nextn_predict_layers: 1}' --set training.parallel={} --set stack=transformers-5-compile
own_defaults() { # what a stack says of itself it runs, of one GPU as of eight
	for s in $("$f" list stacks | awk 'NR > 1 && $1 != "name" { print $1 }'); do
		case $s in mi300x-* | primus-* | mlperf-rocm-* | *-rocm-*) gpu=mi300x ;; rocm-*) gpu=mi250 ;; *-fa4*) gpu=b200 ;; *) gpu=h100-sxm ;; esac
		echo "{model: {name: llama3-8b, num_hidden_layers: 2}, stack: $s, cluster: {gpu: $gpu, gpus: 8}, training: {sequence_length: 2048, global_batch_size: 64}}" >"$tmp/own.yaml"
		"$f" simulate "$tmp/own.yaml" --quiet >/dev/null && "$f" simulate "$tmp/own.yaml" --quiet --set cluster.gpus=1 >/dev/null || return 1
	done
}
ok "a stack runs its own defaults" own_defaults
own="provenance: {kind: assumed, source: a test, date: 2026-11-25}"
echo "{extends: llm-foundry-2023, $own, runs: {parallel: [cp]}}" >"$tmp/cp.yaml"
echo "{extends: generic, $own, runs: {parallel: [tp, dp]}}" >"$tmp/dp.yaml"
echo "{extends: generic, $own, runs: {sharding: []}}" >"$tmp/none.yaml"
echo "{extends: torch-2.11-eager, $own, runs: {compiled_recompute: false}}" >"$tmp/eager.yaml"
ok "what is eager has no graph that breaks" fails 1 "eager.yaml:1:.*compiled_recompute: goes with fusion: compiled" $f simulate $a --set stack=$tmp/eager.yaml
ok "a stack of one's own may have it" sh -c "$f simulate $a $foundry --set training.parallel.cp=2 --set training.sharding=fsdp --set stack=$tmp/cp.yaml | grep -q MFU"
ok "words that are none are shown at their place" fails 1 "dp.yaml:1:.*'dp' is not one of tp, pp, vpp, cp, ep, etp" $f simulate $a --set stack=$tmp/dp.yaml
printf 'extends: torch-2.11-compile\nruns: {graphed_sharding: []}\n' >"$tmp/never.yaml"
ok "and its graphs go with some way" fails 1 "graphed_sharding: should hold at least one word" $f simulate $a --set stack=$tmp/never.yaml
ok "and a stack shards in some way" fails 1 "should hold at least one word" $f simulate $a --set stack=$tmp/none.yaml
version() { # ATTENTION GPU: what is said of a stack's implementation there
	echo "{extends: generic, $own, layout: {attention: $1}}" >"$tmp/version.yaml"
	$f simulate $a -q --set stack="$tmp/version.yaml" --set cluster.node=~ --set cluster.gpu="$2" | sed -n 's/^The profile of \(.*\) knows no attention .\(.*\).: the time is that of \(.*\)\.$/\1 \2 \3/p'
}
ok "a version of attention that no profile has counts as its library, which is told" sh -c "[ '$(version fa2-9.9 h100-sxm)' = 'h100-sxm fa2-9.9 fa2' ] && [ '$(version cudnn-9.13 h200)' = 'h200 cudnn-9.13 cudnn' ]"
ok "one that it has does not" sh -c "[ -z '$(version cudnn-9.13 b200)$(version cudnn h100-sxm)$(version cudnn-masked h100-sxm)' ]"
echo "{extends: generic, $own, layout: {attention: fa9}}" >"$tmp/fa9.yaml"
ok "a library that there is none of is refused, and the known ones named" fails 1 "attention 'fa9' is not one of cudnn, fa3, .*, fa2, .*, which h100-sxm has" $f simulate $a --set stack="$tmp/fa9.yaml"
ok "a search says what it leaves out for it" sh -c "sed '/sharding:/d' $a >$tmp/open.yaml && $f plan $tmp/open.yaml $foundry --set cluster.gpus=8 --set model=mpt-7b --json | jq -e '.left_out == [\"tp\", \"pp\", \"cp\", \"vpp\", \"zero1\"]'"
idle_told() { # COMMAND ...: what of a plan without tp and pp does nothing is said, once
	"$@" --set 'training.parallel={tp: 1, pp: 1, vpp: 2}' --set training.sequence_parallel=true --set model=llama3-8b $small 2>"$tmp/said" >/dev/null &&
		test "$(grep -c 'has an effect only with .. above 1' "$tmp/said")" = "$told_keys"
}
told_keys=2
ok "keys of a split that is not there are told" idle_told $f simulate $a
told_keys=0
ok "not to who wants none" idle_told $f simulate $a --quiet
ok "nor of an answer's own scenario, which states the defaults" sh -c "$f simulate $a --set model=llama3-8b $small --set training.parallel='{}' --set training.recompute=none --json |
	jq .scenario | $f simulate - 2>&1 >/dev/null | grep . && exit 1 || exit 0"
ok "but of another value" sh -c "$f simulate $a --set model=llama3-8b $small --set training.parallel='{}' --set training.overlap.pp=false 2>&1 >/dev/null |
	grep -q 'overlap.pp has an effect only with pp above 1'"
ok "and of one that the stack does not set" sh -c "$f simulate $a --set model=llama3-8b $small --set training.parallel='{}' --set stack=generic --set training.overlap.tp=true 2>&1 >/dev/null |
	grep -q 'overlap.tp has an effect only with tp above 1'"
lasts() { # PP: is it told that a micro-batch's own reduction does nothing?
	$f simulate $a --set model=llama3-8b $small --set stack=torch-2.11-eager --set training.sharding=fsdp --set "training.parallel={pp: $1}" \
		--set training.sync_each_micro_batch=false 2>&1 >/dev/null | grep -q "sync_each_micro_batch has an effect only without a pipeline"
}
ok "a pipeline that reduces behind its last micro-batch is told" lasts 2
ok "and one stage is not" sh -c "! $f simulate $a --set model=llama3-8b $small --set training.global_batch_size=128 --set stack=torch-2.11-eager --set training.sharding=fsdp --set 'training.parallel={pp: 1}' \
	--set training.sync_each_micro_batch=false 2>&1 >/dev/null | grep 'has an effect'"
ok "one micro-batch is told that it is the last" sh -c "$f simulate $a --set model=llama3-8b --set training.parallel='{}' --set training.recompute=none --set cluster.gpus=8 \
	--set training.global_batch_size=8 --set stack=torch-2.11-eager --set training.sharding=fsdp --set training.sync_each_micro_batch=false 2>&1 >/dev/null |
	grep -q 'sync_each_micro_batch has an effect only with several micro-batches'"
ok "documents of a model without attention are told" sh -c "$f simulate $a --set 'model={name: bamba-9b, num_hidden_layers: 4}' $small --set training.parallel='{}' --set stack=generic \
	--set training.document_length=512 2>&1 >/dev/null | grep -q 'document_length has an effect only in models with attention'"
ok "and of one with it are not" sh -c "! $f simulate $a --set model=bamba-9b $small --set training.parallel='{}' --set stack=generic \
	--set training.document_length=512 2>&1 >/dev/null | grep 'has an effect'"
unpaired() { # VPP: is it told that no two micro-batches of a pipeline run side by side?
	$f simulate $a --set model=mixtral-8x7b $small --set stack=megatron-core --set "training.parallel={pp: 2, ep: 4, vpp: $1}" \
		--set training.overlap.ep=true >/dev/null 2>"$tmp/said" && grep -c "overlap.ep has an effect only" "$tmp/said" | grep -q "^$2$"
}
ok "a pipeline whose micro-batches do not pair is told" unpaired 1 1
ok "and an interleaved one is not" unpaired 2 0
fp8=$small\ --set\ training.precision=fp8\ --set\ training.attention_precision=fp8\ --set\ model=llama3-8b
ok "attention in 8 bit needs a kernel" fails 1 "attention_precision: fp8: the attention of stack transformers-5-eager-fa2 runs in 16 bit" \
	$f simulate $a $fp8 --set stack=transformers-5-eager-fa2 --set training.parallel='{}' --set training.sharding=fsdp
ok "which Megatron's library has" sh -c "$f simulate $a $fp8 --set stack=megatron-core | grep -q MFU"
ok "nor of a plan that is split" sh -c "! $f simulate $a 2>&1 >/dev/null | grep 'has an effect'"
ok "nor of a stack that is older" fails 1 "dualpipev is not in stack torchtitan-2024-eager" $f trace show $a --set stack=torchtitan-2024-eager --set training.schedule=dualpipev --set training.parallel.vpp=2
same_as_simulate() { # what is built, shown and read back gives the same bytes
	$f trace show $a $small >"$tmp/step.graph" &&
	$f trace replay $a $small --graph "$tmp/step.graph" $1 >"$tmp/replayed" &&
	$f simulate $a $small $1 >"$tmp/simulated" && cmp "$tmp/replayed" "$tmp/simulated"
}
ok "a graph shown and replayed is the scenario's" same_as_simulate
ok "as JSON, too" same_as_simulate --json
ok "show takes --set" sh -c "! cmp -s $tmp/step.graph /dev/null && ! $f trace show $a | cmp -s - $tmp/step.graph"

# ---- sweep
ok "a sweep without a scenario" fails 64 "a SCENARIO is missing" $f sweep --vary cluster.gpus=8 --db "$tmp/x.db"
ok "a sweep of two scenarios" fails 64 "at most 1 SCENARIO" $f sweep $a $a --vary cluster.gpus=8 --db "$tmp/x.db"
ok "a sweep of nothing" fails 64 "--vary KEY=A,B,C is missing" $f sweep $a --db "$tmp/x.db"
for n in 0 257 two -1 4294967297; do
	ok "--threads $n is wrong usage" fails 64 "takes 1 to 256" $f sweep $a --vary cluster.gpus=256 --db "$tmp/x.db" --threads=$n
done
ok "no database was made" test ! -e "$tmp/x.db"
sweep_sets() { # --set counts, whatever the threads
	for t in 1 3; do
		$f sweep $a --set training.sequence_length=4096 --vary cluster.gpus=256,512,1024 --threads=$t --db "$tmp/t$t.db" || return 1
	done
	python3 -c 'import sqlite3, sys
rows = [sqlite3.connect(p).execute("select step_s, \"training.sequence_length\" from runs order by \"cluster.gpus\"").fetchall() for p in sys.argv[1:]]
assert rows[0] == rows[1] and len(rows[0]) == 3 and rows[0][0][1] == 4096, rows' "$tmp/t1.db" "$tmp/t3.db"
}
ok "a sweep is the same on one thread and on three" sweep_sets

# ---- kernel
printf 'kernel,dtype,m,n,k\ngemm,bf16,4096,4096,4096\ngemm,bf16,8192,4096,4096\ngemm,bf99,1,1,1\n' >"$tmp/k.csv"
kernels() {
	$f kernel --gpu h100-sxm --csv "$tmp/k.csv" >"$tmp/o" 2>"$tmp/e"
	awk -F, 'NR == 1 { if ($6 != "predicted.time_us") exit 1 } NR == 2 { t = $6 } NR == 3 { if (!($6 > 1.5 * t && $6 < 2.5 * t)) exit 1 } NR == 4 { if ($6 != "") exit 1 } END { if (NR != 4) exit 1 }' "$tmp/o" &&
	grep -q "unknown dtype 'bf99'" "$tmp/e"
}
ok "kernel predicts rows and says which it cannot" kernels
ok "kernel wants a profile" fails 64 "gpu NAME is missing" $f kernel --csv "$tmp/k.csv"
ok "a profile that is not there" fails 1 "unknown name 'h999'" $f kernel --gpu h999 --csv "$tmp/k.csv"
printf 'gpu,kernel\nh100-sxm,gemm\n' >"$tmp/order.csv"
ok "kernel is the first column" fails 1 "first column should be 'kernel'" $f kernel --gpu h100-sxm --csv "$tmp/order.csv"
printf 'kernel,dtype,batch,heads,sequence_length,head_dim,causal\nattention,bf16,1,32,4096,128,yes\n' >"$tmp/truth.csv"
ok "a truth that is none" sh -c "$f kernel --gpu h100-sxm --csv $tmp/truth.csv 2>&1 >/dev/null | grep -q \"causal should be true or false, not 'yes'\""
ok "an unknown column of kernels" fails 1 "unknown column 'speed'" sh -c "printf 'kernel,speed\ngemm,1\n' >$tmp/c.csv; $f kernel --gpu h100-sxm --csv $tmp/c.csv"

# ---- others
ok "collective wants a scenario" fails 64 "a SCENARIO is missing" $f collective
ok "an operation that is none" fails 1 "all_reduce" $f collective $a --op all_sum
ok "compare wants two" fails 64 "one more SCENARIO is missing" $f compare $a
ok "list wants a kind" fails 64 Usage $f list
ok "a kind that is none" fails 1 "gpus" $f list spoons
ok "bom wants a scenario" fails 64 "a SCENARIO is missing" $f bom
ok "validate wants rows" fails 64 "RUNS.csv is missing" $f validate

# ---- a scenario's keys
lacking() { # TEXT EDIT: what is said of the scenario once it is edited
	sed "$2" $a >"$tmp/lacking.yaml"
	fails 1 "$1" $f simulate "$tmp/lacking.yaml"
}
ok "what a stack does not run is told at its key" fails 1 "^--set training.parallel.pp=2:1:28: error: parallel.pp 2: stack llm-foundry-2023 has no pp" $f simulate $a \
	--set stack=llm-foundry-2023 --set 'training.parallel={tp: 1}' --set training.parallel.pp=2
ok "of a file, too" lacking "lacking.yaml:[0-9]*:[0-9]*: error: schedule: zbv cuts" 's/parallel:.*/parallel: {tp: 4, pp: 4, vpp: 2}\n  schedule: zbv/'
ok "the GPU that is missing is not what gpus was meant for" lacking "lacks the key 'gpu'" 's/^  gpu:.*//'
sed '/^gpus:/d' hw/nodes/hgx-h100.yaml >"$tmp/node.yaml"
ok "nor is a key that a node's file has one for another" fails 1 "lacks the key 'gpus'" $f simulate $a --set "cluster.node=$tmp/node.yaml"
ok "a key whose name is cut short is told" lacking "unknown key 'batch_size'; did you mean 'global_batch_size'?" 's/global_batch_size/batch_size/'
ok "at its front, too" lacking "unknown key 'length'; did you mean 'sequence_length'?" 's/sequence_length/length/'
finish
