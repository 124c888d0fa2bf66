# scripts/validate.sh PROGRAM - the whole accuracy table: every measured row we have
set -eu
f=$1
cd "$(dirname "$0")/.."
all() {
	printf '%-46s %5s %7s %7s %7s %7s %7s %9s\n' "$1" n MAPE bias median p90 max in-range
	shift
	for csv; do
		name=$(basename "$csv" .csv)
		"$f" validate "$csv" --json | python3 -c '
import json, sys
s = json.load(sys.stdin)["summary"]
if s["n"]:
    print("%-46s %5d %6.1f%% %+6.1f%% %6.1f%% %6.1f%% %6.1f%% %8.0f%%%s" % (sys.argv[1][:46], s["n"], 100*s["mape"], 100*s["bias"], 100*s["median"], 100*s["p90"], 100*s["max"], 100*s["inside_interval_frac"], "  (%d not simulated)" % s["failed"] if s["failed"] else ""))
else:
    print("%-46s none of %d could be simulated" % (sys.argv[1], s["failed"]))' "$name"
	done
	echo
}
echo "Errors are in time; positive is predicted too slow."
echo
all "training steps, by source" tests/published/*.csv
all "single kernels and collectives" tests/kernels/*.csv
