# scripts/by_stack.sh PROGRAM - the error of predicted training steps by stack, GPU and kind of model
#
# scripts/readme.sh puts it into docs/accuracy.md.
set -eu
f=$(realpath "${1:-build/foretoken}")
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for csv in measurements/steps/*.csv; do
	"$f" validate "$csv" --json >"$tmp/$(basename "$csv" .csv).json"
done
python3 - "$tmp" <<'END'
import collections, csv, glob, json, os, sys

def experts(row):
    """A mixture of experts: the row says so, or its preset does."""
    path = "models/%s.yaml" % (row.get("model.name") or row.get("model"))
    return any("experts" in k and v for k, v in row.items() if k) or (
        os.path.exists(path) and "experts:" in open(path).read())

cases = collections.defaultdict(list)
for path in sorted(glob.glob("measurements/steps/*.csv")):
    lines = [l for l in open(path) if not l.startswith("#")]
    rows = {r.get("id") or str(i + 2): r for i, r in enumerate(csv.DictReader(lines))}
    source = os.path.basename(path)[:-4]
    for c in json.load(open("%s/%s.json" % (sys.argv[1], source)))["rows"]:
        r = rows[c["id"]]
        kind = "experts" if experts(r) else "dense"
        cases[r["stack"], r["cluster.gpu"], kind].append((
            c["error_frac"], c["low"] <= c["measured"] <= c["high"],
            int(r["cluster.gpus"]), r.get("training.precision") or "bf16"))
print("%-33s %-14s %-8s %5s %12s %7s %7s %7s %9s  %s" % (
    "stack", "GPU", "model", "n", "GPUs", "MAPE", "bias", "max", "in-range", "precision"))
for (stack, gpu, kind), c in sorted(cases.items()):
    e = [x[0] for x in c]
    gpus = [x[2] for x in c]
    span = "%d-%d" % (min(gpus), max(gpus)) if min(gpus) < max(gpus) else str(gpus[0])
    print("%-33s %-14s %-8s %5d %12s %6.1f%% %+6.1f%% %6.1f%% %8.0f%%  %s" % (
        stack, gpu, kind, len(c), span, 100 * sum(map(abs, e)) / len(e),
        100 * sum(e) / len(e), 100 * max(map(abs, e)),
        100 * sum(x[1] for x in c) / len(c), " ".join(sorted({x[3] for x in c}))))
END
