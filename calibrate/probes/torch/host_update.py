#!/usr/bin/env python3
"""calibrate/probes/torch/host_update.py - what an update in host memory takes: AdamW of fp32 numbers on the processor, the norm of
their gradients, and copies of them to the GPU and back. One JSON line a case.  Optional: needs torch; a GPU for the copies.

  python3 calibrate/probes/torch/host_update.py OUT.jsonl

`how` is fused, foreach or loop (PyTorch's AdamW by its argument; on a processor its default is the loop); `threads` what PyTorch may use;
`s` seconds, the median of five; `numbers` in `tensors` of equal size.
"""
import json
import os
import statistics
import sys
import time

import torch

NUMBERS = 1 << 28


def timed(what, times=5):
    took = []
    what()
    for _ in range(times):
        begun = time.perf_counter()
        what()
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def tensors(n, of):
    made = [torch.nn.Parameter(torch.randn(of)) for _ in range(n // of)]
    for p in made:
        p.grad = torch.randn_like(p) * 1e-3
    return made


def main():
    out = open(sys.argv[1], "a")
    most = torch.get_num_threads()
    host = {"processor": [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")][0],
            "cores": os.cpu_count(), "threads_default": most, "torch": torch.__version__}
    print(json.dumps(host), file=out, flush=True)
    parameters = tensors(NUMBERS, 1 << 24)
    for threads in sorted({1, 2, 4, 8, most}):
        torch.set_num_threads(threads)
        for how in ("fused", "loop", "foreach"):
            adam = torch.optim.AdamW(parameters, lr=1e-5, fused=how == "fused", foreach=how == "foreach")
            row = {"what": "adamw", "how": how, "threads": threads, "numbers": NUMBERS, "tensors": len(parameters),
                   "s": timed(adam.step, 3 if threads < 4 else 5)}
            print(json.dumps(row), file=out, flush=True)
            del adam
        for foreach in (False, True):
            row = {"what": "norm", "how": "foreach" if foreach else "loop", "threads": threads, "numbers": NUMBERS,
                   "s": timed(lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=foreach), 3)}
            print(json.dumps(row), file=out, flush=True)
    torch.set_num_threads(most)
    if torch.cuda.is_available():
        for pinned in (True, False):
            there = torch.empty(1 << 26, pin_memory=pinned)
            here = torch.empty(1 << 26, device="cuda")
            for name, to, of in (("to the GPU", here, there), ("to the host", there, here)):
                def copy():
                    to.copy_(of, non_blocking=True)
                    torch.cuda.synchronize()
                row = {"what": name, "pinned": pinned, "bytes": 1 << 28, "s": timed(copy)}
                print(json.dumps(row), file=out, flush=True)


if __name__ == "__main__":
    main()
