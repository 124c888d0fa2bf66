#!/bin/sh
# tests/test_fit_stack.sh - a stack fitted to runs whose truth is known, and what is refused
. "$(dirname "$0")/tap.sh"
head=id,model.name,cluster.gpu,cluster.gpus,stack,training.sequence_length,training.micro_batch_size,training.global_batch_size,training.sharding,measured.step_s
cat >"$tmp/truth.yaml" <<Y
extends: torch-2.11-compile
provenance: {kind: assumed, source: a test}
rates: {gemm: 1.25}
Y
{
	echo $head
	n=0
	for s in 1024 2048 4096 8192; do
		for b in 1 2; do
			n=$((n + 1))
			echo "$n,llama3-8b,h200,8,torch-2.11-compile,$s,$b,$((8 * b)),fsdp,1"
		done
	done
} >"$tmp/plan.csv"
# measured: what the true stack takes
$f validate "$tmp/plan.csv" --set stack="$tmp/truth.yaml" --json >"$tmp/truth.json"
python3 - "$tmp" <<'P'
import csv, json, sys
took = {r["id"]: r["predicted"] for r in json.load(open(sys.argv[1] + "/truth.json"))["rows"]}
rows = list(csv.DictReader(open(sys.argv[1] + "/plan.csv")))
with open(sys.argv[1] + "/runs.csv", "w", newline="") as f:
    w = csv.DictWriter(f, list(rows[0]))
    w.writeheader()
    for r in rows:
        w.writerow({**r, "measured.step_s": took[r["id"]]})
P
fails() { # WORDS COMMAND...: fails and says so, and no file is there
	words=$1
	shift
	! "$@" >"$tmp/said" 2>&1 && grep -qF "$words" "$tmp/said" && ! [ -e "$tmp/none.yaml" ]
}
# four scenarios whose errors no factor explains, each measured three times: a run that is left out is not told by the same one run again
python3 - "$tmp" <<'P'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/runs.csv")))[::2]
off = {r["id"]: x for r, x in zip(rows, (1.3, 0.8, 1.2, 0.75))}
for name, times in ("once", 1), ("thrice", 3):
    with open("%s/%s.csv" % (sys.argv[1], name), "w", newline="") as f:
        w = csv.DictWriter(f, list(rows[0]))
        w.writeheader()
        for k in range(times):
            for r in rows:
                took = float(r["measured.step_s"]) * off[r["id"]] * (1 + 0.001 * k)
                w.writerow({**r, "id": "%s.%d" % (r["id"], k), "measured.step_s": took})
P
again() {
	for n in once thrice; do $f validate "$tmp/$n.csv" --fit-stack "$tmp/fit-$n" --json >"$tmp/$n.json" || return 1; done
	python3 -c 'import json, sys
once, thrice = (json.load(open(f)) for f in sys.argv[1:])
assert once["folds"] == thrice["folds"] == 4 and thrice["n"] == 12, (once["folds"], thrice["folds"])
assert thrice["held_out"]["mape"] > thrice["after"]["mape"] + 0.05, thrice' "$tmp/once.json" "$tmp/thrice.json"
}
ok "runs of one scenario are left out together" again
ok "a fit is made" sh -c "$f validate $tmp/runs.csv --fit-stack $tmp/mine --json >$tmp/fit.json"
ok "the factor is found, runs left out are predicted" python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert abs(d["factors"]["gemm"] / 1.25 - 1) < 0.06, d
assert d["before"]["mape"] > 0.05 and d["held_out"]["mape"] < 0.02 and d["folds"] == 8 and d["fold"] == "run", d' "$tmp/fit.json"
ok "the stack can be used, and is as good as said" sh -c "$f validate $tmp/runs.csv --set stack=$tmp/mine.yaml --json >$tmp/used.json && python3 -c 'import json
a, b = json.load(open(\"$tmp/fit.json\"))[\"after\"][\"mape\"], json.load(open(\"$tmp/used.json\"))[\"summary\"]
assert b[\"n\"] == 8 and abs(a - b[\"mape\"]) < 1e-3, (a, b)'"
ok "the same runs give the same bytes" sh -c "mv $tmp/mine.yaml $tmp/first.yaml && $f validate $tmp/runs.csv --fit-stack $tmp/mine >$tmp/text && cmp $tmp/first.yaml $tmp/mine.yaml"
ok "provenance says which runs" grep -q '8 runs of' "$tmp/mine.yaml"
elsewhere() { # runs and their stack in one folder, the fit in another, used from a third
	mkdir "$tmp/runs" "$tmp/fits" || return
	printf 'extends: torch-2.11-compile\nprovenance: {kind: assumed}\nrates: {gemm: 1.1}\n' >"$tmp/runs/own.yaml"
	printf 'extends: torch-2.11-compile\nprovenance: {kind: assumed}\nrates: {attention: 3}\n' >"$tmp/own.yaml"
	sed 's|,torch-2.11-compile,|,./own.yaml,|' "$tmp/runs.csv" >"$tmp/runs/runs.csv"
	(cd "$tmp/fits" && "$f" validate ../runs/runs.csv --fit-stack fitted --json) >"$tmp/fits/fit.json" &&
	(cd "$tmp" && "$f" validate runs.csv --set stack=fits/fitted.yaml --json) >"$tmp/fits/used.json" &&
	python3 -c 'import json, sys
a, b = json.load(open(sys.argv[1]))["after"]["mape"], json.load(open(sys.argv[2]))["summary"]
assert b["n"] == 8 and abs(a - b["mape"]) < 1e-3, (a, b)' "$tmp/fits/fit.json" "$tmp/fits/used.json"
}
ok "what it extends is the stack of the runs, wherever it is used" elsewhere
ok "a file that is there stays" sh -c "! $f validate $tmp/runs.csv --fit-stack $tmp/mine 2>$tmp/e && grep -q 'exists' $tmp/e && cmp $tmp/first.yaml $tmp/mine.yaml"
head -4 "$tmp/runs.csv" >"$tmp/few.csv"
ok "a name that no file can be called by" fails "name '' is not a name" $f validate "$tmp/runs.csv" --fit-stack ''
ok "three rows are too few" fails "a fit needs 4" $f validate "$tmp/few.csv" --fit-stack "$tmp/none"
sed '3s/torch-2.11-compile/torch-2.11-eager/' "$tmp/runs.csv" >"$tmp/two.csv"
ok "two stacks are refused" fails "fit one stack at a time" $f validate "$tmp/two.csv" --fit-stack "$tmp/none"
sed 's/torch-2.11-compile/torchtitan-2025/; 3s/h200/b200/' "$tmp/runs.csv" >"$tmp/kinds.csv" # which has another attention on Blackwell
ok "one stack on GPUs of two generations is one" $f validate "$tmp/kinds.csv" --fit-stack "$tmp/kinds"
sed '3s/,8,torch/,7,torch/' "$tmp/runs.csv" >"$tmp/bad.csv"
ok "a row that cannot be used is told" sh -c "$f validate $tmp/bad.csv --fit-stack $tmp/seven >$tmp/text && grep -q '1 rows could not be used' $tmp/text"
ok "with its line" grep -q 'the first, of line 3: ' "$tmp/text"
python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
key = next(k for k in rows[0] if k.startswith("measured."))
rows[2][key] = repr(float(rows[2][key]) * 1000)
w = csv.DictWriter(open(sys.argv[2], "w", newline=""), rows[0])
w.writeheader()
w.writerows(rows)' "$tmp/runs.csv" "$tmp/ms.csv"
ok "a run in another unit is not fitted to" sh -c "$f validate $tmp/ms.csv --fit-stack $tmp/units >$tmp/text && grep -q '1 rows could not be used; the first, of line 4: .* is measured as .*: is it in another unit' $tmp/text"
counted() { # FILE N FAILED: as many rows were used, and not
	$f validate "$tmp/$1.csv" --fit-stack "$tmp/counted.$1" --json | python3 -c 'import json, sys
d = json.load(sys.stdin)
assert [d["n"], d["failed"]] == [int(x) for x in sys.argv[2:]] and d["stack"] == sys.argv[1] + ".yaml", d
assert d["folds"] == d["n"] and d["after"]["n"] == d["before"]["n"] == d["held_out"]["n"] == d["n"], d' "$tmp/counted.$1" "$2" "$3"
}
ok "rows are counted" counted runs 8 0
text_is() { # what is printed is what the JSON says
	$f validate "$tmp/runs.csv" --fit-stack "$tmp/printed" >"$tmp/text" && $f validate "$tmp/runs.csv" --fit-stack "$tmp/printed2" --json >"$tmp/fit.json" &&
		python3 -c 'import json, re, sys
lines, d = [re.split(r"  +", l.strip()) for l in open(sys.argv[1])], json.load(open(sys.argv[2]))
at = lines.index([""])
assert [(k, "%.3f" % v) for k, v in d["factors"].items()] == [(a, b) for a, b in lines[1:at]], lines
assert [l[0] for l in lines[at + 2:at + 5]] == ["as it was", "as fitted, on the same runs", "as fitted, on runs left out"], lines
for l, key in zip(lines[at + 2:], ("before", "after", "held_out")):
    e = d[key]
    assert l[1:] == [str(e["n"])] + ["%.1f %%" % (100 * e["mape"]), "%+.1f %%" % (100 * e["bias"])] + \
        ["%.1f %%" % (100 * e[k]) for k in ("median", "p90", "max")], (l, e)' "$tmp/text" "$tmp/fit.json"
}
ok "the table is what the JSON says" text_is
by_rate() { # the same steps, measured as tokens in a second of a GPU: the same factors
	python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
for r in rows:
    tokens = float(r["training.sequence_length"]) * float(r["training.global_batch_size"])
    r["measured.tokens_per_s_per_gpu"] = repr(tokens / float(r.pop("measured.step_s")) / float(r["cluster.gpus"]))
w = csv.DictWriter(open(sys.argv[2], "w", newline=""), rows[0])
w.writeheader()
w.writerows(rows)' "$tmp/runs.csv" "$tmp/rates.csv" && $f validate "$tmp/rates.csv" --fit-stack "$tmp/rated" --json >"$tmp/rated.json" &&
		python3 -c 'import json, sys
one, two = (json.load(open(p)) for p in sys.argv[1:])
assert one["n"] == two["n"] == 8 and all(abs(two["factors"][k] / v - 1) < 1e-3 for k, v in one["factors"].items()), (one, two)' "$tmp/fit.json" "$tmp/rated.json"
}
ok "steps that are measured as rates give the same stack" by_rate
ok "and those that cannot be used" counted bad 7 1
grouped() { # GROUPS: the eight rows in so many; a fold is a group where there are four or more of them
	tr -d '\r' <"$tmp/runs.csv" | awk -v n="$1" 'NR == 1 { print $0 ",group"; next } { print $0 ",g" NR % n }' >"$tmp/grouped.csv" &&
	$f validate "$tmp/grouped.csv" --fit-stack "$tmp/grouped.$1" --json | python3 -c 'import json, sys
d, n = json.load(sys.stdin), int(sys.argv[1])
assert (d["fold"], d["folds"]) == (("group", n) if n >= 4 else ("run", 8)) and d["n"] == 8, d' "$1"
}
for n in 1 3 4 5 8; do
	ok "rows of $n groups" grouped $n
done
ok "kernels are no steps" fails "a table of kernels; --fit-stack takes measured steps" $f validate measurements/kernels/simumax-b200.csv --fit-stack "$tmp/kernels"
ok "a folder that is not there" fails "none" $f validate "$tmp/runs.csv" --fit-stack "$tmp/nowhere/none"
finish
