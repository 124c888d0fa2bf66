#!/usr/bin/env python3
"""calibrate/probes/torch/one_of_many.py - what one rank of many runs and keeps, on one GPU and without a network

  python3 calibrate/probes/torch/one_of_many.py RANK RANKS PROGRAM [ARGUMENT...]

PROGRAM is a step program such as those in this folder. Its process group is PyTorch's fake one: each collective returns
at once and leaves what is in its buffers. So kernels, copies, calls and the allocator's peak are those of rank RANK among
RANKS; numbers are none, and a step's time is that of a network that takes none. Optional: needs torch 2.9 and a GPU.
"""
import os
import runpy
import sys

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore


def main():
    rank, ranks, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    begin = dist.init_process_group
    dist.init_process_group = lambda *_, **__: begin("fake", rank=rank, world_size=ranks, store=FakeStore())
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK="0")
    sys.argv = sys.argv[3:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    runpy.run_path(program, run_name="__main__")


main()
