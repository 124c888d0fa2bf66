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
		*bert-small*) n=4 ;;
		*qwen1.5-0.5b*) n=24 ;;
		*gpt1.5b*) n=48 ;;
		*16L-pp2-*) n=8 ;;   # of one stage
		*16L-pp2v2-*) n=4 ;; # of one of its two chunks
		*) n=$(echo "$x" | sed 's/.*[^0-9]\([0-9]*\)L-.*/\1/') ;;
		esac
		$f trace compare "$x" $scenario >"$tmp/c" || return 1
		grep -q "The recorded step has $n layers" "$tmp/c" || { echo "$x: not $n" >&2; return 1; }
	done
}
ok "layers are as many as the models have" counted
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
ok "repetition finds the layers that annotations tell" python3 tests/layers.py $eager "$tmp/c.json"
ok "two ranks' layers are their mean" sh -c "$f trace compare $eager $t/h200-8b4L-fsdp2-s4096-b1-eager.rank1.kineto.json.gz $scenario | grep -q 'recorded step has 4 layers'"
ok "a scenario's own step has no gap" sh -c "
	$f simulate $scenario --timeline $tmp/k.json --timeline-format kineto >/dev/null
	$f trace compare $tmp/k.json $scenario --json | python3 -c '
import json, sys
d = json.load(sys.stdin)[\"by_layer\"]
assert d[\"recorded\"] == d[\"predicted\"] and d[\"recorded\"][\"layers\"]'"
ok "fewer layers than recorded are said" sh -c "$f trace compare $eager $scenario --set model.num_hidden_layers=3 | grep -q 'The first 3 are held beside each other'"
ok "one layer does not repeat, and that is said" sh -c "$f trace compare $eager $scenario --set model.num_hidden_layers=1 | grep -q 'layers of the predicted step are not known: no sequence'"
if command -v gnuplot >/dev/null; then
	ok "the gap is drawn" sh -c "$f trace compare $eager $scenario --plot $tmp/gap.svg >/dev/null && grep -q '<svg' $tmp/gap.svg && grep -q 'backward, recorded' $tmp/gap.svg && [ -s $tmp/gap.dat ]"
else
	skip "the gap is drawn" "no gnuplot here"
fi
ok "a figure is an SVG" told 1 "should be the name of an SVG file" $f trace compare $eager $scenario --plot "$tmp/gap.png"
ok "a figure is of compare" wrong "is of compare" $f trace show $eager --plot "$tmp/gap.svg"
ok "another machine's step is held against it with a warning" sh -c "$f trace compare $eager $scenario 2>$tmp/e >/dev/null && ! grep -q warning $tmp/e && $f trace compare $eager $scenario --set cluster.gpu=mi300x --set stack=generic 2>$tmp/e >/dev/null; grep -q 'the recording is of 2 ranks on h200, the scenario of 2 on mi300x' $tmp/e"
finish
