# scripts/bench.sh BUILD - every benchmark, one line a case
set -eu
b=$1
cd "$(dirname "$0")/.."
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(date -u +%F), commit $(git rev-parse --short HEAD 2>/dev/null || echo none)"
for p in "$b"/tests/bench/bench_*; do
	case $p in *.[od]) continue ;; esac
	"$p"
done

# TIMES WHAT COMMAND...: the mean wall time of a command, starting included
timed() {
	times=$1 what=$2
	shift 2
	start=$(date +%s%N)
	for i in $(seq "$times"); do
		"$@" >/dev/null
	done
	echo "$what: $(( ($(date +%s%N) - start) / times / 1000 )) us"
}
f=build/foretoken
timed 20 "simulate, start to finish, examples/01-first-answer/h100.yaml" \
	$f simulate examples/01-first-answer/h100.yaml
timed 20 "all_reduce of 1 GiB among 1,024 ranks, start to finish" \
	$f collective examples/01-first-answer/h100.yaml --op all_reduce --gpus 1024 --bytes 1GiB --algorithm ring
timed 3 "sweep of 192 plans on both cores, start to finish" \
	sh -c "rm -f '$b/bench.db'; $f sweep examples/01-first-answer/h100.yaml \
		--vary training.parallel.tp=1,2,4,8 --vary training.parallel.pp=1,2,4,8 \
		--vary training.micro_batch_size=1,2,4 --vary cluster.gpus=256,512,1024,2048 \
		--db '$b/bench.db' 2>/dev/null"
two="examples/01-first-answer/h100.yaml examples/01-first-answer/mi300x.yaml"
timed 3 "compare with 100,000 Monte Carlo draws, start to finish" $f compare $two --draws 100000
timed 3 "compare with its report, start to finish" $f compare $two --report "$b/bench-report"
timed 3 "fleets for 15 T tokens in 60 days, start to finish" \
	$f simulate examples/01-first-answer/h100.yaml --tokens 15T --days 60
