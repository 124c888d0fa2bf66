"""tests/written.py - a recording that is replayed unchanged and written, against what it was read from

written.py RECORDING.json.gz WRITTEN.json: each kernel and call stands where it stood, all moved by one time, with its
lane, its numbers and its arguments; operators and marks stand at calls.
"""
import gzip
import json
import sys
from fractions import Fraction


def events(path):
    d = json.load((gzip.open if path.endswith(".gz") else open)(path), parse_float=Fraction)
    return d, [e for e in d["traceEvents"] if e.get("ph") == "X"]


was, old = events(sys.argv[1])
now, new = events(sys.argv[2])
KEPT = ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name",
        "Process Group Description", "Process Group Ranks")


def by(events_, *categories):
    found = {}
    for e in events_:
        if e.get("cat") in categories and "correlation" in e.get("args", {}):
            assert found.setdefault((e["name"], e["args"]["correlation"]), e) is e, e
    return found


assert now["deviceProperties"][0]["name"] == was["deviceProperties"][0]["name"]
for key in ("rank", "world_size"):
    told = was.get("distributedInfo", {}).get(key)
    assert now["distributedInfo"][key] == told or told is None, key
moved, n = set(), {}
for categories in (("kernel", "gpu_memcpy", "gpu_memset"), ("cuda_runtime", "cuda_driver")):
    of, to = by(old, *categories), by(new, *categories)
    n[categories[0]] = len(to)
    assert to.keys() <= of.keys(), to.keys() - of.keys()
    if categories[0] == "kernel":
        assert to.keys() == of.keys(), of.keys() - to.keys()
    for key, e in to.items():
        o = of[key]
        assert (e["pid"], e["tid"]) == (o["pid"], o["tid"]) and e["dur"] == o["dur"], (e, o)
        moved.add(Fraction(o["ts"]) - Fraction(e["ts"]))
        if "SendRecv" in e["name"] and "Collective name" not in o["args"]:
            continue  # of these others tell: below
        for name in KEPT + ("External id", "stream", "device"):
            assert name not in e["args"] or e["args"][name] == o["args"].get(name), (name, e, o)
        for name in KEPT + ("External id",):
            assert name not in o["args"] or name in e["args"], (name, e, o)
assert len(moved) == 1, moved
(by_us,) = moved
assert min(e["ts"] for e in new) == 0
launches = {e["ts"] for e in new if e["cat"] == "cuda_runtime"}
operators, own = [e for e in new if e["cat"] == "cpu_op"], {}
for e in old:
    if e.get("cat") == "cpu_op":
        own.setdefault((e["args"].get("External id"), e["name"]), []).append(e)
seen, asked = set(), [e for e in operators if e["name"] == "record_param_comms" and "External id" not in e["args"]]
for e in asked:  # transfers of a batch, one of those that were asked for
    assert e["ts"] in launches and any(e["args"] == {k: o["args"].get(k) for k in e["args"]} for o in old
                                       if o["name"] == e["name"] and o["tid"] == e["tid"]), e
operators = [e for e in operators if e not in asked]
for e in operators:
    (o,) = own[e["args"]["External id"], e["name"]]
    assert e["dur"] == 0 and e["ts"] in launches and (e["pid"], e["tid"]) == (o["pid"], o["tid"]), (e, o)
    # its first launch is within it
    assert o["ts"] <= e["ts"] + by_us <= o["ts"] + o["dur"], (e, o)
    for name, value in e["args"].items():
        assert o["args"][name] == value, (name, e, o)
    seen.add(e["args"]["External id"])
assert len(seen) == len(operators)
launched = {e["args"]["External id"] for e in new if e["cat"] in ("kernel", "gpu_memcpy") and "External id" in e["args"]}
missing = {i for i, _ in own} & launched - seen
assert not missing, missing
marks = [e for e in new if e["cat"] == "user_annotation"]
of = {}
for e in old:
    if e.get("cat") == "user_annotation":
        of.setdefault(e["name"], []).append(e)
for e in marks:
    assert any(o["tid"] == e["tid"] for o in of[e["name"]])
syncs = by(new, "cuda_sync")
for (name, number), e in syncs.items():
    like = [o for o in old if o.get("cat") == "cuda_sync" and o["args"].get("correlation") == number]
    assert like, e
    for key in ("stream", "wait_on_cuda_event_record_corr_id"):
        assert key not in e["args"] or e["args"][key] == like[0]["args"].get(key), (key, e, like)
print(n, len(operators), "operators", len(asked), "transfers", len(marks), "marks", len(syncs), "synchronisations")
