#!/usr/bin/env python3
"""scripts/accuracy.py PROGRAM - errors of all rows of measurements/steps, pooled: by source, by each
way of `validate --by`, of peak memory, and of scaling efficiency

The last: of runs of one file that differ in GPUs and batch alone, tokens/s per GPU over
that of the fewest GPUs, measured and predicted; the difference in points."""
import collections
import concurrent.futures
import csv
import glob
import json
import math
import os
import subprocess
import sys

PEAK = "memory_bytes_per_gpu.total"
NOT_THE_RUN = ("id", "group", "source", "notes", "cluster.gpus", "training.global_batch_size")


def answer(program, path):
    done = subprocess.run([program, "validate", path, "--json"], stdout=subprocess.PIPE)
    if not done.stdout:  # where no row can be simulated the answer is one, too
        raise SystemExit("%s: not read" % path)
    return json.loads(done.stdout)


def quantile(values, q):
    return values[max(0, math.ceil(q * len(values)) - 1)] if values else 0


def middle(v):
    half = len(v) // 2
    return v[half] if len(v) % 2 else (v[half - 1] + v[half]) / 2


def is_slow(r):
    return r["measured"] < r["low"] if "per_s" in r["key"] else r["measured"] > r["high"]


def line(name, rows, failed):
    e = [r["error_frac"] for r in rows]
    absolute = sorted(abs(x) for x in e)
    n = len(rows)
    left = "  (%d not simulated)" % failed if failed else ""
    if not n:
        print("%-46s none of %d could be simulated" % (name[:46], failed))
        return
    inside = sum(r["low"] <= r["measured"] <= r["high"] for r in rows)
    slow = sum(is_slow(r) for r in rows)
    print("%-46s %5d %6.1f%% %+6.1f%% %6.1f%% %6.1f%% %6.1f%% %7.0f%% %6.0f%% %6.0f%%%s" % (
        name[:46], n, 100 * sum(absolute) / n, 100 * sum(e) / n, 100 * middle(absolute),
        100 * quantile(absolute, 0.9), 100 * absolute[-1], 100 * inside / n, 100 * slow / n,
        100 * (n - inside - slow) / n, left))


def table(title, classes, failed=None):
    print("%-46s %5s %7s %7s %7s %7s %7s %8s %7s %7s" % (
        title, "n", "MAPE", "bias", "median", "p90", "max", "in-range", "slower", "faster"))
    for name, rows in classes.items():
        line(name, rows, (failed or {}).get(name, 0))
    line("all", [r for rows in classes.values() for r in rows], sum((failed or {}).values()))
    print()


def tokens_per_gpu(row, value, key):
    """Of a step or a rate of one run; the sequences and GPUs are the same in both."""
    gpus = float(row["cluster.gpus"])
    if key == "step_s":
        return float(row["training.sequence_length"]) * float(row["training.global_batch_size"]) / (value * gpus)
    return value / gpus if key == "tokens_per_s" else value


def scaling(answers):
    groups = collections.OrderedDict()
    for path, got in answers.items():
        with open(path) as f:
            given = list(csv.DictReader(l for l in f if not l.startswith("#")))
        by_id = {r["id"]: r for r in given}
        for r in got["rows"]:
            row = by_id.get(r["id"])
            if row:
                same = tuple(v for k, v in row.items() if k not in NOT_THE_RUN and not k.startswith("measured."))
                groups.setdefault((path, r["key"], same), []).append(
                    [float(row["cluster.gpus"])] +
                    [tokens_per_gpu(row, r[k], r["key"]) for k in ("measured", "predicted")])
    points, least = [], []
    for runs in groups.values():
        runs.sort()
        first = runs[0]
        for gpus, measured, predicted in runs:
            if gpus > first[0]:
                points.append(100 * (predicted / first[2] - measured / first[1]))
                least.append(gpus / first[0])
    points.sort()
    absolute = sorted(map(abs, points))
    if points:
        print("scaling efficiency, on up to %.0f times the GPUs of the smallest run that is otherwise the same: %d pairs,"
              "\n  mean error %+.1f points, median of the absolute errors %.1f, p90 %.1f" % (
                  max(least), len(points), sum(points) / len(points), middle(absolute), quantile(absolute, 0.9)))


def main():
    program = os.path.abspath(sys.argv[1])
    os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
    paths = sorted(glob.glob("measurements/steps/*.csv"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = dict(zip(paths, pool.map(lambda p: answer(program, p), paths)))
    names = {p: os.path.basename(p)[:-4] for p in paths}
    timed = [p for p in paths if answers[p]["rows"] or answers[p]["failed"]]
    table("training steps, by source", {names[p]: answers[p]["rows"] for p in timed},
          {names[p]: len(answers[p]["failed"]) for p in timed})
    rows = [r for a in answers.values() for r in a["rows"]]
    for by in rows[0]["classes"]:
        classes = collections.defaultdict(list)
        for r in rows:
            classes[r["classes"][by]].append(r)
        order = {"gpus": "gpus", "size": "flop_per_token"}.get(by)
        table("all files, by " + by, dict(sorted(classes.items(), key=lambda c: (
            min(r["traits"][order] for r in c[1]) if order else 0, c[0]))))
    peaks = {names[p]: [r for r in answers[p]["other_rows"] if r["key"] == PEAK] for p in paths}
    table("all files, by source: peak memory", {name: of for name, of in peaks.items() if of})
    scaling(answers)


main()
