#!/bin/sh
# tests/test_plan.sh - foretoken plan: answers, mistakes with their words, stopping and going on
. "$(dirname "$0")/tap.sh"
prints() { # "PATTERN" command...: exit 0, and the pattern on stdout
	pattern=$1
	shift
	"$@" >"$tmp/answer" || return 1
	cat "$tmp/answer" >&2
	grep -q -- "$pattern" "$tmp/answer"
}
layers=8 stated=
if sanitized; then layers=2 stated=', sharding: zero1'; fi # a smaller space
cat >"$tmp/a.yaml" <<Y
model: {name: llama3-8b, num_hidden_layers: $layers}
cluster: {gpu: h200, gpus: 8}
training: {sequence_length: 2048, global_batch_size: 16, parallel: {cp: 1}, recompute: none$stated}
Y
sed 's/gpus: 8/gpus: [8, 16]/' "$tmp/a.yaml" >"$tmp/sizes.yaml"
sed 's/{name: llama3-8b, num.*}/llama3-70b/; s/recompute: none/micro_batch_size: 1/' "$tmp/a.yaml" >"$tmp/large.yaml"
sed 's/global_batch_size: 16/global_batch_size: 7/' "$tmp/a.yaml" >"$tmp/seven.yaml"

ok "a table, with the reason" prints "^Why the first: " $f plan "$tmp/a.yaml"
ok "plans that the stack refuses are counted" prints "legal plans, [0-9]* refused by the stack or the model, [0-9]* fit" $f plan "$tmp/a.yaml" --set stack=jax-0.11 --set training.sharding=fsdp --set training.recompute=full
ok "a line of reason for each of the others" prints "^    2  .* slower" $f plan "$tmp/a.yaml"
ok "and what the table has no column for" prints "^    [2-9]  .* slower: .*; zero_group [0-9]*$" $f plan "$tmp/a.yaml" --set training.sharding=zero1 --set training.parallel.tp=1 --set training.parallel.pp=1 --set training.recompute=full --free zero_group --top 6
ok "a wrapper that one rank goes without is there on several" prints "^1 .* ddp  " $f plan "$tmp/a.yaml" --set stack=transformers-5-trainer --set training.sharding=ddp --set training.recompute=none --top 1
ok "and on one it is not" prints "^1 .* none  " $f plan "$tmp/a.yaml" --set stack=transformers-5-trainer --set training.sharding=ddp --set training.recompute=none --set cluster.gpus=1 --top 1
ok "the best and the simplest of those like it" prints "within the range of the best's prediction" $f plan "$tmp/a.yaml"
keys() { # the keys that others rely on, and a document that simulate takes and answers alike
	$f plan "$tmp/a.yaml" --json --top 2 >"$tmp/j" &&
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["refused"] == 0 and d["considered"] >= d["feasible"] >= d["simulated"] > 0 and d["wall_s"] > 0
b = d["best"]
assert len(b) == 2 and b[0]["step_s"] <= b[1]["step_s"]
for x in b:
    assert x["why"] and x["memory_bytes_per_gpu"]["total"] > 0 and x["tokens_per_s_per_gpu"] > 0 and x["usd_per_million_tokens"] > 0
    assert x["training"]["parallel"]["tp"] >= 1
    assert abs(sum(x["breakdown_s"].values()) / x["step_s"] - 1) < 1e-9
s = {"model": {"name": "llama3-8b", "num_hidden_layers": int(sys.argv[3])}, "cluster": {"gpu": "h200", "gpus": 8}, "training": b[0]["training"]}
json.dump(s, open(sys.argv[2], "w"))
print(b[0]["step_s"])' "$tmp/j" "$tmp/best.json" $layers >"$tmp/step" &&
	$f simulate "$tmp/best.json" --json | python3 -c 'import json, sys
assert abs(json.load(sys.stdin)["step_s"] / float(open(sys.argv[1]).read()) - 1) < 1e-12' "$tmp/step"
}
ok "JSON has the stable keys, and its plan simulates to its step" keys
reasons() { # by how much each of the others is slower, and what its step has more of: at most what it takes longer in all
	$f plan "$tmp/a.yaml" --json --top 8 >"$tmp/j" && python3 -c 'import json, re, sys
b = json.load(open(sys.argv[1]))["best"]
seen = set()
for x in b[1:]:
    more, _, parts = x["why"].partition(" % slower")
    assert more == "%.1f" % (100 * (x["step_s"] / b[0]["step_s"] - 1)), x
    parts = dict(re.match(r" ?(.*) ([+-][0-9.]+) %$", p).groups() for p in parts[1:].split(",") if p)
    for name, kind in (("pipeline bubble", "bubble"), ("exposed communication", "exposed_communication"), ("optimizer", "optimizer")):
        if name in parts:
            want = 100 * (x["breakdown_s"][kind] - b[0]["breakdown_s"][kind]) / b[0]["step_s"]
            assert abs(float(parts[name]) - want) < 0.0501, (x["why"], name, want)
            seen.add(name)
assert seen, [x["why"] for x in b]' "$tmp/j"
}
ok "a reason is what the steps differ by" reasons
threads() { # the same plans whatever the threads
	for t in 1 2 5; do
		$f plan "$tmp/a.yaml" --threads $t --json | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(json.dumps(d["best"], sort_keys=True))' >"$tmp/t$t" || return 1
	done
	cmp "$tmp/t1" "$tmp/t2" && cmp "$tmp/t1" "$tmp/t5"
}
ok "the same on one thread, two and five" threads
ok "a list of sizes: each at its best" prints "^Each at its best" $f plan "$tmp/sizes.yaml" --top 1
sed 's/gpus: \[8, 16\]/gpus: [16, 8]/' "$tmp/sizes.yaml" >"$tmp/run.yaml"
echo "run: {tokens: 10G, days: 30}" >>"$tmp/run.yaml"
run_of() { # the smallest size that is done in time, with the days of its best plan
	$f plan "$tmp/run.yaml" --top 1 --json >"$tmp/j" &&
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
days = {p["best"][0]["dp"]: p["best"][0]["days"] for p in d["plans"]}
f = d["fleets"]
assert [x["for"] for x in f] == ["smallest in time, at P50", "smallest in time, at P90"], f
assert f[0]["gpus"] == 8 and f[0]["days"]["p50"] in days.values() and f[0]["days"]["p50"] <= 30' "$tmp/j"
}
ok "what run asks, of sizes at their best" run_of
ok "and as a table" prints "^smallest in time, at P90 " $f plan "$tmp/run.yaml" --top 1
ok "several scenarios" prints "^Each at its best" $f plan "$tmp/a.yaml" "$tmp/a.yaml" --top 1
db() { # every simulated plan is kept, and not simulated again
	$f plan "$tmp/a.yaml" --db "$tmp/p.db" --json >"$tmp/1" && $f plan "$tmp/a.yaml" --db "$tmp/p.db" --json >"$tmp/2" &&
	python3 -c 'import json, sqlite3, sys
a, b = (json.load(open(p)) for p in sys.argv[1:3])
n, with_step = sqlite3.connect(sys.argv[3]).execute("select count(*), count(step_s) from runs").fetchone()
assert n == with_step >= a["simulated"] > 0, (n, a["simulated"])
assert b["known"] > 0 and b["simulated"] <= a["simulated"] // 4 + 4, (b["known"], b["simulated"])
assert a["best"] == b["best"]' "$tmp/1" "$tmp/2" "$tmp/p.db"
}
ok "--db keeps what was simulated, and the same search goes on from it" db
unkept() { # a table that takes no row, as on a full disk
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("delete from runs")
c.execute("create trigger t before insert on runs begin select raise(abort, \"no room\"); end")
c.commit()' "$tmp/p.db" && fails 1 "no room" $f plan "$tmp/a.yaml" --db "$tmp/p.db"
}
ok "what cannot be kept ends the search, and is told" unkept
held=
if sanitized; then held="--set training.parallel.tp=8 --set training.recompute=full"; fi
ok "nothing fits: a change that helps is named" prints "fits with " $f plan "$tmp/large.yaml" --set cluster.gpu=h100-sxm $held
ok "held keys are held" prints "^1 *2 " $f plan "$tmp/a.yaml" --set training.parallel.tp=2 --top 1
ok "a batch that nothing divides" fails 1 "no parallel plan of .* is legal" $f plan "$tmp/seven.yaml" --set training.micro_batch_size=2
ok "sizes that contradict each other" fails 1 "no parallel plan of .* is legal" $f plan "$tmp/a.yaml" --set training.parallel.tp=8 --set training.parallel.pp=8
ok "a held size however it is written" sh -c "$f plan -q \"$tmp/a.yaml\" --set training.parallel.tp=2 --top 1 | tail -1 >\"$tmp/held\"; $f plan -q \"$tmp/a.yaml\" --set training.parallel.tp=2.0 --top 1 | tail -1 | cmp - \"$tmp/held\""
ok "a question that nothing answers" fails 1 "alone trains nothing" $f plan "$tmp/a.yaml" --megawatts 3 --db "$tmp/unasked.db"
ok "is refused ahead of the search" test ! -e "$tmp/unasked.db"
ok "a held key that is no size" fails 1 "should be a whole number" $f plan "$tmp/a.yaml" --set training.parallel.tp=many
ok "a key that is not searched" fails 1 "that key cannot be searched" $f plan "$tmp/a.yaml" --free training.precision
ok "an odd list of sizes" fails 1 "write 1 to 32 sizes" $f plan "$tmp/a.yaml" --set 'cluster.gpus=[]'
as_many() { # PLANS OPTION...: so many of those that fit
	n=$1
	shift
	$f plan "$tmp/a.yaml" --json "$@" >"$tmp/j" && jq -e "(.best | length) == $n and .feasible > $n" "$tmp/j" >/dev/null
}
ok "five plans, where nobody says how many" as_many 5
ok "or as many as are asked for" as_many 3 --top 3
ok "--top" fails 64 "takes 1 to 100" $f plan "$tmp/a.yaml" --top 0
ok "--rank-by" fails 64 "takes tokens, usd or days" $f plan "$tmp/a.yaml" --rank-by luck
ok "--emit" fails 64 "takes megatron" $f plan "$tmp/a.yaml" --emit cobol
ok "a key that counts in no plan" fails 1 "expert_precision has an effect only with an 8-bit" $f plan "$tmp/a.yaml" --set training.expert_precision=bf16
idle() { # KEY: stated as `false`, it stands so in the plans that it concerns, and not in the others, where it would be refused
	$f plan "$tmp/a.yaml" --free sharding --set "training.$1=false" --top 100 --json >"$tmp/idle.json" && python3 -c '
import json, sys
plans = [p["training"] for p in json.load(open(sys.argv[1]))["best"]]
said = {sharding: {p[sys.argv[2]] for p in plans if p["sharding"] == sharding} for sharding in {p["sharding"] for p in plans}}
assert len(said) > 1 and all((False in of) == (sharding in ("fsdp", "hsdp")) for sharding, of in said.items()), said' "$tmp/idle.json" "$1"
}
again() { # what an answer states as its scenario is one that plan takes
	$f simulate "$tmp/a.yaml" --set training.parallel={} --json | jq .scenario >"$tmp/stated.json" &&
		test "$(jq .training.recompute_layers "$tmp/stated.json")" = 0 &&
		$f plan "$tmp/stated.json" --top 1 --json | jq -e '.best | length == 1' >/dev/null
}
ok "a scenario as an answer states it" again
cat >"$tmp/grouped.yaml" <<-E
	model: llama3-70b
	cluster: {gpu: h100-sxm, gpus: 64}
	stack: nemo-25.02
	training: {sequence_length: 8192, global_batch_size: 128, sharding: zero1, zero_group: 8, lora: {rank: 16}}
E
ok "groups of the first plan that do not go without saying" prints "It has zero_group 8" $f plan "$tmp/grouped.yaml" --top 1
ok "a key that does nothing in a plan found is not in it" idle reshard_after_forward
ok "one that does nothing in any is refused" fails 1 "reshard_after_forward has an effect only with sharding fsdp or hsdp" $f plan "$tmp/a.yaml" --set training.sharding=zero1 --set training.reshard_after_forward=false
ok "no scenario" fails 64 "a SCENARIO is missing" $f plan
for by in usd days; do
	ok "ranked by $by" prints "Why the first" $f plan "$tmp/a.yaml" --rank-by $by --tokens 1T
done
ok "Megatron's arguments" prints "^--tensor-model-parallel-size 2$" $f plan "$tmp/a.yaml" --set training.parallel.tp=2 --emit megatron
ok "torchtitan's configuration" prints "^tensor_parallel_degree = 2$" $f plan "$tmp/a.yaml" --set training.parallel.tp=2 --emit torchtitan
ok "what has no name there is said" prints "^# not mapped: sharding: zero1$" $f plan "$tmp/a.yaml" --set training.sharding=zero1 --emit torchtitan
ok "NeMo's fields" prints "^  tensor_model_parallel_size: 2$" $f plan "$tmp/a.yaml" --set training.parallel.tp=2 --emit nemo
ok "Primus's overrides" prints "^      tensor_model_parallel_size: 2$" $f plan "$tmp/a.yaml" --set training.parallel.tp=2 --emit primus
stopped() { # SIGTERM: what was found is told, exit 130
	sed 's/recompute: none/recompute: none/; s/gpus: 8/gpus: 1024/; s/, num_hidden_layers: [0-9]*//; s/global_batch_size: 16/global_batch_size: 1024/' "$tmp/a.yaml" >"$tmp/long.yaml"
	$f plan "$tmp/long.yaml" --exhaustive --threads 1 >"$tmp/o" 2>"$tmp/e" &
	p=$!
	sleep 2
	kill -TERM $p
	wait $p
	[ $? = 130 ] && grep -q "stopped" "$tmp/e" && grep -q "legal plans" "$tmp/o"
}
ok "a search that is stopped says so" stopped
if command -v gnuplot >/dev/null; then
	ok "the front is drawn" $f plan "$tmp/a.yaml" --front "$tmp/front"
	ok "as a picture" grep -q "<svg" "$tmp/front/front.svg"
else
	skip "the front is drawn" "no gnuplot"
fi
ok "compare puts each at its best" prints "scenario\|tokens/s" $f compare "$tmp/a.yaml" "$tmp/sizes.yaml" --set cluster.gpus=8 --each-at-best --draws 64
legible() { # the scenarios outlive the search that made them
	$f compare "$tmp/a.yaml" "$tmp/a.yaml" --set 'training.parallel={}' --each-at-best --draws 64 >"$tmp/o" &&
		grep -q 'training.parallel.tp' "$tmp/o" && ! LC_ALL=C grep -q '[^ -~]' "$tmp/o"
}
ok "and says its keys" legible

# ---- what is stated, and what is free -------------------------------------------
held() { # KEY VALUE: what is stated is so in every plan, best or not, but where simulate says that it does nothing
	$f plan "$tmp/small.yaml" --set "training.$1=$2" --top 50 --json >"$tmp/j" &&
	python3 -c 'import json, subprocess, sys
d, key, value, program, small = json.load(open(sys.argv[1])), *sys.argv[2:]
def of(t):
    for part in key.split("."):
        t = t[part]
    return json.dumps(t).strip("\"").replace("\"", "").replace(" ", "")
def in_vain(t):
    with open(small + ".idle", "w") as out:
        out.write("".join(l for l in open(small) if not l.startswith("training:")) + "training: " + json.dumps(t))
    asked = subprocess.run([program, "simulate", small + ".idle", "--set", "training." + key + "=" + value], capture_output=True, text=True)
    return asked.returncode and "has an effect" in asked.stderr or sys.exit("%s=%s: %s" % (key, value, asked.stderr))
assert d["best"], "no plan"
others = [b["training"] for b in d["best"] if of(b["training"]) != value]
assert len(others) < len(d["best"]), "nowhere"
for t in others[:5]:
    assert in_vain(t), (of(t), value)' "$tmp/j" "$1" "$2" "$f" "$tmp/small.yaml"
}
sed 's/recompute: none/micro_batch_size: 1/; s/, sharding: zero1//; s/num_hidden_layers: [0-9]*/num_hidden_layers: 4/' "$tmp/a.yaml" >"$tmp/small.yaml"
if sanitized; then sed -i 's/gpus: 8/gpus: 4/' "$tmp/small.yaml"; fi
for kv in schedule=gpipe sharding=zero2 recompute=full 'recompute_modules=[core_attn]' offload_layers=2 \
	overlap.tp=true overlap.dp=false overlap.pp=false parallel.tp=2 parallel.pp=2 parallel.vpp=1 \
	recompute_layers=2 zero_group=2 sequence_parallel=false; do
	ok "stated, so held: $kv" held "${kv%%=*}" "${kv#*=}"
done
freed() { # KEY: with a key free more is considered, and nothing worse is found
	$f plan "$tmp/small.yaml" --set "training.$1=$2" --json --top 1 >"$tmp/1" && $f plan "$tmp/small.yaml" --set "training.$1=$2" --free "training.$1" --json --top 1 >"$tmp/2" &&
	python3 -c 'import json, sys
held, free = (json.load(open(x)) for x in sys.argv[1:3])
assert free["considered"] > held["considered"], (free["considered"], held["considered"])
assert free["best"][0]["step_s"] <= held["best"][0]["step_s"] * (1 + 1e-9)' "$tmp/1" "$tmp/2"
}
for kv in overlap.tp=false overlap.dp=false overlap.pp=false offload_layers=1 sharding=ddp shard=2 zero_group=2; do
	ok "freed, so searched: ${kv%%=*}" freed "${kv%%=*}" "${kv#*=}"
done
ok "a value that is no number" refused "micro_batch_size" $f plan "$tmp/small.yaml" --set training.micro_batch_size=one
ok "stages that are given leave nothing to search" refused "stage_layers leaves no pipeline to search" $f plan "$tmp/small.yaml" --set 'training.parallel.stage_layers=[2,2]' --set training.parallel.pp=2
cat >"$tmp/wide.yaml" <<END
model: {name: deepseek-v3, num_hidden_layers: 60, first_k_dense_replace: 0, num_nextn_predict_layers: 0}
cluster: {gpu: gb300, gpus: 1152}
training: {sequence_length: 4096, global_batch_size: 4608}
END
ok "a power beyond what the run may draw is told" prints "more than the 0.001 that it may draw" $f plan "$tmp/small.yaml" -q --tokens 1T --megawatts 0.001
sanitized || ok "a search that is too wide says which keys are worth stating" fails 1 "those with the most values are training.parallel.vpp ([0-9]*), training.parallel.tp ([0-9]*)" $f plan "$tmp/wide.yaml"
finish
