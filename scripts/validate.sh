# scripts/validate.sh PROGRAM [BUILD] - the whole accuracy table: every measured row we have
#
# BUILD (build/rel) holds the tests that print the held-out error of kernels; "none" leaves them out.
set -eu
f=$1
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "validate.sh needs python3" >&2; exit 1; }
line() { # NAME: a summary of `validate --json` on stdin as one line
	python3 -c '
import json, sys
s, name = json.load(sys.stdin)["summary"], sys.argv[1][:46]
left = "  (%d not simulated)" % s["failed"] if s["failed"] else ""
if s["n"]:
    print("%-46s %5d %6.1f%% %+6.1f%% %6.1f%% %6.1f%% %6.1f%% %8.0f%%%s" % (
        name, s["n"], 100 * s["mape"], 100 * s["bias"], 100 * s["median"],
        100 * s["p90"], 100 * s["max"], 100 * s["inside_interval_frac"], left))
else:
    print("%-46s none of %d could be simulated" % (name, s["failed"]))' "$1"
}
table() { # TITLE FILE...
	title=$1
	shift
	[ -e "$1" ] || return 0
	printf '%-46s %5s %7s %7s %7s %7s %7s %9s\n' "$title" n MAPE bias median p90 max in-range
	for csv; do
		"$f" validate "$csv" --json | line "$(basename "$csv" .csv)"
	done
	echo
}
echo "Errors are in time; positive is predicted too slow."
echo
python3 scripts/accuracy.py "$f"
echo
table "single kernels and collectives" measurements/kernels/*.csv
python3 scripts/backward.py "$f"
echo
b=${2:-build/rel}
if [ -x "$b/tests/test_kernel_held_out" ]; then
	echo "kernels of the profiles, whole weight shapes (attention: rows) held out, percent"
	"$b/tests/test_kernel_held_out" 2>/dev/null | sed -n 's/^# //p'
	echo
	"$b/tests/test_inside" 2>/dev/null | sed -n 's/^# //p'
	echo
	echo "kilowatts, failures and savings of the table of parts; dollars and joules against published ones"
	"$b/tests/test_parts" 2>/dev/null | sed -n 's/^# //p'
	"$b/tests/test_published_costs" 2>/dev/null | sed -n 's/^# //p'
fi
