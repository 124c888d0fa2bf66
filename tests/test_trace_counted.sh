#!/bin/sh
# tests/test_trace_counted.sh - recorded steps, added up from the events that the profiler wrote
. "$(dirname "$0")/tap.sh"
steps="8b4L-fsdp2-s4096-b1-eager two-8b16L-pp2v2-s4096-m8-compile 8b8L-fsdp1-s8192-b1-fp8-compile mixtral4L-ep2-s4096-b1
qwen3moe8L-ep1-s4096-b1 two-8b4L-pp2-zbv 8b16L-tp2-s4096-b1-eager"
! sanitized || steps=8b8L-fsdp1-s8192-b1-fp8-compile
for step in $steps; do
	ok "added up, $step is what the profiler wrote" python3 tests/recorded.py $f measurements/traces/h100-$step.rank0.kineto.json.gz
done
# where nothing begins before what it waits for has ended: GOAL knows no time below 0
as_goal() {
	file=measurements/traces/h100-$1.rank0.kineto.json.gz
	$f trace export "$file" --goal "$tmp/s.goal" >"$tmp/o" && python3 tests/goal_recorded.py "$tmp/s.goal" "$file"
}
for step in two-8b4L-pp2-zbv 8b16L-tp2-s4096-b1-eager qwen3moe8L-ep1-s4096-b1; do
	ok "$step as GOAL: each statement ends as a call or an operation does" as_goal $step
done
imported() { # its cells, counted from the events
	file=measurements/traces/h100-$1.rank0.kineto.json.gz
	rm -f "$tmp/s.db"
	$f calibrate import --store "$tmp/s.db" --format kineto "$file" && python3 tests/imported.py "$tmp/s.db" "$file"
}
for step in 8b4L-fsdp2-s4096-b1-eager 8b4L-fsdp2-s4096-b1-eager-shapes mixtral4L-ep2-s4096-b1; do
	ok "cells of $step are its kernels, calls and collectives" imported $step
done
finish
