# scripts/fit_measured.sh PROGRAM DIR [GPU...] - profiles of GPUs that were measured, anew
#
# Imports the probes of measurements/probes/ but those named `unseen`, of H100 without the shapes
# that scripts/hold_out.py keeps back and of H200 without the products that it does, of H200 with H100's small collectives among more than four
# (scripts/lend_collectives.py) and H100 with H200's norms of short rows and attention over several sequences, and what others published of the same GPU; fits each GPU over its profile in the tree. DIR hw/gpus writes the tree's own.
# What is sustained, the launch block and interference stay: docs/findings.md says why.
set -eu
f=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- h200 h100-sxm
root=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"
seen() { # GPU: what a fit may see of the probe on stdin
	case $1 in
	h100-sxm) python3 "$root/scripts/hold_out.py" seen ;;
	*) python3 "$root/scripts/hold_out.py" seen gemm ;;
	esac
}
widened() { # without PyTorch's products in fp8, whose sums are not: layout.fast is their time over the others'
	grep -v '"kind": "gemm", "impl": "torch", "dtype": "fp8"'
}
lent() { # DEVICE: small collectives of eight H100, as of this device
	gunzip -c "$root/measurements/probes/h100-2026-11-22-eight-torch-collectives.jsonl.gz" |
		python3 "$root/scripts/lend_collectives.py" "$1" probe-h100-2026-11-22 >"$tmp/lent.jsonl"
	"$f" calibrate import --store "$tmp/h200.db" "$tmp/lent.jsonl" >/dev/null
}
lent_attention() { # DEVICE: FlashAttention 2 of H200 over several sequences, as of this device: the same die, 0.994 of it over 245 shapes of one
	gunzip -c "$root/measurements/probes/h200-2026-11-29-fa2-batches.jsonl.gz" |
		sed "s/NVIDIA H200/$1/; s/2026-11-29/2026-11-23/" | seen h100-sxm >"$tmp/lent-attention.jsonl"
	"$f" calibrate import --store "$tmp/h100-sxm.db" "$tmp/lent-attention.jsonl" >/dev/null
}
lent_rows() { # DEVICE: norms of H200 whose rows are so short that blocks take their time, not the memory, as of this device: the same die
	gunzip -c "$root/measurements/probes/h200-2026-11-29-short-rows.jsonl.gz" |
		sed "s/NVIDIA H200/$1/; s/2026-11-29/2026-11-23/" | grep -E '"record": "run"|"n": (64|128|256),' >"$tmp/lent-rows.jsonl"
	"$f" calibrate import --store "$tmp/h100-sxm.db" "$tmp/lent-rows.jsonl" >/dev/null
}
alone() { # KIND: products without the quantization that was timed with them
	case $1 in
	gemm) python3 "$root/scripts/product_alone.py" ;;
	*) cat ;;
	esac
}
published() { # GPU DEVICE: rows of others, as of the device that was measured
	for kind in gemm attention collectives; do
		gunzip -c "$root/measurements/published/$kind.csv.gz" | alone $kind >"$tmp/published-$kind.csv"
		"$f" calibrate import --store "$tmp/$1.db" --format csv --published --gpu "$1" --device "$2" \
			--date 2026-11 --source "measurements/published/$kind.csv.gz" \
			"$tmp/published-$kind.csv" >/dev/null
	done
}
for gpu; do
	case $gpu in
	h200) device="NVIDIA H200" ;;
	h100-sxm) device="NVIDIA H100 80GB HBM3" ;;
	*) echo "nothing was measured of $gpu" >&2; exit 1 ;;
	esac
	echo "$gpu"
	for probe in "$root/measurements/probes/${gpu%-sxm}"-*.jsonl.gz; do
		case $probe in *unseen*) continue ;; esac
		name=$(basename "$probe" .gz)
		gunzip -c "$probe" | seen "$gpu" | widened >"$tmp/$name"
		"$f" calibrate import --store "$tmp/$gpu.db" "$tmp/$name" >/dev/null
	done
	case $gpu in
	h200) lent "$device" ;;
	h100-sxm)
		lent_rows "$device"
		lent_attention "$device"
		;;
	esac
	published "$gpu" "$device"
	"$f" calibrate fit --store "$tmp/$gpu.db" --name "$gpu" --out "$out" \
		--only gemm,attention,memory,collectives,accumulate |
		grep -E '^(gemm|attention|memory|collective) +[0-9]'
done
