#!/usr/bin/env python3
"""scripts/delta_rule.py [ROWS.csv] - rates of the gated delta rule's kernels, from published times of them

Of each GPU and pass of ROWS (measurements/published/delta-rules.csv) prints the bandwidth and the step whose predictions, by the bytes that
traces/delta.c counts and the law of sim/memory_bound.c, differ least from the rows (mean of absolute logarithms), and by how much. The curves
delta_rule and delta_rule_back of hw/gpus/h200.yaml and gb200.yaml are read off these. A launch starts in 1 us (assumed, as in CUDA graphs)."""
import collections
import csv
import math
import os
import sys

CHUNK, WIDTH, START_S = 64, 128, 1e-6
# bytes of a token and head: chunks, states; launches of both
PASSES = {
    "forward": (18 * WIDTH + 12 * CHUNK + 2 * WIDTH * WIDTH / CHUNK, 8 * WIDTH + 2 * WIDTH * WIDTH / CHUNK, 5, 1),
    "backward": (50 * WIDTH + 4 * CHUNK + 4 * WIDTH * WIDTH / CHUNK, 20 * WIDTH + 4 * WIDTH * WIDTH / CHUNK, 7, 2),
}


def predicted(row, bandwidth, step):
    chunks, states, launches, turns = PASSES[row["pass"]]
    length = int(row["sequence_length"])
    heads = int(row["sequences"]) * length * int(row["value_heads"])
    one_after_other = turns * math.ceil(length / CHUNK) * step
    return (launches + turns) * START_S + heads * chunks / bandwidth + max(heads * states / bandwidth, one_after_other)


def errors(rows, bandwidth, step):
    return [math.log(predicted(r, bandwidth, step) / (float(r["time_us"]) * 1e-6)) for r in rows]


def main(path):
    groups = collections.defaultdict(list)
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            groups[row["gpu"], row["pass"]].append(row)
    for (gpu, way), rows in groups.items():
        bandwidth, step = min(((b * 20e9, s * 0.02e-6) for b in range(75, 225) for s in range(40, 140)),
                              key=lambda p: sum(map(abs, errors(rows, *p))))
        e = [abs(x) for x in errors(rows, bandwidth, step)]
        print(f"{gpu:6} {way:9} n {len(rows):3}  bandwidth {bandwidth * 1e-9:.0f} GB/s  step {step * 1e6:.2f} us  "
              f"error {100 * sum(e) / len(e):.1f} %, largest {100 * max(e):.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.path.join(os.path.dirname(__file__), "..", "measurements", "published", "delta-rules.csv")])
