#!/usr/bin/env python3
"""scripts/hold_out.py seen|unseen [KIND] - JSON lines of a probe on standard input: those that a fit
may see, or those that it never does; of KIND alone, where one is given, and all others are seen.  A fifth of the shapes of attention and of memory-bound
kernels is unseen, and a third of the collectives among 2, 4 and 8 GPUs (among others few sizes
were measured), chosen by a checksum of the shape, not by how it fits: heads and sequence, all
batches, passes and implementations with them; kernel and rows by width, cold and warm; operation,
GPUs and the power of two of the bytes, by whichever program.  Of products with a side of at most
64, as adapters and routers have them, half of the layers is unseen, and all whose rows are not
aligned.  Other products and fp8
attention, which PyTorch was not asked for, are all seen: their error is that of the fit's five
folds."""
import json
import math
import sys
import zlib

NARROW = 64
ALIGNED = 8  # elements of two bytes: 16 bytes

def shape(cell):
    """What is held back as one, and one in how many."""
    if cell.get("kind") == "attention" and cell["dtype"] == "bf16":
        return "%(heads)d %(kv_heads)d %(head_dim)d %(sequence_length)d" % cell, 5
    if cell.get("kind") == "memory" and cell.get("m"):
        return "%(kernel)s %(m)d %(n)d" % cell, 5
    if cell.get("kind") == "collective" and cell["gpus"] in (2, 4, 8):
        power = round(math.log2(cell["bytes"]))
        return "%s %d %d" % (cell["kernel"], cell["gpus"], power), 3
    if cell.get("kind") == "gemm" and min(cell["n"], cell["k"]) <= NARROW:
        return "%(n)d %(k)d" % cell, 2 if min(cell["n"], cell["k"]) % ALIGNED == 0 else 1
    return None, 0


def unseen(line, kind):
    cell = json.loads(line)
    name, one_in = shape(cell)
    return bool(name) and kind in ("", cell["kind"]) and zlib.crc32(name.encode()) % one_in == 0


which, kind = sys.argv[1], "".join(sys.argv[2:3])
for line in sys.stdin:
    if '"run"' in line or unseen(line, kind) == (which == "unseen"):
        sys.stdout.write(line)
