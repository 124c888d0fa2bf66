# scripts/unseen.sh PROGRAM DIR - what no fit of H100 or H200 has seen, as tables that `validate` reads
#
# Kernels through PyTorch of the shapes that scripts/hold_out.py keeps back, and of H100 collectives
# of another program. DIR measurements/kernels writes the tree's own.
set -eu
f=$1 out=$2
root=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"
table() { # NAME SOURCE OPTION...: the store NAME.db as NAME.csv
	name=$1 source=$2
	shift 2
	case $name in h200*) gpu=h200 ;; *) gpu=h100-sxm ;; esac
	"$f" calibrate export --store "$tmp/$name.db" --gpu $gpu "$@" |
		awk -v s="$source" 'NR == 1 { print $0 ",source"; next } { print $0 ",\"" s "\"" }' >"$out/$name.csv"
}
probes=$root/measurements/probes
gunzip -c "$probes/h100-2026-11-22-torch.jsonl.gz" | python3 "$root/scripts/hold_out.py" unseen >"$tmp/kernels.jsonl"
gunzip -c "$probes/h100-2026-11-22-torch-collectives-unseen.jsonl.gz" >"$tmp/collectives.jsonl"
gunzip -c "$probes/h100-2026-11-22-four-torch-collectives-unseen.jsonl.gz" >"$tmp/four.jsonl"
for probe in "" -torch-collectives; do
	gunzip -c "$probes/h100-2026-11-22-eight$probe.jsonl.gz" | python3 "$root/scripts/hold_out.py" unseen >"$tmp/eight$probe.jsonl"
	"$f" calibrate import --store "$tmp/collectives-h100-eight.db" "$tmp/eight$probe.jsonl" >/dev/null
done
gunzip -c "$probes/h200-2026-11-29-narrow.jsonl.gz" | python3 "$root/scripts/hold_out.py" unseen >"$tmp/narrow.jsonl"
"$f" calibrate import --store "$tmp/h200-narrow.db" "$tmp/narrow.jsonl" >/dev/null
"$f" calibrate import --store "$tmp/h100-unseen.db" "$tmp/kernels.jsonl" >/dev/null
"$f" calibrate import --store "$tmp/collectives-h100-torch.db" "$tmp/collectives.jsonl" >/dev/null
"$f" calibrate import --store "$tmp/collectives-h100-four-torch.db" "$tmp/four.jsonl" >/dev/null
table h100-unseen "probe through PyTorch on an H100, shapes never fitted, 2026-11-22"
table h200-narrow "products of PyTorch on an H200 with a side of at most 64, layers never fitted, 2026-11-29"
table collectives-h100-torch "PyTorch, one process a GPU, 2026-11-22, never fitted" --collectives
table collectives-h100-four-torch "PyTorch among 2 and 3 H100 of another host, 2026-11-22, never fitted" --collectives
table collectives-h100-eight "the faster of PyTorch and the probe, 2, 4 and 8 H100 of one host, 2026-11-22, a third, never fitted" --collectives
LC_ALL=C sort -t, -k1,1 -k3,3n -k5,5n -k6,6g "$out/collectives-h100-eight.csv" |
	awk -F, '/measured/ { print >"/dev/stderr"; next } !seen[$1, $3, $5]++' >"$tmp/rows" 2>"$tmp/header"
cat "$tmp/header" "$tmp/rows" >"$out/collectives-h100-eight.csv"
