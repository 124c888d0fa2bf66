#!/usr/bin/env python3
"""calibrate/probes/torch/selective_steps.py - training steps of PyTorch whose layers keep the outputs of chosen operations

  torchrun --nproc-per-node N calibrate/probes/torch/selective_steps.py CONFIGS.json OUT.jsonl [SECONDS]

CONFIGS.json is a list of {name, layers, hidden, heads, kv, ffn, vocab, seq, mbs, compile, loss_apart, again, attention, trace}: again is
ops (torchtitan's choice: attention and every second product are kept, the rest runs again), full or none; a layer is compiled with
its checkpoint inside, as torchtitan has it, and with it the loss, but for loss_apart. FSDP2 over all ranks, fused AdamW. One
line a configuration: `step_s`, the median of steps that start together; `peak_gib`, and what the allocator then held
(`reserved_gib`); `kept_bytes`, what a layer in the middle leaves behind a forward pass, a token; and with `trace` each kernel's
count and microseconds. The first line tells the GPU's memory: what the driver
reports, what a context takes, and what NCCL takes with it. Optional: needs torch 2.9 and a GPU.
"""
import functools
import json
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.attention import SDPBackend, sdpa_kernel

from checkpoint_host import saved_operations
from llama import Model, angles, begin, each, loss_of, row_of, sharded_model

ATTENTION = {"cudnn": SDPBackend.CUDNN_ATTENTION, "fa2": SDPBackend.FLASH_ATTENTION}
WRAP = {"ops": functools.partial(checkpoint_wrapper, context_fn=saved_operations, preserve_rng_state=False),
        "full": functools.partial(checkpoint_wrapper, preserve_rng_state=False), "none": lambda b: b}


class Kept(Model):
    """Llama, which notes what is allocated behind each layer."""

    def forward(self, ids, cos, sin):
        x = self.tok(ids)
        cos, sin, self.allocated = cos.to(x.dtype), sin.to(x.dtype), []
        for b in self.layers:
            x = b(x, cos, sin)
            self.allocated.append(torch.cuda.memory_allocated())
        return self.output(self.norm(x))


def measure(c, mesh, device):
    model = sharded_model(c, mesh, device, Kept, WRAP[c["again"]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    loss = torch.compile(loss_of) if c.get("compile") and not c.get("loss_apart") else loss_of
    angle = angles(c, device)
    ids, labels = (torch.randint(0, c["vocab"], (c["mbs"], c["seq"]), device=device) for _ in range(2))

    def step():
        with sdpa_kernel([ATTENTION[c.get("attention", "cudnn")]]):
            loss(model(ids, angle.cos(), angle.sin()), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    row = row_of(c, step, device)
    behind = model.allocated
    row["kept_bytes"] = (behind[-2] - behind[0]) / (len(behind) - 2) / (c["mbs"] * c["seq"])
    row["reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
    row["ranks"] = dist.get_world_size()
    return row


def memory_of(device):
    """Bytes of the card: all that the driver reports, and what is left with a context, and with NCCL's group."""
    free, total = torch.cuda.mem_get_info(device)
    told = dict(name="memory", gpu=torch.cuda.get_device_name(device), total=total, free_with_context=free,
                torch_total=torch.cuda.get_device_properties(device).total_memory)
    t = torch.ones(1 << 20, device=device)
    for _ in range(3):
        dist.all_reduce(t)
        dist.all_gather_into_tensor(torch.empty(t.numel() * dist.get_world_size(), device=device), t)
    torch.cuda.synchronize()
    told["free_with_nccl"], told["reserved"] = torch.cuda.mem_get_info(device)[0], torch.cuda.memory_reserved(device)
    torch.mm(*(torch.ones(4096, 4096, device=device, dtype=torch.bfloat16) for _ in range(2)))
    torch.cuda.synchronize()
    told["free_with_products"], told["then_reserved"] = torch.cuda.mem_get_info(device)[0], torch.cuda.memory_reserved(device)
    return told


def main():
    device = begin()
    told = memory_of(device)
    if dist.get_rank() == 0:
        with open(sys.argv[2], "a") as f:
            f.write(json.dumps(told) + "\n")
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    each(device, lambda c: measure(c, mesh, device))


main()
