#!/usr/bin/env python3
"""calibrate/probes/torch/clamped.py - gpt-oss' gate, whose two inputs are clamped first, one JSON line a case.
Optional: needs torch and a GPU.

  python3 calibrate/probes/torch/clamped.py OUT.jsonl

A case is an operation on rows of 2 x `width` numbers; `us` is the median of one call among others whose tensors lie
elsewhere; `numbers` are rows x width of the output; `kernels` as the profiler tells.

  halves      two halves of a row clamped and joined again, as Megatron Core does before its compiled gate
  gate        that compiled gate, weighted by row in fp32: quick_gelu(a) (b + 1) w
  interleaved numbers of a row taken in turn, clamped, and the gate by single operations, as Transformers does
  compiled    the same, by torch.compile
  *_back      their gradients
  offset      a number copied to the GPU from the host, as Megatron Core does at each call: `host_us` is how long the
              host takes when the GPU still has `behind_us` of work before it
"""
import json
import sys
import time

import torch

from strided import kernels, timed

LIMIT = 7.0


def halves(y, *_):
    a, b = y.chunk(2, -1)
    return torch.cat((a.clamp(min=None, max=LIMIT), b.clamp(min=-LIMIT, max=LIMIT)), -1)


@torch.compile
def gate(y, w, offset):
    a, b = y.chunk(2, -1)
    return (a * torch.sigmoid(1.702 * a) * (b + offset) * w).to(y.dtype)


@torch.compile
def gate_back(g, y, w, offset):
    a, b = y.chunk(2, -1)
    s = torch.sigmoid(1.702 * a)
    gw = g * w
    dy = torch.cat((gw * s * (1 + 1.702 * a * (1 - s)) * (b + offset), gw * a * s), -1)
    dw = (a * s * (b + offset) * g.to(w.dtype)).sum(-1, keepdim=True)
    return dy.to(y.dtype), dw


def interleaved(y, *_):
    a, b = y[..., ::2], y[..., 1::2]
    a = a.clamp(min=None, max=LIMIT)
    b = b.clamp(min=-LIMIT, max=LIMIT)
    return (b + 1) * (a * torch.sigmoid(a * 1.702))


def call_of(name, tensors, compiled):
    y, w, g, offset = tensors
    back = name.endswith("_back")
    if name == "gate":
        return lambda: gate(y, w, offset)
    if name == "gate_back":
        return lambda: gate_back(g, y, w, offset)
    f = compiled if name.startswith("compiled") else {"halves": halves, "interleaved": interleaved}[name.split("_")[0]]
    if not back:
        return lambda: f(y)
    x = y.detach().requires_grad_(True)
    out = f(x)
    given = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, [x], given, retain_graph=True)


def offset_waits(out):
    x = torch.randn(8192, 8192, device="cuda").bfloat16()
    for products in (0, 4, 16):
        taken, behind = [], []
        for _ in range(12):
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(products):
                x @ x
            end.record()
            at = time.perf_counter()
            torch.tensor(1.0, dtype=x.dtype, device=x.device)
            taken.append((time.perf_counter() - at) * 1e6)
            torch.cuda.synchronize()
            behind.append(begin.elapsed_time(end) * 1e3)
        print(json.dumps({"case": "offset", "behind_us": round(sorted(behind)[6], 1),
                          "host_us": round(sorted(taken)[6], 1), "gpu": torch.cuda.get_device_name(),
                          "torch": torch.__version__}), file=out, flush=True)


def main():
    names = ["halves", "halves_back", "gate", "gate_back", "interleaved", "interleaved_back", "compiled", "compiled_back"]
    with open(sys.argv[1], "w") as out:
        offset_waits(out)
        for width in (1440, 2880, 4096):
            for rows in (8192, 16384, 65536):
                sets = [(torch.randn(rows, 2 * width, device="cuda").bfloat16(), torch.rand(rows, 1, device="cuda"),
                         torch.randn(rows, width, device="cuda").bfloat16(),
                         torch.tensor(1.0, dtype=torch.bfloat16, device="cuda")) for _ in range(3)]
                torch._dynamo.reset()
                compiled = torch.compile(interleaved)
                for name in names:
                    calls = [call_of(name, s, compiled) for s in sets]
                    print(json.dumps({"case": name, "width": width, "numbers": rows * width,
                                      "us": round(timed(calls), 2), "kernels": kernels(calls[0]),
                                      "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}), file=out,
                          flush=True)
                    del calls
                del sets
                torch.cuda.empty_cache()


main()
