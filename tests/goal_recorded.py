"""tests/goal_recorded.py - one recorded rank as GOAL, against the recording

goal_recorded.py FILE.goal RECORDING.json.gz: every statement ends when what it requires has ended and its time is over.
These ends, in whole nanoseconds, are the begins and ends of all calls and operations; threads and streams are cpus.
"""
import collections
import gzip
import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal

CALLS = re.compile(r".*aunch|(?:cuda|cu|hip)(?:Memcpy|Memset|EventRecord|StreamWaitEvent|(?:Event|Stream|Device|Ctx|Thread)"
                   r"Synchronize|Malloc|Free|MemAlloc|MemFree|MemCreate|MemMap|MemUnmap|MemRelease)")

events = [e for e in json.load(gzip.open(sys.argv[2]), parse_float=Decimal)["traceEvents"] if e.get("ph") == "X"]
ops = [e for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
calls = [e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and CALLS.match(e["name"])]
first = min(e["ts"] for e in ops + calls)
ns = lambda t: int(((t - first) * 1000).quantize(Decimal(1), ROUND_HALF_UP))
want = collections.defaultdict(list)  # of each thread and stream
for e in ops + calls:
    row = ("thread", e["tid"]) if e["cat"].startswith("cuda") else ("stream", e["args"]["stream"])
    want[row] += [ns(e["ts"]), ns(e["ts"] + e["dur"])]

statement, requires = {}, collections.defaultdict(list)
for line in open(sys.argv[1]):
    calc = re.match(r"\s*l(\d+): calc (\d+) cpu (\d+)$", line)
    after = re.match(r"\s*l(\d+) requires l(\d+)$", line)
    if calc:
        statement[int(calc[1])] = int(calc[2]), int(calc[3])
    elif after:
        assert int(after[2]) < int(after[1]) and int(after[2]) in statement, line
        requires[int(after[1])].append(int(after[2]))
    else:
        assert re.match(r"//|num_ranks 1$|rank 0 \{$|\}$|$", line.strip()), line
ends, found = {}, collections.defaultdict(list)
for number, (length, cpu) in sorted(statement.items()):
    ends[number] = max((ends[n] for n in requires[number]), default=0) + length
    found[cpu].append(ends[number])
assert sorted(sorted(v) for v in found.values()) == sorted(sorted(v) for v in want.values()), (len(found), len(want))
# threads come first
kinds = {tuple(sorted(v)): k[0] for k, v in want.items()}
assert [kinds[tuple(sorted(found[cpu]))] for cpu in sorted(found)] == \
    ["thread"] * sum(k[0] == "thread" for k in want) + ["stream"] * sum(k[0] == "stream" for k in want)
print(len(statement), "statements of", len(found), "cpus")
