#!/usr/bin/env python3
"""calibrate/probes/torch/muon_steps.py - training steps of PyTorch whose matrices Muon updates, and the update alone

  torchrun --nproc-per-node N calibrate/probes/torch/muon_steps.py CONFIGS.json OUT.jsonl [SECONDS]

CONFIGS.json is a list of {name, layers, hidden, heads, kv, ffn, vocab, seq, mbs, compile, how, optimizer, trace}: how is
fsdp (FSDP2 over all ranks) or ddp (whole weights, autocast), optimizer is muon (torch.optim.Muon has the layers'
matrices, fused AdamW the embedding, the head and the norms) or adamw (fused, all). One line a configuration: `step_s`,
the median of steps that start together (the slowest rank's); `free_s`, steps one behind the other; `update_s`, the
median of the update alone; `peak_gib`; and with `trace` each kernel's count and microseconds in one step of rank 0, and
in one update (`kern`, `update_kern`), and with `calls` each product, copy and collective of one update with the shape that it
has on this rank (`update_calls`). Optional: needs torch 2.9 and a GPU.
"""
import collections

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from llama import Model, alone, angles, begin, each, kernels_of, loss_of, sharded_model, timed


def whole_model(c, device):
    with torch.device(device):
        model = Model(c)
    for p in model.parameters():
        nn.init.normal_(p, std=0.02) if p.dim() > 1 else nn.init.ones_(p)
    if c.get("compile"):
        for b in model.layers:
            b.compile()
    return DistributedDataParallel(model, device_ids=[device.index], gradient_as_bucket_view=True)


def optimizers_of(c, model):
    if c["optimizer"] == "adamw":
        return [torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)]
    named = list(model.named_parameters())
    matrix = [p for n, p in named if ".layers." in "." + n and p.dim() == 2]
    other = [p for n, p in named if not (".layers." in "." + n and p.dim() == 2)]
    return [torch.optim.Muon(matrix, lr=1e-5), torch.optim.AdamW(other, lr=1e-5, fused=True)]


class Calls(TorchDispatchMode):
    """Counts calls on local tensors, by name and shapes; what DTensor does is seen as its own calls."""

    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        shapes = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
        self.seen[f"{func} {shapes}"] += 1
        return func(*args, **(kwargs or {}))


def calls_of(what):
    with Calls() as calls:
        what()
    return sorted(calls.seen.items(), key=lambda t: (-t[1], t[0]))


def step_of(c, mesh, device):
    """(one training step, its update alone, with the gradients of the last one)"""
    ddp = c.get("how", "fsdp") == "ddp"
    model = whole_model(c, device) if ddp else sharded_model(c, mesh, device)
    optimizers = optimizers_of(c, model)
    loss = torch.compile(loss_of) if c.get("compile") else loss_of
    angle = angles(c, device)
    ids, labels = (torch.randint(0, c["vocab"], (c["mbs"], c["seq"]), device=device) for _ in range(2))

    def passes():
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]), torch.autocast("cuda", torch.bfloat16, enabled=ddp):
            loss(model(ids, angle.cos(), angle.sin()), labels).backward()

    def update():
        for o in optimizers:
            o.step()

    def step():
        passes()
        update()
        for o in optimizers:
            o.zero_grad(set_to_none=True)

    return step, passes, update


def measure(c, mesh, device):
    step, passes, update = step_of(c, mesh, device)
    row = dict(c, ranks=dist.get_world_size())
    row["step_s"], row["free_s"], row["peak_gib"] = timed(step, device)
    passes()
    row["update_s"] = sorted(alone(update, 6))[3]
    if c.get("calls"):
        row["update_calls"] = calls_of(update)
    if c.get("trace"):
        row["update_kern"] = kernels_of(update, c["name"] + "-update")
        row["kern"] = kernels_of(step, c["name"])
    return row


def main():
    device = begin()
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    each(device, lambda c: measure(c, mesh, device))


main()
