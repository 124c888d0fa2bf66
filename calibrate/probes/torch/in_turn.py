#!/usr/bin/env python3
"""Products and collectives of one node: each alone, in turn, and side by side on two streams.

    torchrun --nproc-per-node 4 in_turn.py OUT.jsonl

One JSON line a cell, times in microseconds, of the slowest GPU, median of nine rounds of
twenty. "beside" starts the collective on a second stream, then the product, and waits for
both before the next pair; nothing is reserved for the collective.
"""
import json
import os
import sys

import torch
import torch.distributed as dist

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096))  # m, n, k
MEBIBYTES = (2, 8, 32, 128, 512)
REPEATS, ROUNDS = 20, 9


def timed(rank, call):
    times = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.barrier(device_ids=[rank])
        torch.cuda._sleep(int(4e6))  # the host launches ahead
        start.record()
        for _ in range(REPEATS):
            call()
        end.record()
        torch.cuda.synchronize()
        slowest = torch.tensor([start.elapsed_time(end) * 1e3 / REPEATS], device="cuda")
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        times.append(slowest.item())
    return round(sorted(times)[ROUNDS // 2], 3)


def cell(rank, gpus, op, size, shape, side):
    m, n, k = shape
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    whole = torch.randn(size // 2, device="cuda").to(torch.bfloat16)
    part, other = whole[: whole.numel() // gpus].clone(), torch.empty_like(whole)
    collective = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
    }[op]

    def product():
        torch.mm(a, b.t())

    def in_turn():
        product()
        collective()

    def beside():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            collective()
        product()
        torch.cuda.current_stream().wait_stream(side)

    for _ in range(3):
        in_turn()
    calls = {"product": product, "collective": collective, "in_turn": in_turn, "beside": beside}
    row = {"record": "in-turn", "op": op, "gpus": gpus, "bytes": size, "m": m, "n": n, "k": k,
           "dtype": "bf16"}
    row.update({name + "_us": timed(rank, call) for name, call in calls.items()})
    return row


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    gpus, side = dist.get_world_size(), torch.cuda.Stream()
    for shape in SHAPES:
        for op in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            for mebibytes in MEBIBYTES:
                row = cell(rank, gpus, op, mebibytes << 20, shape, side)
                if rank == 0:
                    with open(sys.argv[1], "a") as out:
                        out.write(json.dumps(row) + "\n")
    dist.destroy_process_group()


main()
