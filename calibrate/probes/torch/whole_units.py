#!/usr/bin/env python3
"""What FSDP2 costs a layer and a micro-batch in a pipeline stage, which keeps its units whole.

    torchrun --nproc-per-node 1 whole_units.py >> OUT.jsonl

One rank alone: nothing is gathered, and what is left are the hooks on the host and the copies.
torch.distributed.pipelining runs the micro-batches of a step through the only stage: it switches
off resharding and reductions until the last backward. One JSON line a mode:

  host     microseconds a layer and micro-batch of forward and backward, of layers so small that
           the host sets the pace: without FSDP (bare), with it in a loop (loop: gathered for
           forward and backward, reduced each time; stay: not gathered again for backward), and
           in a pipeline stage (stage)
  memory   bytes of a step's peak, and of parameters; layers as large as Llama 3 8B's
  kernels  microseconds a step of each kernel that is FSDP's or adds up gradients
"""
import json
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

LAYERS, MICRO_BATCHES, STEPS = 16, 8, 20


class Layer(nn.Module):
    """As many tensors as a layer of Llama has."""

    def __init__(self, h, f):
        super().__init__()
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(h)) for _ in range(2)])
        self.into = nn.ModuleList([nn.Linear(h, n, bias=False) for n in (h, h // 4, h // 4, f, f)])
        self.out = nn.ModuleList([nn.Linear(n, h, bias=False) for n in (h, f)])

    def forward(self, x):
        y = x * self.norms[0]
        q, k, v = (self.into[i](y) for i in range(3))
        x = x + self.out[0](q * (k + v).repeat(1, 1, 4))
        y = x * self.norms[1]
        return x + self.out[1](self.into[3](y) * self.into[4](y))


class Layers(nn.Module):
    def __init__(self, n, h, f):
        super().__init__()
        self.layers = nn.ModuleList([Layer(h, f) for _ in range(n)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def build(mode, n, h, f):
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Layers(n, h, f)
    if mode == "bare":
        return model.to(torch.bfloat16)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    kept = dict(mesh=init_device_mesh("cuda", (1,)), mp_policy=policy, reshard_after_forward=mode == "loop")
    for layer in model.layers:
        fully_shard(layer, **kept)
    return fully_shard(model, **kept)


def loss(out, _):
    return out.float().sum()


def stepper(mode, model, tokens, h):
    x = torch.randn(MICRO_BATCHES, tokens, h, device="cuda", dtype=torch.bfloat16)
    if mode == "stage":
        stage = PipelineStage(model, 0, 1, torch.device("cuda"))
        schedule = Schedule1F1B(stage, MICRO_BATCHES, loss_fn=loss)
        run = lambda: schedule.step(x, target=x)
    else:
        def run():
            for part in x.split(1):
                loss(model(part), None).backward()

    def step():
        run()
        for p in model.parameters():
            p.grad = None
    return step


def seconds(step):
    times = []
    for _ in range(STEPS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[STEPS // 2]


def kernels_of(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
        step()
        torch.cuda.synchronize()
    told = {}
    for e in p.key_averages():
        if any(s in e.key for s in ("chunk_cat", "split_with_sizes", "CUDAFunctor_add", "copy", "Memcpy", "Reduce", "AllGather")):
            told[e.key[:90]] = [e.count, round(e.device_time_total, 1)]
    return told


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(0)
    for mode in ("bare", "loop", "stay", "stage"):
        step = stepper(mode, build(mode, LAYERS, 256, 512), 64, 256)
        for _ in range(5):
            step()
        row = {"mode": mode, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
               "host_us": 1e6 * seconds(step) / LAYERS / MICRO_BATCHES}
        model = build(mode, 4, 4096, 14336)
        step = stepper(mode, model, 4096, 4096)
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        row.update(peak_bytes=torch.cuda.max_memory_allocated(), step_us=1e6 * seconds(step),
                   parameters=sum(p.numel() for p in model.parameters()), kernels=kernels_of(step))
        print(json.dumps(row), flush=True)
        del step, model
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
