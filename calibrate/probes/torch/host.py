#!/usr/bin/env python3
"""calibrate/probes/torch/host.py - how fast a host runs PyTorch: what a step that the host paces waits for.
Optional: needs torch and one GPU.

  torchrun --nproc-per-node 1 calibrate/probes/torch/host.py OUT.jsonl

One JSON line a case, the median of several rounds, in microseconds a call, with the GPU idle:

  python     a loop of Python over small integers, a turn
  launch     a small kernel of an existing tensor (add_)
  operation  an operation that allocates (add)
  graph      an operation and its backward pass
  wrapped    an operation of DTensor
  compiled   a compiled function of three operations
  table      torch._chunk_cat, with which FSDP2 packs gradients: the host writes a table of blocks first.
             shard: numbers of a rank's share; from, to: formats; tensors: how many are packed
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

SHARDS = [1e6, 4e6, 13.6e6, 27e6, 55e6, 109e6, 160e6, 218e6, 240e6, 263e6, 330e6, 428e6, 525e6, 1051e6]


def timed(call, n, rounds=9):
    told = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            call()
        told.append((time.perf_counter() - start) / n)
    return {"us": round(1e6 * statistics.median(told), 3), "least_us": round(1e6 * min(told), 3)}


def python():
    n = 0
    for i in range(1000):
        n += i & 3
    return n


def operations():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate

    x, y = (torch.ones(256, device="cuda") for _ in range(2))
    w = torch.ones(256, device="cuda", requires_grad=True)
    wrapped = DTensor.from_local(x, init_device_mesh("cuda", (1,)), [Replicate()])

    def back():
        (w * x).sum().backward()
        w.grad = None

    three = torch.compile(lambda a, b: (a + b).mul(a).relu())
    for _ in range(20):
        three(x, y), wrapped + wrapped, back()
    yield "python", {k: v / 1000 for k, v in timed(python, 20).items()}
    yield "launch", timed(lambda: x.add_(y), 500)
    yield "operation", timed(lambda: x + y, 500)
    yield "graph", timed(back, 200)
    yield "wrapped", timed(lambda: wrapped + wrapped, 200)
    yield "compiled", timed(lambda: three(x, y), 200)


def tables():
    cases = [(s, 1, 9, torch.bfloat16, torch.float32) for s in SHARDS]
    cases += [(s, r, 9, torch.bfloat16, torch.float32) for s in (27e6, 109e6) for r in (2, 8)]
    cases += [(s, 1, 1, torch.bfloat16, torch.float32) for s in (109e6, 525e6)]
    cases += [(s, 1, 9, d, d) for s in (109e6, 525e6) for d in (torch.bfloat16, torch.float32)]
    for shard, ranks, n, source, target in cases:
        rows = int(shard * ranks / n / 256) // ranks * ranks
        grads = [torch.zeros(rows, 256, device="cuda", dtype=source) for _ in range(n)]
        out = torch.empty(ranks, rows // ranks * n * 256, device="cuda", dtype=target)
        call = lambda: torch._chunk_cat(grads, dim=0, num_chunks=ranks, out=out)
        call(), call()
        yield "table", dict(timed(call, 1, 15), shard=out.numel() // ranks, ranks=ranks, tensors=n,
                            **{"from": str(source)[6:], "to": str(target)[6:]})
        del grads, out


def cpu():
    with open("/proc/cpuinfo") as f:
        return next((s.split(":")[1].strip() for s in f if s.startswith("model name")), "")


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    with open(sys.argv[1], "a") as out:
        for cases in (operations(), tables(), operations()):
            for name, row in cases:
                row = dict(case=name, **row, gpu=torch.cuda.get_device_name(), cpu=cpu(), torch=torch.__version__)
                out.write(json.dumps(row) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
