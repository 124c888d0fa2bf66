#!/usr/bin/env python3
"""calibrate/probes/torch/strided.py - PyTorch's kernels that are not vectorized, one JSON line a case.
Optional: needs torch and a GPU.

  python3 calibrate/probes/torch/strided.py OUT.jsonl

A case is an operation on tensors of `numbers` features; `us` is the median of one call among others whose
tensors lie elsewhere, so that no cache holds them; `bytes` what its tensors hold, read and written once;
`kernels` the names that the profiler tells, with how many a call and their microseconds.

  copy             of a tensor to another, vectorized: what the others are held against
  query_copy       queries out of [tokens, groups, (heads a group + 2) x 128], as Megatron joins them
  qkv_join         the gradients of q, k and v of such a tensor, put together
  transpose        [heads, tokens, 128] laid out by token
  outer            a row of numbers times a column: `wide` in fp32
  weighted_bias    t + b p for each of eight experts, joined; and its backward
  rope             rotary positions in single operations, q and k apart; and their backward
  odd_add          rows of 4,097 numbers and a column added
  fill             bf16 set to a value
"""
import json
import statistics
import sys

import torch
from torch.profiler import ProfilerActivity, profile

D = 128
BF16 = torch.bfloat16


def made(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def half_turned(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rope(x, cos, sin):
    return x * cos + half_turned(x) * sin


def copy(n, _):
    x, y = made(n), made(n)
    return lambda: y.copy_(x), 4 * n


def query_copy(n, heads):
    tokens = n // (8 * heads * D)
    x = made(tokens, 1, 8, (heads + 2) * D)
    return lambda: x[..., :heads * D].reshape(tokens, 1, 8 * heads, D), 4 * tokens * 8 * heads * D


def qkv_join(n, heads):
    tokens = n // (8 * (heads + 2) * D)
    parts = [made(tokens, 1, 8, w * D) for w in (heads, 1, 1)]
    return lambda: torch.cat(parts, -1), 4 * n


def transpose(n, heads):
    tokens = n // (heads * D)
    x = made(1, heads, tokens, D)
    return lambda: x.transpose(1, 2).contiguous(), 4 * n


def outer(n, wide):
    width = 2880
    b, p = made(width), made(n // width, 1, dtype=torch.float32 if wide else BF16)
    return lambda: b * p, (4 if wide else 2) * (n // width) * width


def weighted_bias(n, back):
    width, experts = 2880, 8
    rows = n // width // experts
    t = made(experts * rows, width).requires_grad_(bool(back))
    bias = [made(width).requires_grad_(bool(back)) for _ in range(experts)]
    p = made(experts * rows, 1).requires_grad_(bool(back))

    def forward():
        return torch.cat([x + b * w for x, b, w in zip(t.split(rows), bias, p.split(rows))])

    if not back:
        return forward, 12 * experts * rows * width
    out = forward()
    g = torch.randn_like(out)
    return (lambda: torch.autograd.grad(out, [t, p, *bias], g, retain_graph=True)), 16 * experts * rows * width


def turned(n, back):
    tokens = n // (40 * D)
    angle = torch.randn(tokens, 1, 1, D, device="cuda")
    cos, sin = angle.cos().to(BF16), angle.sin().to(BF16)
    q = made(tokens, 1, 32, D).requires_grad_(bool(back))
    k = made(tokens, 1, 8, D).requires_grad_(bool(back))
    if not back:
        return lambda: (rope(q, cos, sin), rope(k, cos, sin)), 22.9 * n
    out = [rope(x, cos, sin) for x in (q, k)]
    g = [torch.randn_like(o) for o in out]
    return (lambda: torch.autograd.grad(out, [q, k], g, retain_graph=True)), 24.8 * n


def odd_add(n, _):
    x, y = made(n // 4097, 4097), made(n // 4097, 1)
    return lambda: x + y, 4 * n


def fill(n, _):
    x = made(n)
    return lambda: x.fill_(1.5), 2 * n


CASES = [("copy", copy, [0]), ("query_copy", query_copy, [4, 8]), ("qkv_join", qkv_join, [4, 8]),
         ("transpose", transpose, [32]), ("outer", outer, [0, 1]), ("weighted_bias", weighted_bias, [0, 1]),
         ("rope", turned, [0, 1]), ("odd_add", odd_add, [0]), ("fill", fill, [0])]


def timed(calls):
    """Microseconds of each call, in turn, each between two events."""
    for call in calls:
        call()
    taken = []
    for _ in range(6):
        for call in calls:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            taken.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) * 1e3 for a, b in taken[len(calls):])


def kernels(call):
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        call()
        torch.cuda.synchronize()
    seen = {}
    for e in p.events():
        n, us = seen.get(e.name, (0, 0))
        seen[e.name] = (n + 1, us + e.device_time_total)
    return [{"name": k[:160], "n": n, "us": round(us, 2)} for k, (n, us) in seen.items() if us]


def main():
    with open(sys.argv[1], "w") as out:
        for name, make, ways in CASES:
            for way in ways:
                for mega in (4, 16, 64, 192):
                    n = mega << 20
                    made_n = [make(n, way) for _ in range(4 if mega < 192 else 2)]
                    line = {"case": name, "way": way, "numbers": n, "bytes": made_n[0][1],
                            "us": round(timed([m[0] for m in made_n]), 2), "kernels": kernels(made_n[0][0]),
                            "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
                    print(json.dumps(line), file=out, flush=True)
                    del made_n
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
