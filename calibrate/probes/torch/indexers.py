#!/usr/bin/env python3
"""calibrate/probes/torch/indexers.py - how an indexer of Transformers (DeepSeek-V3.2, GLM-5) chooses tokens: kernels and memory of its parts

  python3 calibrate/probes/torch/indexers.py OUT.jsonl

One JSON line a case: `batch`, `sequence`, `heads`, `dim`, `compiled`, and `parts`: of each part the microseconds of its kernels (`us`: the median of ROUNDS
passes, a buffer of 256 MB written between), how many there are (`kernels`), and the bytes that the allocator held beyond what was there before
(`held`). A compiled case has one part, all of it. Optional: needs torch and a GPU.
"""
import json
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

ROUNDS, CHOSEN = 8, 2048
# batch, sequence, heads, numbers of a head
SHAPES = [(1, 1024, 64, 128), (1, 2048, 64, 128), (1, 4096, 64, 128), (1, 2048, 32, 128), (1, 4096, 32, 128), (1, 6144, 32, 128), (1, 2048, 16, 128),
          (1, 4096, 16, 128), (1, 4096, 16, 64), (1, 4096, 8, 128), (1, 3072, 24, 128), (2, 1024, 64, 128), (2, 2048, 64, 128), (2, 1536, 48, 128),
          (2, 2048, 32, 128), (4, 1024, 32, 128), (2, 2048, 16, 128), (2, 2048, 16, 64), (4, 2048, 16, 128), (4, 2048, 16, 64), (8, 1024, 16, 128)]


def parts(batch, sequence, heads, dim):
    """The parts in order: each makes s of queries, keys, weights and the s before it."""
    causal = torch.ones(sequence, sequence, device="cuda", dtype=torch.bool).tril()[None]
    return {
        "scores": lambda q, k, w, s: torch.matmul(q.float(), k.transpose(-1, -2).float().unsqueeze(1)),
        "scale": lambda q, k, w, s: s * dim**-0.5,
        "relu": lambda q, k, w, s: F.relu(s),
        "sum": lambda q, k, w, s: torch.matmul(w.float().unsqueeze(-2), s).squeeze(-2),
        "fill": lambda q, k, w, s: s.masked_fill(~causal, float("-inf")),
        "choice": lambda q, k, w, s: s.topk(min(CHOSEN, sequence), dim=-1).indices,
        "mask": lambda q, k, w, s: torch.zeros(batch, sequence, sequence, device="cuda", dtype=torch.bool).scatter_(-1, s, True),
    }


def inputs(batch, sequence, heads, dim):
    def some(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    return some(batch, sequence, heads, dim), some(batch, sequence, dim), some(batch, sequence, heads)


def once(work, values, s, flush):
    """What it makes, and (microseconds, kernels, bytes) of one pass."""
    flush.fill_(1.0)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        s = work(*values, s)
        torch.cuda.synchronize()
    took = [e.device_time for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA and "Memset" not in e.name]
    return s, (sum(took), len(took), torch.cuda.max_memory_allocated() - before)


def compiled_parts(works):
    def whole(q, k, w, s):
        for work in works:
            s = work(q, k, w, s)
        return s
    return {"all": torch.compile(whole, dynamic=False)}


def measured(shape, compiled, flush):
    works = parts(*shape)
    if compiled:
        torch._dynamo.reset()
        works = compiled_parts(list(works.values()))
    each = {name: [] for name in works}
    for turn in range(ROUNDS + 2):
        values, s = inputs(*shape), None
        for name, work in works.items():
            s, taken = once(work, values, s, flush)
            if turn > 1:
                each[name].append(taken)
        del values, s
    return {name: {"us": statistics.median(t[0] for t in taken), "kernels": taken[-1][1], "held": max(t[2] for t in taken)}
            for name, taken in each.items()}


def main():
    flush = torch.empty(1 << 26, device="cuda")
    torch.set_grad_enabled(False)
    with open(sys.argv[1], "w") as out:
        for compiled in (False, True):
            for shape in SHAPES:
                row = dict(zip(("batch", "sequence", "heads", "dim"), shape), compiled=compiled, gpu=torch.cuda.get_device_name(), torch=torch.__version__)
                row["parts"] = measured(shape, compiled, flush)
                print(json.dumps(row), file=out, flush=True)


if __name__ == "__main__":
    main()
