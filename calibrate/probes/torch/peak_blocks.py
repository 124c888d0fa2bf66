#!/usr/bin/env python3
"""calibrate/probes/torch/peak_blocks.py - what the allocator holds at the fullest moment of a step of transformers_steps.py

  torchrun --nproc-per-node N calibrate/probes/torch/peak_blocks.py CASES.json OUT.jsonl

CASES.json as transformers_steps.py takes it. One line a case: `peak_gb` of what was recorded (`reported_gb`: of the allocator's
statistics, with what was there before), and `blocks`, by the calls that took them (`from`; empty within a backward pass): `gb`, their number `n`
and, as a count of the allocator's calls, when the `last` of them was taken. Optional: needs torch, transformers and GPUs.
"""
import datetime
import gc
import json
import os
import sys

import torch
import torch.distributed as dist

import transformers_steps as steps

MOST_BLOCKS, FRAMES = 28, 7


def calls(event):
    frames = [f for f in event.get("frames", []) if "/torch/_ops" not in f["filename"]]
    own = next((i for i, f in enumerate(frames) if f["filename"] == steps.__file__), len(frames))
    return " < ".join("%s:%d:%s" % (os.path.basename(f["filename"]), f["line"], f["name"]) for f in frames[:min(own, FRAMES)])


def at_peak(trace):
    """Blocks that were allocated when most was, and how much that was."""
    live, held, most, when = {}, 0, 0, 0
    for i, e in enumerate(trace):
        if e["action"] == "alloc":
            live[e["addr"]] = e["size"]
            held += e["size"]
        elif e["action"] == "free_requested":
            held -= live.pop(e["addr"], 0)
        if held > most:
            most, when = held, i
    live = {}
    for i, e in enumerate(trace[:when + 1]):
        if e["action"] == "alloc":
            live[e["addr"]] = (i, e)
        elif e["action"] == "free_requested":
            live.pop(e["addr"], None)
    return live.values(), most


def grouped(blocks):
    found = {}
    for i, e in blocks:
        of = found.setdefault(calls(e), {"gb": 0, "n": 0, "last": 0})
        of.update(gb=of["gb"] + e["size"] / 1e9, n=of["n"] + 1, last=max(of["last"], i))
    rows = [{"gb": round(v["gb"], 3), "n": v["n"], "last": v["last"], "from": k} for k, v in found.items()]
    return sorted(rows, key=lambda r: -r["gb"])[:MOST_BLOCKS]


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device, timeout=datetime.timedelta(seconds=60))
    steps.WARM, steps.STEPS = 2, 1
    for case in json.load(open(sys.argv[1])):
        torch.cuda.memory._record_memory_history(max_entries=3000000, stacks="python")
        told = steps.measured(case, device)
        trace = torch.cuda.memory._snapshot()["device_traces"][device.index]
        torch.cuda.memory._record_memory_history(enabled=None)
        blocks, most = at_peak(trace)
        row = {"name": case["name"], "peak_gb": most / 1e9, "reported_gb": told["peak_bytes"] / 1e9,
               "gpu": torch.cuda.get_device_name(), "gpus": dist.get_world_size(), "torch": torch.__version__, "blocks": grouped(blocks)}
        del trace, blocks
        gc.collect()
        torch.cuda.empty_cache()
        if dist.get_rank() == 0:
            with open(sys.argv[2], "a") as out:
                out.write(json.dumps(row) + "\n")
    dist.destroy_process_group()


main()
