#!/usr/bin/env python3
"""calibrate/probes/torch/streams.py - a residual of several streams (hyper-connections) and entries (DeepSeek-V4) in PyTorch: kernels of each part

  python3 calibrate/probes/torch/streams.py OUT.jsonl

One JSON line a case: `tokens`, `width`, `streams`, `compiled`, and `parts`: of each part the microseconds of its kernels forward and backward (`us`: medians
of ROUNDS passes, a buffer of 256 MB written between), how many there are (`kernels`), and the bytes that it keeps for its backward pass beyond its inputs
and outputs (`kept`). `copy` is a copy of all streams in 16 bit, by which the others can be told. Optional: needs torch and a GPU.
"""
import json
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

ROUNDS, ITERATIONS, EPSILON = 8, 20, 1e-6
# tokens, numbers of a stream, streams
SHAPES = [(2048, 4096, 4), (4096, 4096, 4), (8192, 4096, 4), (16384, 4096, 4), (4096, 2048, 4), (4096, 7168, 4), (8192, 7168, 4), (4096, 4096, 2)]
HEAD = 512


def weights(x, matrix):
    wide = x.flatten(1).float()
    return F.linear(wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON), matrix)


def square(logits):
    m = torch.sigmoid(logits) + EPSILON
    for _ in range(ITERATIONS):
        m = m / (m.sum(-1, keepdim=True) + EPSILON)
        m = m / (m.sum(-2, keepdim=True) + EPSILON)
    return m


def total(x, scale):
    return (scale.unsqueeze(-1) * x).sum(1).to(x.dtype)


def mix(x, y, scale, m):
    return scale.to(x.dtype).unsqueeze(-1) * y.unsqueeze(1) + torch.matmul(m.to(x.dtype), x)


def entries(values, gates, places):
    gates = gates.view(-1, places.shape[0], gates.shape[-1]) + places
    return (values.view(gates.shape) * gates.softmax(1, dtype=torch.float32).to(values.dtype)).sum(1)


def parts(tokens, width, n):
    """Of each part the function and its inputs, all of which have gradients."""
    def some(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)
    wide = torch.float32
    return {
        "weights": (weights, (some(tokens, n, width), some(n * (n + 2), n * width, dtype=wide))),
        "square": (square, (some(tokens, n, n, dtype=wide),)),
        "sum": (total, (some(tokens, n, width), some(tokens, n, dtype=wide))),
        "mix": (mix, (some(tokens, n, width), some(tokens, width), some(tokens, n, dtype=wide), some(tokens, n, n, dtype=wide))),
        "gradients": (lambda a, b, c: a + b + c, tuple(some(tokens, n, width) for _ in range(3))),
        "entries_8": (entries, (some(2 * tokens, HEAD), some(2 * tokens, HEAD), some(8, HEAD))),
        "entries_128": (entries, (some(tokens, HEAD), some(tokens, HEAD), some(128, HEAD))),
        "copy": (torch.clone, (some(tokens, n, width),)),
    }


def kernels(work, flush):
    flush.fill_(1.0)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        made = work()
        torch.cuda.synchronize()
    took = [e.device_time for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA and "Memset" not in e.name]
    return made, sum(took), len(took)


def measured(function, values, flush):
    times, counts, kept = ([], []), [0, 0], 0
    gradient = None
    for turn in range(ROUNDS + 2):
        before = torch.cuda.memory_allocated()
        made, us, n = kernels(lambda: function(*values), flush)
        kept = torch.cuda.memory_allocated() - before - made.numel() * made.element_size()
        gradient = torch.randn_like(made) if gradient is None else gradient
        _, back, m = kernels(lambda: torch.autograd.grad(made, values, gradient), flush)
        del made
        if turn > 1:
            times[0].append(us)
            times[1].append(back)
            counts = [n, m]
    return {"us": [statistics.median(t) for t in times], "kernels": counts, "kept": kept}


def main():
    flush = torch.empty(1 << 26, device="cuda")
    with open(sys.argv[1], "w") as out:
        for compiled in (False, True):
            for shape in SHAPES:
                torch._dynamo.reset()
                row = dict(zip(("tokens", "width", "streams"), shape), compiled=compiled, gpu=torch.cuda.get_device_name(), torch=torch.__version__)
                row["parts"] = {}
                for name, (function, values) in parts(*shape).items():
                    work = torch.compile(function, dynamic=False) if compiled and name != "copy" else function
                    row["parts"][name] = measured(work, values, flush)
                print(json.dumps(row), file=out, flush=True)


if __name__ == "__main__":
    main()
