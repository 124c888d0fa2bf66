#!/bin/sh
# tests/test_valgrind.sh - no leak, no bad access and nothing read that was not written, in answers and in errors
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
small="--set training.global_batch_size=256 --set training.parallel.pp=1 --set training.parallel.vpp=1"
clean() { # STATUS command...: runs under valgrind, exits so
	want=$1
	shift
	valgrind -q --leak-check=full --show-leak-kinds=definite,indirect,possible \
		--errors-for-leak-kinds=definite,indirect,possible --error-exitcode=99 "$@" >/dev/null
	got=$?
	[ $got = "$want" ] || { echo "exit $got, wanted $want" >&2; return 1; }
}
tests='simulate compare collective bom refused YAML'
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
fi
finish
