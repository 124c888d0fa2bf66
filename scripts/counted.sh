# scripts/counted.sh TEST - runs a test so that what it runs is counted apart: build/cov/by/NAME
#
# Called by prove in `make coverage`. Beside the counts stands the test's wall time, in seconds.
at=$COUNTS/$(basename "$1")
mkdir -p "$at"
GCOV_PREFIX=$at GCOV_PREFIX_STRIP=$(($(printf %s "$COUNTS" | tr -cd / | wc -c) - 1))
export GCOV_PREFIX GCOV_PREFIX_STRIP
begun=$(date +%s%N)
case $1 in *.sh) sh "$1" ;; *) "$1" ;; esac
status=$?
awk -v ns=$(($(date +%s%N) - begun)) 'BEGIN { printf "%.3f\n", ns / 1e9 }' >"$at/seconds"
exit $status
