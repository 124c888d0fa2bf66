#!/bin/sh
# tests/test_placement.sh - where groups lie, held against sums by hand: what a NIC of 48.5 GB/s has to carry
. "$(dirname "$0")/tap.sh"
at() { # GPUS NIC-RATE MODEL TRAINING ITEM...: microseconds of a call of an item, NICs at this share of their rate
	gpus=$1 rate=$2 model=$3 training=$4
	shift 4
	cat >"$tmp/s.yaml" <<Y
model: $model
cluster: {gpu: h100-sxm, gpus: $gpus, node: hgx-h100, fabric: ib-ndr-rail, imperfections: {slow_nics_frac: 1, slow_nic_rate_frac: $rate}}
training: $training
Y
	$f simulate "$tmp/s.yaml" --json -q >"$tmp/j" && python3 -c 'import json, sys
for x in json.load(open(sys.argv[1]))["items"]:
    if x["name"] in sys.argv[2:]:
        print(x["time_s"] / x["count"] * 1e6)' "$tmp/j" "$@"
}
near() { # WANT PERCENT command...
	want=$1 off=$2
	shift 2
	"$@" >"$tmp/got" && cat "$tmp/got" >&2 && awk -v want="$want" -v off="$off" '{ n++; bad += $1 < want * (1 - off / 100) || $1 > want * (1 + off / 100) }
		END { exit n != 1 || bad }' "$tmp/got"
}
stages() { # TP GPUS RATE
	at "$2" "$3" "{name: llama3-8b, num_hidden_layers: 4}" "{sequence_length: 8192, global_batch_size: 16, sharding: zero1, parallel: {tp: $1, pp: 4}}" pp_activation
}
# a quarter of 8192 x 4096 activations in 16 bit, for each rank
ok "stages of half a server: the boundary between servers sets the pace" near 346 6 stages 4 16 1
# an eighth
ok "stages of a server each, NICs of a quarter of the rate" near 692 6 stages 8 32 0.25
ok "a pipeline that a server holds needs no NIC" near 128.7 6 stages 2 8 0.25

embedding() { # RATE
	at 16 "$1" "{model_type: gpt2, hidden_size: 2048, num_hidden_layers: 2, num_attention_heads: 16, vocab_size: 50304, max_position_embeddings: 1024, tie_word_embeddings: true}" \
		"{sequence_length: 1024, global_batch_size: 16, sharding: ddp, gradient_dtype: fp32, parallel: {pp: 2}}" tied_embedding
}
# 50,304 x 2048 gradients of 4 bytes
ok "a tied embedding goes over NICs as they are" near 8497 4 embedding 1
ok "and slow ones take four times as long" near 33988 4 embedding 0.25

experts() { # DISPATCHER RATE
	at 32 "$2" "{name: deepseek-v3, num_hidden_layers: 2, first_k_dense_replace: 1, num_nextn_predict_layers: 0, num_local_experts: 256, n_group: 1, topk_group: 1}" \
		"{sequence_length: 4096, global_batch_size: 32, sharding: zero1, moe_dispatcher: $1, moe_force_balance: true, parallel: {ep: 32}}" ep_dispatch
}
# all copies but those that stay: 8 x 3/4 of 4096 x 7168 in 16 bit
ok "all-to-all sends each copy" near 7264 2 experts alltoall 1
# four domains, of which eight copies reach 4 (1 - (3/4)^8) = 3.6; 3/4 of these are others
ok "deepep sends a token once to each domain" near 3269 3 experts deepep 1
ok "and at a quarter of the rate takes four times as long" near 13076 3 experts deepep 0.25

segments() { # GPUS
	cat >"$tmp/g.yaml" <<Y
model: llama3-8b
cluster: {gpu: gb200, gpus: 576, node: gb200-nvl72, fabric: ib-ndr-rail}
training: {sequence_length: 8192, global_batch_size: 576}
Y
	$f collective "$tmp/g.yaml" -o all_to_all -b 1GiB -g "$1" --json -q | python3 -c 'import json, sys
for x in json.load(sys.stdin)["rows"]:
    print(x["time_us"])'
}
# half of 1 GiB leaves each of two segments
ok "80 GPUs of two racks are two segments of 40" near 11070 1 segments 80
ok "as 144 are two of 72" near 11070 1 segments 144

# three ranks share an expert's state, eight apart: slow GPUs 0 and 13 hold up the same 24 ranks
cat >"$tmp/slow.yaml" <<Y
model: {name: mixtral-8x7b, num_hidden_layers: 2}
cluster: {gpu: h100-sxm, gpus: 96, node: hgx-h100, fabric: ib-ndr-rail, imperfections: {slow_gpus: [{gpu: 0, speed_frac: 0.5}, {gpu: 13, speed_frac: 0.5}]}}
stack: torch-2.11-compile
training: {sequence_length: 1024, global_batch_size: 96, sharding: hsdp, shard: 12, parallel: {ep: 8}}
Y
apart() { # how many pipelines are simulated apart
	$f simulate "$tmp/slow.yaml" --timeline "$tmp/t.json" -q >/dev/null && python3 -c 'import json, sys
print(sum(e.get("name") == "process_name" and "with GPU" in e["args"]["name"] for e in json.load(open(sys.argv[1]))["traceEvents"]))' "$tmp/t.json"
}
ok "ranks that share experts wait for each other's slow GPUs" near 1 0 apart
finish
