#!/bin/sh
# tests/test_people.sh - new, explain, doctor, runs
. "$(dirname "$0")/tap.sh"

$f new scenario >"$tmp/s.yaml"
ok "the skeleton of a scenario is one" $f simulate "$tmp/s.yaml"
for kind in gpu node fabric stack prices; do
	case $kind in stack) key=stack ;; prices) key=cost.prices ;; *) key=cluster.$kind ;; esac
	ok "the skeleton of a $kind works in a scenario" sh -c "$f new $kind >$tmp/my-$kind.yaml && $f simulate $tmp/s.yaml --set $key=$tmp/my-$kind.yaml"
done
ok "skeletons fit 80 columns" sh -c "! grep -n '.\{81\}' cli/new/*.yaml"
ok "no such skeleton" wrong "there is no skeleton of 'cluster'; there are scenario, gpu" $f new cluster
ok "a skeleton of nothing" wrong "say which" $f new

ok "every key is explained" sh -c "$f list keys --json | jq -r '.[].key // .[].name' | while read -r k; do $f explain \"\$k\" | grep -q '^  read by ' || { echo \"\$k\" >&2; exit 1; }; done"
ok "so is each part of an answer's JSON" sh -c "$f simulate examples/01-first-answer/h100.yaml --json | jq -r 'keys[]' | while read -r k; do $f explain \"\$k\" >/dev/null || exit 1; done"
ok "so is each key of a recorded step's JSON" sh -c "$f trace show measurements/traces/h100-two-8b16L-pp2-s4096-m8-compile.rank0.kineto.json.gz --json | jq -r '[paths | map(select(type == \"string\")) | last] | unique[]' | while read -r k; do $f explain \"\$k\" >/dev/null || { echo \"\$k\" >&2; exit 1; }; done"
ok "faults of a cluster and how a job goes on are keys, too" sh -c "for k in cluster.imperfections.slow_gpus cost.goodput.recovery; do $f explain \$k | grep -q \"^\$k\$\" || exit 1; done; $f explain cost.goodput.recovery | grep -q 'default   hot'"
ok "a key that must be given has no default" sh -c "$f explain cluster.gpu | grep -q 'default   none: it must be given'"
ok "the last word will do" sh -c "$f explain zero_group | grep -q '^training.zero_group'"
ok "a map's keys all" sh -c "test \$($f explain run | grep -c '^run\\.') = 5"
ok "keys within a GPU's power" sh -c "for k in idle limit attention_clock kernels; do $f explain gpu.power.\$k | grep -q \"^power.\$k, of a GPU\" || exit 1; done"
ok "a map in the middle of keys, with and without what is around it" sh -c "test \$($f explain overlap | grep -c '^training\.overlap\.') = \$($f explain training.overlap | grep -c '^training\.overlap\.') && $f explain parallel.cp | grep -q '^training.parallel.cp$'"
ok "a last word that is none" refused "did you mean 'sequence_length'" $f explain sequence_lenght
ok "nothing is no key" wrong "KEY is missing" $f explain ""
ok "a map that is none" refused "did you mean 'parallel'" $f explain parallell
ok "a key that is none" refused "did you mean 'training.zero_group'" $f explain training.zero_grup

ok "doctor finds the data" sh -c "$f doctor | grep -q '^data  *.*hw/gpus/h100-sxm.yaml'"
ok "and says what is not there" sh -c "PATH=/nowhere $f doctor | grep -q '^gnuplot  *not here, install gnuplot-nox'"

ok "of the probes, too" sh -c "$f doctor | grep -q '^probes  *.*: measuring this machine' && $f doctor | grep -q '^CUDA  *.*: the probes on'"

ok "runs are browsed" sh -c "$f runs | tail -1 | grep -q '^[0-9]* runs; errors in time'"
ok "words and ranges filter them" sh -c "$f runs gpu=h100* gpus=256..1024 --json | jq -e '.runs | length > 3 and all(.traits.gpus >= 256 and .traits.gpus <= 1024 and .tokens_per_s_per_gpu > 0)'"
ok "an open range" sh -c "test \$($f runs 'gpus=..8' --json | jq '.runs | length') -gt \$($f runs 'gpus=1024..' --json | jq '.runs | length')"
table_says_it() { # each run's line in the table has what the JSON has
	$f runs gpu=h200 --json | jq -r '.runs[] | [.id, .traits.gpu, .traits.gpus, .traits.stack, .traits.precision, .tokens_per_s_per_gpu] | map(tostring) | join(" ")' >"$tmp/want"
	$f runs gpu=h200 | awk '$2 == "h200" { print $1, $2, $3, $4, $10, $11 }' >"$tmp/have"
	paste -d ' ' "$tmp/want" "$tmp/have" | awk '{ for (i = 1; i < 6; i++) bad += $i != $(i + 6); bad += ($6 - $12) ^ 2 > 0.26 } END { exit bad || NR < 20 }'
}
ok "the table and the JSON say the same of each run" table_says_it
ok "a mixture's active parameters stand beside all" sh -c "$f simulate examples/08-mixture-of-experts/mixtral.yaml | grep -q '46.7 B parameters (12.88 B active)' && ! $f simulate examples/01-first-answer/h100.yaml | grep -q ' active)'"
ok "a slip of the pen" sh -c "! $f runs gpu=H200 >$tmp/out 2>$tmp/said && ! [ -s $tmp/out ] && grep -q \"gpu=H200: no run has that; did you mean 'h200'?\" $tmp/said"
ok "no run is like that" sh -c "$f runs gpu=tpu | grep -q 'no measured run is like that'"
ok "a filter that is none" refused "write KEY=VALUE" $f runs h100
ok "a key that runs have not" refused "runs have no 'color'; they have gpu," $f runs color=red
ok "a key as long as one that they have" refused "runs have no 'colour'; they have gpu," $f runs colour=red
ok "a range that is none" refused "write a number, or a range as 64..512" $f runs gpus=many
ok "predicted against measured, drawn" sh -c "$f runs gpu=h200 --plot $tmp/r.svg && grep -q '<svg' $tmp/r.svg && test -s $tmp/r.dat && test -s $tmp/r.gp"
ok "a plot that is no SVG" refused "should be the name of an SVG file" $f runs --plot "$tmp/r.png"

ok "a network is drawn" sh -c "$f bom examples/01-first-answer/h100.yaml --plot $tmp/n.svg >/dev/null && grep -q '32 leaf switches' $tmp/n.svg && python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' $tmp/n.svg"
ok "no network, no drawing" refused "there is no network to draw" $f bom "$tmp/s.yaml" --set cluster.gpus=8 --plot "$tmp/m.svg"
finish
