#!/usr/bin/env python3
"""calibrate/probes/torch/context_steps.py - training steps of PyTorch under context parallelism: every rank holds its
chunks of one sequence, and FSDP2 shards the weights over the same ranks (torch.distributed.tensor.experimental, as
torchtitan runs it). Both groups are of all ranks, for which PyTorch has one communicator.  Optional: needs torch and two GPUs or more.

  torchrun --nproc-per-node 2 calibrate/probes/torch/context_steps.py CONFIGS.json OUT.jsonl [SECONDS]

CONFIGS.json is a list of {name, layers, hidden, heads, kv, ffn, vocab, seq, mbs, compile, recompute, rotate, sdpa,
trace}: rotate is allgather (PyTorch's own choice) or alltoall, sdpa cudnn or flash. Keys and values of fewer heads are
repeated before attention, as torchtitan does. One line a configuration: `step_s`, the median of steps that start
together (the slowest rank's); `free_s`, steps one behind the other; `peak_gib`; and with `trace` each kernel's count
and microseconds in one step of rank 0 (`kern`).
"""
import contextlib
import gc
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

try:
    from torch.distributed.tensor.experimental._attention import set_rotate_method
except ImportError:
    from torch.distributed.tensor.experimental._context_parallel._attention import set_rotate_method

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


def rotate_half(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, self.a, self.kv = c["hidden"], c["heads"], c["kv"]
        self.d = h // self.a
        self.norm1, self.norm2 = RMSNorm(h), RMSNorm(h)
        self.wq = nn.Linear(h, self.a * self.d, bias=False)
        self.wk = nn.Linear(h, self.kv * self.d, bias=False)
        self.wv = nn.Linear(h, self.kv * self.d, bias=False)
        self.wo = nn.Linear(self.a * self.d, h, bias=False)
        self.w1 = nn.Linear(h, c["ffn"], bias=False)
        self.w3 = nn.Linear(h, c["ffn"], bias=False)
        self.w2 = nn.Linear(c["ffn"], h, bias=False)

    def attend(self, x, cos, sin):
        B, S, _ = x.shape
        q, k, v = (w(x).view(B, S, -1, self.d).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate_half(q, cos, sin), rotate_half(k, cos, sin)
        if self.kv != self.a:
            k, v = (t.repeat_interleave(self.a // self.kv, dim=1) for t in (k, v))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(o.transpose(1, 2).reshape(B, S, -1))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.norm1(x), cos, sin)
        y = self.norm2(x)
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c["vocab"], c["hidden"])
        self.layers = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.norm = RMSNorm(c["hidden"])
        self.output = nn.Linear(c["hidden"], c["vocab"], bias=False)
        self.again = c.get("recompute") == "full"

    def forward(self, ids, cos, sin):
        x = self.tok(ids)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for b in self.layers:
            x = torch.utils.checkpoint.checkpoint(b, x, cos, sin, use_reentrant=False) if self.again else b(x, cos, sin)
        return self.output(self.norm(x))


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def sharded_model(c, mesh, device):
    with torch.device("meta"):
        model = Model(c)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for b in model.layers:
        if c.get("compile"):
            b.compile()
        fully_shard(b, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    with torch.no_grad():
        for p in model.parameters():
            nn.init.normal_(p, std=0.02) if p.dim() > 1 else nn.init.ones_(p)
    return model


def step_of(c, meshes, device):
    """One training step: forward and backward within the context group, then the update."""
    shards, context = meshes
    model = sharded_model(c, shards, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    loss = torch.compile(loss_of) if c.get("compile") else loss_of
    S, B, half = c["seq"], c["mbs"], c["hidden"] // c["heads"] // 2
    angle = torch.outer(torch.arange(S, device=device).float(), 1 / 500000 ** (torch.arange(half, device=device) / half))
    ids, labels = (torch.randint(0, c["vocab"], (B, S), device=device) for _ in range(2))
    set_rotate_method(c.get("rotate", "allgather"))
    backend = BACKENDS[c.get("sdpa", "cudnn")]

    def step():
        buffers = [ids.clone(), labels.clone(), angle.cos(), angle.sin()]
        with contextlib.ExitStack() as stack:
            stack.enter_context(sdpa_kernel([backend]))
            stack.enter_context(context_parallel(context, buffers=buffers, buffer_seq_dims=[1, 1, 0, 0],
                                                 no_restore_buffers=set(buffers)))
            loss(model(buffers[0], buffers[2], buffers[3]), buffers[1]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def kernels_of(step):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        step()
        torch.cuda.synchronize()
    total = {}
    for e in p.events():
        if e.device_type == torch.autograd.DeviceType.CUDA and e.name:
            n, us = total.get(e.name[:120], (0, 0))
            total[e.name[:120]] = (n + 1, us + e.device_time)
    return p, sorted(((k, n, round(us, 1)) for k, (n, us) in total.items()), key=lambda t: -t[2])[:60]


def measure(c, meshes, device, rank):
    step = step_of(c, meshes, device)
    for _ in range(4):
        step()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(8):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    dist.barrier()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(8):
        step()
    torch.cuda.synchronize()
    free = (time.perf_counter() - start) / 8
    t = torch.tensor(times, device=device)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    peak = torch.tensor([torch.cuda.max_memory_allocated() / 2**30], device=device)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    row = dict(c, step_s=t.median().item(), free_s=free, peak_gib=peak.item())
    if c.get("trace"):
        p, row["kern"] = kernels_of(step)
        if rank == 0 and os.environ.get("TRACE_DIR"):
            p.export_chrome_trace(f"{os.environ['TRACE_DIR']}/{c['name']}.rank0.json.gz")
    return row


def main():
    rank, device = int(os.environ["RANK"]), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    shards = init_device_mesh("cuda", (dist.get_world_size(),))  # of one dimension: on the default group
    context = init_device_mesh("cuda", (1, dist.get_world_size()), mesh_dim_names=("dp", "cp"))["cp"]
    end = time.time() + (float(sys.argv[3]) if len(sys.argv) > 3 else 500)
    for c in json.load(open(sys.argv[1])):
        stop = torch.tensor([float(time.time() > end)], device=device)
        dist.all_reduce(stop)
        if stop.item():
            break
        torch.manual_seed(1234)
        try:
            row = measure(c, (shards, context), device, rank)
        except (RuntimeError, AttributeError, TypeError) as e:  # the next configuration may still run
            row = dict(c, error=f"{type(e).__name__}: {str(e)[:400]}")
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        if rank == 0:
            row["torch"], row["nccl"] = torch.__version__, ".".join(map(str, torch.cuda.nccl.version()))
            with open(sys.argv[2], "a") as f:
                f.write(json.dumps(row) + "\n")
            print(row["name"], row.get("step_s"), row.get("free_s"), row.get("peak_gib"), row.get("error", ""), flush=True)
    dist.destroy_process_group()


main()
