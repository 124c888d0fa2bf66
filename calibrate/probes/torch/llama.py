"""calibrate/probes/torch/llama.py - Llama's layers in plain PyTorch, and how a step of theirs is timed: for the step programs here"""
import gc
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


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


def sharded_model(c, mesh, device, of=Model, wrap=lambda b: b):
    """FSDP2 over `mesh`, each layer wrapped and then compiled: weights in fp32, computed in bf16, gradients reduced in fp32."""
    with torch.device("meta"):
        model = of(c)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for i, b in list(enumerate(model.layers)):
        b = model.layers[i] = wrap(b)
        if c.get("compile"):
            b.compile()
        fully_shard(b, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    with torch.no_grad():
        for p in model.parameters():
            nn.init.normal_(p, std=0.02) if p.dim() > 1 else nn.init.ones_(p)
    return model


def angles(c, device):
    half = c["hidden"] // c["heads"] // 2
    return torch.outer(torch.arange(c["seq"], device=device).float(),
                       1 / 500000 ** (torch.arange(half, device=device) / half))


def kernels_of(step, name):
    """One recorded step of rank 0: (kernel, count, microseconds) of each; the recording itself goes to $TRACE_DIR."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        step()
        torch.cuda.synchronize()
    if dist.get_rank() == 0 and os.environ.get("TRACE_DIR"):
        p.export_chrome_trace(f"{os.environ['TRACE_DIR']}/{name}.rank0.json.gz")
    total = {}
    for e in p.events():
        if e.device_type == torch.autograd.DeviceType.CUDA and e.name:
            n, us = total.get(e.name[:120], (0, 0))
            total[e.name[:120]] = (n + 1, us + e.device_time)
    return sorted(((k, n, round(us, 1)) for k, (n, us) in total.items()), key=lambda t: -t[2])[:60]


def alone(what, times):
    """Seconds of each, begun on all ranks together with nothing under way."""
    took = []
    for _ in range(times):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        what()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    return took


def timed(step, device):
    """(the median of steps that start together, the slowest rank's; steps one behind the other; the peak in GiB)"""
    for _ in range(4):
        step()
    torch.cuda.reset_peak_memory_stats()
    times = alone(step, 8)
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
    return t.median().item(), free, peak.item()


def row_of(c, step, device):
    """Configuration c with what its step took, and its kernels where `trace` asks for them."""
    row = dict(c)
    row["step_s"], row["free_s"], row["peak_gib"] = timed(step, device)
    if c.get("trace"):
        row["kern"] = kernels_of(step, c["name"])
    return row


def begin():
    """This rank's GPU, and a group of all ranks."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def each(device, measure):
    """Of the command's CONFIGS OUT [SECONDS] measure(c) is a row of OUT; what fails says so in its own, and the next may still run."""
    configs, out = sys.argv[1:3]
    end = time.time() + (float(sys.argv[3]) if len(sys.argv) > 3 else 500)
    for c in json.load(open(configs)):
        stop = torch.tensor([float(time.time() > end)], device=device)
        dist.all_reduce(stop)
        if stop.item():
            break
        torch.manual_seed(1234)
        try:
            row = measure(c)
        except (RuntimeError, AttributeError, TypeError, ValueError, NotImplementedError) as e:
            row = dict(c, error=f"{type(e).__name__}: {str(e)[:400]}")
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        if dist.get_rank() == 0:
            row["torch"], row["nccl"] = torch.__version__, ".".join(map(str, torch.cuda.nccl.version()))
            with open(out, "a") as f:
                f.write(json.dumps(row) + "\n")
            print(row["name"], row.get("step_s"), row.get("free_s"), row.get("peak_gib"), row.get("error", ""), flush=True)
    dist.destroy_process_group()
