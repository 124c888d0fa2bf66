#!/bin/sh
# tests/test_evidence.sh - a stack that nobody named, the nearest runs, whole sources left out
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml b=examples/01-first-answer/mi300x.yaml
grep -v '^stack' $a >"$tmp/a.yaml"
grep -v '^stack' $b >"$tmp/b.yaml"
says() { # WORDS COMMAND...: the output has these words
	words=$1
	shift
	"$@" >"$tmp/said" 2>&1 && grep -qF "$words" "$tmp/said"
}
says_not() { ! says "$@"; }
py() { # EXPRESSION FILE...: true of the JSON documents d[0], d[1] ...
	expression=$1
	shift
	python3 -c 'import json, sys; d = [json.load(open(f)) for f in sys.argv[2:]]; assert eval(sys.argv[1])' "$expression" "$@"
}
ok "an absent stack is told, with both ends" says "stack not given: generic" $f simulate "$tmp/a.yaml"
ok "a stack that was given is not" says_not "stack not given" $f simulate $a
ok "nearest runs are named" says "nearest measured runs" $f simulate $a
ok "swapping the GPU keeps the stack" sh -c "for s in a b; do $f simulate $tmp/\$s.yaml --json >$tmp/\$s.json || exit; done"
ok "that stack is generic" py 'all(x["scenario"]["stack"] == "generic" and "stack" in x["assumed"] for x in d)' "$tmp/a.json" "$tmp/b.json"
ok "what is resolved answers the same" sh -c "python3 -c 'import json; json.dump(json.load(open(\"$tmp/a.json\"))[\"scenario\"], open(\"$tmp/again.json\", \"w\"))' && $f simulate - --json <$tmp/again.json >$tmp/a2.json"
ok "its range as well" py 'd[0]["interval"] == d[1]["interval"]' "$tmp/a.json" "$tmp/a2.json"
$f simulate $a --json --set 'cluster.gpu={extends: h100-sxm}' >"$tmp/same.json"
$f simulate $a --json >"$tmp/plain.json"
ok "so does a GPU that extends one and changes nothing, range and all" py 'all(d[0][k] == d[1][k] for k in ("interval", "nearest_runs", "cost"))' "$tmp/same.json" "$tmp/plain.json"
ok "three runs of three sources, nearest first" py 'len({n["source"] for n in d[0]["nearest_runs"]}) == 3 and [n["distance"] for n in d[0]["nearest_runs"]] == sorted(n["distance"] for n in d[0]["nearest_runs"])' "$tmp/a.json"
ok "the prediction is in its range" py 'd[0]["interval"]["step_s"][0] <= d[0]["step_s"] <= d[0]["interval"]["step_s"][1]' "$tmp/a.json"
far() { # on a GPU with few rows most kernels are far from any
	$f simulate - --set cluster.gpu=mi250 --set cluster.node=mi250-4x --json <"$tmp/b.yaml" >"$tmp/far.json" 2>/dev/null &&
		share=$(python3 -c 'import json, sys; print("%.0f" % (100 * json.load(sys.stdin)["extrapolated_frac"]))' <"$tmp/far.json") &&
		[ "$share" -gt 5 ] && says "$share % of the kernel time is for shapes far from anything measured" $f simulate - --set cluster.gpu=mi250 --set cluster.node=mi250-4x <"$tmp/b.yaml"
}
ok "how much is far from anything measured is told" far
cat >"$tmp/small.yaml" <<EOF
model: {name: gpt-350m, num_hidden_layers: 4}
cluster: {gpu: h200, gpus: 1, fabric: none}
stack: torch-2.11-eager
training: {sequence_length: 128, global_batch_size: 1, step_start: together}
EOF
ok "that the host sets the pace is told" says "with one that is 25 % slower the step takes 23 % longer (host_factor of the node)" $f simulate "$tmp/small.yaml"
ok "where it does" says_not "hosts differ" $f simulate $a
cat >"$tmp/wide.yaml" <<EOF
model: {name: mixtral-8x7b, num_hidden_layers: 3}
cluster: {gpu: h200, gpus: 8}
stack: transformers-5-trainer
training: {sequence_length: 4096, micro_batch_size: 1, global_batch_size: 8, sharding: ddp}
EOF
wide() { # the sentence has the share that the items have
	$f simulate "$tmp/wide.yaml" --json >"$tmp/wide.json" 2>/dev/null &&
		share=$(python3 -c 'import json, sys
d = json.load(sys.stdin)
print("%.0f" % (100 * sum(i["time_s"] for i in d["items"] if i["name"].startswith(("expert_up", "expert_down"))) / d["step_s"]))' <"$tmp/wide.json") &&
		[ "$share" -gt 50 ] && says "Experts are computed in fp32, as their weights are: $share % of the step" $f simulate "$tmp/wide.yaml"
}
ok "experts that autocast leaves in fp32 are told" wide
ok "16-bit weights have none" says_not "computed in fp32" $f simulate "$tmp/wide.yaml" --set training.master_weights=false --set training.gradient_dtype=bf16
kept='--set stack=transformers-5-eager --set training.recompute=full --set training.offload_layers'
ok "a loss that goes to host memory is told" says "offload_layers 31 it stays" $f simulate examples/15-recorded-step/scenario.yaml --set model.num_hidden_layers=32 $kept=32
ok "one that stays is not" says_not "it stays" $f simulate examples/15-recorded-step/scenario.yaml --set model.num_hidden_layers=32 $kept=31
ok "experts that end a compiled graph are told" says "end the compiled graph, and run in TF32" $f simulate "$tmp/wide.yaml" --set stack=transformers-5-trainer-compile
ok "fsdp has none" says_not "computed in fp32" $f simulate "$tmp/wide.yaml" --set training.sharding=fsdp
ok "compare warns where no stack was given" says "name no stack" $f compare "$tmp/a.yaml" "$tmp/b.yaml"
ok "and says no more of GPUs than is so" says "all run under generic here, whose range holds what people run" $f compare "$tmp/a.yaml" "$tmp/a.yaml" --set cluster.fabric=roce-400-rail
ok "compare warns where stacks differ" says "The stacks differ" $f compare $a $b
ok "the JSON has the warning" sh -c "$f compare $a $b --json | grep -q '\"warning\"'"
ok "the report has the runs" sh -c "$f simulate $tmp/a.yaml --report $tmp/r && grep -q 'How far to trust it' $tmp/r/index.html && grep -q 'stack not given' $tmp/r/index.html"
ok "a GPU that nobody measured is told" says "No measured run is on the GPU" $f simulate "$tmp/a.yaml" --set 'cluster.gpu={extends: h100-sxm, memory.capacity: 96 GB}'

# Adapters and all weights are different work: the nearest run is of the plan's own kind, and those that are not say so.
adapted() { # all|adapters SETTING...
	trained=$1
	shift
	printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 8}\nstack: transformers-5-eager\ntraining: {sequence_length: 4096, micro_batch_size: 1, global_batch_size: 32, sharding: fsdp}\n' >"$tmp/adapted.yaml" &&
		$f simulate "$tmp/adapted.yaml" "$@" --json >"$tmp/adapted.json" 2>/dev/null &&
		python3 -c 'import csv, json, sys
kind = {r["id"]: r["trained"] for r in csv.DictReader(l for l in open("study/residuals.csv") if l[0] != "#")}
near = json.load(sys.stdin)["nearest_runs"]
assert kind[near[0]["id"]] == sys.argv[1], near
assert all(("trained " + kind[n["id"]] in n["differs"]) == (kind[n["id"]] != sys.argv[1]) for n in near), near' "$trained" <"$tmp/adapted.json"
}
ok "a plan that trains adapters is held against runs of adapters" adapted adapters --set 'training.lora={rank: 16, targets: all}'
ok "one that trains all weights is not" adapted all

# Whose runs make the range: of stacks that say of themselves that nobody named them, or of the others.
ranged() { # true|false NAME: the nearest runs are those of stacks that are unnamed, or named; all rows of an id and error are
	printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 8}\nstack: %s\ntraining: {sequence_length: 4096, global_batch_size: 64}\n' "$tmp/$2.yaml" >"$tmp/ranged.yaml" &&
		$f simulate "$tmp/ranged.yaml" --json >"$tmp/$2.json" 2>"$tmp/e" && python3 -c 'import csv, json, math, sys
near = json.load(open(sys.argv[2]))["nearest_runs"]
rows = [{**r, "unnamed": u} for u, name in (("false", "residuals"), ("true", "residuals-unnamed"))
        for r in csv.DictReader(l for l in open("study/%s.csv" % name) if l[0] != "#")]
assert len(near) == 3
for n in near:
    of = {r["unnamed"] for r in rows if r["id"] == n["id"] and abs(math.expm1(-float(r["log_ratio"])) - n["error_frac"]) < 1e-9}
    assert of == {sys.argv[1]}, (n, of)' "$1" "$tmp/$2.json"
}
same_range() { # ONE OTHER: one prediction, one range
	jq -S '{step_s, interval}' "$tmp/$1.json" >"$tmp/one" && jq -S '{step_s, interval}' "$tmp/$2.json" | cmp - "$tmp/one"
}
printf 'extends: generic\ntitle: our own\n' >"$tmp/ours.yaml"
printf 'extends: %s\n' "$tmp/ours.yaml" >"$tmp/ours-2.yaml"
sed /^unnamed:/d stacks/generic.yaml >"$tmp/apart.yaml"
printf 'extends: generic\nunnamed: true\n' >"$tmp/nobodys.yaml"
printf 'extends: torch-2.11-eager\nunnamed: true\n' >"$tmp/nobodys-eager.yaml"
ok "a stack that extends generic has the range of named ones" ranged false ours
ok "and so has one that extends that" ranged false ours-2
ok "as if it stood apart" ranged false apart
ok "with the same range" same_range ours apart
ok "a stack that says it is unnamed has the range of those" ranged true nobodys
ok "whatever it extends" ranged true nobodys-eager

# Memory of 93 % and more of the GPU's, where it fits and PyTorch manages it.
full() { # STACK: told of those micro-batches alone that are so full; some are
	told=0
	for mbs in 1 2 3 4 5 6; do
		printf 'model: {name: llama3-8b, num_hidden_layers: 8}\ncluster: {gpu: h100-sxm, gpus: 2}\nstack: %s\n' "$1" >"$tmp/full.yaml"
		printf 'training: {sequence_length: 4096, micro_batch_size: %d, global_batch_size: %d, sharding: fsdp}\n' $mbs $((2 * mbs)) >>"$tmp/full.yaml"
		$f simulate "$tmp/full.yaml" >"$tmp/full.txt" 2>/dev/null && $f simulate "$tmp/full.yaml" --json >"$tmp/full.json" 2>/dev/null || return 1
		said=$(grep -c "^Memory is .* % full: PyTorch's allocator" "$tmp/full.txt")
		is=$(python3 -c 'import json, sys; d = json.load(sys.stdin); m = d["memory_bytes_per_gpu"]["total"] / 80e9; print(int(m >= 0.93 and d["fits"]))' <"$tmp/full.json")
		[ "$1" = jax-0.11 ] && is=0
		[ "$said" = "$is" ] || return 1
		[ "$is" = 0 ] || cp "$tmp/full.yaml" "$tmp/fills.yaml"
		told=$((told + said))
	done
	[ "$1" = jax-0.11 ] || [ $told -gt 0 ]
}
ok "memory that is nearly full is told" full torch-2.11-eager
ok "and below the first of the plans that a search finds" sh -c "$f plan $tmp/fills.yaml --set 'training.parallel={tp: 1, pp: 1, cp: 1}' --set training.recompute=none | grep -q '^    1  Memory is .* % full'"
printf 'model: llama3-8b\ncluster: {gpu: mi250, gpus: 64}\ntraining: {sequence_length: 4096, global_batch_size: 512, parallel: {tp: 2}}\n' >"$tmp/dies.yaml"
dies() { # of a card of two dies: 79 of 129 GB, which is more than one die has
	$f simulate "$tmp/dies.yaml" >"$tmp/dies.txt" && awk '/^total  / { t = $2 } /^it fits in  / { r = $4 } END { exit !(t / r > 0.55 && t / r < 0.65) }' "$tmp/dies.txt" && ! grep -q '^Memory is' "$tmp/dies.txt"
}
ok "a card's memory is that of all its dies" dies
ok "not under JAX, which plans its memory" full jax-0.11

# Runs that are broken stop the answer, and say where.
mkdir "$tmp/data" && cp -r hw models stacks cost study "$tmp/data/"
broken() { # WORDS EDIT: a change of the runs, and what is said
	sed "$2" study/residuals.csv >"$tmp/data/study/residuals.csv"
	! FORETOKEN_DATA=$tmp/data $f simulate $a >"$tmp/said" 2>&1 && grep -qF "$1" "$tmp/said"
}
ok "a number that is none" broken "residuals.csv:3:" '3s/,[^,]*$/,fast/'
# gpus is the fifteenth column
ok "no GPUs" broken "gpus should be above 0" '3s/^\(\([^,]*,\)\{14\}\)[0-9]*/\10/'
ok "a column that is gone" broken "lacks the column log_ratio" '2s/log_ratio/ratio/'
ok "no runs at all" broken "run \`make residuals\`" '3,$d'
apart() { # with the runs under named stacks gone, one without a stack answers; with the others damaged, it does not
	FORETOKEN_DATA=$tmp/data $f simulate "$tmp/a.yaml" >"$tmp/said" 2>&1 || return 1
	cp study/residuals.csv "$tmp/data/study/"
	sed -i '3s/,[^,]*$/,fast/' "$tmp/data/study/residuals-unnamed.csv"
	FORETOKEN_DATA=$tmp/data $f simulate $a >/dev/null 2>&1 &&
		! FORETOKEN_DATA=$tmp/data $f simulate "$tmp/a.yaml" >"$tmp/said" 2>&1 &&
		grep -qF "residuals-unnamed.csv:3:" "$tmp/said"
}
ok "runs under stacks that nobody named are apart from the others" apart
sed 's/^  gpu: 0.3/  gpo: 0.3/' study/ranges.yaml >"$tmp/data/study/ranges.yaml"
ok "a trait that is none" broken "unknown key 'gpo'" ''
sed /^unnamed_runs/d study/ranges.yaml >"$tmp/data/study/ranges.yaml"
ok "no file of runs" broken "lacks the key 'unnamed_runs'" ''
cp study/ranges.yaml "$tmp/data/study/"
sed s/^group,/groups,/ study/groups.csv >"$tmp/data/study/groups.csv"
ok "groups without a column" broken "groups.csv:2:1: error: should have the columns group and source" ''
rm "$tmp/data/study/groups.csv"
ok "no groups" broken "groups.csv" ''
cp study/groups.csv "$tmp/data/study/"

# A row of a known group gets its range from the other sources: the same row under another
# group's name has its own source in the range.
m=measurements/steps/torchtitan-benchmarks-2024-12.csv
sed 's/,torchtitan-benchmarks-2024-12,/,nobody knows it,/' $m >"$tmp/m.csv"
$f validate $m --json >"$tmp/known.json" && $f validate "$tmp/m.csv" --json >"$tmp/unknown.json"
ok "a known source is left out" py '[r["predicted"] for r in d[0]["rows"]] == [r["predicted"] for r in d[1]["rows"]] and [r["low"] for r in d[0]["rows"]] != [r["low"] for r in d[1]["rows"]]' "$tmp/known.json" "$tmp/unknown.json"

# Also where its rows are all in the other file: FlagPerf's own stack is one that nobody named.
grep -v '^#' measurements/steps/flagperf.csv | sed -n '1p;/,paddle-2.5,/p' >"$tmp/paddle.csv"
sed 's/,paddle-2.5,/,nobody knows it,/' "$tmp/paddle.csv" >"$tmp/unknown.csv"
for t in paddle unknown; do
	$f validate "$tmp/$t.csv" --set stack=megatron-core-2024 --json >"$tmp/$t.json" || exit
done
ok "whatever file its rows are in" py 'len(d[0]["rows"]) > 0 and [r["predicted"] for r in d[0]["rows"]] == [r["predicted"] for r in d[1]["rows"]] and [r["low"] for r in d[0]["rows"]] != [r["low"] for r in d[1]["rows"]]' "$tmp/paddle.json" "$tmp/unknown.json"

ok "rows on many threads give the same bytes each time" sh -c "for i in 1 2 3; do $f validate measurements/steps/h100-steps.csv --json >$tmp/t\$i.json || exit; done; cmp $tmp/t1.json $tmp/t2.json && cmp $tmp/t2.json $tmp/t3.json"
ok "in the order of the file" sh -c "python3 -c 'import csv, json
ids = [r[\"id\"] for r in csv.DictReader(open(\"measurements/steps/h100-steps.csv\"))]
assert [r[\"id\"] for r in json.load(open(\"$tmp/t1.json\"))[\"rows\"]] == ids'"
ok "steps by plan" says "tp + pp" $f validate measurements/steps/vtrain-ground-truth-multi-node.csv --by plan
ok "classes add up to all" sh -c "$f validate $m --by size --json >$tmp/by.json"
ok "and shares to one" py 'd[0]["by"] == "size" and sum(g["n"] for g in d[0]["groups"].values()) == d[0]["summary"]["n"] and all(abs(g["inside_interval_frac"] + g["slow_frac"] + g["fast_frac"] - 1) < 1e-9 for g in d[0]["groups"].values())' "$tmp/by.json"
ok "an unknown way is refused" sh -c "! $f validate $m --by sise 2>$tmp/e && grep -q 'did you mean size' $tmp/e"
ok "kernels have no plan" sh -c "! $f validate measurements/kernels/collectives-many-nodes.csv --by plan 2>$tmp/e && grep -q 'only training steps' $tmp/e"

# Remarks that are of some scenarios: there they are said, and at their bounds not.
says() { # PATTERN ARGUMENT...: a line of simulate is that, whole
	pattern=$1
	shift
	$f simulate "$@" >"$tmp/remarks" 2>"$tmp/e" && grep -qxE "$pattern" "$tmp/remarks"
}
quiet() { ! says "$@" && [ -s "$tmp/remarks" ]; }
mixtral=examples/08-mixture-of-experts/mixtral.yaml
for few in 0.8:20 0.625:38 0.99:1; do
	ok "a capacity of ${few%:*} drops tokens" says "moe_capacity_factor ${few%:*} drops at least ${few#*:} % of what is sent to experts; model FLOPs and MFU count it all the same, HFU does not\." \
		$mixtral --set training.moe_capacity_factor=${few%:*}
done
for enough in 1 1.25 0; do
	ok "a capacity of $enough drops none that must be" quiet ".*drops at least.*" $mixtral --set training.moe_capacity_factor=$enough
done
printf 'model: gpt-1.5b\ncluster: {gpu: h100-sxm, gpus: 8}\ntraining: {sequence_length: 1024, global_batch_size: 8}\n' >"$tmp/gpt.yaml"
ok "learned positions that are too few are stretched" says "the model's 1024 learned positions are taken to be 1025, as the sequence has so many tokens" \
	"$tmp/gpt.yaml" --set training.sequence_length=1025
ok "in JSON, too" sh -c "$f simulate $tmp/gpt.yaml --set training.sequence_length=1025 --json | jq -e '.derived.positions_stretched_from == 1024'"
printf 'model: granite3-8b\ncluster: {gpu: h100-sxm, gpus: 8}\nstack: megatron-core\ntraining: {sequence_length: 1024, global_batch_size: 8, parallel: {tp: 2}}\n' >"$tmp/words.yaml"
ok "a stack that pads the vocabulary is told" says "the vocabulary of 49155 words is padded to 49408, a multiple of 128 x tp" "$tmp/words.yaml"
ok "in JSON, too" sh -c "$f simulate $tmp/words.yaml --json | jq -e '.derived.padded_vocab_size == 49408'"
ok "one that does not is not" quiet ".*is padded to.*" "$tmp/words.yaml" --set stack=torch-2.11-eager
ok "as many as there are are not" quiet ".*positions are taken.*" "$tmp/gpt.yaml"

# Sources that were left out: the range has about the right size.
ok "the range holds on sources left out" sh -c "python3 scripts/range_scales.py 6 >$tmp/scales && python3 -c '
import re
for line in open(\"$tmp/scales\"):
    m = re.search(r\"(\d+) % inside, (\d+) % faster than P10, (\d+) %\", line)
    if m:
        inside, fast, slow = map(int, m.groups())
        assert 70 <= inside <= 92 and fast <= 20 and slow <= 20, line
'"
finish
