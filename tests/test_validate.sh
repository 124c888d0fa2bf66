#!/bin/sh
# tests/test_validate.sh - validate's figures, on rows whose errors are known: our own answers, spoilt
. "$(dirname "$0")/tap.sh"
if ! command -v python3 >/dev/null; then echo "1..0 # SKIP no python3"; exit 0; fi
cat >"$tmp/rows.py" <<'P'
import csv, json, math, random, subprocess, sys
program, folder, what = sys.argv[1:4]
TIMES = ["step_s"]
RATES = ["tokens_per_s_per_gpu", "model_flop_per_s_per_gpu"]
plans = [("h100-sxm", 8, 2), ("h200", 8, 1), ("h200", 16, 4), ("mi300x", 8, 1)]
columns = ["id", "group", "model.name", "cluster.gpu", "cluster.gpus", "training.sequence_length",
           "training.global_batch_size", "training.micro_batch_size", "training.sharding", "training.parallel.tp"]

def simulate(gpu, gpus, tp):
    text = ("{model: llama3-8b, cluster: {gpu: %s, gpus: %d}, training: {sequence_length: 2048, global_batch_size: 64, "
            "micro_batch_size: 1, sharding: zero1, parallel: {tp: %d}}}" % (gpu, gpus, tp))
    return json.loads(subprocess.run([program, "simulate", "-", "--json"], input=text, capture_output=True, text=True,
                                     check=True).stdout)

def get(o, key):
    for k in key.split("."):
        o = o[k]
    return o

answers = [simulate(*p) for p in plans]
draw = random.Random(7)
rows, want, beside = [], [], []
for i in range(40):
    p = draw.randrange(len(plans))
    key = draw.choice(TIMES + RATES)
    error = draw.choice([-0.5, -0.2, -0.05, 0, 0.03, 0.1, 0.4, 2]) + draw.random() * 0.01
    predicted = get(answers[p], key)
    # errors are in time: a rate that is predicted too high is a time too short
    measured = predicted / (1 + error) if key in TIMES else predicted * (1 + error)
    row = dict(zip(columns, ["r%d" % i, "g%d" % (i % 3), "llama3-8b", plans[p][0], plans[p][1], 2048, 64, 1, "zero1", plans[p][2]]))
    row["measured." + key] = repr(measured)
    if i % 4 == 0: # a fraction: at most 1
        beside.append(min(error, 0.5))
        row["measured.mfu"] = repr(get(answers[p], "mfu") * (1 + beside[-1]))
    rows.append(row)
    want.append((row["id"], row["group"], key, error, plans[p], predicted, measured))
rows.insert(11, dict(zip(columns, ["bad", "g0", "llama3-8b", "h200", 16, 2048, 64, 1, "zero1", 3]), **{"measured.step_s": "1"}))
with open(folder + "/r.csv", "w", newline="") as f:
    w = csv.DictWriter(f, columns + ["measured." + k for k in TIMES + RATES + ["mfu"]])
    w.writeheader()
    w.writerows(rows)

def middle(x):
    x = sorted(x)
    return (x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2

def close(a, b):
    assert math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9), (a, b)

def summary(got, errors):
    size = [abs(e) for e in errors]
    assert got["n"] == len(errors), (got, len(errors))
    close(got["mape"], sum(size) / len(size))
    close(got["bias"], sum(errors) / len(errors))
    close(got["median"], middle(size))
    close(got["p90"], sorted(size)[math.ceil(0.9 * len(size)) - 1])
    close(got["max"], max(size))

told = json.loads(subprocess.run([program, "validate", folder + "/r.csv", "--json"] + sys.argv[4:], capture_output=True,
                                 text=True).stdout)
if what == "rows":
    assert len(told["rows"]) == len(want)
    for got, (name, group, key, error, plan, predicted, measured) in zip(told["rows"], want):
        assert (got["id"], got["group"], got["key"]) == (name, group, key), got
        close(got["error_frac"], error)
        close(got["predicted"], predicted)
        close(got["measured"], measured)
    assert [f["id"] for f in told["failed"]] == ["bad"] and "does not divide" in told["failed"][0]["reason"], told["failed"]
elif what == "summary":
    summary(told["summary"], [e for *_, e, _, _, _ in want])
    assert told["summary"]["failed"] == 1, told["failed"]
    assert set(told["groups"]) == {"g0", "g1", "g2"}
    for name, got in told["groups"].items():
        summary(got, [w[3] for w in want if w[1] == name])
    summary(told["by_key"]["mfu"], beside)
elif what == "by":
    assert told["by"] == "gpu"
    for name, got in told["groups"].items():
        summary(got, [w[3] for w in want if w[4][0] == name])
    assert set(told["groups"]) == {w[4][0] for w in want}
elif what == "inside": # each row's measurement against its own interval
    for s, rows in [(told["summary"], told["rows"])] + [(told["groups"][g], [r for r in told["rows"] if r["group"] == g])
                                                        for g in told["groups"]]:
        inside = [r["low"] <= r["measured"] <= r["high"] for r in rows]
        slow = [(r["measured"] > r["high"]) if r["key"] in TIMES else (r["measured"] < r["low"]) for r in rows]
        close(s["inside_interval_frac"], sum(inside) / len(rows))
        close(s["slow_frac"], sum(slow) / len(rows))
        close(s["fast_frac"], 1 - s["inside_interval_frac"] - s["slow_frac"])
    for r in told["rows"]:
        assert r["low"] < r["predicted"] < r["high"], r
    assert 0 < told["summary"]["inside_interval_frac"] < 1 and told["summary"]["slow_frac"] > 0 < told["summary"]["fast_frac"]
P
rows() { python3 "$tmp/rows.py" "$f" "$tmp" "$@"; }
ok "each row's error is the one put in" rows rows
ok "the summaries are those of the errors" rows summary
ok "by another class, too" rows by --by gpu
ok "what lies inside its interval, and beyond which end" rows inside
# what would change nothing, or divide by nothing
printf 'kernel,gpu,dtype,bytes,measured.tflops\ncopy,h200,bf16,4194304,5\n' >"$tmp/copy.csv"
ok "a copy has no rate of FLOPs" sh -c "! '$f' validate '$tmp/copy.csv' >'$tmp/o' && grep -q 'measured.tflops is of gemm and attention; copy needs measured.time_us' '$tmp/o'"
printf 'kernel,gpu,m,n,k,measured.time_us\ngemm,h200,512,512,512,5\n' >"$tmp/gemm.csv"
ok "--set is nothing to kernels" sh -c "! '$f' validate '$tmp/gemm.csv' --set cluster.gpus=8 2>'$tmp/e' && grep -q 'holds kernels or collectives: --set changes' '$tmp/e'"
# what ran has fitted
cat >"$tmp/room.csv" <<END
id,cluster.gpu,model,cluster.gpus,training.sequence_length,training.global_batch_size,training.sharding,measured.step_s
fits,h200,llama3-8b,8,4096,8,fsdp,1
large,h200,llama3-70b,8,4096,8,ddp,9
END
ok "a step that ran and is predicted not to fit is told" sh -c "'$f' validate '$tmp/room.csv' | grep -qx '1 of 2 measured steps is predicted not to fit in memory, the first: large.'"
ok "and in JSON" sh -c "'$f' validate '$tmp/room.csv' --json | python3 -c 'import json, sys; assert [r[\"fits\"] for r in json.load(sys.stdin)[\"rows\"]] == [True, False]'"
# a user's own file: memory by row, units that are not those, a spreadsheet's signs
cat >"$tmp/own.csv" <<END
id;cluster.gpu;model;cluster.gpus;training.sequence_length;training.global_batch_size;measured.memory_bytes_per_gpu.total;measured.step_s
a;h200;llama3-8b;8;4096;16;80e9;1.2
b;h200;llama3-8b;8;4096;16;80;1200
c;h200;llama3-8b;8;4096;16;80e9;0
;;;;;;;
END
own() { $f validate "$tmp/own.csv" "$@" >"$tmp/own"; }
has() { own --rows && grep -q -- "$1" "$tmp/own"; }
ok "semicolons are read; memory by row, in its unit" has '^a   *-   *memory_bytes_per_gpu.total   *80.0 GB'
ok "the scored key keeps its own table" has '^a   *-   *step_s   *1.2 '
ok "a value in another unit is told" has '^b: step_s is measured as 1200 and predicted as .*: is it in another unit'
ok "of memory, too" has '^b: memory_bytes_per_gpu.total is measured as 80 and'
ok "a step of nothing failed, and a row of nothing is no row" has '^1 of 3 rows could not be simulated'
ok "the JSON has all of it" sh -c "$f validate $tmp/own.csv --json | jq -e '[.rows[], .other_rows[] | {id, key, doubtful}] | length == 4 and map(.doubtful) == [false, true, false, true]'"
head -1 "$tmp/own.csv" >"$tmp/none.csv"
ok "a header alone says so, and no errors of 0" sh -c "$f validate $tmp/none.csv | grep -q 'has a header and no rows' && ! $f validate $tmp/none.csv | grep -q MAPE"
printf "id,model.name,cluster.gpu,cluster.gpus,training.sequence_length,training.global_batch_size,measured.step_s\na,llama3-8b,h100-sxm,8,\"4,096\",64,3\n" >"$tmp/thousands.csv"
ok "a table of which nothing could be compared is a failure" sh -c "$f validate $tmp/thousands.csv; [ \$? -eq 1 ]"
ok "another way to group is wrong usage" wrong "no way to group steps by" $f validate measurements/steps/h200-steps.csv --by foo
ok "so are lines that end by CR alone" sh -c "tr '\\n' '\\r' <$tmp/own.csv >$tmp/mac.csv && ! $f validate $tmp/mac.csv 2>$tmp/e && grep -q 'ends its lines by CR alone' $tmp/e"
ok "UTF-16 is named" sh -c "iconv -f UTF-8 -t UTF-16 $tmp/own.csv >$tmp/wide.csv && ! $f validate $tmp/wide.csv 2>$tmp/e && grep -q 'save it as CSV in UTF-8' $tmp/e"
# what the probe of Transformers timed, as runs: steps that the tree has by other names, and nothing more
timed() { # PROBE STEPS GPU ROWS
	gunzip -c "measurements/probes/$1-unseen.jsonl.gz" >"$tmp/timed.jsonl" &&
		python3 calibrate/probes/torch/transformers_runs.py --gpu "$3" "$tmp/timed.jsonl" >"$tmp/timed.csv" 2>"$tmp/left" &&
		$f validate -q --rows "$tmp/timed.csv" | awk '/_s /{print $(NF-3), $(NF-2)}' >"$tmp/timed" &&
		$f validate -q --rows "measurements/steps/$2.csv" | awk '/_s /{print $(NF-3), $(NF-2)}' >"$tmp/kept" &&
		diff "$tmp/timed" "$tmp/kept" && test "$(wc -l <"$tmp/kept")" -ge "$4"
}
ok "what the probe of Transformers timed becomes runs" timed h100-2026-11-25-transformers h100-transformers h100-sxm 37
ok "and says what it leaves out" test "$(grep -c ': left out: ' "$tmp/left")" = 4
ok "those of two GPUs, too" timed h100-2026-11-25-two-transformers h100-two-transformers h100-sxm 37
ok "and activations that wait on the host" timed h200-2026-11-30-saved-on-host h200-saved-on-host h200 32
ok "and tokens that an indexer chooses" timed h200-2026-11-30-chosen-tokens h200-chosen-tokens h200 22
ok "and types that are new" timed h200-2026-11-30-newest-classes h200-newest-classes h200 8
ok "and newer ones" timed h200-2026-12-01-newer-classes h200-newer-classes h200 8
graphed() { # how many of the probe's rows have graphs, and what is no row of a loop
	gunzip -c measurements/probes/h200-2026-11-30-cuda-graphs-unseen.jsonl.gz >"$tmp/timed.jsonl"
	echo '{"name": "whole", "step_s": 1, "compile": "whole"}' >>"$tmp/timed.jsonl"
	python3 calibrate/probes/torch/transformers_runs.py --gpu h200 "$tmp/timed.jsonl" 2>"$tmp/left" >"$tmp/timed.csv" &&
		[ "$(grep -c ',full,' "$tmp/timed.csv")" = 15 ] && grep -q '^whole: left out' "$tmp/left"
}
ok "CUDA graphs become runs, and a loop's model compiled at once does not" graphed
# Of what is better when there is more of it, too much predicted is "too fast": as of its reciprocal.
cheaper() { # KEY VALUE: the error's sign where so much of it was measured
	printf 'id,model,cluster.gpu,cluster.gpus,training.sequence_length,training.global_batch_size,measured.%s\na,llama3-8b,h200,8,4096,64,%s\n' "$1" "$2" >"$tmp/cheaper.csv"
	$f validate -q "$tmp/cheaper.csv" --json | jq -r '.other_rows[0] | "\(.error_frac * 1000000 | round)"'
}
both_ways() { [ "$(cheaper cost.tokens_per_usd 4000000)" = "$(cheaper cost.usd_per_million_tokens 0.25)" ] && [ "$(cheaper cost.goodput 0.5)" -lt 0 ]; }
ok "tokens a dollar are off as dollars a token are, and goodput as the time it costs" both_ways
# A cell may hold a map, as a model's config.json does: MPT has its dropout in one.
mapped() { # CELL: steps of an MPT with it, one a line
	printf 'id,group,model.model_type,model.n_layers,model.d_model,model.n_heads,model.vocab_size,model.max_seq_len,model.attn_config,cluster.gpu,cluster.gpus,cluster.fabric,stack,training.sequence_length,training.micro_batch_size,training.global_batch_size,training.sharding,measured.step_s\na,g,mpt,6,4096,32,50432,2048,%s,h200,1,none,transformers-5-eager,2048,2,2,fsdp,1\n' "$1" >"$tmp/mapped.csv" &&
		$f validate "$tmp/mapped.csv" --json >"$tmp/mapped.json" 2>"$tmp/mapped.err"
	jq -r '(.rows[] | .predicted), (.failed[] | .reason)' "$tmp/mapped.json"
}
drops() { # what is in the map counts
	[ "$(mapped '{attn_pdrop: 0.1}')" != "$(mapped '{attn_pdrop: 0.0}')" ] && [ "$(mapped '{attn_pdrop: 0.0}')" = "$(mapped '')" ]
}
ok "a cell may hold a map" drops
broken_map() { mapped '{attn_pdrop: 0.1' | grep -q "mapped.csv:2:30: is not valid YAML"; }
ok "one that is broken is told at its cell" broken_map
finish
