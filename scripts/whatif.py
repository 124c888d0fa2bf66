# scripts/whatif.py FORETOKEN [--check] - what-ifs on recorded steps against what was measured, as a
# table for docs/traces.md; --check exits 1 if an error exceeds its bound
import csv, json, subprocess, sys

program, check = sys.argv[1], "--check" in sys.argv
folder = "measurements/traces/"
rows = csv.DictReader(line for line in open(folder + "pairs.csv") if not line.startswith("#"))
wrong = 0
print("| recording | asked | recorded ms | predicted ms (P10 to P90) | measured ms | error | |")
print("| --- | --- | --- | --- | --- | --- | --- |")
for row in rows:
    files = [folder + f for f in row["files"].split()]
    said = subprocess.run([program, "trace", "replay", *files, *row["options"].split(), "--json"],
                          check=True, capture_output=True, text=True)
    d = json.loads(said.stdout)
    measured = float(row["measured_step_s"])
    error = d["step_s"] / measured - 1
    low, high = d["interval"]["step_s"]
    wrong += abs(error) > float(row["bound_frac"])
    print("| %s | `%s` | %.2f | %.2f (%.2f to %.2f) | %.2f | %+.1f %% | %s |" % (
        ", ".join(f.split(".kineto")[0].split(".json")[0] for f in row["files"].split()), row["options"],
        1e3 * d["recorded_step_s"], 1e3 * d["step_s"], 1e3 * low, 1e3 * high, 1e3 * measured,
        100 * error, row["what"]))
sys.exit(1 if check and wrong else 0)
