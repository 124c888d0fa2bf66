#!/usr/bin/env python3
"""What copies between GPUs and host memory take, together and beside kernels.

    python3 host_link.py >> OUT.jsonl

Pinned host memory, copy engines, a stream for each direction; one thread drives all GPUs. One
JSON line each:

  link     bytes/s of each GPU in each direction, with one or both directions and one or all GPUs
           at work
  beside   microseconds of a kernel (8192^3 product in bf16, element-wise copy of 1 GiB) alone and
           while both directions of its GPU are at work
  layers   microseconds of 16 products forward and 32 backward with what each layer keeps sent
           to the host behind its forward and fetched for its backward, and without, over the
           bytes of a layer: how much of the transfers is hidden
"""
import json
import time

import torch

SIZE = 1 << 30


def say(**row):
    print(json.dumps(row), flush=True)


class Link:
    def __init__(self, gpu):
        self.gpu = gpu
        with torch.cuda.device(gpu):
            self.there = {d: torch.empty(SIZE, dtype=torch.uint8, device="cuda") for d in "od"}
            self.here = {d: torch.empty(SIZE, dtype=torch.uint8).pin_memory() for d in "od"}
            self.stream = {d: torch.cuda.Stream() for d in "od"}

    def go(self, direction):
        with torch.cuda.device(self.gpu), torch.cuda.stream(self.stream[direction]):
            if direction == "o":
                self.here["o"].copy_(self.there["o"], non_blocking=True)
            else:
                self.there["d"].copy_(self.here["d"], non_blocking=True)


def wait():
    for i in range(torch.cuda.device_count()):
        torch.cuda.synchronize(i)


def links(all_links):
    for used in (all_links[:1], all_links):
        for directions in ("o", "d", "od"):
            for turn in range(3):
                wait()
                begin = time.perf_counter()
                for _ in range(8):
                    for link in used:
                        for d in directions:
                            link.go(d)
                wait()
                s = time.perf_counter() - begin
            say(record="link", gpus=len(used), out="o" in directions, back="d" in directions,
                bytes_per_s=8 * SIZE / s)
        if len(all_links) == 1:
            return


def timed(kernel, reps):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        kernel()
    begin.record()
    for _ in range(reps):
        kernel()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / reps


def beside(link):
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c, x = torch.empty_like(a), torch.empty(SIZE // 4, device="cuda")
    y = torch.empty_like(x)
    for name, kernel, reps in (("product", lambda: torch.mm(a, b, out=c), 100),
                               ("copy", lambda: y.copy_(x), 200)):
        alone = timed(kernel, reps)
        wait()
        for _ in range(16):
            for d in "od":
                link.go(d)
        with_copies = timed(kernel, reps)
        wait()
        say(record="beside", kernel=name, alone_us=alone, beside_us=with_copies)


def layers(share):
    """A layer is one product forward and two backward; it keeps share of SIZE."""
    n, kept = 16, int(SIZE * share)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    gpu = [torch.empty(kept, dtype=torch.uint8, device="cuda") for _ in range(2)]
    host = [torch.empty(kept, dtype=torch.uint8).pin_memory() for _ in range(n)]
    out, back, main = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()

    def step(offload):
        for i in range(n):
            torch.mm(a, b, out=c)
            if offload:
                main.wait_stream(out)  # the layer before has left
                out.wait_stream(main)
                with torch.cuda.stream(out):
                    host[i].copy_(gpu[i % 2], non_blocking=True)
        for i in reversed(range(n)):
            if offload:
                if i == n - 1:
                    back.wait_stream(main)
                    with torch.cuda.stream(back):
                        gpu[i % 2].copy_(host[i], non_blocking=True)
                main.wait_stream(back)
                if i:
                    back.wait_stream(main)
                    with torch.cuda.stream(back):
                        gpu[(i - 1) % 2].copy_(host[i - 1], non_blocking=True)
            for _ in range(2):
                torch.mm(a, b, out=c)

    step(True)
    say(record="layers", bytes=kept, alone_us=timed(lambda: step(False), 10),
        offload_us=timed(lambda: step(True), 10))


def main():
    all_links = [Link(i) for i in range(torch.cuda.device_count())]
    say(record="run", device=torch.cuda.get_device_name(0), devices=len(all_links),
        torch=torch.__version__, date=time.strftime("%Y-%m-%d"))
    links(all_links)
    beside(all_links[0])
    for share in (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4):
        layers(share)


main()
