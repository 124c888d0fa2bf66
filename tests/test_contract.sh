#!/bin/sh
# tests/test_contract.sh - keys of JSON answers are those of tests/contract.txt: other programs read them, so that none
# goes or gets another name unnoticed. A new key is a line more there (tests/test_contract.sh --write).
. "$(dirname "$0")/tap.sh"
h=examples/01-first-answer/h100.yaml
m=examples/01-first-answer/mi300x.yaml
recorded=measurements/traces/h100-eight-8b16L-fsdp8-s2048-b1-compile.rank0.kineto.json.gz
cat >"$tmp/small.yaml" <<'Y'
model: {name: llama3-8b, num_hidden_layers: 8}
cluster: {gpu: h100-sxm, gpus: 8}
training: {sequence_length: 4096, global_batch_size: 16, recompute: none, schedule: 1f1b, micro_batch_size: 1, sharding: zero1}
Y
keys() { # WHAT command...
	! sanitized || return 0
	what=$1
	shift
	"$@" --json 2>>"$tmp/log" | python3 tests/contract.py "$what" >>"$tmp/keys" || echo "$what: no answer" >>"$tmp/keys"
}
keys simulate $f simulate $h --finance --set run.tokens=1T --set cluster.gpus=512
keys simulate-beside $f simulate $h --beside $h
keys simulate-rented $f simulate "$tmp/small.yaml" --set training.parallel.tp=1 --set cost.usd_per_gpu_hour=2USD/h --set training.schedule=gpipe
keys simulate-too-large $f simulate $h --set cluster.gpus=64 --set training.parallel.pp=1 --set training.parallel.vpp=1
keys compare $f compare $h $m
keys bom $f bom $h --set cluster.gpus=2048
keys collective $f collective $h --bytes 1MiB --op all_reduce
keys validate $f validate measurements/steps/h200-two-steps.csv --rows
keys prices $f prices show hgx-h100-server
keys runs $f runs gpu=h200
keys list $f list gpus
keys trace-show $f trace show $recorded
keys trace-replay $f trace replay $recorded --gpu h200 --scale dp=4
keys trace-compare $f trace compare $recorded examples/15-recorded-step/scenario.yaml --set model.num_hidden_layers=16
keys plan $f plan "$tmp/small.yaml" --top 3 --threads 1
keys plan-too-large $f plan "$tmp/small.yaml" --threads 1 --set model=llama3-70b --set 'training.parallel={tp: 1, pp: 1, vpp: 1, cp: 1}'
: >>"$tmp/keys"
sort -u "$tmp/keys" >"$tmp/now"
if [ "${1:-}" = --write ]; then
	cp "$tmp/now" tests/contract.txt
	exit 0
fi
same() { diff tests/contract.txt "$tmp/now" >&2; }
if sanitized; then
	skip "keys of JSON answers are those that other programs know" "built with sanitizers: the same answers"
else
	ok "keys of JSON answers are those that other programs know" same
fi
finish
