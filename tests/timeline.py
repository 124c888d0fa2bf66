# tests/timeline.py TIMELINE.json ANSWER.json LAYERS - a timeline against the rules of the trace event format,
# and against the answer of the same step
#
# Rules: Trace Event Format (Google, "Trace Event Format" document): X with ts and dur, M, C with numbers in
# args, s and f joined by id; f with bp "e" binds to the slice that encloses it, as s does.
import bisect
import json
import sys
from decimal import Decimal

d = json.load(open(sys.argv[1]), parse_float=Decimal)
answer = json.load(open(sys.argv[2]))
events = d["traceEvents"]
slices, counters, starts, ends, rows, place = {}, {}, {}, {}, {}, {}
assert isinstance(events, list) and events
for e in events:
    assert e["ph"] in "XMCsf" and isinstance(e["pid"], int) and isinstance(e["tid"], int)
    assert isinstance(e["name"], str) and e["name"] and e["ts"] >= 0
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name", "thread_sort_index", "process_sort_index")
        if e["name"] == "thread_name":
            rows[e["pid"], e["tid"]] = e["args"]["name"]
        if e["name"] == "thread_sort_index":
            assert (e["pid"], e["args"]["sort_index"]) not in place, e
            place[e["pid"], e["args"]["sort_index"]] = e["tid"]
    elif e["ph"] == "X":
        assert e["dur"] >= 0
        slices.setdefault((e["pid"], e["tid"]), []).append(e)
    elif e["ph"] == "C":
        assert e["args"] and all(isinstance(v, (int, Decimal)) and v >= 0 for v in e["args"].values())
        counters.setdefault((e["pid"], e["name"]), []).append(e)
    else:
        side = starts if e["ph"] == "s" else ends
        assert isinstance(e["id"], int) and e["id"] not in side
        side[e["id"]] = e
        assert e["ph"] == "s" or e["bp"] == "e"

# each row has a place of its own: what the step does, the host, streams by number
for pid in {pid for pid, _ in rows}:
    top, host, *streams = [place[p, i] for p, i in sorted(place) if p == pid]
    assert (rows[pid, top], rows[pid, host]) == ("phase", "host") and streams == sorted(streams)
assert sorted(rows) == sorted((pid, tid) for (pid, _), tid in place.items())

# no row runs two slices, and none outlasts the step
step_us = Decimal(d["otherData"]["step_us"])
last = 0
for row, of in slices.items():
    at = 0
    for e in sorted(of, key=lambda e: e["ts"]):
        assert e["ts"] >= at, (rows[row], e)
        at = e["ts"] + e["dur"]
    last = max(last, at)
assert last == step_us
assert abs(float(step_us) * 1e-6 / answer["step_s"] - 1) < 1e-9


# a few thousand slices a row: those that may enclose a moment, by millisecond
class Row:
    def __init__(self, of):
        self.cell = {}
        for e in of:
            for ms in range(int(e["ts"]) // 1000, int(e["ts"] + e["dur"]) // 1000 + 1):
                self.cell.setdefault(ms, []).append(e)

    def at(self, ts):
        return [e for e in self.cell.get(int(ts) // 1000, []) if e["ts"] <= ts < e["ts"] + e["dur"]]


index = {row: Row(of) for row, of in slices.items()}
assert starts.keys() == ends.keys()
parts = len({pid for pid, _ in rows})
launched = sends = 0
v_sends = {}
for number, s in starts.items():
    f = ends[number]
    assert s["name"] == f["name"] == s["cat"] == f["cat"] and s["ts"] <= f["ts"]
    (out,), (into,) = (index[e["pid"], e["tid"]].at(e["ts"]) for e in (s, f))
    if s["name"] == "launch":
        launched += 1
        assert rows[s["pid"], s["tid"]] == "host" and s["pid"] == f["pid"]
        assert out["args"]["segment"] == into["args"]["segment"]
        assert out["args"].get("layer") == into["args"].get("layer")
    else:
        sends += 1
        way = rows[s["pid"], s["tid"]]
        assert way.startswith("send_") and rows[f["pid"], f["tid"]].split(",")[0] == way.replace("send", "recv")
        if len(sys.argv) > 4: # a V: to the next stage and back, never around
            assert abs(f["pid"] - s["pid"]) == 1
            v_sends[s["pid"], f["pid"]] = v_sends.get((s["pid"], f["pid"]), 0) + 1
        else:
            assert f["pid"] == (s["pid"] + (1 if way == "send_forward" else -1)) % parts
        assert out["ts"] == into["ts"] and out["dur"] == into["dur"]

# each micro-batch goes to every neighbour twice: forward in one half, backward in the other
assert len(set(v_sends.values())) <= 1 and len(v_sends) in (0, 2 * (parts - 1)), v_sends

# FSDP's gathers and reductions are one communicator's, which runs one after the other
for pid in {pid for pid, _ in rows}:
    at = 0
    for e in sorted((e for row, of in slices.items() for e in of if row[0] == pid and e["dur"] and
                     e["name"] in ("fsdp_gather", "fsdp_reduce")), key=lambda e: e["ts"]):
        assert e["ts"] >= at, e
        at = e["ts"] + e["dur"]

streams = [e for row, of in slices.items() for e in of if rows[row] not in ("host", "phase")]
ran = [e for e in streams if e["dur"] and not rows[e["pid"], e["tid"]].startswith("recv_")]
sent = [e for e in ran if rows[e["pid"], e["tid"]].startswith("send_")]
host = [e for row, of in slices.items() for e in of if rows[row] == "host"]
assert launched == (len(ran) if host else 0) and sends == len(sent)

# each layer of each micro-batch runs once forward and once backward; 0: where two run side by
# side neither is told, and the others are told once
ran_once = {}
for e in host:
    if "micro_batch" in e["args"]:
        key = e["args"]["pass"], e["args"]["micro_batch"], e["args"]["layer"]
        assert key not in ran_once, key
        ran_once[key] = e
if host and int(sys.argv[3]):
    n, layers = (1 + max(k[i] for k in ran_once) for i in (1, 2))
    assert len(ran_once) == 2 * n * layers == 2 * n * int(sys.argv[3]), (n, layers)

assert bool(ran_once) == bool(host)
if host and not int(sys.argv[3]):
    assert any("micro_batch" not in e["args"] and e["args"]["segment"].startswith("pair") for e in host)

# phases fill the step, and are the answer's parts, in the mean over stages
phases = {}
for row, of in slices.items():
    if rows[row] == "phase":
        assert len({e["ts"] + e["dur"] for e in of} - {e["ts"] for e in of}) == 1 # no gap
        for e in of:
            phases[e["name"]] = phases.get(e["name"], 0) + float(e["dur"]) * 1e-6 / parts
for name, seconds in phases.items():
    said = answer["breakdown_s"][name.replace(" ", "_")]
    assert abs(seconds - said) < 1e-8 * answer["step_s"], (name, seconds, said)

# the counter's highest is the memory that the answer tells; links carry no more than they can
most = max(sum(c["args"].values()) for (_, name), of in counters.items() if name.startswith("memory") for c in of)
assert abs(float(most) / answer["memory_bytes_per_gpu"]["total"] - 1) < 1e-6, (float(most), answer["memory_bytes_per_gpu"])
links = [c for (_, name), of in counters.items() if name.startswith("links") for c in of]
assert links and max(max(c["args"].values()) for c in links) <= 100
for (pid, name), of in counters.items():
    if name.startswith("links"):
        assert not any(sorted(of, key=lambda c: c["ts"])[-1]["args"].values()) # idle at the end

# power: one level in products, one in kernels bound by memory, one while the rank waits for others
levels = {}
for (pid, name), of in counters.items():
    if not name.startswith("power"):
        continue
    of = sorted(of, key=lambda c: c["ts"])
    at, watts = [c["ts"] for c in of], [c["args"]["GPU"] for c in of]
    assert at[0] == 0 and watts[-1] == min(watts) and len(set(at[:-1])) == len(at) - 1
    # what is drawn is a change, but for the end's
    assert all(a != b for a, b in zip(watts[:-3], watts[1:-2])), watts
    for row, slices_of in slices.items():
        if row[0] != pid or rows[row] not in ("compute", "phase"):
            continue
        for e in slices_of:
            kind = e.get("cat", "") if rows[row] == "compute" else e["name"]
            if e["dur"] and kind in ("gemm", "attention", "memory", "exposed communication", "bubble", "host"):
                kind = {"attention": "gemm", "bubble": "exposed communication"}.get(kind, kind)
                middle = bisect.bisect_right(at, e["ts"] + e["dur"] / 2) - 1
                levels.setdefault(kind, set()).add(watts[middle])
assert levels and all(len(v) == 1 for v in levels.values()), levels
low = {k: min(v) for k, v in levels.items()}
assert low["gemm"] == max(low.values()) and low.get("host", 0) <= low["memory"] < low["gemm"], low
