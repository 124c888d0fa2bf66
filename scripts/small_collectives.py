#!/usr/bin/env python3
"""scripts/small_collectives.py drop | lend DEVICE SOURCE - JSON lines of a probe on standard input:
without the collectives below 1 MiB, or only those among two GPUs, as of DEVICE and with SOURCE.

The host of the H100 probe launched late: all its collectives from 1 to 512 KiB among two GPUs
take 10 to 13 us, whatever the operation and the size, and a launch 3.7 us.  So below 1 MiB its
profile has the rows of H200, which has the same links and the same NCCL; from 1 MiB its own."""
import json
import sys

MIB = 1 << 20


def small(cell):
    return cell.get("kind") == "collective" and cell["bytes"] < MIB


for line in sys.stdin:
    cell = json.loads(line)
    if sys.argv[1] == "drop":
        if not small(cell):
            sys.stdout.write(line)
    elif cell["record"] == "run":
        print(json.dumps({**cell, "device": sys.argv[2]}))
    elif small(cell) and cell["gpus"] == 2:
        print(json.dumps({**cell, "source": sys.argv[3]}))
