#!/usr/bin/env python3
"""calibrate/probes/torch/optimizers.py - updates of weights by the optimizers that PyTorch and Transformers have.
Optional: needs torch, transformers and one GPU.

  python3 calibrate/probes/torch/optimizers.py OUT.jsonl

One JSON line a case: weights shaped as Llama's layers, embedding and norms, in fp32 or bf16, gradients of the same format.

  gpu_ms     of an update, by events, the median of several
  host_ms    until the call returns, GPU idle before
  state      bytes that stay in the optimizer, a parameter
  peak       bytes that the update needs for a while beyond what stays, a parameter
  kernels    of one update: name, count, microseconds
"""
import collections
import json
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile
from transformers.optimization import Adafactor

SHAPES = {  # layers, hidden, MLP, keys and values, words
    "1b": (16, 2048, 8192, 512, 128256),
    "8b-4L": (4, 4096, 14336, 1024, 128256),
    "125m": (12, 768, 3072, 768, 50257),
}


def tensors(shape, dtype):
    n, h, f, kv, words = shape
    sides = [(words, h)] + [(h,)] * (2 * n + 1)
    sides += [(h, h), (kv, h), (kv, h), (h, h), (f, h), (f, h), (h, f)] * n
    out = []
    for s in sides:
        p = torch.nn.Parameter(torch.randn(s, device="cuda", dtype=dtype) * 0.02)
        p.grad = torch.randn(s, device="cuda", dtype=dtype) * 1e-3
        out.append(p)
    return out


OPTIMIZERS = {
    "adamw-fused": lambda p: torch.optim.AdamW(p, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p),
    "adamw-loop": lambda p: torch.optim.AdamW(p, foreach=False),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
    "sgd-fused": lambda p: torch.optim.SGD(p, lr=1e-3, fused=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
    "momentum-fused": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, fused=True),
    "adafactor": lambda p: Adafactor(p, lr=1e-3, scale_parameter=False, relative_step=False),  # as Trainer sets it
    "adafactor-torch": lambda p: torch.optim.Adafactor(p),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p),
}


def measured(make, shape, dtype):
    weights = tensors(shape, dtype)
    n = sum(w.numel() for w in weights)
    before = torch.cuda.memory_allocated()
    optimizer = make(weights)
    optimizer.step()
    torch.cuda.synchronize()
    stays = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    gpu, host = [], []
    for _ in range(7):
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start = time.perf_counter()
        begin.record()
        optimizer.step()
        end.record()
        host.append(time.perf_counter() - start)
        torch.cuda.synchronize()
        gpu.append(begin.elapsed_time(end))
    peak = torch.cuda.max_memory_allocated()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as recorded:
        optimizer.step()
        torch.cuda.synchronize()
    kernels = collections.defaultdict(lambda: [0, 0.0])
    for e in recorded.events():
        if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith("Optimizer"):
            kernels[e.name[:160]][0] += 1
            kernels[e.name[:160]][1] += e.time_range.elapsed_us()
    return {"parameters": n, "tensors": len(weights), "gpu_ms": statistics.median(gpu), "host_ms": 1e3 * statistics.median(host),
            "state": (stays - before) / n, "peak": (peak - stays) / n,
            "kernels": sorted(([k, c, round(us, 1)] for k, (c, us) in kernels.items()), key=lambda x: -x[2])[:24]}


def main():
    for size, shape in SHAPES.items():
        for dtype in ("float32", "bfloat16"):
            for name, make in OPTIMIZERS.items():
                torch.cuda.empty_cache()
                row = {"optimizer": name, "weights": size, "dtype": dtype}
                try:
                    row.update(measured(make, shape, getattr(torch, dtype)))
                except Exception as e:  # told in its row
                    row["error"] = "%s: %s" % (type(e).__name__, str(e)[:200])
                row.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__)
                with open(sys.argv[1], "a") as out:
                    out.write(json.dumps(row) + "\n")
                print(size, dtype, name, *("%.4g" % row[k] for k in ("gpu_ms", "host_ms", "state", "peak") if k in row),
                      row.get("error", ""), flush=True)


main()
