# scripts/fit_published.sh PROGRAM DIR [GPU...] - profiles of published rows, anew
#
# Imports measurements/published/*.csv.gz into a store of its own and fits each GPU over its
# profile in the tree: rows, error bars, held-out errors. DIR hw/gpus writes the tree's own.
# The memory-bound curves of NVIDIA's are then derived of H100's and H200's, those of AMD's of H200's and published rows.
set -eu
f=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- a100-40g a100-80g b200 b300 gb200 gb300 mi300x mi355x mi350x mi210 mi100
root=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"
alone() { # KIND: products without the quantization that was timed with them
	case $1 in
	gemm) python3 "$root/scripts/product_alone.py" ;;
	*) cat ;;
	esac
}
for kind in gemm attention collectives simumax; do
	gunzip -c "$root/measurements/published/$kind.csv.gz" | alone $kind >"$tmp/published-$kind.csv"
	"$f" calibrate import --store "$tmp/published.db" --format csv --published \
		--date 2026-11 --source "measurements/published/$kind.csv.gz" \
		"$tmp/published-$kind.csv" >/dev/null
done
for gpu; do
	echo "$gpu"
	"$f" calibrate fit --store "$tmp/published.db" --device "$gpu" --name "$gpu" --out "$out" |
		grep -E '^(gemm|attention|collective) +[0-9]'
done

# GPU, then those whose rows of memory-bound kernels it goes by
memory() {
	to=$out/$1.yaml
	shift
	[ ! -f "$to" ] || python3 "$root/scripts/derive_memory.py" "$root/hw/gpus/h200.yaml" \
		"$to" "$root/measurements/published/memory.csv.gz" "$@"
}
twin=$root/hw/gpus/h100-sxm.yaml
two() { # GPU, then those whose rows it goes by
	to=$out/$1.yaml
	shift
	[ $# -eq 0 ] || set -- "$root/measurements/published/memory.csv.gz" "$@"
	[ ! -f "$to" ] || python3 "$root/scripts/derive_memory.py" --twin "$twin" \
		"$root/hw/gpus/h200.yaml" "$to" "$@"
}
two a100-40g
two a100-80g
two b200 b200
two b300 b200
two gb200 b200
two gb300 b200
memory mi100 mi100
memory mi210 mi210
memory mi250 mi210
memory mi300x mi300x
memory mi325x mi300x
memory mi355x mi355x mi350x
