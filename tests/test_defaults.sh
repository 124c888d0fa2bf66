#!/bin/sh
# tests/test_defaults.sh - a default that the manual states is the one that counts (tests/defaults.py)
. "$(dirname "$0")/tap.sh"

# no key of its own that has a default, a stack without defaults
cat >"$tmp/experts.yaml" <<'Y'
model: mixtral-8x7b
cluster: {gpu: h100-sxm, gpus: 64}
stack: generic-2022
training: {sequence_length: 4096, global_batch_size: 64}
Y
ok "what the manual says of keys that are absent" python3 tests/defaults.py $f "$tmp/experts.yaml"
for command in simulate compare plan validate sweep merge bom prices collective kernel trace calibrate explain; do
	ok "$command says what it needs" fails 64 "foretoken $command: .* \(missing\|needed\)" $f $command
done
finish
