#!/usr/bin/env python3
"""scripts/lend_collectives.py DEVICE SOURCE - JSON lines of a probe on standard input: its
collectives below 1 MiB among five GPUs and more, as of DEVICE and with SOURCE.

The host of the eight H200 launched late, and below 1 MiB it is that host that its collectives
measure.  H100 has the same links and the same NCCL, and eight of them were timed by
torch/collectives.py, which queues behind a sleeping kernel.  A fit takes the faster of two rows."""
import json
import sys

for line in sys.stdin:
    cell = json.loads(line)
    if cell["record"] == "run":
        print(json.dumps({**cell, "device": sys.argv[1]}))
    elif cell["gpus"] > 4 and cell["bytes"] < 1 << 20:
        print(json.dumps({**cell, "source": sys.argv[2]}))
