#!/bin/sh
# tests/test_whatif.sh - what-ifs of recordings, against replays of each part alone and predictions of each collective
. "$(dirname "$0")/tap.sh"
t=measurements/traces
defined() { # RECORDING
	python3 tests/whatif.py "$f" "$1" "$tmp"
}
ok "parts add what they do in the mean over all orders; collectives take what is predicted" defined $t/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
finish
