#!/bin/sh
# tests/test_figures.sh - single plots: data and script of each, against the JSON of the same command
. "$(dirname "$0")/tap.sh"
if ! command -v gnuplot >/dev/null; then
	skip "figures" "no gnuplot here"
	finish
fi
held() { # KIND NAME OPTION PATH command...: draws $tmp/NAME.svg by that option, and holds it against the JSON
	kind=$1 svg=$tmp/$2.svg option=$3 path=$4
	shift 4
	"$f" "$@" "$option" "$path" >"$tmp/text" && grep -q '</svg>' "$svg" && "$f" "$@" --json >"$tmp/answer.json" &&
		python3 tests/figures.py "$kind" "${svg%.svg}" "$tmp/answer.json" "$tmp/text"
}
for item in hgx-h100-server optic-2x400g-generic switch-sn5600 h100-sxm fiber; do
	ok "prices of $item" held prices p --plot "$tmp/p.svg" prices show "$item"
done
node=examples/01-first-answer/h100.yaml
busbw() { # of all of the same command
	held busbw c/busbw --plot "$tmp/c" collective $node "$@"
}
ok "bandwidth of one size" busbw --op all_reduce --bytes 1000000 --gpus 16
ok "bandwidth of a row of sizes" busbw --op all_reduce,all_gather,all_to_all --gpus 2,8,16,128 --bytes 1KiB,1000KiB,1MiB,1536KiB,1GiB
ok "the same, by GPUs" python3 tests/figures.py busbw-by-gpus "$tmp/c/busbw-by-gpus" "$tmp/answer.json" "$tmp/text"
cat >"$tmp/plan.yaml" <<'EOP'
model: {name: llama3-8b, num_hidden_layers: 4}
cluster: {gpu: h200, gpus: [2, 4, 8]}
training: {sequence_length: 4096, global_batch_size: 8, recompute: none}
EOP
ok "fronts of several sizes" held front w/front --front "$tmp/w" plan "$tmp/plan.yaml" --top 1 --threads 1
ok "one front" held front v/front --front "$tmp/v" plan "$tmp/plan.yaml" --set cluster.gpus=8 --top 1 --threads 1
eager=measurements/traces/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
step=examples/15-recorded-step/scenario.yaml
ok "gaps by part and by layer" held gaps g --plot "$tmp/g.svg" trace compare $eager $step
ok "gaps where layers are fewer than recorded" held gaps g --plot "$tmp/g.svg" trace compare $eager $step --set model.num_hidden_layers=3
ok "gaps where no layer is known" held gaps g --plot "$tmp/g.svg" trace compare $eager $step --set model.num_hidden_layers=1
ok "runs of one GPU" held runs r --plot "$tmp/r.svg" runs gpu=h200
ok "runs of all GPUs" held runs r --plot "$tmp/r.svg" runs
finish
