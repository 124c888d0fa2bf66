#!/bin/sh
# tests/test_valgrind.sh - no leak and no bad access, in answers and in errors
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
small="--set training.global_batch_size=256 --set training.parallel.pp=1 --set training.parallel.vpp=1"
b=$tmp/b.yaml
cat >"$b" <<E
model: llama3-8b
cluster: {gpu: h100-sxm, gpus: 8}
training: {sequence_length: 2048, global_batch_size: 16, micro_batch_size: 1, sharding: zero1, parallel: {tp: 2}}
E
clean() { # STATUS command...: runs under valgrind, exits so
	want=$1
	shift
	valgrind -q --leak-check=full --show-leak-kinds=definite,indirect,possible \
		--errors-for-leak-kinds=definite,indirect,possible --error-exitcode=99 "$@" >/dev/null
	got=$?
	[ $got = "$want" ] || { echo "exit $got, wanted $want" >&2; return 1; }
}
tests='simulate compare collective bom refused YAML compare-loads compare-refused compare-searched report'
if ! command -v valgrind >/dev/null; then
	for t in $tests; do skip "$t under valgrind" "no valgrind"; done
elif nm -D "$f" 2>/dev/null | grep -q __asan_init; then
	for t in $tests; do skip "$t under valgrind" "built with sanitizers"; done
else
	ok "simulate under valgrind" clean 0 $f simulate $a $small --json
	ok "compare under valgrind" clean 0 $f compare $a $a $small
	ok "collective under valgrind" clean 0 $f collective $a --op all_reduce --bytes 1MiB --gpus 64
	ok "bom under valgrind" clean 0 $f bom $a
	ok "refused under valgrind" clean 1 $f simulate $a --set training.parallel.tp=3
	ok "YAML under valgrind" clean 0 "$B/tests/test_base"
	ok "compare-loads under valgrind" clean 1 $f compare $b "$tmp/none.yaml"
	ok "compare-refused under valgrind" clean 1 $f compare $a $a $small --at money
	ok "compare-searched under valgrind" clean 0 $f compare $b $b --each-at-best
	ok "report under valgrind" clean 1 $f compare $b $b --report "$b/folder"
fi
finish
