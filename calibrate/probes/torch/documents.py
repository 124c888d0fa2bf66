#!/usr/bin/env python3
"""calibrate/probes/torch/documents.py - attention over sequences packed of documents, beside each as a sequence of its own

  python3 calibrate/probes/torch/documents.py OUT.jsonl

FlashAttention as PyTorch has it, causal, 16,384 tokens, heads of 128 in bf16. Of each length a line: `equal_us`, documents
of that length packed; `apart_us`, the same as a batch; `unequal_us`, lengths drawn so that a token sees as long a document
on average (sum of n n over sum of n, `seen`); each forward and backward. Optional: needs torch 2.9 and a GPU.
"""
import json
import random
import sys

import torch

TOKENS, DIM = 16384, 128
flash, back = torch.ops.aten._flash_attention_forward, torch.ops.aten._flash_attention_backward


def drawn(length):
    """Documents of other lengths, a few times as long and as short, whose mean as a token sees it is the same."""
    best = None
    for seed in range(4000):
        rnd, left, n = random.Random(seed), TOKENS, []
        while left:
            n.append(min(left, max(16, int(rnd.lognormvariate(0, 0.8) * length * 0.55))))
            left -= n[-1]
        seen = sum(x * x for x in n) / TOKENS
        if best is None or abs(seen / length - 1) < abs(best[0] / length - 1):
            best = seen, n
    return best


def timed(what):
    for _ in range(3):
        what()
    torch.cuda.synchronize()
    took = []
    for _ in range(15):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        what()
        b.record()
        torch.cuda.synchronize()
        took.append(1e3 * a.elapsed_time(b))
    return sorted(took)[7]


def measured(heads, lengths, packed):
    """(forward, backward) in microseconds."""
    shape = (TOKENS,) if packed else (len(lengths), lengths[0])
    q, k, v, g = (torch.randn(*shape, heads, DIM, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    starts = torch.tensor([0] + list(torch.tensor(lengths).cumsum(0)), device="cuda", dtype=torch.int32) if packed else None
    most = max(lengths)
    out = flash(q, k, v, starts, starts, most, most, 0.0, True, False)
    forward = timed(lambda: flash(q, k, v, starts, starts, most, most, 0.0, True, False))
    return forward, timed(lambda: back(g, q, k, v, out[0], out[1], starts, starts, most, most, 0.0, True, out[2], out[3]))


def main():
    for heads in (32, 8):
        for length in (128, 256, 512, 1024, 2048, 4096, 8192, 16384):
            equal = [length] * (TOKENS // length)
            seen, unequal = drawn(length) if length < TOKENS else (TOKENS, equal)
            row = {"heads": heads, "length": length, "seen": seen, "longest": max(unequal), "documents": len(unequal),
                   "equal_us": measured(heads, equal, True), "apart_us": measured(heads, equal, False),
                   "unequal_us": measured(heads, unequal, True), "torch": torch.__version__,
                   "device": torch.cuda.get_device_name()}
            with open(sys.argv[1], "a") as f:
                f.write(json.dumps(row) + "\n")
            print(row, flush=True)


main()
