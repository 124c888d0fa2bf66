#!/bin/sh
# tests/test_said.sh - what the tables say is what the JSON says, number by number (tests/said.py)
. "$(dirname "$0")/tap.sh"

cases=
both() { # CASE command...: as text and as JSON
	cases="$cases $1"
	out=$tmp/$1
	shift
	"$@" >"$out.text" && "$@" --json >"$out.json"
}
both simulated.dense $f simulate examples/01-first-answer/h100.yaml
both simulated.experts $f simulate examples/08-mixture-of-experts/mixtral.yaml
# of few tokens the update takes most of a step; of more, less than the products; the host and a pipeline, too
for tokens in 512 2048; do
	printf 'model: {name: llama3-8b, num_hidden_layers: 2}\ncluster: {gpu: h100-sxm, gpus: 1}\nstack: torch-2.11-eager\ntraining: {sequence_length: %d, global_batch_size: 1}\n' $tokens >"$tmp/few.yaml"
	both simulated.$tokens $f simulate "$tmp/few.yaml"
done
both simulated.host $f simulate "$tmp/few.yaml" --set training.sequence_length=64 --set model.hidden_size=256 --set model.intermediate_size=512
both simulated.exposed $f simulate "$tmp/few.yaml" --set training.sequence_length=64 --set cluster.gpus=8 --set training.global_batch_size=8 --set training.sharding=fsdp
both simulated.bubble $f simulate "$tmp/few.yaml" --set cluster.gpus=8 --set training.parallel.pp=8 --set model.num_hidden_layers=8 --set training.global_batch_size=8
for op in all_reduce all_gather all_to_all broadcast; do
	both collected.$op $f collective examples/01-first-answer/mi300x.yaml --op $op --bytes 64KiB,1MiB,1GiB
done
both planned.adapters $f plan examples/17-best-plan/lora.yaml --top 4 --threads 1 --set training.schedule=1f1b \
	--set 'training.parallel={pp: 1, vpp: 1, cp: 1, ep: 1, etp: 1}' --set training.recompute=none
$f bom examples/05-bill-of-materials/superpod.yaml --csv >"$tmp/billed.superpod.csv"
both billed.superpod $f bom examples/05-bill-of-materials/superpod.yaml
for rent in 0.5 3.99 9; do
	owned="$f simulate examples/13-rent-or-own/own.yaml --finance --set cost.against=$rent"
	both financed.$rent $owned\ USD/h --flows "$tmp/financed.$rent.csv"
done
pair="examples/10-h100-or-mi300x-2024/h100.yaml examples/10-h100-or-mi300x-2024/mi300x.yaml --draws 1024"
pair="$pair --days 60 --tokens 1T --set training.global_batch_size=128"
$f compare $pair --csv >"$tmp/compared.two.csv"
both compared.two $f compare $pair
sed 's/^model: .*/model: {name: llama3-70b, num_hidden_layers: 72}/; s/^title: .*/title: other/; s/gpus: 512/gpus: 256/' examples/10-h100-or-mi300x-2024/h100.yaml >"$tmp/other.yaml"
pair="$tmp/other.yaml examples/10-h100-or-mi300x-2024/mi300x.yaml --draws 1024 --days 60 --tokens 1T --set training.global_batch_size=128"
$f compare $pair --csv >"$tmp/compared.models.csv"
both compared.models $f compare $pair
recorded=measurements/traces/h100-eight-8b16L-fsdp8-s2048-b1-compile.rank0.kineto.json.gz
both gapped.few $f trace compare $recorded examples/15-recorded-step/scenario.yaml
both gapped.all $f trace compare $recorded examples/15-recorded-step/scenario.yaml --set model.num_hidden_layers=16
for kind in gpus fabrics ccl prices; do
	both listed.$kind $f list $kind
done
# rows slower and faster than their ranges, some that no cluster can run, and rates
sed '3s/,[0-9]*,slingshot/,7,slingshot/; 5s/,[0-9]*,slingshot/,7,slingshot/' measurements/steps/amd-training.csv >"$tmp/spoilt.csv"
both validated.steps $f validate "$tmp/spoilt.csv" --rows
both validated.classes $f validate measurements/steps/torchtitan-benchmarks-2024-12.csv --rows --by gpus
both validated.kernels $f validate measurements/kernels/collectives-many-nodes.csv --rows
{ # memory and a share beside what is scored
	echo id,group,model,cluster.gpu,cluster.gpus,training.sequence_length,training.global_batch_size,measured.step_s,measured.mfu,measured.memory_bytes_per_gpu.total
	for n in 8 16 32 64; do
		echo "r$n,g$((n % 3)),llama3-8b,h200,$n,4096,64,1.$n,0.$n,${n}e9"
	done
} >"$tmp/beside.csv"
both validated.beside $f validate "$tmp/beside.csv" --rows
python3 tests/said.py "$tmp" >"$tmp/good" 2>"$tmp/bad"
for case in $cases; do
	ok "$case" grep -qx "$case" "$tmp/good"
done
cat "$tmp/bad" >&2
finish
