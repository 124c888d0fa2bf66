#!/usr/bin/env python3
"""calibrate/probes/torch/host_ranks.py - what a layer costs its host, by itself and beside other ranks of a node.
Optional: needs torch and as many GPUs as ranks.

  torchrun --nproc-per-node N calibrate/probes/torch/host_ranks.py OUT.jsonl

Twelve layers, so small that the GPU always waits: what a step takes is its host's. Layers of Llama and of GPT (llama.py and
checkpoint_host.py here), eager and compiled, in a checkpoint and in none; on each rank by itself (`alone`: no collective,
so that ranks share nothing but the host), under DistributedDataParallel (`ddp`, autocast), under FSDP2 (`fsdp`), and as stages
of a pipeline of eight micro-batches (`pipeline`). One JSON line a case: the ranks' medians of microseconds a layer (of a
micro-batch), forward, backward, and of the whole step with its update on the slowest rank (`step_us`, all layers). Cases run in
turns, so that a host that slows down slows down all of them; a launch of host.py's is told between them.
"""
import functools
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.utils.checkpoint import checkpoint

import host
import llama
from checkpoint_host import SIZES, TOKENS, Gpt

LAYERS, MICRO_BATCHES, STEPS, TURNS = 12, 8, 5, 3


class Stack(nn.Module):
    def __init__(self, kind, compiled, again):
        super().__init__()
        self.layers = nn.ModuleList((llama.Block if kind == "llama" else Gpt)(SIZES) for _ in range(LAYERS))
        self.again = again
        d = SIZES["hidden"] // SIZES["heads"] // 2
        self.turn = tuple(torch.ones(TOKENS, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        for b in self.layers if compiled else []:
            b.compile()

    def forward(self, x):
        for b in self.layers:
            x = checkpoint(b, x, *self.turn, use_reentrant=False) if self.again else b(x, *self.turn)
        return x


class Case:
    def __init__(self, way, kind, compiled, again, device):
        self.row = dict(way=way, kind=kind, compiled=compiled, again=again, layers=LAYERS, ranks=dist.get_world_size())
        self.times = {"forward_us": [], "backward_us": [], "step_us": []}
        self.model = Stack(kind, compiled, again).to(device)
        self.x = torch.randn(1, TOKENS, SIZES["hidden"], device=device)
        self.autocast = way == "ddp"
        if way in ("alone", "pipeline"):
            self.model, self.x = self.model.bfloat16(), self.x.bfloat16()
        if way == "ddp":
            self.model = nn.parallel.DistributedDataParallel(self.model, device_ids=[device.index], gradient_as_bucket_view=True)
        if way == "fsdp":
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            for b in self.model.layers:
                fully_shard(b, mp_policy=policy)
            fully_shard(self.model, mp_policy=policy)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.work = self.run_pipeline if way == "pipeline" else self.run_plain
        if way == "pipeline":
            self.pipeline(device)

    def pipeline(self, device):
        rank, n = dist.get_rank(), dist.get_world_size()
        stage = PipelineStage(self.model, rank, n, device)
        for name, told in (("forward_one_chunk", "forward_us"), ("backward_one_chunk", "backward_us")):
            setattr(stage, name, functools.partial(self.clocked, getattr(stage, name), told))
        self.schedule = Schedule1F1B(stage, MICRO_BATCHES, loss_fn=lambda y, t: y.float().sum())
        self.inputs = (self.x.expand(MICRO_BATCHES, -1, -1).contiguous(),) if rank == 0 else ()
        self.target = {"target": self.x.expand(MICRO_BATCHES, -1, -1).contiguous()} if rank == n - 1 else {}

    def clocked(self, call, told, *args, **named):
        start = time.perf_counter()
        out = call(*args, **named)
        self.times[told].append(1e6 * (time.perf_counter() - start) / LAYERS)
        return out

    def run_pipeline(self):
        self.schedule.step(*self.inputs, **self.target)

    def run_plain(self):
        start = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            y = self.model(self.x)
        middle = time.perf_counter()
        y.float().sum().backward()
        end = time.perf_counter()
        self.times["forward_us"].append(1e6 * (middle - start) / LAYERS)
        self.times["backward_us"].append(1e6 * (end - middle) / LAYERS)

    def step(self):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.work()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        self.times["step_us"].append(1e6 * (time.perf_counter() - start))

    def told(self):
        mine = {k: statistics.median(v) for k, v in self.times.items()}
        ranks = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, (mine, self.times["step_us"]))
        row = {k: [round(r[0][k], 1) for r in ranks] for k in ("forward_us", "backward_us")}
        return dict(self.row, **row, step_us=round(statistics.median(max(t) for t in zip(*(r[1] for r in ranks))), 1))


def cases(device):
    ways = [("alone", k, c, False) for k in ("llama", "gpt") for c in (False, True)]
    ways += [("alone", "llama", c, True) for c in (False, True)]
    ways += [("ddp", "gpt", False, False), ("ddp", "gpt", True, False), ("ddp", "gpt", False, True)]
    ways += [("fsdp", "llama", False, False), ("fsdp", "llama", True, False), ("fsdp", "llama", False, True)]
    if dist.get_world_size() > 1:
        ways += [("pipeline", "llama", False, False), ("pipeline", "llama", True, False), ("pipeline", "gpt", True, False),
                 ("pipeline", "gpt", True, True)]
    built = []
    for w in ways:
        try:
            c = Case(*w, device)
            for _ in range(3):
                c.step()
            for v in c.times.values():
                v.clear()
            built.append(c)
        except (RuntimeError, AttributeError, TypeError, ValueError, NotImplementedError) as e:
            print(w, repr(e)[:300], file=sys.stderr)
    return built


def main():
    device = llama.begin()
    common = dict(gpu=torch.cuda.get_device_name(), cpu=host.cpu(), cpus=os.cpu_count(), torch=torch.__version__)
    x, y = (torch.ones(256, device="cuda") for _ in range(2))
    rows, launches = cases(device), []
    for _ in range(TURNS):
        for c in rows:
            for _ in range(STEPS):
                c.step()
        launches.append(host.timed(lambda: x.add_(y), 500)["us"])
    told = [dict(case="launch", ranks=dist.get_world_size(), us=launches)] + [dict(case="layer", **c.told()) for c in rows]
    if dist.get_rank() == 0:
        with open(sys.argv[1], "a") as out:
            for t in told:
                out.write(json.dumps(dict(t, **common)) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
