#!/usr/bin/env python3
"""calibrate/probes/torch/weighted.py - what torch.compile makes of a gate whose output is weighted, as experts'
are by their router, one JSON line a case. Optional: needs torch and a GPU.

  python3 calibrate/probes/torch/weighted.py OUT.jsonl

Each row's output silu(a) b is multiplied by the row's weight, in fp32; backward there are gradients of a, b and the weight,
which is a sum over the row. `plain` is without weights. `us` is the median of one call among others whose tensors lie
elsewhere; `numbers` are rows x width of the output; `kernels` as the profiler tells.
"""
import json
import sys

import torch
import torch.nn.functional as F

from strided import kernels, timed


def gate(y):
    a, b = y.chunk(2, -1)
    return F.silu(a) * b


def gate_back(g, y):
    a, b = y.chunk(2, -1)
    s = torch.sigmoid(a)
    return torch.cat((g * s * (1 + a * (1 - s)) * b, g * F.silu(a)), -1)


@torch.compile
def plain(y, w, g):
    return gate(y)


@torch.compile
def plain_back(y, w, g):
    return gate_back(g, y)


@torch.compile
def weighted(y, w, g):
    return (gate(y) * w).to(y.dtype)


@torch.compile
def weighted_back(y, w, g):
    dy = gate_back(g * w, y).to(y.dtype)
    dw = (gate(y) * g.to(w.dtype)).sum(-1, keepdim=True)
    return dy, dw


def main():
    with open(sys.argv[1], "w") as out:
        for width in (768, 1408, 2048, 2880, 14336):
            rows = (96 << 20) // width
            sets = [(torch.randn(rows, 2 * width, device="cuda").bfloat16(), torch.rand(rows, 1, device="cuda"),
                     torch.randn(rows, width, device="cuda").bfloat16()) for _ in range(3)]
            for name, call in (("plain", plain), ("plain_back", plain_back), ("weighted", weighted),
                               ("weighted_back", weighted_back)):
                torch._dynamo.reset()
                calls = [lambda s=s, call=call: call(*s) for s in sets]
                print(json.dumps({"case": name, "width": width, "numbers": rows * width, "us": round(timed(calls), 2),
                                  "kernels": kernels(calls[0]), "gpu": torch.cuda.get_device_name(),
                                  "torch": torch.__version__}), file=out, flush=True)
            del sets


main()
