#!/usr/bin/env python3
"""calibrate/probes/torch/collectives.py - the same JSON lines as foretoken-probe, for
collectives as PyTorch runs them: one process a GPU.  Optional: needs torch and NCCL or RCCL.

  torchrun --nproc-per-node 4 calibrate/probes/torch/collectives.py --out collectives.jsonl [--gpus 2,4]

Method: one call on whole numbers first, whose every element is compared (sums stay below
256, which bf16 holds exactly).  Then a batch of one collective is queued behind a sleeping
kernel, so that the host is ahead; events around the batch, the slowest rank, the median of
15 batches.  bytes as nccl-tests counts them: the whole buffer, a multiple of the ranks.
"""
import argparse
import datetime
import json
import os
import statistics

import torch
import torch.distributed as dist

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "sendrecv")
BATCHES = 15


def operation(op, n, whole, group):
    """One call of op among the n ranks of group, as a function, and the tensor it writes."""
    part = whole[: whole.numel() // n].clone()
    other, me = torch.empty_like(whole), dist.get_rank()

    def ring():
        ops = [dist.P2POp(dist.isend, whole, (me + 1) % n, group),
               dist.P2POp(dist.irecv, other, (me - 1) % n, group)]
        for w in dist.batch_isend_irecv(ops):
            w.wait()

    return {
        "all_reduce": (lambda: dist.all_reduce(whole, group=group), whole),
        "all_gather": (lambda: dist.all_gather_into_tensor(other, part, group=group), other),
        "reduce_scatter": (lambda: dist.reduce_scatter_tensor(part, whole, group=group), part),
        "all_to_all": (lambda: dist.all_to_all_single(other, whole, group=group), other),
        "broadcast": (lambda: dist.broadcast(whole, 0, group=group), whole),
        "sendrecv": (ring, other),
    }[op]


def expected(op, n, count):
    """What element i holds after one call, where rank r sent i % 7 + 3 r."""
    me, i = dist.get_rank(), torch.arange(count, device="cuda")
    share, base = count // n, i % 7
    sums = n * base + 3 * (n * (n - 1) // 2)
    if op == "all_reduce":
        return sums
    if op == "reduce_scatter":
        return sums[me * share:(me + 1) * share]
    if op == "all_gather":
        return i % share % 7 + 3 * (i // share)
    if op == "all_to_all":
        return (me * share + i % share) % 7 + 3 * (i // share)
    return base if op == "broadcast" else base + 3 * ((me - 1) % n)


def right(op, n, count, group):
    """Whether every element is right on every rank."""
    whole = (torch.arange(count, device="cuda") % 7 + 3 * dist.get_rank()).to(torch.bfloat16)
    call, result = operation(op, n, whole, group)
    if result is not whole:
        result.fill_(-1)
    call()
    wrong = (result != expected(op, n, count).to(torch.bfloat16)).sum().view(1)
    dist.all_reduce(wrong, group=group)
    return wrong.item() == 0


def batch_us(call, calls, group):
    """Time of one call in a batch of them, on the slowest rank."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier(group=group, device_ids=[torch.cuda.current_device()])
    torch.cuda._sleep(int(2e5 * calls))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    t = torch.tensor([begin.elapsed_time(end) * 1e3 / calls], device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MAX, group=group)
    return t.item()


def measure(op, n, nbytes, group):
    count = nbytes // 2 // n * n
    good = right(op, n, count, group)
    call, _ = operation(op, n, torch.randn(count, device="cuda").to(torch.bfloat16), group)
    calls = 20 if nbytes <= 4 << 20 else 4
    for _ in range(2):
        batch_us(call, calls, group)
    t = sorted(batch_us(call, calls, group) for _ in range(BATCHES))
    return {"record": "measurement", "cell": f"collective {op} bytes{2 * count} gpus{n}",
            "kind": "collective", "kernel": op, "dtype": "bf16", "bytes": 2 * count, "gpus": n,
            "status": "ok" if good else "wrong", "time_us": round(statistics.median(t), 4), "p10_us": round(t[1], 4),
            "p90_us": round(t[-2], 4), "reps": BATCHES * calls}


def header(date):
    nvls = os.environ.get("NCCL_NVLS_ENABLE") != "0"
    fabric = "xgmi" if torch.version.hip else "nvlink" if nvls else "nvlink-no-nvls"
    return {"record": "run", "format": 1, "backend": "torch", "date": date,
            "device": torch.cuda.get_device_name(0), "devices": dist.get_world_size(),
            "fabric": fabric, "runtime": f"torch {torch.__version__}",
            "ccl": "NCCL " + ".".join(map(str, torch.cuda.nccl.version()))}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--out", required=True)
    a.add_argument("--gpus", default="2,4,8")
    a.add_argument("--most", type=int, default=1 << 30, help="largest buffer, bytes")
    a.add_argument("--date", default=datetime.date.today().isoformat())
    a = a.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    me, world = dist.get_rank(), dist.get_world_size()
    out = open(a.out, "w") if me == 0 else None
    if out:
        out.write(json.dumps(header(a.date)) + "\n")
    for n in (int(g) for g in a.gpus.split(",")):
        group = dist.new_group(list(range(n))) if n <= world else None
        if n > world or me >= n:
            continue
        for op in OPS:
            nbytes = 1024
            while nbytes <= a.most:
                row = measure(op, n, nbytes, group)
                if out:
                    out.write(json.dumps(row) + "\n")
                    out.flush()
                nbytes *= 4 if n & (n - 1) else 2
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
