#!/usr/bin/env python3
"""calibrate/probes/torch/mamba.py - a state space (Mamba-2) by the kernels of mamba_ssm, in training: time of each kernel, forward and backward

  python3 calibrate/probes/torch/mamba.py OUT.jsonl

Needs mamba_ssm, whose kernels are Triton's. First prints how far outputs and gradients are from a recurrence in fp32, token by token. Then one JSON line a
shape and pass: `batch`, `seqlen`, `nheads`, `headdim`, `ngroups`, `dstate`, `chunk`, `wall_us` of a call, and `kernels`, microseconds of each name in a call
(means of ROUNDS calls), with their sum, `total_us`. No gate, no initial states, one sequence a row of the batch. Optional: needs torch and a GPU.
"""
import collections
import json
import sys

import torch
import torch.nn.functional as F
from mamba_ssm.ops.triton.ssd_combined import _mamba_chunk_scan_combined_bwd, _mamba_chunk_scan_combined_fwd
from torch.profiler import ProfilerActivity, profile

ROUNDS = 5
NAMES = ("batch", "seqlen", "nheads", "headdim", "ngroups", "dstate", "chunk")
SHAPES = [(1, 8192, 128, 64, 8, 128, 128), (1, 4096, 128, 64, 8, 128, 128), (2, 8192, 64, 64, 8, 128, 128), (1, 8192, 64, 64, 8, 128, 128),
          (1, 32768, 64, 64, 8, 128, 128), (1, 8192, 32, 64, 2, 128, 128), (1, 8192, 16, 64, 1, 128, 128), (8, 2048, 64, 64, 8, 128, 128),
          (4, 4096, 112, 64, 8, 128, 128), (1, 8192, 112, 80, 8, 128, 128), (1, 8192, 128, 64, 8, 128, 256), (1, 8192, 64, 64, 1, 128, 256),
          (1, 8192, 128, 64, 1, 128, 256), (1, 8192, 64, 64, 1, 64, 256)]


def inputs(batch, seqlen, nheads, headdim, ngroups, dstate, dtype=torch.bfloat16):
    def some(*shape, dtype=dtype):
        return torch.randn(*shape, device="cuda", dtype=dtype)
    wide = torch.float32
    return (some(batch, seqlen, nheads, headdim), some(batch, seqlen, nheads), -some(nheads, dtype=wide).exp(), 0.3 * some(batch, seqlen, ngroups, dstate),
            0.3 * some(batch, seqlen, ngroups, dstate), some(nheads, dtype=wide), 0.1 * some(nheads, dtype=wide) - 2)


def forward(values, chunk):
    x, dt, a, b, c, d, bias = values
    return _mamba_chunk_scan_combined_fwd(x, dt, a, b, c, chunk, D=d, dt_bias=bias, dt_softplus=True)


def backward(values, chunk, out, gradient):
    x, dt, a, b, c, d, bias = values
    return _mamba_chunk_scan_combined_bwd(gradient, x, dt, a, b, c, out, chunk, D=d, dt_bias=bias, dt_softplus=True)


def recurrence(x, dt, a, b, c, d, bias):
    times = x.shape[2] // b.shape[2]
    b, c, step = b.repeat_interleave(times, 2).float(), c.repeat_interleave(times, 2).float(), F.softplus(dt.float() + bias)
    state, out = x.new_zeros((*x.shape[:1], *x.shape[2:], b.shape[3]), dtype=torch.float32), []
    for t in range(x.shape[1]):
        moved = (step[:, t].unsqueeze(-1) * x[:, t].float()).unsqueeze(-1) * b[:, t].unsqueeze(2)
        state = state * torch.exp(step[:, t] * a)[..., None, None] + moved
        out.append((state * c[:, t].unsqueeze(2)).sum(-1) + d.unsqueeze(-1) * x[:, t].float())
    return torch.stack(out, 1)


def check(dtype):
    values = [v.requires_grad_() for v in inputs(2, 512, 8, 64, 2, 128, dtype)]
    want = recurrence(*values)
    gradient = torch.randn_like(want)
    wants = [want, *torch.autograd.grad(want, values, gradient)]
    values = [v.detach() for v in values]
    out = forward(values, 128)[0]
    founds = [out, *backward(values, 128, out, gradient.to(out.dtype))[:7]]
    print(dtype, [f"{((f.float() - w.float()).norm() / w.float().norm()).item():.4f}" for f, w in zip(founds, wants)])


def timed(work):
    for _ in range(3):
        work()
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    begin.record()
    for _ in range(ROUNDS):
        work()
    end.record()
    torch.cuda.synchronize()
    kernels = collections.Counter()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(ROUNDS):
            work()
        torch.cuda.synchronize()
    for e in profiler.events():
        if e.device_type == torch.autograd.DeviceType.CUDA:
            kernels[e.name[:60]] += e.device_time / ROUNDS
    return {"wall_us": round(1000 * begin.elapsed_time(end) / ROUNDS, 1), "total_us": round(sum(kernels.values()), 1),
            "kernels": {name: round(us, 1) for name, us in kernels.most_common()}}


def main():
    for dtype in (torch.float32, torch.bfloat16):
        check(dtype)
    with open(sys.argv[1], "w") as out:
        for shape in SHAPES:
            values, chunk = inputs(*shape[:-1]), shape[-1]
            made = forward(values, chunk)[0]
            gradient = torch.randn_like(made)
            for way, work in (("forward", lambda: forward(values, chunk)), ("backward", lambda: backward(values, chunk, made, gradient))):
                row = dict(zip(NAMES, shape), gpu=torch.cuda.get_device_name(), torch=torch.__version__, **timed(work))
                row["pass"] = way
                print(json.dumps(row), file=out, flush=True)


if __name__ == "__main__":
    main()
