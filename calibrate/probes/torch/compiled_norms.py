#!/usr/bin/env python3
"""calibrate/probes/torch/compiled_norms.py - kernels of LayerNorm and RMSNorm behind an addition, compiled and eager, both passes

  python3 calibrate/probes/torch/compiled_norms.py OUT.jsonl

y = norm(x + r) and x + r itself are used, in bf16, as in a layer that normalizes first. One JSON line a case: `norm`, `compiled`, `hidden`, `tokens`,
and of each pass the kernels' microseconds (`forward_us`, `backward_us`: medians of ROUNDS passes, all kernels of one added up, a buffer of 256 MB
written between) and how many there are. Optional: needs torch and a GPU.
"""
import json
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

ROUNDS, TOKENS = 12, 16384
HIDDEN = [512, 768, 1024, 1536, 1600, 2048, 2560, 4096, 5120, 8192]


def make(norm, hidden, compiled):
    weight = torch.ones(hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    bias = torch.zeros(hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)

    def run(x, r):
        s = x + r
        return s, F.layer_norm(s, (hidden,), weight, bias, 1e-5) if norm == "layer" else F.rms_norm(s, (hidden,), weight, 1e-5)
    return torch.compile(run, dynamic=False) if compiled else run, [weight, bias][:2 if norm == "layer" else 1]


def kernels(profiler):
    """Microseconds of each kernel."""
    return [e.device_time for e in profiler.events()
            if e.device_type == torch.autograd.DeviceType.CUDA and "Memset" not in e.name and "FillFunctor" not in e.name]


def timed(before, work, flush):
    each = []
    for _ in range(ROUNDS):
        before()
        flush.fill_(1.0)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            work()
            torch.cuda.synchronize()
        each.append(kernels(profiler))
    return statistics.median(map(sum, each)), len(each[-1])


def measured(norm, hidden, compiled, flush):
    run, weights = make(norm, hidden, compiled)
    x, r, gs, gy = (torch.randn(TOKENS, hidden, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    x.requires_grad_()
    kept, inputs = {}, [x] + weights

    def forward():
        kept["out"] = run(x, r)

    def backward():
        kept["grads"] = torch.autograd.grad(kept["out"], inputs, (gs, gy))
    for _ in range(3):
        forward()
        backward()
    forward_us, n = timed(kept.clear, forward, flush)
    backward_us, m = timed(forward, backward, flush)
    return {"norm": norm, "compiled": compiled, "hidden": hidden, "tokens": TOKENS, "forward_us": forward_us, "forward_kernels": n,
            "backward_us": backward_us, "backward_kernels": m, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}


def main():
    flush = torch.empty(64 << 20, device="cuda")
    with open(sys.argv[1], "w") as out:
        for hidden in HIDDEN:
            for norm in ("layer", "rms"):
                for compiled in (True, False):
                    torch._dynamo.reset()
                    row = measured(norm, hidden, compiled, flush)
                    out.write(json.dumps(row) + "\n")
                    print(row, flush=True)


main()
