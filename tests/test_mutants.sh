#!/bin/sh
# tests/test_mutants.sh - a slice of the 50,000 spoilt inputs of `make fuzz-mutants`
. "$(dirname "$0")/tap.sh"
m=${B:-build/rel}/tests/mutate
[ -x "$m" ] || { echo "1..0 # SKIP $m is not built"; exit 0; }
case $m in *san*) n=600 ;; *) n=2000 ;; esac
ok "$n spoilt inputs neither end the program nor hold it up, and each refusal has words" "$m" -n $n -j "$(nproc)"
ok "kept inputs and files of the tree are taken or refused with words" "$m" -r -j "$(nproc)"
ok "inputs follow from the seed alone" sh -c "$m -n 200 -s 5 >$tmp/1 && $m -n 200 -s 5 >$tmp/2 && cmp $tmp/1 $tmp/2"
finish
