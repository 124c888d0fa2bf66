#!/bin/sh
# tests/test_written.sh - recordings replayed unchanged, written, and read again
. "$(dirname "$0")/tap.sh"
t=measurements/traces
shown() { # all that is told of it, but whose file it is
	$f trace replay "$1" --json | sed 's/  *"file": .*//'
}
again() { # RECORDING: event for event what it was read from, and the same answer
	$f trace replay "$1" --timeline "$tmp/w.json" >"$tmp/o" && python3 tests/written.py "$1" "$tmp/w.json" &&
		shown "$1" >"$tmp/1" && shown "$tmp/w.json" | diff "$tmp/1" - && [ -s "$tmp/1" ]
}
for r in h200-8b4L-fsdp2-s4096-b1-eager h100-8b4L-fsdp2-s4096-b1-eager-shapes h100-mixtral4L-ep2-s4096-b1 \
	h100-two-8b16L-pp2-s4096-m8-compile h100-two-8b16L-pp2v2-s4096-m8-compile; do
	ok "$r" again $t/$r.rank0.kineto.json.gz
done
ok "one of another profiler, without a rank" again $t/mi300x-qwen1.5-0.5b.tracelens.json.gz
both() { # ranks of a pipeline, each written: they meet as often
	for k in 0 1; do
		$f trace replay "$1$k.kineto.json.gz" --timeline "$tmp/$k.json" >"$tmp/o" || return 1
	done
	$f trace replay "${1}0.kineto.json.gz" "${1}1.kineto.json.gz" --json >"$tmp/1" && $f trace replay "$tmp/0.json" "$tmp/1.json" --json >"$tmp/2" &&
		python3 -c 'import json, sys
one, two = (json.load(open(p)) for p in sys.argv[1:])
assert one["order"] == two["order"] and one["order"]["collectives_matched"] > 10, (one["order"], two["order"])
assert one["breakdown_s"] == two["breakdown_s"] and one["step_s"] == two["step_s"]' "$tmp/1" "$tmp/2"
}
ok "stages of a pipeline meet as often when they are read again" both $t/h100-two-8b16L-pp2-s4096-m8-compile.rank
finish
