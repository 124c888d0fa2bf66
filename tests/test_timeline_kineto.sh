#!/bin/sh
# tests/test_timeline_kineto.sh - a simulated step written as a profiler's recording, and read back
. "$(dirname "$0")/tap.sh"
# Kineto's shape: our own reader takes it, finds the same step and the same parts of it
same() { # SCENARIO SETTING...
	scenario=$1
	shift
	$f simulate "$scenario" "$@" --timeline "$tmp/k.json" --timeline-format kineto --json >"$tmp/s.json" &&
		$f trace replay "$tmp/k.json" --json >"$tmp/r.json" && python3 - "$tmp/s.json" "$tmp/r.json" <<'P'
import json, sys
s, r = (json.load(open(p)) for p in sys.argv[1:])
for x in (r["step_s"], r["recorded_step_s"]):
    assert abs(x / s["step_s"] - 1) < 1e-9, (x, s["step_s"])
if s["breakdown_s"]["bubble"] == 0: # one class of ranks: parts are the same, too
    for k, v in s["breakdown_s"].items():
        assert abs(r["breakdown_s"][k] - v) < 1e-6 * s["step_s"], (k, v, r["breakdown_s"])
assert r["classified_frac"] == 1
P
}
ok "Kineto's shape replays to the same step" same examples/01-first-answer/h100.yaml --set training.global_batch_size=256
ok "and to the same parts of it without a pipeline" same examples/01-first-answer/h100.yaml --set training.global_batch_size=256 --set training.parallel.pp=1 --set training.step_start=together
ok "its products are re-timed by their shapes" sh -c "$f trace replay $tmp/k.json --gpu mi300x --json | python3 -c 'import json,sys; d=json.load(sys.stdin); c={x[\"what\"]: x[\"recorded_s\"] for x in d[\"changes\"]}; assert d[\"by_work_frac\"] > 0.99*c[\"gemm\"]/sum(c.values()), d'"
ok "it is what the profiler's readers look for" python3 - "$tmp/k.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
e = d["traceEvents"]
assert d["schemaVersion"] == 1 and d["distributedInfo"]["world_size"] > 0
kernels = [x for x in e if x["cat"] == "kernel"]
calls = {x["args"]["correlation"]: x for x in e if x["cat"] == "cuda_runtime"}
assert kernels and all({"stream", "correlation", "device", "External id"} <= set(x["args"]) for x in kernels)
assert all(calls[x["args"]["correlation"]]["ts"] <= x["ts"] for x in kernels)
assert sum(x["name"] == "ProfilerStep#0" for x in e) == 1
P
ok "and with copies to and from host memory" same examples/01-first-answer/h100.yaml --set training.global_batch_size=256 --set training.parallel.pp=1 --set training.step_start=together --set training.offload_layers=40
ok "which are copies" sh -c "grep -q 'Memcpy DtoH' $tmp/k.json && grep -q 'Memcpy HtoD' $tmp/k.json && grep -q cudaMemcpyAsync $tmp/k.json"
overlap() { # a second step begins before the first is over
	python3 - "$tmp/k.json" "$tmp/two.json" <<'P' && $f trace show "$tmp/two.json" | grep -qF '1 step overlaps the next; it ends where that begins'
import json, sys
d = json.load(open(sys.argv[1]))
step = next(x for x in d["traceEvents"] if x["name"] == "ProfilerStep#0")
d["traceEvents"].append({**step, "name": "ProfilerStep#1", "ts": step["ts"] + step["dur"] / 2})
json.dump(d, open(sys.argv[2], "w"))
P
}
ok "steps that overlap are told, and cut" overlap
ok "a step of three quarters of an hour, too" same examples/01-first-answer/h100.yaml --set training.global_batch_size=64 --set training.parallel.pp=1 --set training.parallel.tp=8 --set cluster.gpus=64 --set training.step_start=together --set training.micro_batch_size=8 --set training.sequence_length=524288
finish
