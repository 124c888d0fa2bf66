#!/bin/sh
# tests/test_trace_tensor.sh - tensor-parallel groups of another size, against what is simulated at that size
. "$(dirname "$0")/tap.sh"
cat >"$tmp/s.yaml" <<Y
model: {name: llama3-8b, num_hidden_layers: 8}
cluster: {gpu: h100-sxm, gpus: 8}
stack: megatron-core
training: {sequence_length: 4096, global_batch_size: 1, micro_batch_size: 1, precision: bf16, sharding: ddp, step_start: together}
Y
step() { # TP SEQUENCE [OPTION...]: simulates on as many GPUs
	n=$1 sequence=$2
	shift 2
	$f simulate "$tmp/s.yaml" --set cluster.gpus=$n --set training.parallel.tp=$n --set training.sequence_parallel=$sequence "$@"
}
for n in 2 4 8; do
	step $n true --timeline "$tmp/$n.json" --timeline-format kineto --json >"$tmp/$n.told"
	step $n false --timeline "$tmp/$n.plain.json" --timeline-format kineto --json >"$tmp/$n.plain.told"
done
near() { # FROM TO BOUND [plain.]: replayed to TO is as simulated there
	$f trace replay "$tmp/$1.${4}json" --scale tp=$2 --json >"$tmp/r" && python3 -c '
import json, sys
got, want, bound = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), float(sys.argv[3])
m = got["machine"]
assert (m["tp_recorded"], m["tp"], m["ranks"]) == (int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[5])), m
assert abs(got["step_s"] / want["step_s"] - 1) < bound, (got["step_s"], want["step_s"])' "$tmp/r" "$tmp/$2.${4}told" "$3" "$1" "$2"
}
ok "2 to 4" near 2 4 0.01
ok "2 to 8" near 2 8 0.01
ok "8 to 4" near 8 4 0.02
ok "4 to 2" near 4 2 0.06
ok "without sequence parallelism: 8 to 4" near 8 4 0.02 plain.
ok "2 to 4, where some kernels keep their time" near 2 4 0.05 plain.
ok "those are counted" sh -c "$f trace replay $tmp/2.plain.json --scale tp=4 | grep -q '^111 kernels and copies (12.1 ms of all ranks) may be divided'"
ok "products go by their shapes" sh -c "! $f trace replay $tmp/2.json --scale tp=4 | grep -q 'without recorded shapes'"
outvoted() { # the last products have as many elements in another shape: most others tell the hidden features
	python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
products = [e for e in d["traceEvents"] if e["name"] == "aten::mm"]
for e in products[-3:]:
    e["args"]["Input Dims"] = [[8192, 2048], [2048, 6000]]
    e["args"].pop("Input Strides", None)
json.dump(d, open(sys.argv[2], "w"))' "$tmp/2.json" "$tmp/odd.json"
	for of in 2 odd; do
		$f trace replay "$tmp/$of.json" --scale tp=4 --json | jq .step_s || return 1
	done >"$tmp/steps"
	awk 'NR == 1 { a = $1 } END { d = $1 / a - 1; print a, $1; exit !(NR == 2 && d > -0.01 && d < 0.01) }' "$tmp/steps" >&2
}
ok "a few products of another shape change little" outvoted
ok "the group is named" sh -c "$f trace replay $tmp/2.json --scale tp=4 | grep -q \"Tensor-parallel: the group of 2 ranks described as 'tp'\""
ok "the same size changes nothing" sh -c "$f trace replay $tmp/4.json --scale tp=4 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert abs(d[\"step_s\"] / d[\"recorded_step_s\"] - 1) < 1e-9'"
ok "alone there is no collective" sh -c "$f trace replay $tmp/2.json --scale tp=1 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d[\"breakdown_s\"][\"exposed_communication\"] == 0 and d[\"machine\"][\"ranks\"] == 1, d'"
ok "a tensor-parallel group is not data-parallel" fails 1 "neither descriptions nor use tell" $f trace replay "$tmp/2.plain.json" --scale dp=4
# 4 data-parallel ranks of each of two stages on a node: with 8, the stages are a node apart; with 2 they are not
$f simulate "$tmp/s.yaml" --set training.sharding=zero1 --set training.parallel.pp=2 --set training.global_batch_size=16 --timeline "$tmp/pp.json" --timeline-format kineto >/dev/null
sends() { # DP: what collectives take over two networks, and how they differ
	for net in ib-ndr-rail roce-100-x4; do
		$f trace replay "$tmp/pp.json" --scale dp=$1 --set cluster.fabric=$net --json >"$tmp/$net.json" || return 1
	done
	jq -s '[.[].changes[] | select(.what == "collective").replayed_s] | .[1] / .[0]' "$tmp/ib-ndr-rail.json" "$tmp/roce-100-x4.json"
}
ok "stages are farther apart with more replicas" sh -c "test $(sends 8 | cut -c1) -ge 2"
ok "and nearer with fewer" test "$(sends 2)" = 1
# a mixture of experts: 8 of 16 ranks share the experts, so that 2 have the same; with twice the ranks 4 have
cat >"$tmp/moe.yaml" <<Y
model: {name: mixtral-8x7b, num_hidden_layers: 4}
cluster: {gpu: h100-sxm, gpus: 16, fabric: ib-ndr-rail}
stack: megatron-core
training: {sequence_length: 4096, global_batch_size: 16, micro_batch_size: 1, sharding: zero1, step_start: together, parallel: {ep: 8}}
Y
$f simulate "$tmp/moe.yaml" --timeline "$tmp/moe.json" --timeline-format kineto >/dev/null
$f simulate "$tmp/moe.yaml" --set cluster.gpus=32 --set training.global_batch_size=32 --timeline "$tmp/moe32.json" --timeline-format kineto >/dev/null
experts() { # what the replicas of experts reduce takes as it is simulated with 32 ranks
	$f trace replay "$tmp/moe.json" --scale dp=32 --timeline "$tmp/moe.32.json" >/dev/null && python3 - "$tmp/moe.json" "$tmp/moe.32.json" "$tmp/moe32.json" <<'P'
import json, sys
was, got, want = ([e["dur"] for e in json.load(open(x))["traceEvents"] if e.get("cat") == "kernel" and "reduce_experts" in e["name"]] for x in sys.argv[1:])
assert len(was) == len(got) == len(want) == 4, (was, got, want)
assert all(x < 0.8 * b and abs(a / b - 1) < 0.05 for x, a, b in zip(was, got, want)), (was, got, want)
P
}
ok "replicas of experts are as many as the others" experts
ok "and a whole number" fails 1 "has 2 replicas of its experts: dp=4 instead of 16" $f trace replay "$tmp/moe.json" --scale dp=4
ok "they are not tensor-parallel" fails 1 "cannot be scaled by tp" $f trace replay "$tmp/moe.json" --scale tp=4
$f simulate "$tmp/moe.yaml" --set model=llama3-8b --set model.num_hidden_layers=2 --set training.parallel.ep=1 --set training.sharding=hsdp --timeline "$tmp/hsdp.json" --timeline-format kineto >/dev/null
ok "of shards and their replicas nothing tells which is to be scaled" fails 1 "neither descriptions nor use tell" $f trace replay "$tmp/hsdp.json" --scale dp=32
t=measurements/traces
ok "real recordings: no shapes, and that is said" sh -c "
	$f trace replay $t/h100-8b8L-tp4-s4096-b1-eager.rank0.kineto.json.gz --scale tp=8 >$tmp/real &&
	grep -q '171 products without recorded shapes are taken' $tmp/real && grep -q 'replayed on h100-sxm, 8 ranks' $tmp/real"
ok "FSDP alone is not tensor-parallel" fails 1 "cannot be scaled by tp" $f trace replay $t/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz --scale tp=2
ok "no other size" fails 64 "not 'pp=2'" $f trace replay "$tmp/2.json" --scale pp=2

# a synchronisation of the device ends with the last operation: others of its streams add nothing to that
python3 - "$tmp/sync.json" <<'P'
import json, sys
def at(ph_cat, name, tid, ts, dur, **args):
    return dict(ph="X", cat=ph_cat, name=name, pid=0, tid=tid, ts=ts, dur=dur, args=args)
ev = [at("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, correlation=1), at("cuda_runtime", "cudaLaunchKernel", 1, 10, 5, correlation=2),
      at("kernel", "short", 7, 8, 100, correlation=1, stream=7, device=0), at("kernel", "nvjet_gemm", 8, 18, 1000, correlation=2, stream=8, device=0),
      at("cuda_runtime", "cudaDeviceSynchronize", 1, 20, 1000, correlation=3),
      at("user_annotation", "ProfilerStep#0", 1, 0, 1020)]
json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": ev}, open(sys.argv[1], "w"))
P
ok "a synchronisation ends with what is last then" sh -c "$f trace replay $tmp/sync.json --speedup gemm=10 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert abs(d[\"recorded_step_s\"] - 1020e-6) < 1e-9 and abs(d[\"step_s\"] - 120e-6) < 1e-9, d'"
finish
