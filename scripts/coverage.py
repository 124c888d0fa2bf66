#!/usr/bin/env python3
"""scripts/coverage.py - lines and branches that the tests ran, by folder

    scripts/coverage.py [--files] [--missed FILE]... BUILD [FOLDER...]

Reads gcov's JSON of the counts of each test (BUILD/by/TEST) and of what ran without a test's
name (BUILD itself). A branch counts when gcov saw it taken in any test; nothing is left out,
the false sides of asserts neither. --files lists files, worst first; --missed says which
lines of a file (or of a folder's files) did not run, and which branches were not taken.
Writes BUILD/covered.json: the lines with code of each file, and for each test its seconds and
the lines it ran.
"""
import argparse
import json
import multiprocessing
import os
import subprocess
import sys


def counted(job):
    """What one test ran: {file: (line counts, branch counts)}."""
    build, at = job
    found = {}
    gcda = []
    for folder, _, names in os.walk(at):
        if at == build and "by" in os.path.relpath(folder, at).split(os.sep):
            continue
        for name in names:
            if not name.endswith(".gcda"):
                continue
            path = os.path.join(folder, name)
            note = path[:-5] + ".gcno"
            if not os.path.exists(note):
                os.symlink(os.path.join(build, os.path.relpath(note, at)), note)
            gcda.append(path)
    if not gcda:
        return at, found
    out = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout"] + gcda,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    for text in out.splitlines():
        if not text.startswith("{"):
            continue
        for f in json.loads(text)["files"]:
            if not f["file"].endswith(".c") or f["file"].startswith("/"):
                continue
            lines, branches = found.setdefault(f["file"], ({}, {}))
            for l in f["lines"]:
                n = l["line_number"]
                lines[n] = max(lines.get(n, 0), l["count"])
                for i, b in enumerate(l["branches"]):
                    key = (n, l.get("function_name"), i)
                    branches[key] = max(branches.get(key, 0), b["count"])
    return at, found


def gather(build):
    by = os.path.join(build, "by")
    names = sorted(os.listdir(by)) if os.path.isdir(by) else []
    jobs = [(build, build)] + [(build, os.path.join(by, n)) for n in names]
    seen, tests = {}, {}
    with multiprocessing.Pool() as pool:
        for at, found in pool.imap_unordered(counted, jobs):
            ran = {}
            for path, (lines, branches) in found.items():
                l, b = seen.setdefault(path, ({}, {}))
                for n, count in lines.items():
                    l[n] = max(l.get(n, 0), count)
                for k, count in branches.items():
                    b[k] = max(b.get(k, 0), count)
                ran[path] = sorted(n for n, count in lines.items() if count)
            if at != build:
                try:
                    seconds = float(open(os.path.join(at, "seconds")).read())
                except (OSError, ValueError):
                    seconds = None
                tests[os.path.basename(at)] = {"seconds": seconds, "ran": {
                    p: n for p, n in ran.items() if n}}
    return seen, tests


def row(name, parts):
    l = [x for lines, _ in parts for x in lines.values()]
    b = [x for _, branches in parts for x in branches.values()]
    ran, taken = sum(x > 0 for x in l), sum(x > 0 for x in b)
    print("%-28s %5d of %5d lines %5.1f %%   %5d of %5d branches %5.1f %%" % (
        name, ran, len(l), 100 * ran / max(1, len(l)),
        taken, len(b), 100 * taken / max(1, len(b))))


def missed(path, part):
    lines, branches = part
    text = open(path).read().split("\n")
    untaken = {}
    for (n, _, i), count in sorted(branches.items()):
        if not count and lines.get(n):
            untaken.setdefault(n, []).append(i)
    for n in sorted(set(untaken) | {n for n, count in lines.items() if not count}):
        of = sum(1 for k in branches if k[0] == n)
        print("%s:%d: %-12s%s" % (path, n, "not run" if not lines[n] else "%s of %d" % (
            ",".join(str(i) for i in untaken[n]), of), text[n - 1]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", action="store_true")
    p.add_argument("--missed", action="append", default=[])
    p.add_argument("build")
    p.add_argument("folders", nargs="*")
    a = p.parse_args()
    kept = os.path.join(os.path.abspath(a.build), "covered.json")
    seen, tests = gather(os.path.abspath(a.build))
    if not seen:
        sys.exit("%s: there are no counts; `make coverage` runs the tests" % a.build)
    json.dump({"lines": {f: sorted(v[0]) for f, v in seen.items()}, "tests": tests},
              open(kept, "w"))
    a.folders = a.folders or sorted({f.split("/")[0] for f in seen} - {"tests"})
    seen = {f: v for f, v in seen.items() if f.split("/")[0] in a.folders}
    if a.missed:
        for f in sorted(seen):
            if any(f == m or f.startswith(m.rstrip("/") + "/") for m in a.missed):
                missed(f, seen[f])
        return
    if a.files:
        def untaken(f):
            return -sum(not x for x in seen[f][1].values())
        for f in sorted(seen, key=untaken):
            row(f, [seen[f]])
    for folder in a.folders:
        row(folder, [v for f, v in seen.items() if f.startswith(folder + "/")])
    row("all", list(seen.values()))


if __name__ == "__main__":
    main()
