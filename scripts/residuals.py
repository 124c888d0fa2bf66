#!/usr/bin/env python3
"""scripts/residuals.py [--check EVERY] PROGRAM [FILE...] - study/residuals.csv and residuals-unnamed.csv: every
measured step, what it is like, and ln(measured / predicted); study/groups.csv: whose groups of rows they are

FILE...: measurements/steps/*.csv unless given. Each row is predicted twice: under the stack that it was run with, for
the first file, and under the one that foretoken takes when nobody names a stack (generic; generic-2022 where the row's
own stack has no fused attention), for the second. A row whose own stack is such a one is in the second alone.
measurements/sources.csv says which groups are one source. A file that cannot be read ends this; rows that cannot be
simulated are counted and told. Tables that lack columns of PROGRAM's are laid aside meanwhile, with a stand-in in
each: ranges depend on it, errors do not.

--check writes nothing: every EVERY-th row of each file must be in the tables as they stand, with
what PROGRAM predicts now."""
import concurrent.futures
import csv
import fnmatch
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

OTHERS = ["id", "source", "kernel_spread_frac", "host_spread_frac", "clock_faster_frac", "clock_slower_frac", "log_ratio", "tokens_per_s_per_gpu"]
TABLES = {False: "study/residuals.csv", True: "study/residuals-unnamed.csv"}  # by whether the stack is unnamed
GROUPS = "study/groups.csv"
UNNAMED = (("generic", ""), ("generic-2022", "megatron-lm-2022"))  # stack, root of those it stands for


def text_of(path):
    with open(path) as f:
        return [line for line in f if not line.startswith("#")]


def source_of(patterns, file, group):
    for p in patterns:
        of_file, _, of_group = p["pattern"].partition(":")
        if fnmatch.fnmatchcase(file, of_file) and fnmatch.fnmatchcase(group, of_group or "*"):
            return p["source"]
    return group


def with_all_columns(folder):
    """The data that PROGRAM is to read: its own, unless a table lacks a column."""
    with open("study/ranges.yaml") as f:
        columns = re.findall(r"^  (\w+): [\d.]+", f.read(), re.M) + OTHERS
    tables = {name: list(csv.DictReader(text_of(name))) for name in TABLES.values()}
    if all(c in row for rows in tables.values() for row in rows[:1] for c in columns):
        return
    for name in os.listdir("."):
        if name != "study":
            os.symlink(os.path.abspath(name), os.path.join(folder, name))
    shutil.copytree("study", os.path.join(folder, "study"))
    for name, rows in tables.items():
        with open(os.path.join(folder, name), "w", newline="") as out:
            writer = csv.DictWriter(out, columns, "1", "ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    os.environ["FORETOKEN_DATA"] = folder


def predictions(program, path, stack):
    command = [program, "validate", path, "--json"] + (["--set", "stack=" + stack] if stack else [])
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if not done.stdout:  # where no row can be simulated the answer is one, too
        raise SystemExit("%s: not read; study/residuals.csv stays as it was" % path)
    answer = json.loads(done.stdout)
    for f in answer["failed"]:
        print("%s, %s: left out: %s" % (os.path.basename(path), f["id"], f["reason"]), file=sys.stderr)
    return answer["rows"]


def ranks_per_gpu(gpu):
    with open("hw/gpus/%s.yaml" % gpu) as f:
        found = [line.split(":")[1].split("#")[0] for line in f if line.startswith("ranks_per_gpu:")]
    return int(found[0]) if found else 1


def tokens_per_s_per_gpu(row):
    """What was measured, in one unit for all rows."""
    t = row["traits"]
    per_step = t["micro_tokens"] * t["micro_batches"] / (t["tp"] * t["pp"]) * ranks_per_gpu(t["gpu"])
    return {"step_s": lambda v: per_step / v,
            "tokens_per_s": lambda v: v / t["gpus"],
            "tokens_per_s_per_gpu": lambda v: v,
            "model_flop_per_s_per_gpu": lambda v: v / t["flop_per_token"]}[row["key"]](row["measured"])


def rows_of(program, path, patterns):
    name = os.path.basename(path)[:-4]
    own = predictions(program, path, "")
    old = {r["id"] for r in own if r["traits"]["stack_root"] == UNNAMED[1][1]}
    unnamed = [r for r in predictions(program, path, "generic") if r["id"] not in old]
    if old:
        unnamed += [r for r in predictions(program, path, "generic-2022") if r["id"] in old]
    return [{"id": r["id"], "group": r["group"], "source": source_of(patterns, name, r["group"]),
             **r["traits"], "log_ratio": -math.log1p(r["error_frac"]),
             "tokens_per_s_per_gpu": tokens_per_s_per_gpu(r)}
            for r in [r for r in own if not r["traits"]["unnamed"]] + unnamed]


def some_of(path, every, folder):
    """Every so many rows of a file, from a place that depends on its name, as a file of their own."""
    head, *rows = text_of(path)
    with open(os.path.join(folder, os.path.basename(path)), "w") as f:
        f.writelines([head] + rows[sum(map(ord, os.path.basename(path))) % min(every, len(rows))::every])
    return f.name


def check(program, paths, patterns, every):
    kept = {of: list(csv.DictReader(text_of(name))) for of, name in TABLES.items()}
    kept = {(of, tuple(r.values())) for of, rows in kept.items() for r in rows}
    with tempfile.TemporaryDirectory() as folder:
        rows = predicted(program, [some_of(p, every, folder) for p in paths], patterns)
    other = [r for r in rows if (r["unnamed"], tuple(cells(r).values())) not in kept]
    for r in other:
        print("%s has not: %s" % (TABLES[r["unnamed"]], ",".join(cells(r).values())), file=sys.stderr)
    unknown = set(groups_of(rows)) - {tuple(r.values()) for r in csv.DictReader(text_of(GROUPS))}
    for pair in sorted(unknown):
        print("%s has not: %s" % (GROUPS, ",".join(pair)), file=sys.stderr)
    print("%d rows" % len(rows))
    if other or unknown or not rows:
        raise SystemExit("the tables are of another program: run `make residuals`")


def groups_of(rows):
    return sorted({(r["group"], r["source"]) for r in rows})


def cells(row):
    """What stands in a table of a row: which of the tables says whether its stack is unnamed."""
    return {k: "%.6g" % v if isinstance(v, float) else str(v)
            for k, v in row.items() if k not in ("unnamed", "group")}


def write(name, head, rows):
    with open(name + ".part", "w", newline="") as out:
        out.write("# written by `make residuals`; do not edit. %s\n" % head)
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def predicted(program, paths, patterns):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [r for some in pool.map(lambda path: rows_of(program, path, patterns), paths) for r in some]


def main():
    every = int(sys.argv[2]) if sys.argv[1] == "--check" else 0
    program, *given = [os.path.abspath(f) for f in sys.argv[3 if every else 1:]]
    os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
    patterns = list(csv.DictReader(text_of("measurements/sources.csv")))
    paths = given or sorted(glob.glob("measurements/steps/*.csv"))
    if every:
        return check(program, paths, patterns, every)
    with tempfile.TemporaryDirectory() as folder:
        with_all_columns(folder)
        rows = predicted(program, paths, patterns)
    if {r["unnamed"] for r in rows} != set(TABLES):
        raise SystemExit("no row of one of the tables could be predicted; both stay as they were")
    for unnamed, name in TABLES.items():
        of = [r for r in rows if r["unnamed"] == unnamed]
        write(name, "log_ratio: ln(measured / predicted) of a step; tokens_per_s_per_gpu: measured",
              [cells(r) for r in of])
        print("%s: %d rows of %d sources" % (name, len(of), len({r["source"] for r in of})))
    write(GROUPS, "group: of rows of measurements/steps/; source: whose they are, by measurements/sources.csv",
          [{"group": g, "source": s} for g, s in groups_of(rows)])
    for name in (*TABLES.values(), GROUPS):
        os.replace(name + ".part", name)


main()
