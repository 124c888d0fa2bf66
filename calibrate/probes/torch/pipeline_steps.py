#!/usr/bin/env python3
"""calibrate/probes/torch/pipeline_steps.py - training steps of torch.distributed.pipelining whose pipeline is drained
once or several times a step, as torchtitan and NeMo AutoModel do where a global batch is several local batches.
Optional: needs torch and as many GPUs as a pipeline has stages.

  torchrun --nproc-per-node 2 calibrate/probes/torch/pipeline_steps.py CONFIGS.json OUT.jsonl [SECONDS]

CONFIGS.json is a list of {name, layers, hidden, heads, kv, ffn, vocab, seq, mbs, micro_batches, flushes, schedule, chunks,
fsdp, compile, recompute, trace}: schedule is 1f1b, gpipe or interleaved (chunks a stage); micro_batches are those of a
step, each run of the schedule has micro_batches / flushes; fsdp shards each stage over a group of one rank, in fp32, else
weights are bf16. One line a configuration: `step_s`, the median of steps that start together (the slowest rank's);
`free_s`, steps one behind the other; `peak_gib`; and with `trace` each kernel's count and microseconds of rank 0 (`kern`).
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from llama import Block, RMSNorm, angles, begin, each, loss_of, row_of

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}


class Chunk(nn.Module):
    """Layers from one cut of the model to the next, with the ends that are theirs."""

    def __init__(self, c, begin_at, end_at, device):
        super().__init__()
        self.tok = nn.Embedding(c["vocab"], c["hidden"]) if begin_at == 0 else None
        self.layers = nn.ModuleList(Block(c) for _ in range(begin_at, end_at))
        last = end_at == c["layers"]
        self.norm = RMSNorm(c["hidden"]) if last else None
        self.output = nn.Linear(c["hidden"], c["vocab"], bias=False) if last else None
        self.again = c.get("recompute") == "full"
        angle = angles(c, device)
        self.turn = angle.cos().bfloat16(), angle.sin().bfloat16()

    def forward(self, x):
        if self.tok is not None:
            x = self.tok(x)
        for b in self.layers:
            x = (torch.utils.checkpoint.checkpoint(b, x, *self.turn, use_reentrant=False) if self.again
                 else b(x, *self.turn))
        return x if self.output is None else self.output(self.norm(x))


def chunk_of(c, at, n, mesh, device):
    """The at-th of n chunks of the model on this rank."""
    cuts = [round(i * c["layers"] / n) for i in range(n + 1)]
    with torch.device(device):
        chunk = Chunk(c, cuts[at], cuts[at + 1], device)
    chunk = chunk if c.get("fsdp") else chunk.bfloat16()
    for b in chunk.layers:
        if c.get("compile"):
            b.compile()
    if c.get("fsdp"):
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for b in chunk.layers:
            fully_shard(b, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
        fully_shard(chunk, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    return chunk


def step_of(c, meshes, device):
    """One training step: the schedule as often as it is flushed, then the update."""
    stages, alone = meshes
    rank, pp, chunks = dist.get_rank(), dist.get_world_size(), c.get("chunks", 1)
    run = c["micro_batches"] // c["flushes"]
    parts = [chunk_of(c, rank + k * pp, pp * chunks, alone, device) for k in range(chunks)]
    of = [PipelineStage(m, rank + k * pp, pp * chunks, device, group=stages.get_group()) for k, m in enumerate(parts)]
    loss = torch.compile(loss_of) if c.get("compile") else loss_of
    schedule = (ScheduleInterleaved1F1B(of, run, loss_fn=loss) if chunks > 1 else
                SCHEDULES[c["schedule"]](of[0], run, loss_fn=loss))
    optimizer = torch.optim.AdamW([p for m in parts for p in m.parameters()], lr=1e-5, fused=True)
    ids, labels = (torch.randint(0, c["vocab"], (c["mbs"] * run, c["seq"]), device=device) for _ in range(2))
    inputs = (ids,) if rank == 0 else ()
    targets = {"target": labels} if rank == pp - 1 else {}

    def step():
        for _ in range(c["flushes"]):
            schedule.step(*inputs, **targets)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def main():
    device = begin()
    mesh = init_device_mesh("cuda", (1, dist.get_world_size()), mesh_dim_names=("dp", "pp"))
    each(device, lambda c: row_of(c, step_of(c, (mesh["pp"], mesh["dp"]), device), device))


main()
