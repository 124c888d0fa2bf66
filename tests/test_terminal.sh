#!/bin/sh
# tests/test_terminal.sh - 80 columns, colour only where a person looks, --quiet, standard input, completion
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
b=examples/01-first-answer/mi300x.yaml
long=$tmp/a-scenario-with-a-rather-long-name-of-its-own.yaml
cp $a "$long"
fits() { python3 tests/terminal.py columns $f "$@"; }
for c in "simulate $long" "simulate $a --finance" "simulate $a --tokens 15T --days 60" "compare $long $b" "compare $long $b $a" \
	"bom $long" "collective $long --op all_reduce" "prices show hgx-h100-server" "runs gpu=h200 gpus=..8" \
	"validate measurements/steps/h200-steps.csv" "list gpus" "list models" "list nodes" "list fabrics" "list stacks" "list ccl" \
	"list prices" "list sites"; do
	ok "80 columns: ${c%% *}${c#"${c%% *}"}" fits $c
done
plan() { fits plan examples/17-best-plan/h200.yaml --set cluster.gpus=16 --set model=llama3-8b --set training.global_batch_size=64 --top 2 --threads 1; }
ok "80 columns: plan" plan

progress() { # of a search that is stopped
	printf '%s\n' 'model: llama3-8b' 'cluster: {gpu: h200, gpus: 1024}' \
		'training: {sequence_length: 2048, global_batch_size: 1024, recompute: none}' >"$tmp/long.yaml"
	python3 tests/terminal.py bar timeout -s TERM 4 $f plan "$tmp/long.yaml" --exhaustive --threads 1
}
ok "a long search shows how far it is" progress

esc=$(printf '\033')

ok "an error is red on a terminal" sh -c "TERM=xterm python3 tests/terminal.py print $f simulate $tmp/none.yaml | grep -q '$esc\\[1;31merror:'"
for set in NO_COLOR=1 TERM=dumb; do
	ok "not with $set" sh -c "TERM=xterm env $set python3 tests/terminal.py print $f simulate $tmp/none.yaml | grep -q '^[^$esc]*error: [^$esc]*$'"
done
ok "nor in a file" sh -c "TERM=xterm $f simulate $tmp/none.yaml 2>&1 | grep -q 'yaml: error: '"
ok "the verdict stands out on a terminal" sh -c "TERM=xterm python3 tests/terminal.py print $f compare $a $b | head -1 | grep -q '^$esc\\[1m.*$esc\\[0m'"
ok "and is plain text elsewhere" sh -c "TERM=xterm $f compare $a $b | grep -c '$esc' | grep -qx 0"

big="--set cluster.gpus=8 --set training.parallel.tp=1 --set training.parallel.pp=1 --set training.parallel.vpp=1"
ok "a warning is told" sh -c "$f simulate $a $big 2>&1 >/dev/null | grep -q 'warning: this plan does not fit'"
ok "not with --quiet" sh -c "test -z \"\$($f simulate $a $big --quiet 2>&1 >/dev/null)\""
ok "but an error is" told 1 "No such file" $f simulate "$tmp/none.yaml" --quiet
ok "a sweep is quiet, too" sh -c "test -z \"\$($f sweep $a --vary training.parallel.tp=3,4 --db $tmp/q.db -q 2>&1 >/dev/null)\""

ok "simulate reads standard input" sh -c "$f simulate - --json <$a >/dev/null"
same() { [ "$(sqlite3 "$1" 'SELECT step_s FROM runs')" = "$(sqlite3 "$2" 'SELECT step_s FROM runs')" ]; }
ok "sweep does" sh -c "$f sweep - --vary cluster.gpus=512 --db $tmp/1.db <$a && $f sweep $a --vary cluster.gpus=512 --db $tmp/2.db"
ok "and finds the same" same "$tmp/1.db" "$tmp/2.db"
ok "plan does, for each size" sh -c "printf '{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h200, gpus: [2, 4]}, training: {sequence_length: 4096, global_batch_size: 8, sharding: zero1, recompute: none}}' | $f plan - --top 1 | grep -q '4 GPUs'"
ok "bom, collective do" sh -c "$f bom - <$a >/dev/null && $f collective - --op all_reduce <$a >/dev/null"
ok "validate does" sh -c "$f validate - <measurements/steps/h200-steps.csv | cmp - $tmp/v || $f validate measurements/steps/h200-steps.csv >$tmp/v && $f validate - <measurements/steps/h200-steps.csv | cmp - $tmp/v"
ok "a recorded trace comes from it, too" sh -c "$f trace show - <tests/data/kineto-step.json >$tmp/t && $f trace show tests/data/kineto-step.json >$tmp/u && test -s $tmp/t"
ok "under the name that messages have for it" sh -c "sed 1s,tests/data/kineto-step.json,/dev/stdin, $tmp/u | cmp - $tmp/t"
ok "from a pipe, which is read more than once" sh -c "cat tests/data/kineto-step.json | $f trace show - | cmp - $tmp/t"
ok "and so in its mistakes" sh -c "printf '{\"traceEvents\": [' | $f trace show - 2>&1 | grep -q '^/dev/stdin: error: ends in the middle of its JSON'"

completed() { # WORD...: what is offered for the last
	bash -c 'PATH=$1:$PATH; shift; . scripts/foretoken.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _foretoken; printf "%s\n" "${COMPREPLY[@]}"' - "$(dirname "$f")" "$@"
}
if command -v bash >/dev/null; then
	offers() { want=$1; shift; completed "$@" | grep -qx -- "$want"; }
	ok "commands" offers sweep foretoken sw
	ok "options" offers --exhaustive foretoken plan --ex
	ok "keys" offers training.parallel.tp= foretoken simulate --set training.parallel.t
	unoffered() { ! offers "$@" && offers --listen foretoken serve --; }
	ok "and none of another program in an example" unoffered --data-binary foretoken serve --
	ok "files of measurements behind calibrate's -s, which are no keys" unoffered training.precision= foretoken calibrate -s training.p
	ok "GPUs" offers h200 foretoken kernel --gpu h2
else
	skip "completion" "no bash"
fi
finish
