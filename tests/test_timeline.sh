#!/bin/sh
# tests/test_timeline.sh - the timeline against the rules of the trace event format
. "$(dirname "$0")/tap.sh"
keeps() { # LAYERS SCENARIO SETTING...: to the format, and to the answer
	layers=$1
	shift
	$f simulate "$@" --timeline "$tmp/t.json" --json >"$tmp/a.json" &&
		python3 tests/timeline.py "$tmp/t.json" "$tmp/a.json" "$layers" $folded
}
folded= # anything: stages are folded into a V
first="examples/01-first-answer/h100.yaml --set training.global_batch_size=256"
ok "a pipeline with chunks keeps to the format, its layers run once, its phases are its parts" keeps 80 $first
ok "so does one without" keeps 80 $first --set training.parallel.vpp=1
ok "and no pipeline, from a standing start" keeps 80 examples/01-first-answer/h100.yaml --set training.global_batch_size=512 --set training.parallel.pp=1 --set training.parallel.vpp=1 --set training.step_start=together
ok "and sharded weights" keeps 4 examples/15-recorded-step/scenario.yaml
ok "and experts, in another order of stages" keeps 32 examples/08-mixture-of-experts/mixtral.yaml --set training.global_batch_size=256
cat >"$tmp/v.yaml" <<'Y'
model: {name: llama3-8b, num_hidden_layers: 16}
cluster: {gpu: h100-sxm, gpus: 4}
stack: torch-2.11-eager
training: {sequence_length: 1024, global_batch_size: 8, micro_batch_size: 1, schedule: zbv, parallel: {pp: 4, vpp: 2}}
Y
folded=v
ok "and a V, whose second half sends back" keeps 128 "$tmp/v.yaml"
folded=
ok "a picture's name is refused" wrong "FILE.json or FILE.svg" $f simulate "$tmp/v.yaml" --timeline "$tmp/x.png"
ok "micro-batches side by side are not told apart" keeps 0 examples/08-mixture-of-experts/mixtral.yaml --set training.overlap.ep=true --set training.global_batch_size=256
# A step that the host paces, its launches running ahead: kernels end sooner than it does.
cat >"$tmp/paced.yaml" <<EOF
model: {name: llama3-8b, num_hidden_layers: 4}
stack: torch-2.11-eager
cluster: {gpu: h100-sxm, gpus: 2}
training: {sequence_length: 1024, global_batch_size: 1, micro_batch_size: 1, sharding: fsdp, parallel: {tp: 2}}
EOF
paced() { # each form of the timeline is as long as the step
	"$f" simulate "$tmp/paced.yaml" --json --timeline "$tmp/k.json" --timeline-format kineto >"$tmp/answer.json" &&
		"$f" simulate "$tmp/paced.yaml" --timeline "$tmp/c.json" >/dev/null &&
		jq -es '(.[0].step_s * 1e6) as $step | (.[1].traceEvents[] | select(.name == "ProfilerStep#0").dur) as $k |
			(.[2].otherData.step_us | tonumber) as $c |
			([.[1].traceEvents[] | select(.cat == "kernel") | .ts + .dur] | max) < 0.9 * $step and
			($k / $step - 1 | fabs) < 1e-9 and ($c / $step - 1 | fabs) < 1e-9' \
			"$tmp/answer.json" "$tmp/k.json" "$tmp/c.json" >/dev/null
}
ok "a step that the host paces is drawn as long as it is" paced

finish
