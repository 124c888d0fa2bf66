#!/usr/bin/env python3
"""scripts/backward.py PROGRAM - backward products, published against predicted

measurements/published/backward.csv.gz has the rate of the forward pass and that of both backward
products together. Of experts' products in one launch, the widths of DeepSeek-V3 and V2 (fitted) say
`rates.grouped_back` of stacks/primus-megatron-rocm7-ck.yaml, the median of measured over predicted (in
fp8 with the quantization, which a step counts besides); of single ones, those of Llama 2 and Llama 3.1 8B
say `gemm.layout` of hw/gpus/mi300x.yaml, by the backward pass against the forward one. The other widths,
and all forward passes, were fitted to nothing. The first columns leave the stack's factor out."""
import csv
import gzip
import os
import re
import subprocess
import sys
import tempfile

FITTED = ("deepseek-v3", "deepseek-v2", "llama2-7b", "llama2-70b", "llama3.1-8b")
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
    print("  %-55s %4d  %6.2f %6.2f %6.2f  %6.1f%% %+6.1f%%" % (
        name, n, ratios[n // 10], ratios[n // 2], ratios[-1 - n // 10],
        100 * sum(map(abs, errors)) / n, 100 * sum(errors) / n))


def main(program):
    with gzip.open(os.path.join(ROOT, "measurements", "published", "backward.csv.gz"), "rt") as f:
        rows = list(csv.DictReader(text for text in f if not text.startswith("#")))
    found, factor = {}, grouped_back()
    for gpu in sorted({r["gpu"] for r in rows}):
        some = [r for r in rows if r["gpu"] == gpu]
        for r, t in zip(some, predicted(program, gpu, some)):
            flop = 2e-12 * int(r["groups"]) * int(r["tokens"]) * int(r["n"]) * int(r["k"])
            key = (gpu, r["dtype"], "experts'" if int(r["groups"]) > 1 else "single")
            part = "backward, " + ("fitted" if r["model"] in FITTED else "held out")
            back = 2 * flop / float(r["backward.tflops"]) / (t[1] + t[2])
            forward = flop / float(r["forward.tflops"]) / t[0] if r["forward.tflops"] else None
            if forward:
                found.setdefault(key + ("forward, held out",), []).append(forward)
            if key[2] == "single":
                back /= forward  # whatever the clock
                part += ", against forward"
            found.setdefault(key + (part,), []).append(back)
    print("backward products: measured over the profile's, MAPE and bias as profile and stack have them")
    print("  %-55s %4s  %6s %6s %6s  %7s %7s" % ("", "n", "P10", "median", "P90", "MAPE", "bias"))
    for key in sorted(found):
        line(" ".join(key), found[key], factor[key[1]] if key[2] != "single" and "backward" in key[3] else 1)


if __name__ == "__main__":
    main(sys.argv[1])
