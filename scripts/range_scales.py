#!/usr/bin/env python3
"""scripts/range_scales.py [ROWS] - are the distances of study/ranges.yaml well chosen?

Each source of study/residuals.csv (and residuals-unnamed.csv) is left out in turn and its rows (ROWS of each, 12, evenly
picked) are held against the range that all others give, by the equations of study/evidence.h
(kernels' spread aside). Prints the loss (pinball loss of P10 and P90, sources by the root of
their rows) and how many rows are inside, faster and slower, with the file's numbers; then what
the loss becomes when one number is halved, doubled or 0. Lower is better; a change below 1 %
says nothing."""
import csv
import math
import os
import re
import sys

MOST = int(sys.argv[1]) if len(sys.argv) > 1 else 12
FARTHEST = 0.7  # beyond twice as slow, a row counts as if it were there

os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
text = open("study/ranges.yaml").read()
scales = {k: float(v) for k, v in re.findall(r"^  (\w+): ([\d.]+)$", text, re.M)}
scales.update((k, float(v)) for k, v in re.findall(r"^(widening|missing_sources): ([\d.]+)", text, re.M))
WORDS = ("gpu", "generation", "stack", "stack_root", "model", "precision", "sharding", "optimizer", "trained", "offload_state",
         "attention")
words = [k for k in scales if k in WORDS]
numbers = [k for k in scales if k not in words + ["widening", "missing_sources"]]


def read(of_unnamed):
    sources = {}
    with open("study/residuals-unnamed.csv" if of_unnamed else "study/residuals.csv") as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            sources.setdefault(row["source"], []).append(row)
    return [[rows[i * len(rows) // min(MOST, len(rows))] for i in range(min(MOST, len(rows)))]
            for rows in sources.values()]


def apart(a, b, k):
    return float(a[k] != b[k]) if k in words else math.log2(float(a[k]) / float(b[k])) ** 2


def pairs(sources):
    """For each row: its residual, its source's rows, and all rows of other sources with how far
    apart each trait is, squared."""
    keys = words + numbers
    return [(float(a["log_ratio"]), len(own),
             [[(float(b["log_ratio"]), [apart(a, b, k) for k in keys]) for b in other]
              for other in sources if other is not own])
            for own in sources for a in own]


def quantile(points, whole, level):
    before = at = 0
    value = points[0][0]
    for i, (r, w) in enumerate(points):
        here = before + w / 2
        if here >= level * whole:
            return value + (r - value) * (level * whole - at) / (here - at) if i else r
        before, at, value = before + w, here, r
    return value


def span(others, s):
    weight = [s[k] ** 2 for k in words + numbers]
    points, close = [], []
    for rows in others:
        d = [math.sqrt(sum(w * x for w, x in zip(weight, apart2))) for _, apart2 in rows]
        whole = sum(math.exp(-x) for x in d)
        close.append(math.exp(-min(d)))
        points += [(r, close[-1] * math.exp(-x) / whole) for (r, _), x in zip(rows, d)]
    points.sort()
    whole = sum(close)
    n = whole ** 2 / sum(c * c for c in close)
    level = 0.1 * n / (n + s["missing_sources"])
    low, middle, high = (quantile(points, whole, x) for x in (level, 0.5, 1 - level))
    more = 1 - s["widening"] * math.log(max(close))
    return min(0, middle - (middle - low) * more), max(0, middle + (high - middle) * more)


def pinball(x, level):
    return level * x if x > 0 else (level - 1) * x


def judge(cases, s):
    loss = weights = fast = slow = sources = 0
    for r, n, others in cases:
        low, high = span(others, s)
        y = max(-FARTHEST, min(FARTHEST, r))
        loss += (pinball(y - low, 0.1) + pinball(y - high, 0.9)) / math.sqrt(n)
        weights += 1 / math.sqrt(n)
        fast += (y < low) / n
        slow += (y > high) / n
        sources += 1 / n
    return loss / weights, fast / sources, slow / sources


both = [pairs(read(False)), pairs(read(True))]
for name, cases in zip(("stack named", "no stack named"), both):
    loss, fast, slow = judge(cases, scales)
    print("%-15s loss %.4f; of a source's rows %.0f %% inside, %.0f %% faster than P10, %.0f %% slower than P90" % (
        name, loss, 100 * (1 - fast - slow), 100 * fast, 100 * slow))
start = sum(judge(c, scales)[0] for c in both)
print("\n%-16s %6s  loss with 0, half, twice" % ("", "value"))
for k in scales:
    change = [sum(judge(c, {**scales, k: scales[k] * by})[0] for c in both) / start - 1 for by in (0, 0.5, 2)]
    print("%-16s %6g  %s" % (k, scales[k], " ".join("%+5.1f %%" % (100 * x) for x in change)))
