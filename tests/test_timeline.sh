#!/bin/sh
# tests/test_timeline.sh - the timeline against the rules of the trace event format
. "$(dirname "$0")/tap.sh"
ok "a timeline is written" $f simulate examples/01-first-answer/h100.yaml --set training.global_batch_size=256 --timeline "$tmp/t.json"
ok "it keeps to the format, and no stream runs two ops" python3 - "$tmp/t.json" <<'P'
import json, sys
from fractions import Fraction
d = json.load(open(sys.argv[1]), parse_float=Fraction)
assert isinstance(d["traceEvents"], list) and d["traceEvents"]
end, names, last = 0, set(), {}
for e in d["traceEvents"]:
    assert e["ph"] in "XM" and isinstance(e["pid"], int) and isinstance(e["tid"], int)
    assert isinstance(e["name"], str) and e["name"]
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name", "process_sort_index")
        continue
    assert e["ts"] >= 0 and e["dur"] >= 0
    key = e["pid"], e["tid"]
    assert e["ts"] >= last.get(key, 0), (key, e)
    last[key] = e["ts"] + e["dur"]
    end = max(end, e["ts"] + e["dur"])
assert end == Fraction(d["otherData"]["step_us"])
P
finish
