#!/usr/bin/env python3
"""calibrate/probes/torch/host_sizes.py - whether a layer costs its host more when it is large, or when there are many.
Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/host_sizes.py OUT.jsonl

Layers of Llama and of GPT (llama.py and checkpoint_host.py here) in bf16, eager and compiled, of several widths, tokens and
numbers; gradients that are new, or added to those of a micro-batch before (`accumulated`). Fewer launches than the queue
holds, so that the clock of the host reads what the host does even where the GPU is behind. One JSON line a case: microseconds
a layer, forward and backward each, the median of rounds; `step_us`, all layers with the wait for the GPU. Cases run in turns.
"""
import json
import statistics
import sys
import time

import torch

import host
import llama
from checkpoint_host import Gpt

ROUNDS, TURNS = 5, 3
SIZES = [(256, 64, 12), (256, 64, 24), (1600, 64, 12), (1600, 1024, 12), (1600, 1024, 24), (2048, 1024, 12),
         (4096, 512, 12), (4096, 2048, 12)]  # features, tokens, layers


class Case:
    def __init__(self, kind, compiled, accumulated, size):
        hidden, tokens, layers = size
        self.row = dict(kind=kind, compiled=compiled, accumulated=accumulated, hidden=hidden, tokens=tokens, layers=layers)
        heads = max(hidden // 128, 4)
        c = dict(hidden=hidden, heads=heads if hidden % heads == 0 else 25, kv=heads, ffn=(4 if kind == "gpt" else 2) * hidden)
        if hidden == 1600:
            c["heads"] = c["kv"] = 25
        with torch.device("cuda"):
            self.layers = [(llama.Block if kind == "llama" else Gpt)(c).bfloat16() for _ in range(layers)]
        for b in self.layers if compiled else []:
            b.compile()
        self.x = torch.randn(1, tokens, hidden, device="cuda", dtype=torch.bfloat16)
        self.turn = tuple(torch.ones(tokens, hidden // c["heads"] // 2, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.times = {"forward_us": [], "backward_us": []}
        self.steps = []

    def step(self):
        torch.cuda.synchronize()
        start = time.perf_counter()
        x = self.x
        for b in self.layers:
            x = b(x, *self.turn)
        middle = time.perf_counter()
        x.sum().backward()
        end = time.perf_counter()
        torch.cuda.synchronize()
        self.steps.append(1e6 * (time.perf_counter() - start))
        for told, s in zip(self.times.values(), (middle - start, end - middle)):
            told.append(1e6 * s / len(self.layers))
        if not self.row["accumulated"]:
            self.clear()

    def clear(self):
        for b in self.layers:
            for p in b.parameters():
                p.grad = None

    def warm(self):
        for _ in range(3):
            self.step()
        self.clear()
        for v in (*self.times.values(), self.steps):
            v.clear()

    def told(self):
        return dict(self.row, **{k: round(statistics.median(v), 1) for k, v in self.times.items()},
                    **{"least_" + k: round(min(v), 1) for k, v in self.times.items()}, step_us=round(statistics.median(self.steps), 1))


def main():
    torch._dynamo.config.recompile_limit = 256
    torch._dynamo.config.automatic_dynamic_shapes = False
    common = dict(gpu=torch.cuda.get_device_name(), cpu=host.cpu(), torch=torch.__version__)
    with open(sys.argv[1], "a") as out:
        x, y = (torch.ones(256, device="cuda") for _ in range(2))
        for kind, compiled in (("llama", False), ("gpt", False), ("llama", True), ("gpt", True)):
            cases = [Case(kind, compiled, a, s) for s in SIZES for a in (False, True) if not a or s[1:] != (64, 24)]
            for c in cases:
                c.warm()
            for _ in range(TURNS):
                for c in cases:
                    for _ in range(ROUNDS):
                        c.step()
                    c.clear()
                out.write(json.dumps(dict(case="launch", **host.timed(lambda: x.add_(y), 500), **common)) + "\n")
            for c in cases:
                out.write(json.dumps(dict(case="layer", **c.told(), **common)) + "\n")
            out.flush()
            torch._dynamo.reset()


if __name__ == "__main__":
    main()
