#!/bin/sh
# tests/test_network.sh - networks drawn by hand, faults, neighbours: answers and mistakes
. "$(dirname "$0")/tap.sh"
drawn=examples/09-drawn-network
s=$drawn/scattered.yaml

refused() { # PATTERN SED: the changed drawing is refused with these words
	sed "$2" $drawn/fabric.yaml >"$tmp/fabric.yaml"
	"$one" $f bom $s --set cluster.fabric="$tmp/fabric.yaml" >"$tmp/o" 2>"$tmp/e" || return 1
	cat "$tmp/e" >&2
	[ ! -s "$tmp/o" ] && grep -q -- "$1" "$tmp/e"
}
step() { $f simulate "$@" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["step_s"])'; }
says() { # PATTERN command...: it fails and says so
	want=$1
	shift
	! "$@" >"$tmp/o" 2>"$tmp/e" || return 1
	cat "$tmp/e" >&2
	[ ! -s "$tmp/o" ] && grep -q -- "$want" "$tmp/e"
}

ok "a drawn network is priced as drawn" sh -c "$f bom $s | grep -q '8 leaf, 2 spine, 0 core; cables 128 / 128 / 0'"
ok "a switch that is not there" refused "there is no switch 'leaf9'" 's/switch: leaf3/switch: leaf9/'
ok "two switches of one name" refused "two switches 'leaf0'" 's/leaf0, leaf1,/leaf0, leaf0,/'
ok "NICs attached twice" refused "attached to leaf1 already" 's/nodes: \[8, 11\]/nodes: [7, 11]/'
ok "a node without a switch" refused "node 15 is not attached to a switch" 's/nodes: \[12, 15\]/nodes: [12, 14]/'
ok "a cable of no capacity" refused "rate" 's/from: leaf0, to: spine1, count: 4/from: leaf0, to: spine1, rate: 0 Gb\/s/'
ok "nor one that its modules do not carry" refused "the module optic-[^ ]* carries 800 Gb/s, and the ports that share one 3200" 's/from: leaf0, to: spine1, count: 4/from: leaf0, to: spine1, rate: 1600 Gb\/s/'
ok "a cable to itself" refused "joins two switches" 's/from: leaf0, to: spine1/from: leaf0, to: leaf0/'
ok "a pair of switches joined twice" refused "joined twice" 's/from: leaf0, to: spine1/from: leaf0, to: spine0/'
ok "a switch to which nothing leads" refused "no cable leads to spine1" '/to: spine1/d'
ok "modules too slow for the cables, with their place" refused "^[^ ]*:[0-9]*:[0-9]*: error: fabric drawn: the module" 's/count: 12}/count: 12, rate: 800 Gb\/s}/'
ok "a network in two pieces" refused "there is no path from" '/from: leaf3/d'
ok "more cables than ports" refused "a switch of 32 ports" 's/radix: 128/radix: 32/'
ok "a drawing needs its wiring" refused "belongs to wiring: graph" 's/^wiring: graph/wiring: rail/'
for key in 'oversubscription: 2' 'core_oversubscription: 2' 'tiers: 3' 'planes: 2' 'planned_nodes: 64' 'spare_spines: 1'; do
	ok "a recipe's ${key%%:*} in a drawing" refused "${key%%:*}: has no effect with wiring: graph" "s/^routing:/$key\nrouting:/"
done
ok "a wiring needs its drawing" refused "lacks the key 'graph'" '/^graph:/,$d'
ok "a range that ends before it begins" refused "ends before it begins" 's/nodes: \[0, 3\]/nodes: [3, 0]/'

ok "a slow GPU slows the step" sh -c "$f simulate $s --set 'cluster.imperfections.slow_gpus=[{gpu: 17, speed_frac: 0.7}]' --json >$tmp/1 && $f simulate $s --json >$tmp/2 && python3 -c 'import json; a,b=(json.load(open(\"$tmp/%d\"%i))[\"step_s\"] for i in (1,2)); assert a > 1.05*b, (a,b)'"
ok "a GPU at full speed changes nothing" test "$(step $s --set 'cluster.imperfections.slow_gpus=[{gpu: 17, speed_frac: 1}]')" = "$(step $s)"
ok "a slow GPU that is not there" says "between 0 and 127" $f simulate $s --set 'cluster.imperfections.slow_gpus=[{gpu: 128, speed_frac: 0.7}]'
ok "a GPU slow twice" says "twice" $f simulate $s --set 'cluster.imperfections.slow_gpus=[{gpu: 1, speed_frac: 0.7},{gpu: 1, speed_frac: 0.8}]'
ok "a GPU that stands still" says "above 0" $f simulate $s --set 'cluster.imperfections.slow_gpus=[{gpu: 1, speed_frac: 0}]'
ok "more failed spines than there are" says "spine switches, and some must be left" $f collective examples/03-infiniband-roce-spectrum-x/ib.yaml --set cluster.imperfections.failed_spines=16
ok "a failed spine of a drawing" says "leave the switch out" $f collective $s --set cluster.imperfections.failed_spines=1
failed() { # GPUS: what is said of failed uplinks
	$f simulate examples/03-infiniband-roce-spectrum-x/ib.yaml --set "cluster.gpus=$1" --set "cluster.imperfections={failed_uplinks_frac: 0.1, slow_nics_frac: 0.1}" 2>&1 | grep failed_uplinks
}
echo "cluster: {gpu: gb200, gpus: 256}" >"$tmp/racks.yaml"
ok "a sum between racks takes at least that inside one" sh -c "$f collective $tmp/racks.yaml -o all_reduce -b 1MiB,16MiB,64MiB,1GiB -g 64,128 --json | python3 -c 'import json, sys; r = json.load(sys.stdin); r = r.get(\"rows\", r) if isinstance(r, dict) else r; t = {(x[\"gpus\"], x[\"bytes\"]): x[\"time_us\"] for x in r}; assert len(t) == 8; assert all(t[128, b] >= t[64, b] for g, b in t if g == 64)'"
ok "no uplink fails under one switch" sh -c "[ '$(failed 64)' = 'The network has no uplinks, so that failed_uplinks_frac changes nothing.' ]"
ok "nor do spines, of which there are none" sh -c "$f simulate examples/01-first-answer/h100.yaml --set cluster.gpus=64 --set 'training.parallel={tp: 4}' --set training.global_batch_size=64 --set cluster.fabric.spare_spines=3 | grep -q '^spare_spines changes nothing in a network of 1 tier with adaptive routing'"
ok "nor in a single node" sh -c "[ '$(failed 8)' = 'There is no network, so that failed_uplinks_frac and slow_nics_frac change nothing.' ]"
ok "which has neither optics nor ports for UFM" sh -c "$f simulate examples/03-infiniband-roce-spectrum-x/ib.yaml --set cluster.gpus=8 --set cluster.optics=nvidia --set cluster.ufm_ports=8 2>&1 >/dev/null | grep -c 'has an effect only where nodes have a network' | grep -qx 2"
ok "a rail under one leaf crosses none" sh -c "[ '$(failed 128)' = 'All NICs of a rail share a leaf, so that failed_uplinks_frac slows only what crosses rails.' ]"
ok "nor do spines that failed" sh -c "$f simulate examples/03-infiniband-roce-spectrum-x/ib.yaml --set cluster.gpus=128 --set cluster.imperfections.failed_spines=1 | grep -qx 'All NICs of a rail share a leaf, so that failed_spines slows only what crosses rails.'"
ok "one among leaves may" sh -c "[ -z '$(failed 512)' ]"
core() { # OVERSUBSCRIPTION GPUS: what is said of it in a bill
	$f bom examples/03-infiniband-roce-spectrum-x/ib.yaml --set "cluster.gpus=$2" --set "cluster.fabric={extends: ib-ndr-rail, tiers: 3, core_oversubscription: $1}" | sed -n 's/^Switches have whole ports, so that a core_oversubscription of \(.*\) is built as \(.*\)\.$/\1 \2/p'
}
# of 64 ports 60 go down and 4 up, 48 and 16, 38 and 26; the last spine is not full
ok "a core that cannot be built as asked says how it is" sh -c "[ '$(core 20 24576)' = '20 14.99' ] && [ '$(core 1.5 24576)' = '1.5 1.461' ]"
ok "so does an answer" sh -c "$f simulate examples/03-infiniband-roce-spectrum-x/ib.yaml --set cluster.gpus=16384 --set training.global_batch_size=16384 --set 'cluster.fabric={extends: ib-ndr-rail, tiers: 3, core_oversubscription: 20}' | grep -q 'core_oversubscription of 20 is built as 14.9'"
ok "one that is built as asked says nothing" sh -c "[ -z '$(core 3 24576)$(core 7 24576)$(core 1 24576)' ]"
ok "nor one that is not there" sh -c "! $f bom examples/03-infiniband-roce-spectrum-x/ib.yaml --set cluster.gpus=512 --set 'cluster.fabric={extends: ib-ndr-rail, core_oversubscription: 20}' | grep 'whole ports'"
leaf() { # OVERSUBSCRIPTION GPUS [KEY: VALUE]: likewise of leaves
	$f bom examples/03-infiniband-roce-spectrum-x/ib.yaml --set "cluster.gpus=$2" --set "cluster.fabric={extends: ib-ndr-rail, oversubscription: $1${3:+, $3}}" | sed -n 's/^Switches have whole ports, so that //p'
}
# 16 NICs down: 6 up for 3; 64 ports: 38 and 26
ok "leaves that cannot be built as asked say how they are" sh -c "[ '$(leaf 3 128)' = 'an oversubscription of 3 is built as 2.667.' ] && [ '$(leaf 1.5 8192)' = 'an oversubscription of 1.5 is built as 1.462.' ]"
ok "beside a core" sh -c "[ '$(leaf 1.5 24576 'tiers: 3, core_oversubscription: 20')' = 'an oversubscription of 1.5 is built as 1.462, and a core_oversubscription of 20 is built as 14.99.' ]"
ok "so does an answer of its leaves" sh -c "$f simulate examples/03-infiniband-roce-spectrum-x/ib.yaml --set cluster.gpus=128 --set 'cluster.fabric={extends: ib-ndr-rail, oversubscription: 3}' | grep -q 'an oversubscription of 3 is built as 2.667'"
ok "leaves that are built as asked say nothing" sh -c "[ -z '$(leaf 2 128)$(leaf 4 512)$(leaf 0.5 1024)$(leaf 1 1024)$(leaf 3 64)' ]"
ok "a neighbour among the same leaves is felt" sh -c "$f simulate $s --beside $s --json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert d[\"step_s\"] > 1.02*d[\"beside\"][\"step_alone_s\"], d'"
ok "a packed neighbour under its own leaves is not" sh -c "$f simulate $drawn/packed.yaml --beside $drawn/packed.yaml --json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert d[\"step_s\"] < 1.005*d[\"beside\"][\"step_alone_s\"], d[\"step_s\"]/d[\"beside\"][\"step_alone_s\"]'"
ok "neighbours share one fabric" says "share one fabric" $f simulate $s --beside examples/01-first-answer/h100.yaml
sed "s|fabric.yaml|$PWD/$drawn/fabric.yaml|" $drawn/packed.yaml >"$tmp/packed.yaml"
sed 's/h100-sxm/a100-80g/' "$tmp/packed.yaml" >"$tmp/nics.yaml"
sed '/fabric:/a\  imperfections: {slow_nics_frac: 0.1}' "$tmp/packed.yaml" >"$tmp/faults.yaml"
sed '/fabric:/a\  imperfections: {slow_gpus: [{gpu: 1, speed_frac: 0.9}]}' "$tmp/packed.yaml" >"$tmp/slow.yaml"
under() { # OVERSUBSCRIPTION: a fabric that is called as the other is
	printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 128, fabric: {extends: roce-400-rail, oversubscription: %s, switch: {radix: 16}}, imperfections: {placement: scattered}}\nstack: nemo-24\ntraining: {sequence_length: 4096, global_batch_size: 128, sharding: fsdp}\n' "$1" >"$tmp/under$1.yaml"
}
under 8 && under 1
ok "neighbours under fabrics of one name that differ" says "share one fabric" $f simulate "$tmp/under8.yaml" --beside "$tmp/under1.yaml"
ok "and the same fabric said twice" $f simulate "$tmp/under8.yaml" --beside "$tmp/under8.yaml"
all_to_all() { # FABRIC [OPTION...]: microseconds among 1,024
	fabric=$1 && shift
	$f collective examples/01-first-answer/h100.yaml --op all_to_all --bytes 1GiB --gpus 1024 --set "cluster.fabric=$fabric" "$@" --json | jq '.. | objects | .time_us? // empty' | head -1
}
planes() { # two planes of ports half as fast carry as much, imperfections without faults change nothing
	one=$(all_to_all roce-400-rail) two=$(all_to_all "{extends: roce-400-rail, planes: 2, switch: {split: 2, radix: 64}}")
	hdr=$(all_to_all ib-hdr-rail) seeded=$(all_to_all ib-hdr-rail --set 'cluster.imperfections={seed: 1}')
	half=$(all_to_all "{extends: ib-hdr-rail, oversubscription: 2, planes: 2}") ndr=$(all_to_all "{extends: ib-ndr-rail, oversubscription: 2}")
	python3 -c "import sys; one, two, hdr, seeded, half, ndr = map(float, sys.argv[1:]); assert abs(two / one - 1) < 0.1 and abs(seeded / hdr - 1) < 0.02 and abs(half / ndr - 1) < 0.1, sys.argv" $one $two $hdr $seeded $half $ndr
}
ok "planes carry what one plane of their ports' rate does" planes
drawing() { # NAME SWITCHES CABLES NODES_OF...: a job on the first four of eight nodes
	printf 'model: llama3-8b\ncluster:\n  gpu: h100-sxm\n  gpus: 32\n  fabric: {extends: roce-400-rail, routing: adaptive, wiring: graph, graph: {switches: [%s], cables: [%s], attach: [%s]}}\nstack: nemo-24\ntraining: {sequence_length: 4096, global_batch_size: 32, sharding: fsdp}\n' "$2" "$3" "$4" >"$tmp/$1.yaml"
}
longer() { # NAME: a step beside the same job, a step alone
	$f simulate "$tmp/$1.yaml" --beside "$tmp/$1.yaml" --json | jq -c '[.step_s, .beside.step_alone_s]'
}
four='{nodes: [0, 1], switch: a}, {nodes: [2, 3], switch: b}, {nodes: [4, 5], switch: c}, {nodes: [6, 7], switch: d}'
drawing thin "a, b, c, d, m, n" "{from: a, to: m, count: 16}, {from: c, to: m, count: 16}, {from: b, to: n, count: 16}, {from: d, to: n, count: 16}, {from: m, to: n, count: 3}" "$four"
drawing merged "a, b" "{from: a, to: b, count: 3}" '{nodes: [0, 1], switch: a}, {nodes: [2, 3], switch: b}, {nodes: [4, 5], switch: a}, {nodes: [6, 7], switch: b}'
drawing apart "a, b, c" "{from: a, to: b, count: 4}, {from: a, to: c, count: 4}" '{nodes: [0, 1], switch: a}, {nodes: [6, 7], switch: a}, {nodes: [2, 3], switch: b}, {nodes: [4, 5], switch: c}'
middle() { # three cables that all cross, between switches without nodes or between leaves: the same but for two hops
	longer thin >"$tmp/thin" && longer merged >"$tmp/merged" && jq -es '(.[0][0] / .[1][0] - 1 | fabs < 1e-3) and (.[0][1] / .[1][1] - 1 | fabs < 1e-3) and .[0][0] > 1.1 * .[0][1]' "$tmp/thin" "$tmp/merged"
}
ok "cables in the middle of a drawing are shared" middle
ok "cables to two neighbours are two links" sh -c "$f simulate $tmp/apart.yaml --beside $tmp/apart.yaml --json | jq -e '.step_s == .beside.step_alone_s'"
ok "neighbours have one kind of NIC" says "different NICs" $f simulate $s --beside "$tmp/nics.yaml"
ok "a neighbour with other faults" says "other faults" $f simulate $s --beside "$tmp/faults.yaml"
ok "a neighbour with slow GPUs" says "first job alone" $f simulate $s --beside "$tmp/slow.yaml"
ok "copy engines leave compute alone" sh -c "$f simulate $drawn/packed.yaml --set training.overlap.copy_engines=true --json >$tmp/1 && $f simulate $drawn/packed.yaml --json >$tmp/2 && python3 -c 'import json; a,b=(json.load(open(\"$tmp/%d\"%i))[\"breakdown_s\"][\"compute\"] for i in (1,2)); assert a < 0.98*b, (a,b)'"
ok "a group of one rank a node has a NIC to itself" sh -c "$f collective examples/01-first-answer/h100.yaml --op all_gather --gpus 32 --stride 8 --bytes 1GiB --json | python3 -c 'import json,sys; b=json.load(sys.stdin)[\"rows\"][0][\"busbw_gb_per_s\"]; assert 45 < b < 50, b'"
ok "a group that does not fit so far apart" says "so far apart" $f collective examples/01-first-answer/h100.yaml --gpus 1024 --stride 8
ok "one run is drawn without a word of gnuplot's" sh -c "$f runs id=8b8L-1gpu-s4096-b2 --plot $tmp/one.svg >/dev/null 2>$tmp/said && ! [ -s $tmp/said ] && grep -q '<svg' $tmp/one.svg"
ok "one size is drawn without a word of gnuplot's" sh -c "$f collective $s --gpus 8 --bytes 1MiB --plot $tmp/one >/dev/null 2>$tmp/said && ! [ -s $tmp/said ] && grep -q '<svg' $tmp/one/busbw.svg"
ok "bandwidth is drawn by size and by GPUs" sh -c "$f collective $s --gpus 8,16,128 --plot $tmp/p >/dev/null && grep -q '<svg' $tmp/p/busbw.svg && grep -q '<svg' $tmp/p/busbw-by-gpus.svg"
ok "sizes of 0" says "whole number" $f collective $s --bytes 0
ok "sizes of 2^62" says "10^18" $f collective $s --bytes 4611686018427387904
ok "a group larger than the cluster" says "but the cluster has" $f collective $s --gpus 4096
drawn_as_billed() { # SCENARIO [OPTION...]: the picture is of the bill's switches, nodes and cables
	"$f" bom "$@" --plot "$tmp/net.svg" >"$tmp/o" && "$f" bom "$@" --json >"$tmp/bill.json" && python3 tests/network_drawn.py "$tmp/net.svg" "$tmp/bill.json"
}
ok "a network of two tiers is drawn as it is billed" drawn_as_billed examples/05-bill-of-materials/superpod.yaml
ok "one of few switches" drawn_as_billed $s
ok "and of few nodes" drawn_as_billed examples/01-first-answer/h100.yaml --set cluster.gpus=24
ok "and one of a single switch" drawn_as_billed examples/01-first-answer/h100.yaml --set cluster.gpus=16
ok "three tiers" drawn_as_billed examples/01-first-answer/h100.yaml --set cluster.gpus=65536
ok "and four" drawn_as_billed examples/01-first-answer/h100.yaml --set cluster.gpus=4096 --set "cluster.fabric={extends: roce-400-rail, switch: {radix: 16}}"
finish
