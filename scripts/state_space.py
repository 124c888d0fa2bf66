#!/usr/bin/env python3
"""scripts/state_space.py [ROWS.jsonl.gz] - rates of a state space's kernels, from measured times of them

Of each pass of ROWS (measurements/probes/h200-2026-12-01-mamba-unseen.jsonl.gz) prints the bandwidth, the start of a kernel and the bytes that a score of each
head counts as, whose predictions, by the bytes that traces/state_space.c counts, differ least from the rows (mean of absolute logarithms), and by how
much. The curves state_space and state_space_back of hw/gpus/h200.yaml and the last coefficients of traces/state_space.c are read off these."""
import gzip
import json
import math
import os
import sys

# bytes of x, of a state's number, of a group's score, of a number of B; kernels
PASSES = {"forward": (6, 12, 8, 8, 4), "backward": (22, 34, 24, 38, 12)}


def bytes_of(r):
    x, s, k, b, _ = PASSES[r["pass"]]
    tokens = r["batch"] * r["seqlen"]
    outputs = tokens * r["nheads"] * r["headdim"]
    groups = tokens * r["ngroups"]
    return x * outputs + s * outputs * r["dstate"] / r["chunk"] + k * groups * r["chunk"] + b * groups * r["dstate"]


def errors(rows, bandwidth, score, start):
    return [math.log((PASSES[r["pass"]][-1] * start + (r["bytes"] + score * r["scores"]) / bandwidth) / (r["total_us"] * 1e-6)) for r in rows]


def main(path):
    with gzip.open(path, "rt") as f:
        rows = [json.loads(line) for line in f]
    for r in rows:
        r["bytes"], r["scores"] = bytes_of(r), r["batch"] * r["seqlen"] * r["nheads"] * r["chunk"]
    for way in PASSES:
        own = [r for r in rows if r["pass"] == way]
        best = min(((b * 20e9, s * 0.1, t * 1e-6) for b in range(70, 150) for s in range(80) for t in range(2, 9)),
                   key=lambda p: sum(map(abs, errors(own, *p))))
        e = [abs(x) for x in errors(own, *best)]
        print(f"{way:9} n {len(own)}  bandwidth {best[0] * 1e-9:.0f} GB/s  start {best[2] * 1e6:.0f} us  a score {best[1]:.1f} bytes  "
              f"error {100 * sum(e) / len(e):.1f} %, largest {100 * max(e):.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.path.join(os.path.dirname(__file__), "..", "measurements", "probes", "h200-2026-12-01-mamba-unseen.jsonl.gz")])
