#!/usr/bin/env python3
"""scripts/product_alone.py - published products on standard input (measurements/published/
gemm.csv), with the quantization of the input taken off where the source timed it too.

NVIDIA aiconfigurator times a whole quantized layer: fp8, block-scaled fp8 and nvfp4 rows of s2 to
s7 hold the kernels that make the input narrow.  A step's graph has casts of its own, so they would
count twice.  What they take is found in the same tables, for each GPU and format:

  q  seconds an element of the input: of products with m and n exchanged, which are the same
     arithmetic, the one with the larger input takes q (m - n) k longer (bf16: 0 within 0.2 ps)
  c  the least: what small products take longer than in bf16

and taken off as (c^3 + (q m k)^3)^(1/3).  On H200 and H100 what is left meets our own fp8
products, which no number here knows, at 4 and 5 %.  The code of the source gets a q."""
import collections
import csv
import statistics
import sys

SOURCES = ("s2", "s3", "s4", "s5", "s6", "s7")
LARGE = 2e7            # elements of input that one side has more, for q
SMALL = (512, 2048)    # tokens, width of products for c

lines = sys.stdin.read().splitlines()
head = [line for line in lines if line.startswith("#")]
rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
times = collections.defaultdict(dict)
for r in rows:
    if r["source"] in SOURCES and not r["status"]:
        times[r["gpu"], r["dtype"]][int(r["m"]), int(r["n"]), int(r["k"])] = float(r["measured.time_us"])


def quantization(gpu, dtype):
    """(c, q) in microseconds, and microseconds an element."""
    here, plain = times[gpu, dtype], times[gpu, "bf16"]
    q = [(t - here[n, m, k]) / ((m - n) * k) for (m, n, k), t in here.items()
         if (n, m, k) in here and (m - n) * k > LARGE]
    c = [t - plain[s] for s, t in here.items()
         if s in plain and s[0] <= SMALL[0] and max(s[1:]) <= SMALL[1]]
    return max(0, statistics.median(c)), max(0, statistics.median(q))


found = {key: quantization(*key) for key in times if key[1] != "bf16"}
if len(sys.argv) > 1:  # any argument: only tell what was found
    for (gpu, dtype), (c, q) in sorted(found.items()):
        print("%-9s %-13s %5.2f us, %.2f ps an element" % (gpu, dtype, c, 1e6 * q))
    sys.exit()
print("\n".join(head))
out = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
out.writeheader()
for r in rows:
    if r["source"] in SOURCES and (r["gpu"], r["dtype"]) in found and not r["status"]:
        c, q = found[r["gpu"], r["dtype"]]
        extra = (c ** 3 + (q * int(r["m"]) * int(r["k"])) ** 3) ** (1 / 3)
        alone = float(r["measured.time_us"]) - extra
        r["measured.time_us"] = "%.4g" % alone
        r["source"] += "q"
        if alone < extra:
            r["status"], r["why"] = "left-out", "mostly quantization"
    out.writerow(r)
