#!/bin/sh
# tests/test_trace_counted.sh - recorded steps, added up from the events that the profiler wrote
. "$(dirname "$0")/tap.sh"
steps="8b4L-fsdp2-s4096-b1-eager two-8b16L-pp2v2-s4096-m8-compile 8b8L-fsdp1-s8192-b1-fp8-compile mixtral4L-ep2-s4096-b1
qwen3moe8L-ep1-s4096-b1 two-8b4L-pp2-zbv 8b16L-tp2-s4096-b1-eager"
! sanitized || steps=8b8L-fsdp1-s8192-b1-fp8-compile
for step in $steps; do
	ok "added up, $step is what the profiler wrote" python3 tests/recorded.py $f measurements/traces/h100-$step.rank0.kineto.json.gz
done
finish
