#!/bin/sh
# tests/test_trace_stages.sh - a pipeline's recordings: all stages, or some that stand for the others
. "$(dirname "$0")/tap.sh"
cat >"$tmp/s.yaml" <<Y
model: {name: llama3-8b, num_hidden_layers: 8}
cluster: {gpu: h100-sxm, gpus: 4}
stack: megatron-core
training: {sequence_length: 4096, global_batch_size: 8, micro_batch_size: 1, precision: bf16, parallel: {pp: 4, vpp: 1},
  sharding: ddp, step_start: together}
Y
cat >"$tmp/fast.yaml" <<Y
extends: megatron-core
provenance: {kind: assumed, source: a test}
rates: {gemm: 0.5}
Y
record() { # NAME OPTION...: the stages' recordings are NAME.STAGE.json, the step NAME.told
	name=$1
	shift
	$f simulate "$tmp/s.yaml" "$@" --timeline "$tmp/$name.timeline" --json >"$tmp/$name.told" && python3 tests/stages.py "$tmp/$name.timeline" "$tmp/$name"
}
record r
record g --set training.schedule=gpipe
$f simulate "$tmp/s.yaml" --set stack="$tmp/fast.yaml" --json >"$tmp/fast.told"
$f simulate "$tmp/s.yaml" --set stack="$tmp/fast.yaml" --set training.schedule=gpipe --json >"$tmp/gfast.told"
record i --set training.schedule=interleaved --set training.parallel.vpp=2
$f simulate "$tmp/s.yaml" --set stack="$tmp/fast.yaml" --set training.schedule=interleaved --set training.parallel.vpp=2 --json >"$tmp/ifast.told"
of() { # NAME STAGE...: their files
	name=$1
	shift
	for s in "$@"; do echo "$tmp/$name.$s.json"; done
}
near() { # TOLD BOUND FILE... OPTION...: replayed to that step
	told=$1 bound=$2
	shift 2
	$f trace replay "$@" --json >"$tmp/got" && python3 -c '
import json, sys
got, want = (json.load(open(f))["step_s"] for f in sys.argv[1:3])
assert abs(got / want - 1) < float(sys.argv[3]), (got, want)' "$tmp/got" "$tmp/$told.told" "$bound"
}
ok "all stages replay to the step" near r 1e-6 $(of r 0 1 2 3)
ok "each send met its receive" sh -c "$f trace show $(of r 0 1 2 3 | tr '\n' ' ') | grep -q 'Collectives: 96 found on all ranks given, 0 whose'"
ok "with products twice as fast it is the simulated step" near fast 0.02 $(of r 0 1 2 3) --speedup gemm=2
ok "first and last stand for all: the step" near r 1e-6 $(of r 0 3)
ok "and what faster products make of it" near fast 0.02 $(of r 0 3) --speedup gemm=2
ok "so do the last and a middle one" near fast 0.05 $(of r 1 3) --speedup gemm=2
ok "what stands for what is said" sh -c "$f trace replay $(of r 0 3 | tr '\n' ' ') | grep -qF 'Pipeline of 4 stages, 8 micro-batches, 1F1B; not recorded: 1 to 2 (as stage 0).'"
ok "the nearest stands in" sh -c "$f trace replay $(of r 0 2 3 | tr '\n' ' ') | grep -qF 'not recorded: 1 (as stage 2).'"
ok "all forward passes first" near g 1e-6 $(of g 0 3)
ok "and faster products there" near gfast 0.03 $(of g 0 3) --speedup gemm=2
ok "two chunks a stage: all stages, with products twice as fast" near ifast 0.02 $(of i 0 1 2 3) --speedup gemm=2
ok "first and last stand for all: the interleaved step" near i 1e-6 $(of i 0 3)
ok "and what faster products make of it" near ifast 0.02 $(of i 0 3) --speedup gemm=2
ok "so do the last and a middle one" near ifast 0.05 $(of i 1 3) --speedup gemm=2
ok "chunks are told" sh -c "$f trace replay $(of i 0 3 | tr '\n' ' ') | grep -qF 'Pipeline of 4 stages of 2 chunks, 8 micro-batches, 1F1B; not recorded: 1 to 2 (as stage 0).'"
# schedules that cut backwards, and fold the stages to a V: their passes are marked as PyTorch's are
cat >"$tmp/split.yaml" <<Y
extends: megatron-core
provenance: {kind: assumed, source: a test}
layout: {split_backward: true, dual_pipe: true}
Y
sed "s#extends: megatron-core#extends: $tmp/split.yaml#" "$tmp/fast.yaml" >"$tmp/splitfast.yaml"
for kind in "zb zero-bubble 1" "zbv zbv 2" "dual dualpipev 2"; do
	set -- $kind
	plan="--set training.schedule=$2 --set training.parallel.vpp=$3"
	$f simulate "$tmp/s.yaml" --set stack="$tmp/split.yaml" $plan --timeline "$tmp/$1.timeline" --json >"$tmp/$1.told"
	$f simulate "$tmp/s.yaml" --set stack="$tmp/splitfast.yaml" $plan --json >"$tmp/$1fast.told"
	python3 tests/stages.py "$tmp/$1.timeline" "$tmp/$1" $((2 / $3))
	$f trace replay $(of $1 0 1 2 3) --speedup gemm=2 --json >"$tmp/$1all.told"
	ok "$2: all stages replay to the step" near $1 1e-6 $(of $1 0 1 2 3)
	ok "$2: with products twice as fast it is the simulated step" near $1fast 0.03 $(of $1 0 1 2 3) --speedup gemm=2
	ok "$2: first and last stand for all" near $1 1e-6 $(of $1 0 3)
	ok "$2: and what faster products make of it" near $1all 1e-6 $(of $1 0 3) --speedup gemm=2
	ok "$2: a middle one stands for its neighbour" near $1all 1e-6 $(of $1 0 2 3) --speedup gemm=2
	ok "$2: that schedule is told" sh -c "$f trace replay $(of $1 0 3 | tr '\n' ' ') | grep -qF '8 micro-batches, $2; not recorded: 1 to 2 (as stage '"
done
# our own timelines, with the marks and receives that a profiler would have recorded
owned() { # NAME STACK SCHEDULE CHUNKS FOUND ORDER: all stages, or some, replay to the step that was simulated, in that order
	plan="--set training.schedule=$3 --set training.parallel.vpp=$4 --set training.step_start=steady"
	for r in 0 1 2 3; do $f simulate "$tmp/s.yaml" --set stack="$2" $plan --timeline "$tmp/$1.$r.json" --timeline-format kineto --timeline-rank $r --json >"$tmp/$1.told" || return 1; done
	$f trace show $(of $1 0 1 2 3) | grep -q "Collectives: $5 found on all ranks given, 0 whose" &&
		near $1 1e-6 $(of $1 0 1 2 3) && near $1 1e-6 $(of $1 0 3) && near $1 1e-6 $(of $1 0 2 3) &&
		$f trace replay $(of $1 0 3) | grep -qF "8 micro-batches, $6; not recorded: 1 to 2 (as stage "
}
sed "s#extends: megatron-core#extends: generic#" "$tmp/split.yaml" >"$tmp/ahead.yaml" # whose host runs ahead: launches have no time
for stack in split ahead; do
	ok "own recordings are laid out: 1f1b, $stack" owned own "$tmp/$stack.yaml" 1f1b 1 96 1F1B
	ok "interleaved, $stack" owned own "$tmp/$stack.yaml" interleaved 2 224 1F1B
	ok "gpipe, $stack" owned own "$tmp/$stack.yaml" gpipe 1 96 "forward passes first"
	ok "zero-bubble, $stack" owned own "$tmp/$stack.yaml" zero-bubble 1 96 zero-bubble
	ok "zbv, $stack" owned own "$tmp/$stack.yaml" zbv 2 192 zbv
	ok "dualpipev, $stack" owned own "$tmp/$stack.yaml" dualpipev 2 192 dualpipev
done
faster() { # SCHEDULE CHUNKS BOUND: first and last, with products twice as fast, are near the simulated step
	plan="--set training.schedule=$1 --set training.parallel.vpp=$2"
	for r in 0 3; do $f simulate "$tmp/s.yaml" --set stack="$tmp/split.yaml" $plan --timeline "$tmp/fo.$r.json" --timeline-format kineto --timeline-rank $r >/dev/null || return 1; done
	$f simulate "$tmp/s.yaml" --set stack="$tmp/splitfast.yaml" $plan --json >"$tmp/fo.told" && near fo $3 $(of fo 0 3) --speedup gemm=2
}
ok "of own recordings faster products are near what is simulated: zbv" faster zbv 2 0.03
ok "dualpipev" faster dualpipev 2 0.03
chakra() { # each send and receive is a node of its kind, which tells both ends; read back, the stages are laid out as before
	$f trace export $(of own 0 3) --chakra "$tmp/own" >"$tmp/o" && near own 1e-6 "$tmp/own.0.et" "$tmp/own.3.et" && python3 - "$tmp" <<'P'
import json, sys
def varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at
def fields(data):
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found.append((key >> 3, value))
    return found
for rank in 0, 3:
    data, at, got = open("%s/own.%d.et" % (sys.argv[1], rank), "rb").read(), 0, []
    while at < len(data):
        size, at = varint(data, at)
        node, at = fields(data[at:at + size]), at + size
        a = {dict(fields(v))[1].decode(): dict(fields(v)).get(9) for n, v in node if n == 10}
        if dict(node).get(3) in (5, 6):
            got.append((dict(node)[3], a["comm_src"], a["comm_dst"], a["comm_size"]))
    events = [e["args"] for e in json.load(open("%s/own.%d.json" % (sys.argv[1], rank)))["traceEvents"] if e.get("cat") == "kernel"]
    want = [(5, rank, e["Dst Rank"], 2 * e["In msg nelems"]) if e["Collective name"] == "send" else (6, e["Src Rank"], rank, 2 * e["In msg nelems"])
            for e in events if "Collective name" in e]
    assert sorted(got) == sorted(want) and len(want) == 32, (len(got), len(want))
P
}
ok "what a pipeline sends is so in Chakra's traces" chakra
waited() { # SCHEDULE CHUNKS: what the stages spend their time on, by `show`, is in the mean what `simulate` says
	plan="--set training.schedule=$1 --set training.parallel.vpp=$2"
	for r in 0 1 2 3; do
		$f simulate "$tmp/s.yaml" --set stack="$tmp/split.yaml" $plan --timeline "$tmp/w.json" --timeline-format kineto --timeline-rank $r --json >"$tmp/w.told" &&
			$f trace show "$tmp/w.json" --json >"$tmp/w.$r.show" || return 1
	done
	python3 -c '
import json, sys
told, *shown = (json.load(open(f)) for f in sys.argv[1:])
told = told["breakdown_s"]
mean = {k: sum(d["breakdown_s"][k] for d in shown) / 4 for k in shown[0]["breakdown_s"]}
padded = sum(d["idle_s"]["after_the_last"] for d in shown) / 4  # a bubble of the pipeline
mean["bubble"] += padded
mean["host"] -= padded
assert all(abs(mean[k] - told[k]) < 2e-4 for k in told) and told["bubble"] > 0.1, (told, mean)' "$tmp/w.told" "$tmp/w.0.show" "$tmp/w.1.show" "$tmp/w.2.show" "$tmp/w.3.show"
}
ok "what stages wait for is in them: 1f1b" waited 1f1b 1
ok "and in a V" waited zbv 2
ok "in a V the first stage has the head, and stands for none" sh -c "$f trace replay $tmp/zbv.0.json | grep -q 'cannot be laid out'"
swapped() { # two weights' passes in turn: no order of ours, though the sends would do for 1F1B
	for s in 0 3; do sed 's/PP:\([03]\)W2"/PP:\1W_"/; s/PP:\([03]\)W3"/PP:\1W2"/; s/PP:\([03]\)W_"/PP:\1W3"/' "$tmp/zb.$s.json" >"$tmp/swap.$s.json"; done
	! cmp -s "$tmp/zb.3.json" "$tmp/swap.3.json" && $f trace replay "$tmp/swap.0.json" "$tmp/swap.3.json" | grep -q 'cannot be laid out'
}
ok "what is marked as cut in two is never taken for 1F1B" swapped
ok "marks of no known order lay out nothing" sh -c "sed 's/PP:3F3/PP:3F4/' $tmp/zbv.3.json >$tmp/odd.3.json && $f trace replay $tmp/zbv.0.json $tmp/odd.3.json | grep -q 'cannot be laid out'"
long() { # the ranks of a long group are written by their first two
	for s in 0 3; do sed 's/\[0, 1, 2, 3\]/[0, 1, ...]/g' "$tmp/i.$s.json" >"$tmp/long.$s.json"; done
	! grep -q '2, 3\]' "$tmp/long.0.json" && near ifast 0.02 "$tmp/long.0.json" "$tmp/long.3.json" --speedup gemm=2
}
ok "ranks that are left out are found" long
ok "that order is told" sh -c "$f trace replay $(of g 0 3 | tr '\n' ' ') | grep -qF 'forward passes first; not recorded: 1 to 2'"
ok "the last alone cannot stand for others, and that is said" sh -c "$f trace replay $tmp/r.3.json --speedup gemm=2 | grep -q 'cannot be laid out'"
ok "clocks of stages that never meet the first are aligned" sh -c "
	python3 - $tmp <<'P'
import json, sys
d = json.load(open(sys.argv[1] + '/r.2.json'))
for e in d['traceEvents']:
    e['ts'] += 7e9  # a clock of its own
json.dump(d, open(sys.argv[1] + '/late.json', 'w'))
P
	$f trace replay $(of r 0 1 3 | tr '\n' ' ') $tmp/late.json --speedup gemm=2 --json >$tmp/a && $f trace replay $(of r 0 1 3 2 | tr '\n' ' ') --speedup gemm=2 --json >$tmp/b &&
	python3 -c 'import json, sys
a, b = (json.load(open(f))[\"step_s\"] for f in sys.argv[1:3])
assert abs(a / b - 1) < 1e-9, (a, b)' $tmp/a $tmp/b"
# as GOAL: 96 sends and receives are 48 messages, which carry the step from stage to stage
goal() {
	$f trace export $(of r 0 1 2 3) --goal "$tmp/r.goal" | grep -q ': 48 collectives as sends and receives, 0 with' &&
		python3 tests/goal.py "$tmp/r.goal" 0.004 0 >"$tmp/near" && python3 tests/goal.py "$tmp/r.goal" 0.4 0 >"$tmp/far" && python3 -c '
import json, sys
step = json.load(open(sys.argv[1]))["step_s"]
near, far = (open(x).read().split() for x in sys.argv[2:])
assert near[1] == "48" and abs(float(near[0]) / step - 1) < 0.01, (near, step)
assert float(far[0]) > 1.1 * step, far' "$tmp/r.told" "$tmp/near" "$tmp/far"
}
ok "written as GOAL, what is sent is messages" goal
python3 - "$tmp" <<'P'
import json, sys
d = json.load(open(sys.argv[1] + "/r.0.json"))
for e in d["traceEvents"]:
    if "Collective name" in e["args"]:
        e["name"] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
        e["args"] = {k: e["args"][k] for k in ("device", "stream", "correlation")}
json.dump(d, open(sys.argv[1] + "/batched.json", "w"))
P
ok "batched transfers tell nothing, and that is said" sh -c "$f trace replay $tmp/batched.json | grep -qF '16 kernels that send or receive do not tell the other end'"
# sends that ended long before their receives began, both ways: no clock explains both
python3 - "$tmp" <<'P'
import json, sys
def op(name, stream, ts, dur, n, **args):
    return [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts, "dur": dur,
             "args": {"device": 0, "stream": stream, "correlation": n, **args}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": ts - 3, "dur": 1, "args": {"correlation": n}}]
def p2p(name, peer):
    return {"Collective name": name, "Dst Rank" if name == "send" else "Src Rank": peer, "In msg nelems": 64, "Out msg nelems": 64,
            "dtype": "BFloat16", "Group size": 2, "Process Group Name": "1", "Process Group Ranks": "[0, 1]"}
for rank in 0, 1:
    events = op("nccl send", 8, 10, 5, 1, **p2p("send", 1 - rank)) + op("nvjet_gemm", 7, 20, 200, 2) + op("nccl recv", 9, 230, 5, 3, **p2p("recv", 1 - rank))
    json.dump({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, open("%s/b.%d.json" % (sys.argv[1], rank), "w"))
P
ok "buffered sends meet nothing, and replay as recorded" sh -c "$f trace replay $tmp/b.0.json $tmp/b.1.json --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert abs(d[\"step_s\"] / d[\"recorded_step_s\"] - 1) < 1e-9, d
assert d[\"order\"][\"collectives_unmatched\"] >= 2, d'"

# what a batch sends and receives is told where the host asks for it; the kernel launched behind tells nothing
cat >"$tmp/batch.py" <<'P'
import json, sys
def kernel(ts, dur, n, thread=9):
    return [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(x)", "pid": 0, "tid": 8, "ts": ts, "dur": dur, "args": {"device": 0, "stream": 8, "correlation": n}},
            {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 9, "tid": thread, "ts": ts - 3, "dur": 1, "args": {"correlation": n}}]
def asked(name, peer, ts, n, nelems=64):
    return [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": ts, "dur": 1, "args": {"External id": 100 + n,
             "Collective name": name, "Dst Rank" if name == "send" else "Src Rank": peer, "In msg nelems": nelems, "Out msg nelems": nelems,
             "dtype": "BFloat16", "Group size": 2, "Process Group Name": "1", "Process Group Ranks": "[0, 1]"}}]
how = sys.argv[2]
for rank in 0, 1:
    other = 1 - rank
    if rank and how == "apart":
        events = asked("recv", other, 5, 1) + kernel(10, 5, 1) + asked("send", other, 14, 2) + kernel(20, 7, 2)
    else:
        thread = 7 if how == "threads" else 9
        events = asked("send", other, 5, 1) + asked("recv", other, 6, 2) + kernel(10 + 3 * rank, 17 - 3 * rank, 1, thread)
    json.dump({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, open("%s/%s.%d.json" % (sys.argv[1], how, rank), "w"))
P
batch() { # HOW FOUND LEFT: this many found, and left; and the step is replayed
	python3 "$tmp/batch.py" "$tmp" "$1" && $f trace replay "$tmp/$1.0.json" "$tmp/$1.1.json" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert abs(d["step_s"] / d["recorded_step_s"] - 1) < 1e-9, d
assert (d["order"]["collectives_matched"], d["order"]["collectives_unmatched"]) == (int(sys.argv[1]), int(sys.argv[2])), d["order"]' "$2" "$3"
}
ok "one kernel that sends and receives meets the other's" batch together 2 0
ok "not two kernels, of which it would await both" batch apart 0 3
ok "nor what another thread asked for" batch threads 0 0

# a pipeline of two H100 as PyTorch ran it: 7 of 9 kernels a rank send and receive at once
real=measurements/traces/h100-two-8b16L-pp2-s4096-m8-compile.rank
inter=measurements/traces/h100-two-8b16L-pp2v2-s4096-m8-compile.rank
cat >"$tmp/real.yaml" <<Y
model: {name: llama3-8b, num_hidden_layers: 16}
cluster: {gpu: h100-sxm, gpus: 2, fabric: none}
stack: torch-2.11-compile
training: {sequence_length: 4096, global_batch_size: 8, micro_batch_size: 1, precision: bf16, parallel: {pp: 2, vpp: 1}, schedule: 1f1b,
  sharding: ddp, recompute: none, gradient_dtype: bf16, master_weights: false, step_start: together}
Y
ok "recorded 1F1B: all of them meet" sh -c "$f trace show ${real}0.kineto.json.gz ${real}1.kineto.json.gz | grep -q 'Collectives: 18 found on all ranks given, 0 whose'"
ok "interleaved: all but the last" sh -c "$f trace show ${inter}0.kineto.json.gz ${inter}1.kineto.json.gz | grep -q 'Collectives: 92 found on all ranks given, 4 whose'"
ok "its first stage stands for the second" sh -c "$f trace replay ${real}0.kineto.json.gz | grep -qF 'Pipeline of 2 stages, 8 micro-batches, 1F1B; not recorded: 1 (as stage 0).'"
ok "so it does with two chunks" sh -c "$f trace replay ${inter}0.kineto.json.gz | grep -qF 'Pipeline of 2 stages of 2 chunks, 8 micro-batches, 1F1B; not recorded: 1 (as stage 0).'"
cut=measurements/traces/h100-two-8b4L-pp2
ok "a V as PyTorch ran it: the stage without the head stands for the other" sh -c "$f trace replay $cut-zbv.rank1.kineto.json.gz | grep -qF 'Pipeline of 2 stages of 2 chunks, 4 micro-batches, zbv; not recorded: 0 (as stage 1).'"
ok "so it does where a forward and a backward are marked as one" sh -c "$f trace replay $cut-dualpipev.rank1.kineto.json.gz | grep -qF '4 micro-batches, dualpipev; not recorded: 0 (as stage 1).'"
ok "autograd did not cut the first chunk, so that nothing stands for what it cut" sh -c "$f trace replay $cut-zero-bubble.rank0.kineto.json.gz | grep -q 'cannot be laid out'"
ok "both are recorded: nothing is laid out" sh -c "! $f trace replay ${inter}0.kineto.json.gz ${inter}1.kineto.json.gz | grep -q 'laid out'"
ok "what is exchanged at once is two messages of GOAL" sh -c "$f trace export ${real}0.kineto.json.gz ${real}1.kineto.json.gz --goal $tmp/x.goal | grep -q ': 16 collectives as sends and receives, 0 with' && python3 tests/goal.py $tmp/x.goal 0.004 0 | grep -q ' 16$'"
stage() { # RANK: a stage's products, and all layers, are near those of that stage
	$f trace compare ${real}$1.kineto.json.gz "$tmp/real.yaml" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
gap = {g["what"]: g for g in d["gaps"]}
assert gap["collectives"]["recorded_s"] == gap["collectives"]["predicted_s"] == 0, gap  # sends and receives belong to the bubble
for name in "matrix products", "compute", "bubble":
    assert abs(gap[name]["predicted_s"] / gap[name]["recorded_s"] - 1) < 0.04, gap[name]
assert [len(d["by_layer"][x]["layers"]) for x in ("recorded", "predicted")] == [8, 8]'
}
ok "the first stage is held against the first" stage 0
ok "and the last against the last, which has the head" stage 1
drawn() { # a stage drawn as its profiler would record it is that stage, of that rank
	$f simulate "$tmp/real.yaml" --timeline "$tmp/k.json" --timeline-format kineto --timeline-rank 1 >/dev/null &&
		$f trace compare "$tmp/k.json" "$tmp/real.yaml" --json | python3 -c '
import json, sys
padded = 0 # the end of a stage that is over early: a bubble of the prediction, idle in a recording
for g in json.load(sys.stdin)["gaps"]:
    apart = g["predicted_s"] - g["recorded_s"]
    padded += apart
    assert abs(apart) < 1e-9 or g["what"] in ("bubble", "idle: host and launch"), g
assert abs(padded) < 1e-9, padded' &&
		grep -q '"rank":1,"world_size":2' "$tmp/k.json"
}
ok "any stage is drawn as a profiler records it" drawn
among_eight() { # rank 5 of two stages of four: its own number and groups; it receives what rank 1 sends
	$f simulate "$tmp/real.yaml" --set cluster.gpus=8 --set training.global_batch_size=32 --timeline "$tmp/k.json" --timeline-format kineto --timeline-rank 5 >/dev/null &&
		grep -q '"rank":5,"world_size":8' "$tmp/k.json" && grep -q '"Process Group Ranks":"\[4, 5, ...\]"' "$tmp/k.json" &&
		grep -q '"Src Rank":1,"Group size":2,.*"Process Group Ranks":"\[1, 5, ...\]"' "$tmp/k.json"
}
ok "one of a stage's ranks keeps its number" among_eight
slowed() { # a rank with a slow GPU is drawn as that one runs, in any stage
	for r in 0 1 4 5; do
		$f simulate "$tmp/real.yaml" --set cluster.gpus=8 --set training.global_batch_size=32 --set "cluster.imperfections.slow_gpus=[{gpu: 5, speed_frac: 0.5}]" \
			--timeline "$tmp/k.json" --timeline-format kineto --timeline-rank $r --json >"$tmp/slow.told" && $f trace show "$tmp/k.json" --json >"$tmp/slow.$r.json" || return 1
	done
	python3 -c '
import json, sys
first, before, other, slow = (json.load(open(f)) for f in sys.argv[1:])
assert abs(slow["classes"]["gemm"]["time_s"] / other["classes"]["gemm"]["time_s"] - 2) < 0.02
assert before["breakdown_s"]["bubble"] > 3 * first["breakdown_s"]["bubble"]  # it waits for the slow one behind it' "$tmp/slow.0.json" "$tmp/slow.1.json" "$tmp/slow.4.json" "$tmp/slow.5.json"
}
ok "a rank with a slow GPU is drawn slow" slowed
ok "a recorded rank that the scenario's pipeline has not is refused" fails 1 "is rank 5, and the scenario's pipeline has ranks 0 to 1" $f trace compare "$tmp/k.json" "$tmp/real.yaml"
ok "a form, or a rank, of no timeline is refused" fails 1 "need --timeline FILE" $f simulate "$tmp/real.yaml" --timeline-format kineto
ok "a rank that is none is refused" fails 1 "ranks are 0 to 1" $f simulate "$tmp/real.yaml" --timeline "$tmp/n.json" --timeline-format kineto --timeline-rank 2
ok "and a rank of another form" fails 1 "needs --timeline-format kineto" $f simulate "$tmp/real.yaml" --timeline "$tmp/n.json" --timeline-rank 1
finish
