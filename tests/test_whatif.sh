#!/bin/sh
# tests/test_whatif.sh - what is told of recordings and what-ifs, against each rank alone, replays of each part alone and predictions of each collective
. "$(dirname "$0")/tap.sh"
t=measurements/traces
defined() { # RECORDING
	python3 tests/whatif.py "$f" "$1" "$tmp"
}
ok "parts add what they do in the mean over all orders; collectives take what is predicted" defined $t/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
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
ok "how fast GPUs ran is in the recording" fails 1 "slow_gpus does nothing here" $f trace replay "$e" --set 'cluster.imperfections.slow_gpus=[{gpu: 0, speed_frac: 0.5}]'
ok "under whatever limit of power" fails 1 "power.limit does nothing here" $f trace replay "$e" --set 'cluster.gpu={extends: h100-sxm, power.limit: 400 W}'
finish
