"""tests/imported.py - cells that `calibrate import` made of a recorded step, against the recording

imported.py STORE.db RECORDING.json.gz: kernels of one name are a cell, but those whose operator told shapes, and
collectives: kernels of an operator are one call then. Counts, medians, deciles and bytes are found here from the events.
"""
import collections
import gzip
import json
import sqlite3
import statistics
import sys

store = sqlite3.connect(sys.argv[1])
store.row_factory = sqlite3.Row
cells = list(store.execute("SELECT * FROM measurement"))
events = [e for e in json.load(gzip.open(sys.argv[2]))["traceEvents"] if e.get("ph") == "X"]
kernels = [e for e in events if e.get("cat") == "kernel"]
operator = {e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op" and "External id" in e["args"]}


def quantile(times, q):
    """The least that so many of all do not exceed; of an even number the median lies between two."""
    if q == 0.5:
        return statistics.median(times)
    return next(t for i, t in enumerate(times) if i + 1 >= q * len(times) - 1e-9)


def cell_is(cell, times):
    times = sorted(times)
    assert cell["reps"] == len(times) and cell["in_step"] == 1 and cell["status"] == "ok", (dict(cell), len(times))
    assert all(cell[k] == -1 for k in ("relative_error", "clock_mhz", "power_w", "temperature_c")), dict(cell) # not told
    for key, q in (("time_us", 0.5), ("p10_us", 0.1), ("p90_us", 0.9)):
        assert abs(cell[key] - quantile(times, q)) < 1e-6 * times[-1], (dict(cell), key, quantile(times, q))


# ---- collectives: operation, bytes that nccl-tests counts, ranks
WIDTH = {"BFloat16": 2, "Half": 2, "Float": 4, "Int": 4, "Long": 8, "Byte": 1}
sent = collections.defaultdict(list)
for e in kernels:
    a = e["args"]
    if e["name"].startswith("nccl") and "Collective name" in a:
        op = next(op for op in ("all_gather", "all_reduce", "reduce_scatter", "all_to_all")
                  if op.replace("_", "", 1) in a["Collective name"].replace("_", "", 1) or op in a["Collective name"])
        elements = max(a["In msg nelems"], a["Out msg nelems"])
        sent[op, elements * WIDTH[a["dtype"]], a["Group size"]].append(e["dur"])
found = {(c["kernel"], c["bytes"], c["gpus"]): c for c in cells if c["kind"] == "collective"}
assert found.keys() == sent.keys(), (found.keys(), sent.keys())
for key, cell in found.items():
    cell_is(cell, sent[key])

# ---- the others: by name where nothing is known of their work
others = [e for e in kernels if not e["name"].startswith("nccl")]
by_name = {c["kernel"]: c for c in cells if c["kind"] == "trace"}
known = [c for c in cells if c["kind"] not in ("trace", "collective")]
shaped = lambda e: operator.get(e["args"].get("External id"), {}).get("args", {}).get("Input Dims")
if not known:
    assert by_name.keys() == {e["name"] for e in others}
    for name, cell in by_name.items():
        cell_is(cell, [e["dur"] for e in others if e["name"] == name])
else:
    calls = collections.defaultdict(list)
    for e in others:
        if shaped(e) and operator[e["args"]["External id"]]["name"] in ("aten::mm", "aten::addmm"):
            calls[e["args"]["External id"]].append(e["dur"])
    sizes = collections.defaultdict(list)
    for number, times in calls.items():
        a, b = [d for d in operator[number]["args"]["Input Dims"] if len(d) == 2][-2:]
        sizes[tuple(sorted((a[0], a[1], b[1])))].append(sum(times))
    products = [c for c in known if c["kind"] == "gemm"]
    assert sum(c["reps"] for c in products) == len(calls), (sum(c["reps"] for c in products), len(calls))
    for size, times in sizes.items():  # layouts of one size, together
        of = [c for c in products if tuple(sorted((c["m"], c["n"], c["k"]))) == size]
        assert sum(c["reps"] for c in of) == len(times), (size, len(times), [dict(c) for c in of])
        assert all(min(times) - 1e-6 < c["p10_us"] <= c["p90_us"] < max(times) + 1e-6 for c in of), size
        if len(of) == 1:
            cell_is(of[0], times)
print(len(cells), "cells of", len(kernels), "kernels")
