#!/usr/bin/env python3
"""calibrate/probes/torch/beside.py - how much longer a collective takes beside kernels that fill the GPU.
Optional: needs torch and two or more GPUs of one host.

  torchrun --nproc-per-node 2 calibrate/probes/torch/beside.py OUT.jsonl

All-gathers in bf16, reduce-scatters and all-reduces in fp32, one at a time with a pause between, as a step launches them,
while another stream runs products, sums of two tensors or nothing. One JSON line a case, microseconds of a collective from its
launch's turn on the stream to its end, median and least over the rounds of the slowest GPU; bytes: of the larger buffer.
"""
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist

ROUNDS = 12
SIZES = [16 << 20, 64 << 20, 235 << 20, 872 << 20, 2101 << 20]


def kernels():
    def product(m, n, k):
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        return lambda: torch.mm(a, b.t())

    x = torch.randn(256 << 20, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(x)
    small = torch.randn(8 << 20, device="cuda", dtype=torch.bfloat16)
    less = torch.empty_like(small)
    yield "none", None
    yield "product 4096 14336 4096", product(4096, 14336, 4096)
    yield "product 2048 4096 4096", product(2048, 4096, 4096)
    yield "add 1.5 GB", lambda: torch.add(x, x, out=out)
    yield "add 48 MB", lambda: torch.add(small, small, out=less)


def collectives(bytes_, world):
    wide = torch.zeros(bytes_ // 4, device="cuda")
    part = torch.zeros(bytes_ // 4 // world, device="cuda")
    half = torch.zeros(bytes_ // 2, device="cuda", dtype=torch.bfloat16)
    share = torch.zeros(bytes_ // 2 // world, device="cuda", dtype=torch.bfloat16)
    yield "all_gather", lambda: dist.all_gather_into_tensor(half, share, async_op=True)
    yield "reduce_scatter", lambda: dist.reduce_scatter_tensor(part, wide, async_op=True)
    yield "all_reduce", lambda: dist.all_reduce(wide, async_op=True)


def timed(call, kernel, each_us, longest_us):
    """Of one collective: events in front of it and behind it on a stream of its own, kernels queued around."""
    comm, told = torch.cuda.Stream(), []
    for _ in range(ROUNDS + 2):
        dist.barrier()
        torch.cuda.synchronize()
        before, begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        if kernel:
            for _ in range(max(3, int(600 / each_us))):
                kernel()
        before.record()
        with torch.cuda.stream(comm):
            comm.wait_event(before)
            begin.record()
            work = call()
            work.wait()
            end.record()
        if kernel:
            for _ in range(max(4, int(longest_us / each_us))):
                kernel()
        torch.cuda.synchronize()
        told.append(1e3 * begin.elapsed_time(end))
    t = torch.tensor(told[2:], device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.tolist()


def alone_us(kernel):
    for _ in range(3):
        kernel()
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    for _ in range(10):
        kernel()
    b.record()
    torch.cuda.synchronize()
    return 100 * a.elapsed_time(b)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    world, rank = dist.get_world_size(), dist.get_rank()
    out = open(sys.argv[1], "a") if rank == 0 else None
    for bytes_ in SIZES:
        for name, call in collectives(bytes_, world):
            for what, kernel in kernels():
                each = alone_us(kernel) if kernel else 1
                t = timed(call, kernel, each, 400 + bytes_ / 60e3)  # queued kernels outlast the collective
                if rank == 0:
                    out.write(json.dumps(dict(collective=name, bytes=bytes_, ranks=world, beside=what, kernel_us=round(each, 1),
                                              us=round(statistics.median(t), 1), least_us=round(min(t), 1),
                                              gpu=torch.cuda.get_device_name(), torch=torch.__version__,
                                              nccl=".".join(map(str, torch.cuda.nccl.version())))) + "\n")
                    out.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
