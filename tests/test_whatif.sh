#!/bin/sh
# tests/test_whatif.sh - what is told of recordings and what-ifs, against each rank alone, replays of each part alone and predictions of each collective
. "$(dirname "$0")/tap.sh"
t=measurements/traces
defined() { # RECORDING
	python3 tests/whatif.py "$f" "$1" "$tmp"
}
ok "parts add what they do in the mean over all orders; collectives take what is predicted" defined $t/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
any_order() { # RECORDING without its rank
	for order in "0 1" "1 0"; do
		set -- "$1" $order
		$f trace replay "$1$2.kineto.json.gz" "$1$3.kineto.json.gz" --gpu b200 --json >"$tmp/order$2" || return 1
	done
	cmp "$tmp/order0" "$tmp/order1"
}
ok "the order of files changes nothing" any_order $t/h100-8b4L-fsdp2-s4096-b1-eager.rank
ok "nor in a pipeline" any_order $t/h100-two-8b4L-pp2-zbv.rank
means() { # RECORDING without its rank: of two ranks what is told is the mean of both, the longer step, all waits
	for k in 0 1; do
		$f trace show "$1$k.kineto.json.gz" --json >"$tmp/$k.json" || return 1
	done
	$f trace show "${1}0.kineto.json.gz" "${1}1.kineto.json.gz" --json >"$tmp/both.json" && python3 -c '
import json, sys
of, seen = [json.load(open(p)) for p in sys.argv[1:]], 0
def held(path, a, b, both):
    global seen
    if isinstance(both, dict):
        for key in both:
            held(path + [key], a[key], b[key], both[key])
    elif path[0] in ("breakdown_s", "idle_s", "classes", "communication_s", "launches"):
        want = max(a, b) if path[-1] == "queued_most" else (a + b) / 2
        assert abs(both - want) <= 1e-9 * max(want, 1), (path, a, b, both)
        seen += want > 0
    elif path == ["recorded_step_s"]:
        assert both == max(a, b), (path, a, b, both)
    elif path[0] == "order" and not path[1].startswith("collectives"):
        assert both == a + b, (path, a, b, both)
for key in of[2]:
    held([key], *(o.get(key) for o in of))
order = [o["order"] for o in of]
assert order[2]["collectives_matched"] == sum(o["collectives_unmatched"] for o in order[:2]) > 10
assert seen > 20, seen' "$tmp/0.json" "$tmp/1.json" "$tmp/both.json"
}
ok "what is told of two ranks is their mean" means $t/h200-8b4L-fsdp2-s4096-b1-eager.rank
ok "and of two stages" means $t/h100-two-8b16L-pp2-s4096-m8-compile.rank
paced() { # RECORDING PERCENT: what is said of a host that paces the step; of others nothing
	$f trace replay "$t/$1" --speedup gemm=4 | sed -n 's/^The GPU waits for late launches during \([0-9]*\) % of the replayed step.*/\1/p' >"$tmp/late" &&
		test "$(cat "$tmp/late")" = "$2"
}
ok "a step that the host paces says so" paced h100-bert-small.tracelens.json.gz 94
ok "others do not" paced h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz ""
prints() { # "PATTERN" command...: exit 0, and the pattern on stdout
	pattern=$1
	shift
	"$@" >"$tmp/answer" && grep -q -- "$pattern" "$tmp/answer"
}
e=$t/h100-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
ok "GPUs of one scale-up domain are joined by it, whatever the fabric" prints "replayed on gb200, 72 ranks, nvlink$" $f trace replay "$e" --gpu gb200 --scale dp=72 --fabric roce-100-x4
ok "which is said" prints "^nvlink joins all 72 ranks: the fabric roce-100-x4 carries nothing" $f trace replay "$e" --gpu gb200 --scale dp=72 --fabric roce-100-x4
slower() { # KEY SET...: each way to write it is refused with the key's name
	key=$1
	shift
	for set; do fails 1 "$key cannot be set here" $f trace replay "$e" --tokens-per-step 8192 --set "$set" || return 1; done
}
ok "how fast GPUs ran is in the recording" slower slow_gpus 'cluster.imperfections.slow_gpus=[{gpu: 0, speed_frac: 0.5}]' 'cluster.imperfections={slow_gpus: []}'
ok "how unlike each other, too" slower gpu_speed_spread_frac 'cluster.imperfections.gpu_speed_spread_frac=0.1'
ok "and of the node's" slower gpu_speed_spread 'cluster.node={extends: hgx-h100, gpu_speed_spread: 0.1}'
ok "under whatever limit of power, written in any way" slower power.limit 'cluster.gpu={extends: h100-sxm, power.limit: 400 W}' 'cluster.gpu={extends: h100-sxm, power: {limit: 400 W}}' 'cluster.gpu.power.limit=400 W'
idle='cluster.gpu={extends: h100-sxm, power: {idle: 10 W}}'
ok "what they draw while idle changes dollars alone" fails 1 "changes dollars, and there are none" $f trace replay "$e" --set "$idle"
ok "so does what stands around them" sh -c "
	for set in cluster.site=bare cluster.optics=nvidia cluster.ufm_ports=4; do
		$f trace replay $e --set \$set 2>$tmp/e; test \$? = 1 && grep -q 'changes dollars, and there are none' $tmp/e || exit 1
	done"
ok "a setting does not replace the option --gpu in silence" fails 1 "replaces what --gpu h200 says" $f trace replay "$e" --gpu h200 --set cluster.gpu=mi300x
ok "nor --fabric, in whatever map" fails 1 "replaces what --fabric ib-ndr-rail says" $f trace replay "$e" --fabric ib-ndr-rail --set 'cluster={gpu: h100-sxm, gpus: 2, fabric: none}'
ok "and may change a key of what it names" prints "replayed on h200 modified, 2 ranks" $f trace replay "$e" --gpu h200 --set 'cluster.gpu.memory.bandwidth=6 TB/s'
replayed() { # OPTION...: seconds
	$f trace replay "$e" --json "$@" | sed -n 's/^ "step_s": \([0-9.]*\),/\1/p'
}
own() { # a profile that keeps its name, and whose memory is slower: from a file, from a map, as the recording's own
	low=$tmp/h100-sxm.yaml
	printf 'extends: h100-sxm\nmemory: {bandwidth: 1 TB/s}\nprovenance: {kind: assumed, source: a test, date: 2026-12-01}\n' >"$low"
	was=$(replayed --set 'cluster.gpu={extends: h100-sxm}') longer=$(replayed --gpu "$low")
	[ "$was" = "$(replayed --from "$low" --gpu "$low")" ] &&
		[ "$longer" = "$(replayed --set 'cluster.gpu={extends: h100-sxm, name: h100-sxm, memory: {bandwidth: 1 TB/s}}')" ] &&
		awk -v a="$(replayed --from "$low" --gpu h100-sxm)" -v b="$was" -v c="$longer" 'BEGIN { exit !(0 < a && a < b && b < c) }'
}
ok "a profile of the same name is another GPU where it says other things" own
ok "a fabric that is set and carries nothing is told as well" prints "^nvlink joins all 2 ranks: the fabric roce-400-rail carries nothing" $f trace replay "$e" --set cluster.fabric=roce-400-rail
without() { # a map of the cluster that has no GPU is no machine
	for set in 'cluster={}' 'cluster={gpus: 2}' cluster=3 'cluster=[1]' cluster=null cluster.gpu=null; do fails 1 "leaves the cluster without a GPU" $f trace replay "$e" --set "$set" || return 1; done
}
ok "a cluster that is set without a GPU is refused" without
ok "what the other machine lacks is not told of the recording's" fails 1 "the replayed machine: error: fabric none connects no nodes" $f trace replay "$e" --scale dp=16 --fabric none
ok "no recording tells the bytes of a checkpoint" fails 1 "needs the bytes of a checkpoint, which no recording tells" $f trace replay "$e" --tokens-per-step 8192 --set 'cost.goodput={storage_bandwidth: 1 MB/s}'
ok "a replay has no cash flows" fails 1 "against changes nothing in a replay" $f trace replay "$e" --tokens-per-step 8192 --set 'cost.against=2 USD/h'
ok "nor a month in which they begin" fails 1 "start changes nothing in a replay" $f trace replay "$e" --tokens-per-step 8192 --set cost.start=2027-01
ok "a price of what is not bought is told" prints "^Given, but on no line of the bill: mi300x-server" $f trace replay "$e" --tokens-per-step 8192 --price mi300x-server=1
cheaper() { # the same step, fewer dollars
	for set in cluster.gpu=h100-sxm "$idle"; do
		$f trace replay "$e" --tokens-per-step 8192 --set "$set" | sed -n 's/^\([0-9]* tokens.s\) on 2 GPUs: \([0-9.]*\) USD .*/\1 \2/p'
	done >"$tmp/usd" && awk '{ rate[NR] = $1; usd[NR] = $3 } END { exit !(NR == 2 && rate[1] == rate[2] && usd[2] < usd[1]) }' "$tmp/usd"
}
ok "and does" cheaper
finish
