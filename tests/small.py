#!/usr/bin/env python3
"""Small recordings of known answers: python3 tests/small.py KIND > FILE."""
import json
import sys

events = []


def event(category, name, at, takes, lane, **args):
    events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": lane, "ts": at, "dur": takes, "args": args})


def launch(i, at, name, stream, begins, runs, **args):
    """Operation i: asked for at a time, which takes the host 5 us, and run at another."""
    event("cuda_runtime", "cudaLaunchKernel", at, 5, 1, correlation=i)
    event("kernel", name, begins, runs, stream, stream=stream, correlation=i, **args)


def ahead(steps="3", marked="user_annotation", empty="0"):
    """Steps of 2 ms: three products and an addition of 500 us each, all launched in the first 100 us of
    the host's. Behind them marks in which nothing is launched."""
    for step in range(int(steps), int(steps) + int(empty)):
        event(marked, "ProfilerStep#%d" % step, 100 * step, 100, 1)
    for step in range(int(steps)):
        event(marked, "ProfilerStep#%d" % step, 100 * step, 100, 1)
        for i in range(4):
            n = 4 * step + i
            launch(n + 1, 100 * step + 10 + 20 * i, "gemm" if i else "elementwise_kernel", 7, 20 + 500 * n, 500)


def kernels(*names):
    """One behind another, 100 ms each."""
    for i, name in enumerate(names):
        launch(i + 1, 7 * i, name, 7, 5 + 100000 * i, 100000)


reduces = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float",
           "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}


def collective(name, about, ranks, elements):
    """Arguments of a collective in bf16, and of an annotation around its call."""
    return {"Collective name": name, "In msg nelems": elements, "Out msg nelems": elements, "Group size": len(ranks),
            "dtype": "BFloat16", "Process Group Name": about, "Process Group Description": about, "Process Group Ranks": str(ranks)}


def groups(*told):
    """Rank 0: a product of 1 ms and a collective of 100 us in each of these groups: NAME:DESCRIPTION:RANK,RANK."""
    for i, words in enumerate(told):
        name, about, ranks = words.split(":")
        launch(2 * i + 1, 20 * i, "gemm", 7, 10 + 1100 * i, 1000)
        launch(2 * i + 2, 20 * i + 10, "ncclDevKernel_" + name, 7, 1010 + 1100 * i, 100,
               **collective(name, about, [int(r) for r in ranks.split(",")], 1 << 24))


def partly(rank):
    """One of four ranks: three times a product of 1 ms and an all-gather, which one of the ranks makes wait for 900 us once."""
    at = 0
    for i in range(3):
        runs = 1000 if i == 1 else 100
        launch(2 * i + 1, 20 * i, "gemm", 7, at + 10, 1000)
        launch(2 * i + 2, 20 * i + 10, "ncclDevKernel_AllGather", 7, at + 1010, runs,
               **collective("_allgather_base", "mesh_dp", [0, 1, 2, 3], 1 << 24))
        at += 1000 + runs
    return {"distributedInfo": {"rank": int(rank), "world_size": 4}}


def unfinished():
    """A product of 1 ms that was launched before the recording began; the host waits for it and launches another."""
    event("kernel", "gemm", 0, 1000, 7, stream=7, correlation=999)
    event("cuda_runtime", "cudaDeviceSynchronize", 5, 998, 1, correlation=1)
    launch(2, 1010, "gemm", 7, 1015, 1000)


def copy(name):
    """A copy of 1 ms."""
    event("cuda_runtime", "cudaMemcpyAsync", 0, 5, 1, correlation=1)
    event("gpu_memcpy", name, 0, 1000, 7, stream=7, correlation=1)


def told():
    """A stream waits for another's product, and the profiler says for which."""
    launch(1, 0, "gemm", 7, 10, 1000)
    event("cuda_runtime", "cudaEventRecord", 6, 1, 1, correlation=2)
    event("cuda_runtime", "cudaStreamWaitEvent", 8, 1, 1, correlation=3)
    event("cuda_sync", "Stream Wait Event", 8, 1, 9, stream=9, correlation=3, wait_on_cuda_event_record_corr_id=2)
    launch(4, 10, "softmax", 9, 1020, 100)


def behind(rank):
    """One of two ranks: four times 100 us of a product and an all-reduce. Rank 0 has not done with one
    that was launched before the recording began."""
    if rank == "0":
        event("kernel", "ncclDevKernel_AllReduce", 1, 9, 7, stream=7, correlation=999, **reduces)
    for i in range(4):
        wait = 30 if rank == "0" else 0
        launch(2 * i + 1, 10 + 7 * i, "gemm", 7, 20 + 100 * i, 80 - wait)
        launch(2 * i + 2, 16 + 7 * i, "ncclDevKernel_AllReduce", 7, 100 + 100 * i - wait, 10 + wait, **reduces)
    return {"distributedInfo": {"rank": int(rank), "world_size": 2}}


def late(rank):
    """One of two ranks: three steps of a product of 100 us (rank 1: 150 in step 1, 130 in step 2, where another
    kernel follows) and an all-reduce, in which the first step's first rank waits 1 s."""
    more = [1000000, 50, 30] if rank == "1" else [0, 0, 0]
    at = 0
    for step in range(3):
        event("user_annotation", "ProfilerStep#%d" % step, at, 10, 1)
        met = at + [1000100, 150, 130][step]
        launch(3 * step + 1, at, "gemm", 7, at, 100 + more[step])
        launch(3 * step + 2, at + 5, "ncclDevKernel_AllReduce", 7, at + 100 + more[step], met - at - 100 - more[step] + 20,
               **reduces)
        at = met + 20
        if step == 2:
            launch(9, at - 20, "softmax", 7, at, 5)
    return {"distributedInfo": {"rank": int(rank), "world_size": 2}}


def odd():
    """Two steps that overlap, of a product of 1 ms each; a product of less than no time, memory taken twice, which takes the
    host 300 us, and an event of a phase that there is not."""
    for step in range(2):
        event("user_annotation", "ProfilerStep#%d" % step, 500 * step, 600, 1)
        launch(step + 1, 500 * step + 10, "gemm", 7, 20 + 1000 * step, 1000)
    launch(3, 700, "gemm", 7, 2020, -5)
    for i, name in enumerate(("cudaMalloc", "cudaFree")):
        event("cuda_runtime", name, 750 + 160 * i, 150, 1, correlation=4 + i)
    events.append({"ph": "Y", "cat": "kernel", "name": "none", "ts": 5})


kinds = {"odd": odd, "ahead": ahead, "kernels": kernels, "late": late, "behind": behind, "told": told, "copy": copy, "unfinished": unfinished, "partly": partly, "groups": groups}
rank = dict(kinds[sys.argv[1]](*sys.argv[2:]) or {})
json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], **rank, "traceEvents": events}, sys.stdout)
