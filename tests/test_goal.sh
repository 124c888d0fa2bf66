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
ok "gathers under kernels take less, as nothing slows them" near -0.08 0
ok "and among eight" near -0.08 0 --set cluster.gpus=8 --set training.global_batch_size=8
ok "each ring's message is written on both sides" sh -c "$f trace export $s --set cluster.gpus=8 --set training.global_batch_size=8 --goal $tmp/r.goal >/dev/null && [ \$(grep -c ' send ' $tmp/r.goal) = \$(grep -c ' recv ' $tmp/r.goal) ] && grep -q 'chosen ring' $tmp/r.goal"
ok "an exchange of experts is written" sh -c "$f trace export examples/08-mixture-of-experts/mixtral.yaml --set training.global_batch_size=128 --set cluster.gpus=64 --set model.num_hidden_layers=1 --goal $tmp/m.goal >/dev/null && grep -q 'all_to_all.*written as an exchange' $tmp/m.goal && python3 tests/goal.py $tmp/m.goal 0.004 0"
# what the checker is for: it refuses a receive that is missing, and a circle
sed '0,/ recv /{/ recv /s/tag [0-9]*/tag 77777/}' "$tmp/r.goal" >"$tmp/bad.goal"
ok "the checker sees that a receive is missing" fails 1 "AssertionError" python3 tests/goal.py "$tmp/bad.goal" 0.004 0
sed '0,/^l2 requires l1/s/^l2 requires l1/&\nl1 requires l2/' "$tmp/r.goal" >"$tmp/bad.goal"
ok "and sees a circle" fails 1 "a circle" python3 tests/goal.py "$tmp/bad.goal" 0.004 0
ok "a step of too many lines is refused" fails 1 "is too much to write" $f trace export examples/01-first-answer/h100.yaml --goal "$tmp/x.goal"
ok "and leaves no file" test ! -e "$tmp/x.goal"
ok "export says where to" wrong "export takes --chakra PREFIX or --goal OUT" $f trace export $s
ok "a recording is exported by --chakra" wrong "is of a SCENARIO" $f trace export measurements/traces/h100-bert-small.tracelens.json.gz --goal "$tmp/x.goal"
finish
