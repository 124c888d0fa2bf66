#!/usr/bin/env python3
"""calibrate/probes/torch/bursts.py - over how long a card's power limit averages: products in
bursts with waits between them, in which the card spins or is idle.  Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/bursts.py OUT.jsonl

A row a case: `speed` is the mean clock of the second half's products over the full clock, which
eight products behind a rest of two seconds show; `along` the same, as [products so far, speed],
through a burst; `power_w` by the card's energy counter.
"""
import ctypes
import json
import sys
import time

import torch

N = 4096
CASES = ([("spin", 100, 0), ("spin", 100, 0)] +
         [(kind, t, t) for kind in ("spin", "idle") for t in (2, 5, 10, 20, 50, 100, 200, 500)] +
         [("spin", busy, wait) for busy, wait in
          ((100, 10), (100, 25), (100, 50), (200, 50), (400, 100), (50, 100), (20, 5), (4, 1),
           (1000, 200), (1000, 500))])


class Card:
    def __init__(self):
        self.nvml, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle))
        self.a, self.b, self.c = (torch.randn(N, N, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        self.products(20)
        torch.cuda.synchronize()
        time.sleep(2)
        marks = [self.mark()]
        for _ in range(8):
            self.products(1)
            marks.append(self.mark())
        torch.cuda.synchronize()
        self.burst_ms = sorted(x.elapsed_time(y) for x, y in zip(marks, marks[1:]))[2]
        self.products(2000)  # the clock comes up
        first = self.mark()
        torch.cuda._sleep(20_000_000)
        last = self.mark()
        torch.cuda.synchronize()
        self.cycles_per_ms = 20_000_000 / first.elapsed_time(last)

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def products(self, n):
        for _ in range(n):
            torch.mm(self.a, self.b, out=self.c)

    def joules(self):
        mj = ctypes.c_ulonglong()
        self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(mj))
        return mj.value * 1e-3

    def wait(self, kind, ms):
        if kind == "idle":
            torch.cuda.synchronize()
            time.sleep(ms * 1e-3)
        elif ms:
            torch.cuda._sleep(int(ms * self.cycles_per_ms))

    def burst(self, n):
        """Marks of a burst: (products so far, event)."""
        marks, done, part = [(0, self.mark())], 0, max(1, n // 24)
        while done < n:
            some = min(part, n - done)
            self.products(some)
            done += some
            marks.append((done, self.mark()))
        return marks


def case(card, kind, busy, wait):
    n = max(1, round(busy / (card.burst_ms * 1.25)))
    seconds = 3 if busy < 200 else 5 if busy == wait else 8
    bursts, counted, begun = max(4, int(seconds * 1e3 / (n * card.burst_ms * 1.3 + wait))), [], None
    for i in range(bursts):
        if i == bursts // 2:
            torch.cuda.synchronize()
            begun = time.time(), card.joules()
            counted = []
        counted.append(card.burst(n))
        card.wait(kind, wait)
    torch.cuda.synchronize()
    took, joules = time.time() - begun[0], card.joules() - begun[1]
    busy_ms = [m[0][1].elapsed_time(m[-1][1]) for m in counted]
    wait_ms = [m[-1][1].elapsed_time(k[0][1]) for m, k in zip(counted, counted[1:])]
    part = {}
    for marks in counted:
        for (d0, x), (d1, y) in zip(marks, marks[1:]):
            part.setdefault(d1, []).append(x.elapsed_time(y) / (d1 - d0))
    return {"kind": kind, "asked_busy_ms": busy, "asked_wait_ms": wait, "products": n,
            "product_burst_ms": card.burst_ms, "busy_ms": sum(busy_ms) / len(busy_ms),
            "wait_ms": sum(wait_ms) / len(wait_ms), "speed": n * card.burst_ms * len(busy_ms) / sum(busy_ms),
            "power_w": joules / took,
            "along": [[d, round(card.burst_ms * len(v) / sum(v), 4)] for d, v in sorted(part.items())]}


def main():
    torch.manual_seed(0)
    card = Card()
    with open(sys.argv[1], "w") as out:
        for each in CASES:
            row = case(card, *each)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print("%(kind)s %(busy_ms).1f ms, wait %(wait_ms).1f ms: speed %(speed).3f" % row, flush=True)


main()
