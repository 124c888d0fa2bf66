#!/usr/bin/env python3
"""scripts/grouped.py PROGRAM - experts' products in one launch, published against predicted

measurements/published/grouped.csv.gz has the rate of the forward pass and that of both backward
products together. Of the widths of DeepSeek-V3 and V2 (fitted) `rates.grouped_back` of
stacks/primus-megatron-rocm7-ck.yaml is the median of measured over predicted; the other widths, and
all forward passes, were fitted to nothing."""
import csv
import gzip
import os
import re
import subprocess
import sys
import tempfile

FITTED = ("deepseek-v3", "deepseek-v2")
LAYOUTS = ("forward", "dgrad", "wgrad")
ROOT = os.path.join(os.path.dirname(__file__), "..")


def grouped_back():
    """The stack's factor of each format."""
    with open(os.path.join(ROOT, "stacks", "primus-megatron-rocm7-ck.yaml")) as f:
        return {d: float(x) for d, x in re.findall(r"^    (\w+): {value: ([\d.]+)", f.read(), re.MULTILINE)}


def predicted(program, gpu, rows):
    """Seconds of the three products of each row."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
        print("kernel,gpu,dtype,layout,m,n,k,groups", file=f)
        for r in rows:
            m = int(r["groups"]) * int(r["tokens"])
            for layout in LAYOUTS:
                print("gemm", gpu, r["dtype"], layout, m, r["n"], r["k"], r["groups"], sep=",", file=f)
        f.flush()
        done = subprocess.run([program, "kernel", "--gpu", gpu, "--csv", f.name], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    times = [1e-6 * float(r["predicted.time_us"]) for r in csv.DictReader(done.stdout.splitlines())]
    return [times[i:i + 3] for i in range(0, len(times), 3)]


def line(name, ratios, factor):
    """ratios: measured over predicted."""
    ratios = sorted(ratios)
    n = len(ratios)
    errors = [factor / x - 1 for x in ratios]
    print("  %-44s %4d  %6.2f %6.2f %6.2f  %6.1f%% %+6.1f%%" % (
        name, n, ratios[n // 10], ratios[n // 2], ratios[-1 - n // 10],
        100 * sum(map(abs, errors)) / n, 100 * sum(errors) / n))


def main(program):
    with gzip.open(os.path.join(ROOT, "measurements", "published", "grouped.csv.gz"), "rt") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    found, factor = {}, grouped_back()
    for gpu in sorted({r["gpu"] for r in rows}):
        some = [r for r in rows if r["gpu"] == gpu]
        for r, t in zip(some, predicted(program, gpu, some)):
            flop = 2e-12 * int(r["groups"]) * int(r["tokens"]) * int(r["n"]) * int(r["k"])
            part = "fitted" if r["model"] in FITTED else "held out"
            if r["forward.tflops"]:
                found.setdefault((gpu, r["dtype"], "forward, held out"), []).append(
                    flop / float(r["forward.tflops"]) / t[0])
            found.setdefault((gpu, r["dtype"], "backward, " + part), []).append(
                2 * flop / float(r["backward.tflops"]) / (t[1] + t[2]))
    print("experts' products of Composable Kernel: measured over the profile's, MAPE and bias as the stack has them")
    print("  %-44s %4s  %6s %6s %6s  %7s %7s" % ("", "n", "P10", "median", "P90", "MAPE", "bias"))
    for key in sorted(found):
        line(" ".join(key), found[key], 1 if "forward" in key[2] else factor[key[1]])


if __name__ == "__main__":
    main(sys.argv[1])
