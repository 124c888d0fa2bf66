#!/usr/bin/env python3
"""calibrate/probes/torch/cards.py - the clock that one card holds under load, to be held against others of
its kind, and what the numbers that are multiplied do to it.  Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/cards.py CARD OUT.jsonl

CARD names the card in the rows, which are those of watts.py: `burst_ms`, `sustained_ms`, `power_w` and `mhz`
of products of normal numbers, of uniform ones from 0 to 1 and of zeros, and of cuDNN's attention, each for
six seconds. `limit_w` is the card's limit of power, `degrees` its temperature at the end.
"""
import ctypes
import json
import sys

import torch
import watts

SECONDS = 6


def of_numbers(make, dtype=torch.bfloat16):
    """A product of 8192 cubed of what make(rows, columns) gives."""
    a, b = make(8192, 8192).to(dtype), make(8192, 8192).to(dtype)
    c = torch.empty(8192, 8192, device="cuda", dtype=dtype)
    return lambda: torch.mm(a, b, out=c)


def read(card, what, *more):
    value = ctypes.c_uint()
    getattr(card.nvml, what)(card.handle, *more, ctypes.byref(value))
    return value.value


def main():
    torch.manual_seed(0)
    card = watts.Card()
    products = [("product 8192", watts.product(8192, 8192, 8192)),
                ("product 16384x4096x14336", watts.product(16384, 4096, 14336)),
                ("product fp8 8192", watts.product_fp8(8192, 8192, 8192)),
                ("product 8192 of uniform numbers", of_numbers(lambda m, n: torch.rand(m, n, device="cuda"))),
                ("product 8192 of zeros", of_numbers(lambda m, n: torch.zeros(m, n, device="cuda")))]
    attention = [("cudnn forward 16384", watts.attention("cudnn", 16384, 32, 8, 128, False)),
                 ("cudnn backward 16384", watts.attention("cudnn", 16384, 32, 8, 128, True))]
    with open(sys.argv[2], "w") as out:
        for name, run in products + attention:
            row = watts.case(card, name, [(name, run, 1)], SECONDS)
            row.update(card=sys.argv[1], gpu=torch.cuda.get_device_name(), torch=torch.__version__,
                       limit_w=read(card, "nvmlDeviceGetEnforcedPowerLimit") / 1e3,
                       degrees=read(card, "nvmlDeviceGetTemperature", 0))
            out.write(json.dumps(row) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
