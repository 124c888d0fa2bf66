#!/bin/sh
# tests/test_examples.sh [--write] - every example against its expected output
. "$(dirname "$0")/tap.sh"
for d in examples/*/; do
	e=${d%/}
	if [ "${1:-}" = --write ]; then
		FORETOKEN=$f sh "$e/run.sh" >"$e/expected.txt"
		echo "wrote $e/expected.txt"
		continue
	fi
	if sanitized && [ "${e#*best-plan}" != "$e" ]; then
		skip "$e prints what is expected" "built with sanitizers: test_plan.sh searches, too"
		continue
	fi
	ok "$e prints what is expected" sh -c "FORETOKEN=$f sh $e/run.sh >$tmp/e && diff $e/expected.txt $tmp/e >&2"
done
[ "${1:-}" = --write ] || finish
