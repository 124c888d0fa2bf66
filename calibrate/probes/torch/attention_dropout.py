#!/usr/bin/env python3
"""calibrate/probes/torch/attention_dropout.py - what dropout of attention's probabilities takes inside a fused kernel.
Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/attention_dropout.py OUT.jsonl

One JSON line a shape (b sequences, h heads, s tokens, d numbers of a head; causal, bf16; masked: the same, said by a mask
of all scores) and probability p: mean microseconds of twenty passes forward and backward, and the kernels that ran. Then dropout alone, of `dropout` numbers.
"""
import json
import sys

import torch
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

SHAPES = [(4, 25, 1024, 64), (8, 25, 1024, 64), (8, 16, 2048, 64), (2, 32, 2048, 128), (4, 32, 2048, 128),
          (1, 32, 8192, 128), (16, 16, 512, 64), (2, 32, 4096, 64), (2, 16, 4096, 256)]
MASKED = [(2, 24, 4096, 128), (4, 24, 2048, 128), (8, 16, 2048, 64), (2, 32, 4096, 64), (1, 16, 8192, 128), (16, 16, 1024, 64)]
NUMBERS = [1 << 24, 1 << 26, 1 << 28]


def timed(call, n=20):
    for _ in range(4):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(n):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / n


def both(forward, inputs):
    """Microseconds of a pass forward and of one backward."""
    out = forward()
    gradient = torch.randn_like(out)
    return {"forward_us": timed(forward),
            "backward_us": timed(lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True))}


def kernels(forward, inputs):
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        out = forward()
        torch.autograd.grad(out, inputs, torch.ones_like(out))
        torch.cuda.synchronize()
    return sorted({e.key[:90] for e in profiler.key_averages() if "sdpa" in e.key or "flash" in e.key or "fmha" in e.key})


def main():
    with open(sys.argv[1], "a") as out:
        for b, h, s, d, masked in [(*shape, False) for shape in SHAPES] + [(*shape, True) for shape in MASKED]:
            q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
            mask = torch.ones(s, s, device="cuda", dtype=torch.bool).tril().expand(b, 1, s, s) if masked else None
            for p in (0.0, 0.1):
                def attend():
                    return scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p, is_causal=not masked)
                row = {"b": b, "h": h, "s": s, "d": d, "masked": masked, "p": p, **both(attend, (q, k, v)), "kernels": kernels(attend, (q, k, v))}
                out.write(json.dumps(row) + "\n")
        for n in NUMBERS:
            for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
                x = torch.randn(n, device="cuda", dtype=dtype, requires_grad=True)
                row = {"dropout": n, **both(lambda: dropout(x, 0.1, True), (x,)), "dtype": name}
                out.write(json.dumps(row) + "\n")


main()
