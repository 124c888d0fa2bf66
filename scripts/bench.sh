# scripts/bench.sh BUILD - every benchmark, one line a case
set -eu
b=$1
cd "$(dirname "$0")/.."
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(date -u +%F), commit $(git rev-parse --short HEAD 2>/dev/null || echo none)"
for p in "$b"/tests/bench/bench_*; do
	case $p in *.[od]) continue ;; esac
	"$p"
done
start=$(date +%s%N)
for i in 1 2 3 4 5 6 7 8 9 10; do
	build/foretoken simulate examples/01-first-answer/h100.yaml >/dev/null
done
echo "simulate start to finish, examples/01-first-answer/h100.yaml: $(( ($(date +%s%N) - start) / 10000000 )) ms"
