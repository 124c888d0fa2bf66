#!/bin/sh
# tests/test_goal.sh - steps as GOAL: well formed, and as long by LogGP as by our engine
. "$(dirname "$0")/tap.sh"
s=examples/15-recorded-step/scenario.yaml
# The gap per byte of the first ring of the file's comments; LogGP's step must be within
# LOW..HIGH of ours, as a fraction. Kernels and collectives that run together slow each other in
# ours alone, so that GOAL's step is the shorter one.
near() { # LOW HIGH SETTING...
	low=$1 high=$2
	shift 2
	$f trace export $s "$@" --goal "$tmp/s.goal" >/dev/null && $f simulate $s "$@" --json >"$tmp/s.json" || return 1
	gap=$(sed -n 's/.*\(all_gather\|all_reduce\|reduce_scatter\): \([0-9]*\) bytes among \([0-9]*\) ranks: chosen [^,]*, \([0-9.]*\) us.*/\1 \2 \3 \4/p' "$tmp/s.goal" | head -1 |
		awk '{ print $4 * 1000 / ($2 * ($3 - 1) / $3 * ($1 == "all_reduce" ? 2 : 1)) }')
	python3 tests/goal.py "$tmp/s.goal" "${gap:-0.004}" 0 >"$tmp/loggp" || return 1
	python3 -c '
import json, sys
goal = float(open(sys.argv[1]).read().split()[0])
ours = json.load(open(sys.argv[2]))["step_s"]
assert float(sys.argv[3]) <= goal / ours - 1 <= float(sys.argv[4]), (goal, ours)' "$tmp/loggp" "$tmp/s.json" "$low" "$high"
}
ok "tensor-parallel ranks take as long by LogGP" near -1e-4 1e-4 --set training.parallel.tp=2 --set training.sharding=ddp
ok "so does a pipeline" near -1e-3 1e-4 --set training.parallel.pp=2 --set training.sharding=ddp --set training.global_batch_size=8
ok "and one with chunks and tensor-parallel ranks" near -1e-3 1e-4 --set cluster.gpus=4 --set training.parallel.pp=2 --set training.parallel.tp=2 --set training.parallel.vpp=2 --set training.sharding=ddp --set training.global_batch_size=8
for kind in "gpipe 1" "zero-bubble 1" "zbv 2" "dualpipev 2" "interleaved 2"; do
	set -- $kind
	ok "four stages under $1 take as long, too" near -2e-3 1e-3 --set cluster.gpus=4 --set training.parallel.pp=4 --set training.parallel.vpp=$2 --set training.schedule=$1 --set training.sharding=ddp --set training.global_batch_size=8 --set model.num_hidden_layers=8
done
ok "gathers under kernels take less, as nothing slows them" near -0.08 0
ok "and among eight" near -0.08 0 --set cluster.gpus=8 --set training.global_batch_size=8
ok "each ring's message is written on both sides" sh -c "$f trace export $s --set cluster.gpus=8 --set training.global_batch_size=8 --goal $tmp/r.goal >/dev/null && [ \$(grep -c ' send ' $tmp/r.goal) = \$(grep -c ' recv ' $tmp/r.goal) ] && grep -q 'chosen ring' $tmp/r.goal"
summed() { # RANKS: under DDP a ring passes 2 (N - 1) / N of the gradients, 4 bytes a parameter, through each rank
	set -- "$1" --set cluster.gpus="$1" --set training.global_batch_size="$1" --set training.sharding=ddp
	ranks=$1
	shift
	$f trace export $s "$@" --goal "$tmp/d.goal" >/dev/null && $f simulate $s "$@" --json >"$tmp/d.json" && python3 - "$tmp/d.goal" "$tmp/d.json" "$ranks" <<'P2'
import json, re, sys
text, n = open(sys.argv[1]).read(), int(sys.argv[3])
want = 2 * (n - 1) / n * 4 * json.load(open(sys.argv[2]))["derived"]["trained_parameters"]
ranks = re.split(r"rank \d+ \{", text)[1:]
assert len(ranks) == n
for rank in ranks:
    sent = sum(int(x) for x in re.findall(r" send (\d+)b", rank))
    assert abs(sent / want - 1) < 1e-6, (sent, want)
P2
}
ok "gradients are summed by a ring of two" summed 2
ok "and by a ring of eight" summed 8
ok "an exchange of experts is written" sh -c "$f trace export examples/08-mixture-of-experts/mixtral.yaml --set training.global_batch_size=128 --set cluster.gpus=64 --set model.num_hidden_layers=1 --goal $tmp/m.goal >/dev/null && grep -q 'all_to_all.*written as an exchange' $tmp/m.goal && python3 tests/goal.py $tmp/m.goal 0.004 0"
# each rank's statements against the program of its stage: `trace show`'s text, read by tests/goal_graph.py
held() { # SETTING...
	$f trace export $s "$@" --goal "$tmp/g.goal" >/dev/null && $f trace show $s "$@" >"$tmp/g.graph" &&
		python3 tests/goal_graph.py "$tmp/g.graph" "$tmp/g.goal" $slow >"$tmp/held" && python3 tests/goal.py "$tmp/g.goal" 0.003 1000 >"$tmp/ran" &&
		[ "$(cut -d' ' -f1 "$tmp/held")" = "$(cut -d' ' -f2 "$tmp/ran")" ]
}
set_all() { # KEY=VALUE... behind what each of these plans has
	rest=
	for x; do rest="$rest --set training.$x"; done
	held --set training.sharding=ddp --set model.num_hidden_layers=8 --set cluster.gpus=$gpus --set training.global_batch_size=8 $rest
}
slow=
gpus=4
ok "a V's sends go down and back up again: zbv" set_all schedule=zbv parallel.pp=4 parallel.vpp=2
ok "dualpipev" set_all schedule=dualpipev parallel.pp=4 parallel.vpp=2
ok "zero-bubble" set_all schedule=zero-bubble parallel.pp=4
ok "context parallelism's exchange goes round a ring" set_all parallel.cp=4
gpus=8
ok "beside tensor-parallel ranks, in pipelines" set_all parallel.cp=2 parallel.tp=2 parallel.pp=2 parallel.vpp=2
ok "hsdp" set_all sharding=hsdp parallel.tp=2 parallel.pp=2
ok "a V of four stages, twice, with shards" set_all sharding=zero2 schedule=zbv parallel.pp=4 parallel.vpp=2
s=examples/08-mixture-of-experts/mixtral.yaml
ok "experts" set_all sharding=zero1 parallel.tp=2 parallel.ep=2 parallel.pp=2
s=examples/15-recorded-step/scenario.yaml
exchanged() { # one layer's keys and values, 2 bytes each of 8 heads of 128 and 1024 tokens, to 3 ranks; back twice that
	held --set stack=megatron-core --set training.sharding=ddp --set cluster.gpus=4 --set training.parallel.cp=4 &&
		[ "$(sed -n '/^rank 0 /,/^}/s/.* send \([0-9]*\)b to 1 .* cpu 8$/\1/p' "$tmp/g.goal" | sort | uniq -c | tr -s ' \n' ' ')" = " 24 4194304 24 8388608 " ]
}
ok "each rank's keys and values to all others" exchanged
slow="3 0.5"
ok "a slow GPU's kernels take longer" held --set cluster.gpus=8 --set training.global_batch_size=8 --set "cluster.imperfections.slow_gpus=[{gpu: 3, speed_frac: 0.5}]"
slow=
ok "and all wait for it" near -0.08 0 --set cluster.gpus=8 --set training.global_batch_size=8 --set training.sharding=ddp --set "cluster.imperfections.slow_gpus=[{gpu: 3, speed_frac: 0.5}]"
ok "a step is not shorter than launches that run ahead" near -1e-4 1e-4 --set training.step_start=steady --set training.sharding=ddp --set cluster.gpus=1 --set training.global_batch_size=1 --set training.sequence_length=128
# what the checker is for: it refuses a receive that is missing, and a circle
sed '0,/ recv /{/ recv /s/tag [0-9]*/tag 77777/}' "$tmp/r.goal" >"$tmp/bad.goal"
ok "the checker sees that a receive is missing" fails 1 "AssertionError" python3 tests/goal.py "$tmp/bad.goal" 0.004 0
sed '0,/^l2 requires l1/s/^l2 requires l1/&\nl1 requires l2/' "$tmp/r.goal" >"$tmp/bad.goal"
ok "and sees a circle" fails 1 "a circle" python3 tests/goal.py "$tmp/bad.goal" 0.004 0
ok "a step of too many lines is refused" fails 1 "is too much to write" $f trace export examples/01-first-answer/h100.yaml --goal "$tmp/x.goal"
ok "and leaves no file" test ! -e "$tmp/x.goal"
ok "export says where to" wrong "export takes --chakra PREFIX or --goal OUT" $f trace export $s
rec=measurements/traces/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
ok "and of which graph, if not the scenario's" wrong "graph is of replay" $f trace export $s --goal "$tmp/x.goal" --graph "$tmp/g.graph"
ok "a scenario's graph is text" wrong "json is of a recording" $f trace show $s --json
ok "which show builds, too" wrong "graph is of replay" $f trace show $s --graph "$tmp/g.graph"
ok "what export does not do is refused: a step" wrong "export writes all that was recorded" $f trace export $rec --goal "$tmp/x.goal" --step 1
ok "JSON" wrong "prints no JSON" $f trace export $s --goal "$tmp/x.goal" --json
ok "a key" wrong "of replay and compare" $f trace export $rec --goal "$tmp/x.goal" --set cluster.gpus=4
ok "nor do keys change what is shown" wrong "of replay and compare" $f trace show $rec --set cluster.gpus=2
ok "nor whose GPU it was" wrong "of replay and compare" $f trace show $rec --from mi300x
# a recorded rank alone: LogGP ends when the last of its calls and operations did. Not before; and
# later only by what was recorded to begin before what it waited for had ended (microseconds)
t=measurements/traces/h200-8b4L-fsdp2-s4096-b1-eager.rank
recorded() {
	$f trace export ${t}0.kineto.json.gz --goal "$tmp/k.goal" >/dev/null &&
		$f trace replay ${t}0.kineto.json.gz --timeline "$tmp/k.json" >/dev/null &&
		python3 tests/goal.py "$tmp/k.goal" 0 0 >"$tmp/loggp" && python3 - "$tmp/k.json" "$tmp/loggp" <<'P2'
import json, sys
from fractions import Fraction
events = json.load(open(sys.argv[1]), parse_float=Fraction)["traceEvents"]
ran = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")
end = max(e["ts"] + e["dur"] for e in events if e.get("cat") in ran)
seconds, messages = open(sys.argv[2]).read().split()
assert -1.5e-9 <= float(seconds) - float(end) * 1e-6 <= 5e-6 and messages == "0", (seconds, float(end))
P2
}
ok "a recorded rank takes as long as it did" recorded
met() { # both ranks: the transfers of their collectives are messages
	$f trace export ${t}0.kineto.json.gz ${t}1.kineto.json.gz --goal "$tmp/k.goal" >"$tmp/said" && grep -q ": 15 collectives as sends and receives, 0 with" "$tmp/said" &&
		python3 tests/goal.py "$tmp/k.goal" "$gap" 0 >"$tmp/two" && python3 -c '
import sys
one, two = (open(x).read().split() for x in sys.argv[1:])
assert two[1] == "30" and abs(float(two[0]) / float(one[0]) - 1) < 0.02, (one, two)' "$tmp/loggp" "$tmp/two"
}
gap=0.00367 # ns a byte: the first all_gather of examples/15-recorded-step
ok "two meet, and take as long to 2 %" met
apart() { # two tensor-parallel groups of two, and their shards: of groups smaller than the job, too, the transfer is messages
	for r in 0 1 2 3; do
		$f simulate $s --set cluster.gpus=4 --set training.parallel.tp=2 --timeline "$tmp/a.$r.json" --timeline-format kineto --timeline-rank $r --json >"$tmp/a.told" || return 1
	done
	$f trace export "$tmp"/a.[0-3].json --goal "$tmp/a.goal" | grep -q ": 108 collectives as sends and receives, 0 with" &&
		python3 tests/goal.py "$tmp/a.goal" "$gap" 0 >"$tmp/ran" && python3 - "$tmp/a.goal" "$tmp/ran" "$tmp/a.told" <<'P2'
import json, re, sys
ranks = re.split(r"rank \d+ \{", open(sys.argv[1]).read())[1:]
for n, rank in enumerate(ranks):  # to the other of its tensor-parallel group, and to the one with the same slice
    assert {int(x) for x in re.findall(r" send \d+b to (\d+)", rank)} == {n ^ 1, n ^ 2}
ran, told = float(open(sys.argv[2]).read().split()[0]), json.load(open(sys.argv[3]))["step_s"]
assert abs(ran / told - 1) < 0.04, (ran, told)
P2
}
ok "so do groups of some of the ranks" apart
ok "where all come at once none is waited for" sh -c "$f trace show $tmp/a.0.json $tmp/a.1.json $tmp/a.2.json $tmp/a.3.json | grep -q 'No rank waits for another.'"
finish
