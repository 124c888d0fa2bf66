#!/bin/sh
# tests/test_told.sh - what tables and JSON tell of a file, against the file itself read by Python
. "$(dirname "$0")/tap.sh"

# ---- a store of measurements ------------------------------------------------------
rows=tests/fuzz/corpus/import-probe/fake.jsonl
cal() { action=$1; shift; "$f" calibrate "$action" --store "$tmp/s.db" "$@"; }
cal import $rows >/dev/null
sed 's/"time_us":\([0-9.]*\)/"time_us":1\1/' $rows >"$tmp/slower.jsonl"
cal import "$tmp/slower.jsonl" >/dev/null
runs() { # as a table and as JSON; exit 0
	cal runs --json >"$tmp/runs.json" && cal runs >"$tmp/runs" &&
	python3 -c 'import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
head, cells = rows[0], [r for r in rows if r["record"] == "measurement"]
ok = sum(c["status"] == "ok" for c in cells)
told = json.load(open(sys.argv[2]))["runs"]
table = [l.split() for l in open(sys.argv[3])]
assert table[0][:5] == ["run", "date", "backend", "kind", "device"] and len(table) == 3 and len(told) == 2
for i, r in enumerate(told):
    assert (r["run"], r["date"], r["backend"], r["device"], r["cells"], r["ok"]) == (i + 1, head["date"], head["backend"], head["device"], len(cells), ok), r
    assert table[i + 1][0] == str(i + 1) and str(len(cells)) in table[i + 1], table' $rows "$tmp/runs.json" "$tmp/runs"
}
ok "runs are told" runs
show() { # each cell with its time
	cal show >"$tmp/show" && python3 -c 'import json, sys
cells = {r["cell"]: r for r in map(json.loads, open(sys.argv[1])) if r["record"] == "measurement"}
lines = open(sys.argv[2]).read().split("\n")[1:]
seen = 0
for l in lines:
    for name, c in cells.items():
        if l.startswith(name + " "):
            v = l[len(name):].split()
            seen += 1
            assert v[3] == c["status"] and min(abs(float(v[0]) - x) for x in (c["time_us"], float("1" + str(c["time_us"])))) < 6e-4, l
assert seen >= len(cells), seen' $rows "$tmp/show"
}
ok "measurements are told" show
diff_() { # the second against the first, cell by cell
	cal diff 1 2 >"$tmp/diff" && python3 -c 'import json, sys
times = {r["cell"]: r["time_us"] for r in map(json.loads, open(sys.argv[1])) if r["record"] == "measurement"}
lines = open(sys.argv[2]).read().split("\n")[1:]
for name, us in times.items():
    a, b, change = [l for l in lines if l.startswith(name + " ")][0][len(name):].split()
    later = float("1" + str(us))
    assert abs(float(a) - us) < 6e-4 and abs(float(b) - later) < 6e-4, (name, a, b)
    assert abs(float(change.rstrip("%")) / 100 - (later / us - 1)) < 6e-4 * 100, (name, change)' $rows "$tmp/diff"
}
ok "two runs are held beside each other" diff_
# cells that one run has and the other has not are left out, whichever it is
apart() {
	sed '/"record":"measurement"/{ /gemm/d; }' $rows >"$tmp/fewer.jsonl" && sed '/"record":"measurement"/{ /attention/d; }' $rows >"$tmp/others.jsonl" &&
		cal import "$tmp/fewer.jsonl" >"$tmp/o" && cal import "$tmp/others.jsonl" >"$tmp/o" &&
		for order in "3 4" "4 3" "1 4" "4 1"; do
			cal diff $order >"$tmp/diff" && python3 -c 'import json, sys
kept = lambda path: {r["cell"] for r in map(json.loads, open(path)) if r["record"] == "measurement" and r["time_us"] > 0}
files = dict(zip("134", sys.argv[3:]))
one, two = (kept(files[n]) for n in sys.argv[2].split())
lines = open(sys.argv[1]).read().split("\n")[1:-1]
assert one != two and one & two and len(lines) == len(one & two), (len(lines), len(one & two))
assert all(l.endswith("+0.0%") and any(l.startswith(c + " ") for c in one & two) for l in lines), lines' "$tmp/diff" "$order" $rows "$tmp/fewer.jsonl" "$tmp/others.jsonl" || return 1
		done
}
ok "cells of one run alone are in no difference" apart
ok "diff wants two runs" wrong "diff needs two runs" $f calibrate diff --store "$tmp/s.db" 1
ok "a run is a number" wrong "run" $f calibrate diff --store "$tmp/s.db" 1 x
ok "a run must be there" refused "7" $f calibrate diff --store "$tmp/s.db" 1 7

# ---- measured runs --------------------------------------------------------------------
browsed() { # rows that a filter leaves, with all that is said of them; each once, under the stack that it ran on
	for filter in id=amd* source=llm-foundry* gpu=h?00* stack=nemo-24 gpus=64 gpus=64..512 gpus=..8 pp=2.. \
		flop_per_token=1e11..1e12 "gpu=a100-80g tp=8 sharding=zero1"; do
		echo "$filter"
		$f runs $filter --json | jq -c .
	done >"$tmp/browsed" && python3 -c 'import csv, fnmatch, json, math, sys
rows = [r for r in csv.DictReader(l for l in open(sys.argv[1]) if l[0] != "#")]
def left(row, word):
    key, want = word.split("=")
    if key in ("id", "source", "gpu", "stack", "sharding"):
        return fnmatch.fnmatchcase(row[key], want)
    low, dots, high = want.partition("..")
    return float(low or 0) <= float(row[key]) <= float((high or "inf") if dots else low)
told = open(sys.argv[2]).read().splitlines()
for words, answer in zip(told[::2], told[1::2], strict=True):
    want = sorted((r for r in rows if all(left(r, w) for w in words.split())),
                  key=lambda r: (r["id"], -float(r["log_ratio"])))
    runs = sorted(json.loads(answer)["runs"], key=lambda r: (r["id"], r["error_frac"]))
    assert 0 < len(want) < len(rows) and len(runs) == len(want), (words, len(want), len(runs))
    for row, run in zip(want, runs):
        assert (run["id"], run["source"]) == (row["id"], row["source"])
        assert abs(run["error_frac"] - math.expm1(-float(row["log_ratio"]))) < 1e-9, run
        assert run["tokens_per_s_per_gpu"] == float(row["tokens_per_s_per_gpu"])
        for key, value in run["traits"].items():
            assert value == (row[key] if isinstance(value, str) else float(row[key])), (key, run)' \
		study/residuals.csv "$tmp/browsed"
}
ok "measured runs are those that the filter says" browsed

# ---- a recorded step -----------------------------------------------------------------
kernels() { # count, sum, shortest and longest of each name
	$f trace show tests/data/kineto-step.json --json >"$tmp/t.json" && python3 -c 'import json, sys
by = {}
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e.get("cat") == "kernel":
        by.setdefault(e["name"], []).append(float(e["dur"]) * 1e-6)
told = json.load(open(sys.argv[2]))["kernels"]
assert {k["name"] for k in told} == set(by), told
for k in told:
    d = by[k["name"]]
    assert k["count"] == len(d), k
    for key, want in ("time_s", sum(d)), ("shortest_s", min(d)), ("longest_s", max(d)):
        assert abs(k[key] - want) < 1e-12, (k, want)
assert [k["time_s"] for k in told] == sorted((k["time_s"] for k in told), reverse=True)' tests/data/kineto-step.json "$tmp/t.json"
}
ok "kernels of a recording are told" kernels
ok "layers that are not found are told" sh -c "$f trace compare tests/data/kineto-step.json examples/07-edit-a-step/scenario.yaml --set cluster.gpus=8 --json | grep -q '\"not_found\": \"no sequence of products repeats\"'"

# ---- a simulated step ------------------------------------------------------------------
a=examples/07-edit-a-step/scenario.yaml h=examples/01-first-answer/h100.yaml
bottleneck() { # the sentence of the JSON is a line of the text
	$f simulate $a --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["bottleneck"])' >"$tmp/b" && $f simulate $a >"$tmp/text" && grep -qxFf "$tmp/b" "$tmp/text" && [ -s "$tmp/b" ]
}
ok "what a step waits for is told" bottleneck
ok "of two one is cheaper" sh -c "$f compare $a $h | head -1 | grep -q ' is cheaper with probability'"
ok "of three one is the cheapest" sh -c "$f compare $a $h examples/01-first-answer/mi300x.yaml | head -1 | grep -q ' is the cheapest with probability'"

# under GPipe the last stage has four losses in flight, under 1F1B one; each keeps its softmax in fp32. What three inputs
# arrive in is beside activations under 1F1B alone
in_flight() { # STACK BYTES-A-LOGIT
	for schedule in gpipe 1f1b; do
		$f simulate - --json -q --set stack="$1" --set training.schedule=$schedule <<'Y' >"$tmp/$schedule" || return 1
model: {name: llama3-8b, num_hidden_layers: 8}
cluster: {gpu: h100-sxm, gpus: 2, fabric: none}
training: {sequence_length: 4096, micro_batch_size: 1, global_batch_size: 4, sharding: ddp, parallel: {pp: 2}, gradient_dtype: bf16, master_weights: false}
Y
	done
	python3 -c 'import json, sys
more, less = (json.load(open(f))["memory_bytes_per_gpu"]["other"] for f in sys.argv[1:3])
assert more - less == 3 * 4096 * (128256 * float(sys.argv[3]) - 2 * 4096), (more, less)' "$tmp/gpipe" "$tmp/1f1b" "$2"
}
ok "an eager loss keeps its softmax for each micro-batch in flight" in_flight torch-2.11-eager 4
ok "a compiled one keeps nothing beside the logits" in_flight torch-2.11-compile 0
finish
