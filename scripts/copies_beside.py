#!/usr/bin/env python3
"""scripts/copies_beside.py - how fast FSDP2 casts and copies its shards beside compute, and what that costs compute: from recordings.

  python3 scripts/copies_beside.py measurements/traces/*.kineto.json.gz

Prints, for H100 and H200, which share of its time alone a copy gets done beside products, attention and memory-bound kernels (least squares
over runs of ten kernels and more), and how much longer memory-bound kernels take beside a copy. interference.copy_beside_gemm,
copy_beside_memory and memory_beside_copy of hw/gpus/h100-sxm.yaml and h200.yaml are read off these.
"""
import collections
import gzip
import json
import statistics
import sys

PRODUCT, ATTENTION = ("nvjet", "gemm", "Gemm", "cutlass", "enable_3x"), ("sdpa", "flash", "fmha")
APART_US, KERNELS = 1500, 10


def kind(name):
    return "product" if any(p in name for p in PRODUCT) else "attention" if any(p in name for p in ATTENTION) else "memory"


def end(e):
    return e["ts"] + e["dur"]


def common(a, b, e):
    return max(0, min(b, end(e)) - max(a, e["ts"]))


def kernels(path):
    """Of compute's stream, of copies beside it, of collectives."""
    found = [e for e in json.load(gzip.open(path))["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    streams = collections.Counter(e["args"]["stream"] for e in found if e["cat"] == "kernel")
    own = streams.most_common(1)[0][0]
    copies = [e for e in found if e["args"]["stream"] != own and "multi_tensor_apply" in e["name"] and "Copy<c10::BFloat1" in e["name"]]
    return ([e for e in found if e["args"]["stream"] == own], sorted(copies, key=lambda e: e["ts"]),
            [e for e in found if "nccl" in e["name"]])


def runs(copies):
    """Copies that follow one another on one stream."""
    out = []
    for e in copies:
        if out and e["args"]["stream"] == out[-1][-1]["args"]["stream"] and e["ts"] - end(out[-1][-1]) < APART_US:
            out[-1].append(e)
        else:
            out.append([e])
    return [r for r in out if len(r) >= KERNELS]


def solved(rows, sums):
    """Least squares of three unknowns."""
    n = 3
    m = [[sum(r[i] * r[j] for r in rows) for j in range(n)] + [sum(r[i] * s for r, s in zip(rows, sums))] for i in range(n)]
    for i in range(n):
        m[i] = [x / m[i][i] for x in m[i]]
        for k in range(n):
            if k != i:
                m[k] = [x - m[k][i] * y for x, y in zip(m[k], m[i])]
    return [m[i][n] for i in range(n)]


def main():
    seen, slower, files = collections.defaultdict(list), [], 0
    for path in sys.argv[1:]:
        compute, copies, collectives = kernels(path)
        files += bool(copies)
        for run in runs(copies):
            a, b, beside = run[0]["ts"], end(run[-1]), collections.Counter()
            for e in compute:
                beside[kind(e["name"])] += common(a, b, e)
            seen["h200" if "h200" in path else "h100"].append((b - a, sum(e["dur"] for e in run), len(run), beside))
        times = collections.defaultdict(lambda: ([], []))
        for e in compute if copies else []:
            share = sum(common(e["ts"], end(e), c) for c in copies) / e["dur"] if e["dur"] else 0
            if kind(e["name"]) == "memory" and e["dur"] >= 15 and (share < 0.02 or share > 0.85) and \
                    sum(common(e["ts"], end(e), c) for c in collectives) <= 0.02 * e["dur"]:
                times[e["name"], str(e["args"].get("grid")), e["args"].get("bytes")][share > 0.85].append(e["dur"])
        slower += [statistics.median(y) / statistics.median(x) for x, y in times.values() if x and y]
    print("%d recordings with such copies" % files)
    for gpu, found in sorted(seen.items()):
        alone = statistics.median(busy / n for took, busy, n, beside in found if sum(beside.values()) < 0.03 * took)
        some = [(took, n, beside) for took, busy, n, beside in found if sum(beside.values()) > 0.4 * took]
        rates = solved([[beside[k] / took for k in ("product", "attention", "memory")] for took, n, beside in some],
                       [(n * alone - took + sum(beside.values())) / took for took, n, beside in some])
        print("%s: %d runs; done beside products %.2f, attention %.2f, memory-bound kernels %.2f of what is done alone" % (gpu, len(found), *rates))
    slower.sort()
    print("%d memory-bound kernels take %.2f times as long (quarters %.2f and %.2f)" %
          (len(slower), statistics.median(slower), slower[len(slower) // 4], slower[3 * len(slower) // 4]))


main()
