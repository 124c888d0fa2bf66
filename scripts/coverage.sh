#!/bin/sh
# scripts/coverage.sh - lines and branches that ran, by folder: coverage.sh BUILD FOLDER...
#
# From gcov's JSON. Branches of assert() and of reader_fail's arguments are counted like
# all others; a branch counts when gcov saw it taken. --files lists files, worst first.
files=
[ "$1" != --files ] || { files=1; shift; }
build=$1
shift
for folder in "$@"; do
	for c in "$folder"/*.c; do
		o=$build/${c%.c}
		[ -f "$o.gcno" ] || continue
		gcov --json-format --branch-probabilities --stdout "$o.gcno" 2>/dev/null
	done
done | FILES=$files python3 -c '
import json, os, sys
seen = {}
for text in sys.stdin:
    if not text.startswith("{"):
        continue
    for f in json.loads(text)["files"]:
        if not f["file"].endswith(".c") or f["file"].startswith("/"):
            continue
        lines, branches = seen.setdefault(f["file"], ({}, {}))
        for l in f["lines"]:
            n = l["line_number"]
            lines[n] = max(lines.get(n, 0), l["count"])
            for i, b in enumerate(l["branches"]):
                key = (n, l.get("function_name"), i)
                branches[key] = max(branches.get(key, 0), b["count"])
def row(name, parts):
    l = [x for p in parts for x in p[0].values()]
    b = [x for p in parts for x in p[1].values()]
    ran, taken = sum(x > 0 for x in l), sum(x > 0 for x in b)
    print("%-28s %5d of %5d lines %5.1f %%   %5d of %5d branches %5.1f %%" % (
        name, ran, len(l), 100 * ran / max(1, len(l)),
        taken, len(b), 100 * taken / max(1, len(b))))
def share(f):
    b = seen[f][1].values()
    return sum(x > 0 for x in b) - len(b)
if os.environ["FILES"]:
    for f in sorted(seen, key=share):
        row(f, [seen[f]])
for folder in sys.argv[1:]:
    row(folder, [v for k, v in seen.items() if k.startswith(folder + "/")])
row("all", list(seen.values()))' "$@"
