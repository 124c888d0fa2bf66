#!/usr/bin/env python3
"""Products and collectives of one node: each alone, in turn, and side by side on two streams.

    torchrun --nproc-per-node 4 in_turn.py OUT.jsonl

One JSON line a cell, times in microseconds, of the slowest GPU, median of seven rounds of
ten. "beside" starts the collective on a second stream, then the product, and waits for
both before the next pair; nothing is reserved for the collective. "product_beside" is a
product while collectives run without a pause on a stream of high priority, and
"collective_beside" a collective there while products run without a pause: the train that is
not timed is long enough to outlast the other at half its speed.
"""
import json
import os
import sys

import torch
import torch.distributed as dist

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096))  # m, n, k
OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
MEBIBYTES = (2, 8, 32, 128, 512)
REPEATS, ROUNDS, MOST_OTHERS = 10, 7, 600


def slowest(value):
    """Of a number of each GPU, the greatest."""
    t = torch.tensor([value], device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item()


def timed(rank, call, stream, other=None, others=0, other_stream=None):
    """Time of one call; with others, while so many calls of other run on the other stream,
    and None where they ended too early."""
    times = []
    for _ in range(ROUNDS):
        start, end, last = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        dist.barrier(device_ids=[rank])
        with torch.cuda.stream(stream):
            torch.cuda._sleep(int(4e6 + 5e4 * (REPEATS + others)))  # the host queues ahead
        if others:
            other_stream.wait_stream(stream)
            with torch.cuda.stream(other_stream):
                for _ in range(others):
                    other()
                last.record()
        with torch.cuda.stream(stream):
            start.record()
            for _ in range(REPEATS):
                call()
            end.record()
        torch.cuda.synchronize()
        if others and slowest(last.elapsed_time(end)) > 0:
            return None
        times.append(slowest(start.elapsed_time(end) * 1e3 / REPEATS))
    return round(sorted(times)[ROUNDS // 2], 3)


def operations(gpus, op, size, shape):
    """A product and a collective, as functions."""
    m, n, k = shape
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    whole = torch.randn(size // 2, device="cuda").to(torch.bfloat16)
    part, other = whole[: whole.numel() // gpus].clone(), torch.empty_like(whole)
    return (lambda: torch.mm(a, b.t())), {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(other, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
    }[op]


def cell(rank, gpus, op, size, shape, plain, first):
    product, collective = operations(gpus, op, size, shape)

    def in_turn():
        product()
        collective()

    def beside():
        first.wait_stream(plain)
        with torch.cuda.stream(first):
            collective()
        product()
        plain.wait_stream(first)

    def cover(alone, other):  # calls of other that outlast REPEATS of the timed one
        return int(REPEATS * max(2.2 * alone / other, 1)) + 4

    with torch.cuda.stream(plain):
        for _ in range(3):
            in_turn()
    row = {"record": "in-turn", "op": op, "gpus": gpus, "bytes": size, "m": shape[0],
           "n": shape[1], "k": shape[2], "dtype": "bf16",
           "product_us": timed(rank, product, plain),
           "collective_us": timed(rank, collective, first),
           "in_turn_us": timed(rank, in_turn, plain), "beside_us": timed(rank, beside, plain),
           "product_beside_us": None, "collective_beside_us": None}
    p, c = row["product_us"], row["collective_us"]
    if cover(p, c) <= MOST_OTHERS:
        row["product_beside_us"] = timed(rank, product, plain, collective, cover(p, c), first)
    if cover(c, p) <= MOST_OTHERS:
        row["collective_beside_us"] = timed(rank, collective, first, product, cover(c, p), plain)
    return row


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    plain, first = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    for shape in SHAPES:
        for op in OPS:
            for mebibytes in MEBIBYTES:
                row = cell(rank, dist.get_world_size(), op, mebibytes << 20, shape, plain, first)
                if rank == 0:
                    with open(sys.argv[1], "a") as out:
                        out.write(json.dumps(row) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
