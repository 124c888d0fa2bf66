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

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

from llama import angles, begin, each, loss_of, row_of, sharded_model

try:
    from torch.distributed.tensor.experimental._attention import set_rotate_method
except ImportError:
    from torch.distributed.tensor.experimental._context_parallel._attention import set_rotate_method

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def step_of(c, meshes, device):
    """One training step: forward and backward within the context group, then the update."""
    shards, context = meshes
    model = sharded_model(c, shards, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    loss = torch.compile(loss_of) if c.get("compile") else loss_of
    angle = angles(c, device)
    ids, labels = (torch.randint(0, c["vocab"], (c["mbs"], c["seq"]), device=device) for _ in range(2))
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


def main():
    device = begin()
    shards = init_device_mesh("cuda", (dist.get_world_size(),))  # of one dimension: on the default group
    context = init_device_mesh("cuda", (1, dist.get_world_size()), mesh_dim_names=("dp", "cp"))["cp"]
    each(device, lambda c: row_of(c, step_of(c, (shards, context), device), device))


main()
