#!/bin/sh
# tests/test_timeline.sh - the timeline against the rules of the trace event format
. "$(dirname "$0")/tap.sh"
keeps() { # LAYERS SCENARIO SETTING...: to the format, and to the answer
	layers=$1
	shift
	$f simulate "$@" --timeline "$tmp/t.json" --json >"$tmp/a.json" &&
		python3 tests/timeline.py "$tmp/t.json" "$tmp/a.json" "$layers"
}
first="examples/01-first-answer/h100.yaml --set training.global_batch_size=256"
ok "a pipeline with chunks keeps to the format, its layers run once, its phases are its parts" keeps 80 $first
ok "so does one without" keeps 80 $first --set training.parallel.vpp=1
ok "and no pipeline, from a standing start" keeps 80 examples/01-first-answer/h100.yaml --set training.global_batch_size=512 --set training.parallel.pp=1 --set training.parallel.vpp=1 --set training.step_start=together
ok "and sharded weights" keeps 4 examples/15-recorded-step/scenario.yaml
ok "and experts, in another order of stages" keeps 32 examples/08-mixture-of-experts/mixtral.yaml --set training.global_batch_size=512
ok "micro-batches side by side are not told apart" keeps 0 examples/08-mixture-of-experts/mixtral.yaml --set training.overlap.ep=true --set training.global_batch_size=256
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
ok "its products are re-timed by their shapes" sh -c "$f trace replay $tmp/k.json --gpu mi300x --json | python3 -c 'import json,sys; assert json.load(sys.stdin)[\"by_work_frac\"]>0.5'"
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
finish
