#!/usr/bin/env python3
"""How much kernels slow down beside a collective of few channels, and beside a receive that waits.

    for c in 1 2 4 8 16 24; do
        NCCL_MIN_NCHANNELS=$c NCCL_MAX_NCHANNELS=$c torchrun --nproc-per-node 2 channels.py $c >> OUT.jsonl
    done

A collective holds one block of threads a channel. Between nodes a library uses fewer channels
than inside one, and a network that is slower than NVLink holds them longer. One JSON line a
kernel and collective, times in microseconds of the slowest GPU, median of seven rounds of ten:
"alone", "beside" (collectives run without a pause on a stream of high priority),
"collective_alone" and, for the kind "wait", a receive that nothing is sent to yet.
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

from in_turn import REPEATS, ROUNDS, timed

BYTES = 512 << 20


def kernels():
    """Products of one wave of blocks and of many, attention, and a sum of two tensors."""
    def product(m, n, k):
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        return lambda: torch.mm(a, b.t())

    q = torch.randn(1, 32, 8192, 128, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(128 << 20, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(x)
    for m, n, k in ((2048, 4096, 4096), (4096, 4096, 4096), (4096, 14336, 4096), (8192, 8192, 8192), (8192, 28672, 8192)):
        yield f"product {m} {n} {k}", product(m, n, k)
    yield "attention", lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True)
    yield "add", lambda: torch.add(x, x, out=out)


def collectives(gpus):
    whole = torch.randn(BYTES // 2, device="cuda").to(torch.bfloat16)
    part, other = whole[: whole.numel() // gpus].clone(), torch.empty_like(whole)
    return {
        "all_gather": lambda: dist.all_gather_into_tensor(other, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
    }


def while_waiting(rank, kernel, stream, high):
    """Of rank 0: its kernels while a receive stands beside them; rank 1 sends late."""
    times, message = [], torch.empty(8 << 20, device="cuda", dtype=torch.bfloat16)
    for _ in range(ROUNDS):
        start, end, got = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        dist.barrier(device_ids=[rank])
        if rank == 1:
            with torch.cuda.stream(high):
                torch.cuda._sleep(int(3e8))
                dist.send(message, 0)
        else:
            with torch.cuda.stream(high):
                dist.recv(message, 1)
                got.record()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(int(4e6))
                start.record()
                for _ in range(REPEATS):
                    kernel()
                end.record()
        torch.cuda.synchronize()
        if rank == 0:
            times.append(start.elapsed_time(end) * 1e3 / REPEATS)
            if end.elapsed_time(got) < 0:
                return None
    return round(sorted(times)[ROUNDS // 2], 3) if times else None


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    gpus, stream, high = dist.get_world_size(), torch.cuda.Stream(), torch.cuda.Stream(priority=-1)

    def tell(**cell):
        if rank == 0:
            print(json.dumps({"record": "beside", "device": torch.cuda.get_device_name(), "gpus": gpus,
                              "channels": int(sys.argv[1]), **cell}), flush=True)

    for op, collective in collectives(gpus).items():
        for _ in range(3):
            collective()
        alone_us = timed(rank, collective, high)
        for name, kernel in kernels():
            for _ in range(3):
                kernel()
            alone = timed(rank, kernel, stream)
            others = int(3 + 4 * REPEATS * alone / alone_us)
            tell(kernel=name, collective=op, bytes=BYTES, alone=alone, collective_alone=alone_us,
                 beside=timed(rank, kernel, stream, collective, others, high))
    for name, kernel in kernels():
        for _ in range(3):
            kernel()
        tell(kernel=name, collective="wait", alone=timed(rank, kernel, stream),
             beside=while_waiting(rank, kernel, stream, high))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
