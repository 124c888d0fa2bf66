#!/bin/sh
# tests/test_trace_compare.sh - a recorded step beside a predicted one: by part, kind, layer
. "$(dirname "$0")/tap.sh"
t=measurements/traces
eager=$t/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
scenario=examples/15-recorded-step/scenario.yaml
# every recording's layers are as many as its name or its model's card says
counted() {
	for x in $t/*.json.gz; do
		case $x in
		*-pp2-zero-bubble.* | *-pp2-zbv.* | *-pp2-dualpipev.*) continue ;; # below
		*bert-small*) n=4 ;;
		*qwen1.5-0.5b*) n=24 ;;
		*gpt1.5b*) n=48 ;;
		*glm-dsa-small-8L*) n=7 ;; # and a dense one in front, which does not repeat
		*glm-dsa-3L-s2048*) n=2 ;; # likewise
		*16L-pp2-*) n=8 ;;   # of one stage
		*16L-pp2v2-*) n=4 ;; # of one of its two chunks
		*) n=$(echo "$x" | sed 's/.*[^0-9]\([0-9]*\)L-.*/\1/') ;;
		esac
		$f trace compare "$x" $scenario >"$tmp/c" || return 1
		grep -q "The recorded step has $n layers" "$tmp/c" || { echo "$x: not $n" >&2; return 1; }
	done
}
ok "layers are as many as the models have" counted
cut() { # where backward passes are cut in two no layer repeats whole, on either side
	$f trace compare "$t/h100-two-8b4L-pp2-$1.rank1.kineto.json.gz" $scenario --set model.num_hidden_layers=4 --set training.sharding=ddp \
		--set cluster.gpu=h100-sxm --set training.parallel.pp=2 --set training.parallel.vpp=$2 --set training.schedule=$1 --set training.global_batch_size=4 >"$tmp/c" &&
		grep -q "layers of the recorded step are not known: backward passes are cut in two" "$tmp/c" &&
		grep -q "layers of the predicted step are not known: backward passes are cut in two" "$tmp/c"
}
ok "nor is a layer told where backward passes are cut in two" cut zero-bubble 1
ok "nor in a V" cut zbv 2
$f trace compare $eager $scenario --json >"$tmp/c.json"
ok "layers and what is outside add up to the step, in both" python3 - "$tmp/c.json" <<'P2'
import json, sys
d = json.load(open(sys.argv[1]))
for side in ("recorded", "predicted"):
    s = d["by_layer"][side]
    assert len(s["layers"]) == 4
    of = [l[p]["time_s"] for l in s["layers"] for p in ("forward", "backward")]
    assert min(of) > 0
    assert abs(sum(of) + s["outside"]["time_s"] - d[side + "_step_s"]) < 1e-6 * d[side + "_step_s"], side
    for l in s["layers"]:
        for p in ("forward", "backward"):
            k = l[p]["kinds_s"]
            assert k["exposed communication"] + k["idle and bubble"] <= l[p]["time_s"] + 1e-12
P2
cat >"$tmp/jax.yaml" <<'J'
model: {model_type: llama, hidden_size: 2048, num_attention_heads: 32, num_key_value_heads: 8, head_dim: 64, intermediate_size: 8192, vocab_size: 32000, num_hidden_layers: 3}
cluster: {gpu: h200, gpus: 2, fabric: none}
stack: jax-0.11
training: {sequence_length: 4096, micro_batch_size: 2, global_batch_size: 4, precision: bf16, sharding: fsdp, recompute: selective, recompute_modules: [core_attn, norm, moe_act]}
J
jax=$t/h200-two-jax-1b3L-s4096-b2-products.perfetto.json.gz
near() { # a step of JAX as recorded, two GPUs in a file, and as predicted: within a tenth
	$f trace compare "$jax" "$tmp/jax.yaml" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert abs(d["recorded_step_s"] - 0.0305) < 5e-4, d["recorded_step_s"]
assert abs(d["predicted_step_s"] / d["recorded_step_s"] - 1) < 0.1
assert len(d["by_layer"]["recorded"]["layers"]) == 3'
}
ok "a step of JAX is compared, too" near
ok "and what is not of its first GPU is told" sh -c "$f trace show $jax | grep -q '914 events of the file.s other GPUs were left out'"
ok "a host is not fitted to it" sh -c "$f trace compare $jax $tmp/jax.yaml --fit-stack $tmp/mine 2>&1 | grep -q 'holds no launches'"
one_jax=$t/h200-jax-1b3L-s4096-b2-products.perfetto.json.gz
faster() { # one stream: its step is shorter by half of its products, although no launch was recorded
	$f trace replay "$1" --speedup gemm=2 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
gemm = next(c for c in d["changes"] if c["what"] == "gemm")
assert abs(d["recorded_step_s"] - d["step_s"] - gemm["recorded_s"] / 2) < 0.01 * gemm["recorded_s"], d["step_s"]'
}
ok "products of JAX that are faster make its step shorter" faster "$one_jax"
ok "also of the step that was written" sh -c "$f trace replay $one_jax --timeline $tmp/jax.json >/dev/null"
ok "and read again" faster "$tmp/jax.json"
ok "and it is written for others" sh -c "$f trace export $one_jax --chakra $tmp/jax >/dev/null && $f trace replay $tmp/jax.0.et --json | grep -q '\"step_s\": 0.028'"
ok "repetition finds the layers that annotations tell" python3 tests/layers.py $eager "$tmp/c.json"
ok "two ranks' layers are their mean" sh -c "$f trace compare $eager $t/h200-8b4L-fsdp2-s4096-b1-eager.rank1.kineto.json.gz $scenario | grep -q 'recorded step has 4 layers'"
ok "a scenario's own step has no gap" sh -c "
	$f simulate $scenario --timeline $tmp/k.json --timeline-format kineto >/dev/null
	$f trace compare $tmp/k.json $scenario --json | python3 -c '
import json, sys
d = json.load(sys.stdin)[\"by_layer\"]
assert d[\"recorded\"] == d[\"predicted\"] and d[\"recorded\"][\"layers\"]'"
ok "fewer layers than recorded are said" sh -c "$f trace compare $eager $scenario --set model.num_hidden_layers=3 | grep -q 'The first 3 are held beside each other'"
ok "one predicted layer does not repeat, and is known" sh -c "$f trace compare $eager $scenario --set model.num_hidden_layers=1 | grep -q 'predicted step has 1 layer: 8 products and attention in the first one forward, 15 backward.'"
cat >"$tmp/dsa.yaml" <<'J'
model: {model_type: glm_moe_dsa, vocab_size: 32000, hidden_size: 2048, intermediate_size: 6144, moe_intermediate_size: 1024, num_hidden_layers: 5,
    num_attention_heads: 16, num_key_value_heads: 16, n_routed_experts: 32, num_experts_per_tok: 4, n_shared_experts: 1, first_k_dense_replace: 1,
    n_group: 1, topk_group: 1, q_lora_rank: 768, kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, index_n_heads: 16,
    index_head_dim: 64, index_topk: 512, tie_word_embeddings: false, max_position_embeddings: 32768}
cluster: {gpu: h200, gpus: 1}
stack: transformers-5-eager
training: {sequence_length: 2048, micro_batch_size: 2, global_batch_size: 4, precision: bf16, sharding: none, recompute: none}
J
passes() { # LAYERS TOLD: an indexer makes a layer's backward hardly longer than its forward, and none of its kernels is called so
	python3 -c '
import json, sys
s = json.load(sys.stdin)["by_layer"]["predicted"]
layers, told = map(int, sys.argv[1:])
assert len(s["layers"]) == layers and s["told"] == told, (len(s["layers"]), s["told"])
assert all(0 < l[p]["time_s"] for l in s["layers"] for p in ("forward", "backward"))
assert s["in_forward"] < s["in_backward"]' "$@"
}
all_told() {
	$f simulate -q "$tmp/dsa.yaml" --timeline "$tmp/dsa.json" --timeline-format kineto >/dev/null && $f trace compare "$tmp/dsa.json" "$tmp/dsa.yaml" --json | passes 5 5
}
ok "a predicted layer is of one pass, and all of them are known" all_told
ok "also of those alone that repeat as often as the recorded ones" sh -c "$f trace compare -q $eager $tmp/dsa.yaml --json >$tmp/c.json"
ok "forward and backward" passes 4 5 <"$tmp/c.json"
ok "and that there are more is said" sh -c "$f trace compare -q $eager $tmp/dsa.yaml | grep -q 'In all it has 5: those that do not repeat are outside'"
cat >"$tmp/beside.yaml" <<'J'
model: {name: mixtral-8x7b, num_hidden_layers: 4}
cluster: {gpu: h200, gpus: 8}
stack: megatron-core
training: {sequence_length: 4096, micro_batch_size: 1, global_batch_size: 16, precision: bf16, parallel: {ep: 8}, overlap: {ep: true}}
J
ok "passes that run side by side are told of none, and found by repetition" sh -c "$f trace compare -q $eager $tmp/beside.yaml |
	grep -q 'predicted step has 4 layers, found where products and attention repeat: 6 of them in a layer forward, 11 backward'"
if command -v gnuplot >/dev/null; then
	ok "the gap is drawn" sh -c "$f trace compare $eager $scenario --plot $tmp/gap.svg >/dev/null && grep -q '<svg' $tmp/gap.svg && grep -q 'backward, recorded' $tmp/gap.svg && [ -s $tmp/gap.dat ]"
else
	skip "the gap is drawn" "no gnuplot here"
fi
ok "a figure is an SVG" told 1 "should be the name of an SVG file" $f trace compare $eager $scenario --plot "$tmp/gap.png"
ok "a recording in the place of the scenario is told" wrong "compare takes FILE... and then a SCENARIO: the last file is a recording" $f trace compare $eager $eager
ok "a figure is of compare" wrong "is of compare" $f trace show $eager --plot "$tmp/gap.svg"
ok "another machine's step is held against it with a warning" sh -c "$f trace compare $eager $scenario 2>$tmp/e >/dev/null && ! grep -q warning $tmp/e && $f trace compare $eager $scenario --set cluster.gpu=mi300x --set stack=generic 2>$tmp/e >/dev/null; grep -q 'the recording is of 2 ranks on h200, the scenario of 2 on mi300x' $tmp/e"
# parts of both sides are those of the answer; a scenario that is recorded by all its stages has no gap
gaps_are() { # RANKS SCENARIO [OPTION...]: of recordings of these ranks
	ranks=$1 of=
	shift
	for rank in $ranks; do
		$f simulate -q "$@" --timeline "$tmp/own.$rank.json" --timeline-format kineto --timeline-rank "$rank" >"$tmp/o" || return 1
		of="$of $tmp/own.$rank.json"
	done
	$f simulate -q "$@" --json >"$tmp/a.json" && $f trace compare $of "$@" --json >"$tmp/c.json" && python3 -c '
import json, sys
a, c = (json.load(open(p)) for p in sys.argv[1:])
step, parts = a["step_s"], {g["what"]: (g["recorded_s"], g["predicted_s"]) for g in c["gaps"]}
pauses = [sum(x) for x in zip(parts["bubble"], parts["idle: host and launch"])] # no receives are in the shape of Kineto
for what, (recorded, predicted) in [*parts.items(), ("pauses", pauses)]:
    assert what in ("bubble", "idle: host and launch") and a["breakdown_s"]["bubble"] or abs(recorded - predicted) < 1e-8 * step, (what, recorded, predicted)
for side in ("recorded_step_s", "predicted_step_s"):
    assert abs(c[side] - step) < 1e-8 * step, (side, c[side], step)
whole = ("compute", "optimizer", "exposed communication", "bubble", "idle: host and launch")
assert abs(sum(parts[w][0] for w in whole) - step) < 1e-8 * step, parts
for what in whole[:3]:
    assert abs(parts[what][1] - a["breakdown_s"][what.replace(" ", "_")]) < 1e-8 * step or a["breakdown_s"]["bubble"], what
' "$tmp/a.json" "$tmp/c.json"
}
ok "no part of a recorded scenario has a gap" gaps_are 0 $scenario
ok "nor where hosts set the pace" gaps_are 3 examples/15-recorded-step/scenario.yaml --set model=gpt-1.5b --set stack=torch-2.11-compile --set cluster.gpus=8 --set training.global_batch_size=8 --set training.sequence_length=1024
ok "nor of two stages" gaps_are "0 1" $scenario --set training.sharding=ddp --set training.parallel.pp=2 --set training.global_batch_size=8
copied() { # copies to host memory and back are told beside memory-bound kernels, on both sides
	set -- $scenario --set training.offload_layers=2
	$f simulate -q "$@" --timeline "$tmp/own.json" --timeline-format kineto >"$tmp/o" && $f trace compare "$tmp/own.json" "$@" --json >"$tmp/c.json" &&
		$f trace show "$tmp/own.json" --json >"$tmp/t.json" && python3 -c '
import json, sys
c, t = (json.load(open(p)) for p in sys.argv[1:])
(g,), classes = [g for g in c["gaps"] if g["what"] == "memory-bound kernels"], t["classes"]
both = classes["memory"]["time_s"] + classes["copy"]["time_s"]
assert classes["copy"]["time_s"] > 0.01 * both, classes
assert all(abs(g[k] / both - 1) < 1e-8 for k in ("recorded_s", "predicted_s")), (g, classes)
' "$tmp/c.json" "$tmp/t.json"
}
ok "copies to host memory count as much in both" copied
items_of() { # of a step with too many operations to be drawn, by the items of its answer
	set -- $scenario --set training.global_batch_size=4000 --set model.num_hidden_layers=32
	$f simulate -q "$@" --json >"$tmp/a.json" && $f trace compare $eager "$@" --json >"$tmp/c.json" && python3 -c '
import json, re, sys
a, c = (json.load(open(p)) for p in sys.argv[1:])
parts, sums = {g["what"]: g["predicted_s"] for g in c["gaps"]}, {}
for i in a["items"]:
    kind = "collectives" if i["communication"] else "attention" if i["name"] == "attention" else \
        "matrix products" if re.search(r"\((forward|dgrad|wgrad)\)$", i["name"]) else "memory-bound kernels"
    sums[kind] = sums.get(kind, 0) + i["time_s"]
for kind, s in sums.items(): # the items are the largest forty, of the update none
    assert 0.95 < s / parts[kind] < 1 + 1e-9 and (kind != "attention" or abs(s / parts[kind] - 1) < 1e-9), (kind, s, parts)
assert len(sums) == 4
' "$tmp/a.json" "$tmp/c.json"
}
ok "of a step that cannot be drawn kernels are the items of its answer" items_of
itself() { # a step's own drawing is where it went: no part differs, sums that run behind reductions among them
	$f simulate $scenario --set cluster.gpus=4 --set training.parallel.cp=4 --set training.sequence_length=32768 --timeline "$tmp/self.json" --timeline-format kineto >/dev/null &&
		$f trace compare "$tmp/self.json" $scenario --set cluster.gpus=4 --set training.parallel.cp=4 --set training.sequence_length=32768 --json | python3 -c '
import json, sys
gaps = json.load(sys.stdin)["gaps"]
assert {"compute", "exposed communication", "collectives"} <= {g["what"] for g in gaps}
for g in gaps:
    assert abs(g["predicted_s"] - g["recorded_s"]) < 1e-9, g'
}
ok "a drawn step is itself, part by part" itself
finish
