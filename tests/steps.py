"""tests/steps.py - a drawn step against the graph that it is of

steps.py GRAPH.txt CHROME.json KINETO.json RANK GANTT.svg MEMORY.svg ANSWER.json: of the text of `trace show SCENARIO` each rank's
program is run through here, op by op, without times. Every slice of the timelines is an op of it, with the op's name,
sizes and place; counters of memory are sums over the program; charts stand where these sums and the slices' times are.
"""
import json
import re
import sys
import xml.dom.minidom
from fractions import Fraction

MEMORIES = ("weights", "gradients", "optimizer", "activations", "other")
BANDS = ("weights", "optimizer", "gradients", "other", "activations")  # from the bottom up
STREAMS = ("compute", "copy", "offload", "fetch", "gather", "reduce", "tp", "cp", "ep", "send_forward",
           "send_backward")
GROUPS = ("tp", "cp", "ep", "etp", "dp", "shard", "replica", "edp", "expert_shard", "expert_replica", "pp",
          "embedding")
TYPES = {"bf16": ("c10::BFloat16", "BFloat16", 2), "fp16": ("c10::Half", "Half", 2), "fp32": ("float", "Float", 4),
         "fp8": ("c10::Float8_e4m3fn", "Float8_e4m3fn", 1)}
COLLECTIVES = {"all_reduce": "allreduce", "all_gather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base",
               "all_to_all": "all_to_all", "broadcast": "broadcast", "sendrecv": "send"}


def pairs(words):
    return dict(w.split("=", 1) for w in words if "=" in w)


class Graph:
    def __init__(self, path):
        self.work, self.segment, self.classes, self.group = [], [], [], {}
        for line in open(path):
            w = line.split()
            if w[0] == "group":
                self.group[w[1]] = {k: int(v) for k, v in pairs(w).items() if k != "tiles"}
            elif w[0] == "work":
                self.work.append({"kind": w[2], "name": w[3], **pairs(w[4:])})
            elif w[0] == "segment":
                self.segment.append({"name": w[2], "ops": [], "net": {}, "peak": {}})
            elif w[0] in ("net", "peak"):
                self.segment[-1][w[0]][w[1]] = float(w[2])
            elif w[0] == "op":
                self.segment[-1]["ops"].append({"optimizer": "optimizer=true" in w, "reverse": "reverse=true" in w,
                                                "host_waits": "host_waits=true" in w, **pairs(w[1:2] + w[2:3])})
            elif w[0] == "class":
                self.classes.append({"name": w[1], "ranks": int(w[2].split("=")[1]), "base": {}, "calls": [],
                                     "marks": []})
            elif w[0] == "base":
                self.classes[-1]["base"][w[1]] = float(w[2])
            elif w[0] == "pass":
                self.classes[-1]["marks"].append((len(self.classes[-1]["calls"]), w[1], pairs(w)))
            elif w[0] == "call":
                self.classes[-1]["calls"].append((self.segment[int(w[1])], int(w[2][1:])))


def turns(c):
    """Every turn of every call: its segment, the mark that it belongs to, and memory before it."""
    held, mark = [c["base"].get(m, 0) for m in MEMORIES], -1
    for i, (segment, repeat) in enumerate(c["calls"]):
        while mark + 1 < len(c["marks"]) and c["marks"][mark + 1][0] <= i:
            mark += 1
        for _ in range(repeat):
            yield segment, mark, held
            held = [h + segment["net"].get(m, 0) for h, m in zip(held, MEMORIES)]


def above(held, segment, what):
    return [h + segment[what].get(m, 0) for h, m in zip(held, MEMORIES)]


def ordered(events):
    """Slices of each row, in order. What takes no time stays where it was put."""
    rows = {}
    for e in events:
        if e["ph"] == "X":
            rows.setdefault((e["pid"], e["tid"]), []).append(e)
    return {row: sorted(of, key=lambda e: (e["ts"], e["ts"] + e["dur"])) for row, of in rows.items()}


def told(work):
    if work["kind"] == "gemm":
        return {k: work[k] for k in ("layout", "m", "n", "k")}
    if work["kind"] == "communication":
        return {k: work[k] for k in ("op", "group", "bytes")}
    return {"bytes": work["bytes"]} if work["kind"] == "memory" else {}


def slice_is(e, op, work, segment):
    assert (e["name"].replace(" ", "_"), e["cat"]) == (work["name"], work["kind"]), (e, work)
    a = e["args"]
    assert a["segment"] == segment["name"] and a["dtype"] == work["dtype"], (e, work)
    for key, value in told(work).items():
        assert str(a[key]) == value or abs(float(a[key]) - float(value)) <= 0.5, (key, e, work)


# ---- a part of the timeline
class Part:
    """Ops of a class, each with its slice; memory when a call's first kernel begins."""

    def __init__(self, g, number, rows, counters):
        c = g.classes[number]
        streams = {s: iter(rows.get((number, i), [])) for i, s in enumerate(STREAMS)}
        host = iter(rows.get((number, 101), []))
        self.ops, self.samples, self.receives, want = [], [], [], []
        for segment, mark, held in turns(c):
            call = next(host, None)
            assert call is None or call["name"] == segment["name"], (call, segment["name"])
            first = True
            for op in segment["ops"]:
                if op["stream"] not in streams:
                    self.receives.append((op, g.work[int(op["work"])]))
                    continue
                e, work = next(streams[op["stream"]]), g.work[int(op["work"])]
                slice_is(e, op, work, segment)
                assert call is None or e["ts"] >= call["ts"]
                assert {k: call["args"].get(k) for k in ("pass", "layer", "micro_batch")} == \
                    {k: e["args"].get(k) for k in ("pass", "layer", "micro_batch")} if call else True
                self.ops.append((op, work, mark, e))
                if op["stream"] == "compute" and first:
                    first = False
                    want.append((e["ts"], above(held, segment, "peak")))
                    self.samples.append((e["ts"], max((above(held, segment, k) for k in ("peak", "net")), key=sum)))
        assert next(host, None) is None and all(next(s, None) is None for s in streams.values())
        assert len(counters) == len(want)
        for (ts, bytes_), e in zip(sorted(want, key=lambda w: w[0]), counters):
            assert ts == e["ts"] and set(e["args"]) == set(MEMORIES)
            assert all(abs(float(e["args"][m]) - b) <= 1 for m, b in zip(MEMORIES, bytes_)), (bytes_, e)
        self.places(c)

    def places(self, c):
        """The pass and the micro-batch of the graph's mark, and layers that go up or down by one."""
        runs = {}
        for _, _, mark, e in self.ops:
            if "micro_batch" not in e["args"]:
                continue
            _, kind, at = c["marks"][mark]
            a = e["args"]
            assert (a["pass"], a["micro_batch"]) == (kind, int(at["micro_batch"])), (e, at)
            runs.setdefault((mark, kind == "forward"), []).append(a["layer"])
        for (_, forward), layers in runs.items():
            each = [a for a, b in zip(layers, layers[1:] + [None]) if a != b]
            step = {b - a for a, b in zip(each, each[1:])}
            assert step <= {1} if forward else step <= {-1}, layers

    def passes(self):
        """When each mark's compute began and was over; the last: what belongs to none."""
        spans = {}
        for op, _, mark, e in self.ops:
            if op["stream"] == "compute":
                begin, end = spans.get(mark, (e["ts"], 0))
                spans[mark] = begin, max(end, e["ts"] + e["dur"])
        return spans


def links(counters, number, rows):
    """A port or a NIC is used whenever a message is on the way, and only then."""
    busy = [e for i in range(4, 11) for e in rows.get((number, i), []) if e["dur"] and e["cat"] == "communication"]
    edges = sorted({e["ts"] for e in busy} | {e["ts"] + e["dur"] for e in busy})
    at = 0
    for middle in ((a + b) / 2 for a, b in zip(edges, edges[1:])):
        while at + 1 < len(counters) and counters[at + 1]["ts"] <= middle:
            at += 1
        used = bool(counters) and counters[at]["ts"] <= middle and any(counters[at]["args"].values())
        on = [e["args"]["bytes"] for e in busy if e["ts"] <= middle < e["ts"] + e["dur"]]
        # shares are told to a hundredth of a percent
        assert used == bool(on) or on and max(on) < 1e5, (float(middle), counters[at], on)


# ---- one rank, as a profiler would have it
def product_is(mm, work):
    m, n, k = (int(work[x]) for x in "mnk")
    a, b, turned = {"forward": ((m, k), (k, n), "b"), "dgrad": ((m, n), (n, k), ""),
                    "wgrad": ((n, m), (m, k), "a")}[work["layout"]]
    args = mm["args"]
    assert args["Input Dims"] == [list(a), list(b)], (mm, work)
    # rows one behind another, or, of a matrix that is turned, columns
    for dims, strides, side in zip((a, b), args["Input Strides"], "ab"):
        assert strides == ([1, dims[0]] if side in turned else [dims[1], 1]), (mm, work)
    assert args["Input type"] == 2 * [TYPES[work["dtype"]][0]]


def collective_is(args, op, work, g, rank):
    """Groups are the rank's own; what goes to a neighbour stage tells whose rank it is."""
    group = g.group[work["group"]]
    _, name, size = TYPES[work["dtype"]]
    whole, n = float(work["bytes"]) / size, group["size"]
    part = whole / n if n > 1 else whole
    receives = op["stream"].startswith("recv")
    assert args["Collective name"] == ("recv" if receives else COLLECTIVES[work["op"]]) and args["dtype"] == name
    assert abs(args["In msg nelems"] - (part if work["op"] == "all_gather" else whole)) <= 0.51, (args, work)
    assert abs(args["Out msg nelems"] - (part if work["op"] == "reduce_scatter" else whole)) <= 0.51, (args, work)
    members = len(g.classes) if work["group"] == "pp" else n
    assert args["Group size"] == (2 if work["op"] == "sendrecv" and work["group"] != "pp" else members)
    assert (args["Process Group Name"], args["Process Group Description"]) == \
        (str(GROUPS.index(work["group"])), work["group"])
    first = rank - rank // group["stride"] % members * group["stride"]
    assert args["Process Group Ranks"] == "[%d, %d, ...]" % (first, first + group["stride"])
    if work["group"] == "pp":
        down = op["stream"] in ("send_forward", "recv_backward")
        world = sum(c["ranks"] for c in g.classes)
        peer = (rank + (1 if down != op["reverse"] else -1) * group["stride"]) % world
        assert args["Src Rank" if receives else "Dst Rank"] == peer, (args, op)


def kernel_is(e, op, work, like, number):
    name = e["name"].replace(" ", "_")
    a = e["args"]
    assert (e["ts"], e["dur"]) == (like["ts"], like["dur"]) and e["pid"] == a["device"] == 0, (e, like)
    assert a["stream"] == e["tid"] and a["External id"] == a["correlation"] == number
    if work.get("kernel") == "host_link":
        way = {"offload": "DtoH_(Device_->_Pinned)", "fetch": "HtoD_(Pinned_->_Device)"}[op["stream"]]
        assert (e["cat"], name) == ("gpu_memcpy", "Memcpy_" + way)
        assert abs(a["bytes"] - float(work["bytes"])) <= 0.5
        return "cudaMemcpyAsync"
    kind = "optimizer" if op["optimizer"] else work["kind"].replace("communication", "nccl")
    assert (e["cat"], name) == ("kernel", "foretoken::%s<%s>" % (kind, work["name"])), (e, work)
    return "cudaLaunchKernel"


def received(g, part, row, of, rank):
    """Each receive runs from when it is asked for, or from when the one before it there is over, until what it
    waits for has come; what comes from one rank is asked for in the order in which that one sends it."""
    left, last = {tid: iter(r) for tid, r in row.items()}, {}
    for op, work in part.receives:
        tid = STREAMS.index("send_backward") + (1 if op["stream"] == "recv_forward" else 2) + 100 * op["reverse"]
        e = next(left[tid])
        launch = of["cuda_runtime", e["args"]["External id"]]
        assert kernel_is(e, op, work, e, e["args"]["External id"]) == launch["name"]
        assert e["ts"] == min(max(launch["ts"], last.get(tid, 0)), e["ts"] + e["dur"])
        last[tid] = e["ts"] + e["dur"]
        collective_is(e["args"], op, work, g, rank)
    assert all(next(i, None) is None for i in left.values())
    return len(part.receives)


def marked(g, part, stage, of):
    """Each pass from the launch of its first kernel to that of its last, named by its place in the model."""
    marks = g.classes[stage]["marks"]
    cut = any(m[1] == "weights" for c in g.classes for m in c["marks"])
    folded = any(op["reverse"] for s in g.segment for op in s["ops"])
    launches = {}
    for op, _, mark, e in part.ops:
        if op["stream"] == "compute":
            launches.setdefault(mark, []).append(of["cuda_runtime", part.number[id(e)]]["ts"])
    want = set()
    for i, (at, kind, where) in enumerate(marks if len(g.classes) > 1 else []):
        if kind in ("update", "flush") or i not in launches or [m[0] for m in marks].count(at) > 1:
            continue
        chunk, stages = int(where["chunk"]), len(g.classes)
        place = chunk * stages + (stages - 1 - stage if folded and chunk % 2 else stage)
        letter = {"forward": "F", "weights": "W", "backward": "I" if cut else "B"}.get(kind, "B")
        want.add(("PP:%d%s%s" % (place, letter, where["micro_batch"]), min(launches[i]), max(launches[i]) + Fraction(1, 10**6)))
    found = [e for k, e in of.items() if k[0] == "user_annotation" and e["name"].startswith("PP:")]
    assert {(e["name"], e["ts"], e["ts"] + e["dur"]) for e in found} == want and len(found) == len(want)
    return len(want)


def recorded(g, part, events, rank, step_us, world):
    assert events["distributedInfo"] == {"backend": "nccl", "rank": rank, "world_size": world}
    of = {}
    for e in events["traceEvents"]:
        kind = e["ph"] if e["ph"] != "X" else e["cat"]
        key = e["id"] if e["ph"] in "sf" else e["args"].get("correlation", e["args"]["External id"])
        assert (kind, key) not in of, e
        of[kind, key] = e
    rows = {}
    for e in sorted((e for k, e in of.items() if k[0] in ("kernel", "gpu_memcpy")),
                    key=lambda e: (e["ts"], e["ts"] + e["dur"])):
        rows.setdefault(e["tid"], []).append(e)
    waits = {tid: rows.pop(tid) for tid in list(rows) if tid > STREAMS.index("send_backward")}
    left = {tid: iter(row) for tid, row in rows.items()}
    calls, products, last, part.number, awaited = 0, 0, 0, {}, {}
    for op, work, _, like in part.ops:
        e = next(left[STREAMS.index(op["stream"])])
        number = part.number[id(like)] = e["args"]["External id"]
        launch = of["cuda_runtime", number]
        assert launch["name"] == kernel_is(e, op, work, like, number) and launch["dur"] == 0
        assert last <= launch["ts"] <= e["ts"], (launch, e)
        calls, last = calls + 1, launch["ts"]
        if op["host_waits"]:
            awaited[e["ts"] + e["dur"]] = last
        start, end = of["s", number], of["f", number]
        assert (start["pid"], start["tid"], start["ts"]) == (launch["pid"], launch["tid"], launch["ts"])
        assert (end["pid"], end["tid"], end["ts"], end["bp"]) == (0, e["tid"], e["ts"], "e") and "bp" not in start
        if work["kind"] == "communication":
            collective_is(e["args"], op, work, g, rank)
        if work["kind"] == "gemm" and int(work.get("groups", 0)) <= 1:
            mm = of["cpu_op", number]
            assert (mm["name"], mm["ts"], mm["dur"]) == ("aten::mm", launch["ts"], 0)
            product_is(mm, work)
            products += 1
    calls += received(g, part, waits, of, rank)
    synced = [e for k, e in of.items() if k[0] == "cuda_runtime" and e["name"] == "cudaStreamSynchronize"]
    for e in synced:  # the host waits for a kernel that it has launched, until that one ends
        assert awaited[e["ts"] + e["dur"]] <= e["ts"] and e["dur"] > 0, e
    kinds = [k for k, _ in of]
    passes = marked(g, part, rank // g.classes[0]["ranks"], of)
    assert all(next(i, None) is None for i in left.values())
    assert [kinds.count(k) for k in ("s", "f", "cpu_op", "cuda_runtime", "user_annotation")] == \
        [calls, calls, products, calls + 1 + len(synced), 1 + passes]
    (end,) = [e for k, e in of.items() if k[0] == "cuda_runtime" and e["name"] == "cudaDeviceSynchronize"]
    (step,) = [e for k, e in of.items() if k[0] == "user_annotation" and e["name"] == "ProfilerStep#0"]
    assert (end["ts"], end["ts"] + end["dur"]) == (last, step_us) and (step["ts"], step["dur"]) == (0, step_us)
    return calls


# ---- charts
def texts(svg, class_=None):
    return [(t, t.firstChild.data) for t in svg.getElementsByTagName("text")
            if class_ is None or t.getAttribute("class") == class_]


def fullest(path, g, parts, step_us):
    """Bands of memory, column by column: in each what is held at the fullest of the calls that begin in it."""
    svg = xml.dom.minidom.parse(path).documentElement
    most = [max(max(sum(above(h, s, k)) for k in ("net", "peak")) for s, _, h in turns(c)) for c in g.classes]
    samples = sorted(parts[most.index(max(most))].samples, key=lambda s: s[0])
    column = {}
    for ts, bytes_ in samples:
        x = min(899, int(float(ts) / float(step_us) * 900))
        column.setdefault(x, bytes_)
        column[x] = max(column[x], bytes_, key=sum)
    ticks = [(float(w.split()[0]), float(t.getAttribute("y")) - 4) for t, w in texts(svg, "y")]
    floor, per_gb = ticks[0][1], (ticks[-1][1] - ticks[0][1]) / ticks[-1][0]
    bands = [p for p in svg.getElementsByTagName("path") if p.getElementsByTagName("title")]
    assert [p.getElementsByTagName("title")[0].firstChild.data for p in bands] == list(BANDS)
    for k, band in enumerate(bands):
        upper, lower = band.getAttribute("d").split("H964", 1)
        start, *changes = re.findall(r"[MH](\d+)[ V]([\d.]+)", upper)
        at = dict([(int(start[0]) - 64, float(start[1]))] + [(int(x) - 64, float(y)) for x, y in changes])
        now, is_now = samples[0][1], at[0]
        for x in range(900):
            now, is_now = column.get(x, now), at.get(x, is_now)
            want = sum(now[MEMORIES.index(m)] for m in BANDS[:k + 1])
            assert abs(floor + per_gb * want / 1e9 - is_now) < 0.03, (BANDS[k], x, want, is_now)


def boxes(path, g, parts, step_us, phases):
    """A box from the first kernel of a pass to its last; behind its row what it waits for others."""
    svg = xml.dom.minidom.parse(path).documentElement
    words = {"weights": "gradients of weights", "whole": "whole backward", "flush": "flush of the pipeline"}
    want, end = {}, max(r[-1]["ts"] + r[-1]["dur"] for r in phases.values())
    for c, part in zip(g.classes, parts):
        chunks = max([1] + [int(m[2]["chunk"]) + 1 for c in g.classes for m in c["marks"] if "chunk" in m[2]])
        spans = part.passes()
        for mark in range(len(c["marks"]) - 1):  # two that begin at one call run side by side
            if c["marks"][mark][0] == c["marks"][mark + 1][0] and mark + 1 in spans:
                spans[mark] = spans[mark + 1]
        for mark, (begin, over) in spans.items():
            _, kind, at = c["marks"][mark] if mark >= 0 else (0, "of no pass", {})
            name = c["name"].replace("_", " ") + ": " + words.get(kind, kind)
            if kind not in ("update", "of no pass"):
                name += " %s micro-batch %d" % ("behind" if kind == "flush" else "of", int(at["micro_batch"]) + 1)
                name += ", chunk %d" % (int(at["chunk"]) + 1) if chunks > 1 and kind != "flush" else ""
            if over > 0:
                want[name] = begin, over
    found = {}
    for title in svg.getElementsByTagName("title"):
        name, begin, over, unit = re.fullmatch(r"(.*), (\S+) to (\S+) (s|ms|us|ns)", title.firstChild.data).groups()
        us = {"s": 1e6, "ms": 1e3, "us": 1, "ns": 1e-3}[unit]
        assert name not in found
        found[name] = float(begin) * us, float(over) * us
    assert found.keys() == want.keys(), found.keys() ^ want.keys()
    for name, times in want.items():
        assert all(abs(float(a) - b) <= 6e-6 * float(step_us) for a, b in zip(times, found[name])), (name, times)
    idle = [float(w.split()[1]) for _, w in texts(svg) if w.startswith("bubble ")]
    for number, shown in enumerate(idle):
        waited = sum(e["dur"] for e in phases[number] if e["name"] == "bubble")
        assert abs(shown - 100 * float(waited / step_us)) < 0.0501, (number, shown)
    assert len(idle) == len(parts) and end == step_us
    legend(svg, len(parts))
    return len(want)


def legend(svg, stages):
    """What is drawn is explained, and nothing else, in a row without an overlap."""
    words = {"f": "forward", "b": "backward", "w": "gradients of weights", "v": "whole backward", "d": "flush", "u": "optimizer",
             "o": "of no pass", "idle": "idle", "c": "collectives", "s": "sends to neighbours"}
    rects = svg.getElementsByTagName("rect")
    drawn = {r.getAttribute("class") for r in rects if r.getElementsByTagName("title")} | {"idle", "c"}
    drawn |= {"s"} if stages > 1 else set()
    words["b"] = "gradients of inputs" if "w" in drawn else "backward"
    at = [(float(t.getAttribute("x")), float(t.getAttribute("y")), w) for t, w in texts(svg)]
    keys = [r for r in rects if r.getAttribute("width") == "14"]
    assert {r.getAttribute("class") for r in keys} == drawn and len(keys) == len(drawn), drawn
    ends = 0
    for r in keys:
        x, y = float(r.getAttribute("x")), float(r.getAttribute("y"))
        assert x > ends, r.toxml()
        (beside,) = [a for a in at if a[2] == words[r.getAttribute("class")] and x + 14 < a[0] < x + 24]
        assert y < beside[1] <= y + float(r.getAttribute("height"))
        ends = beside[0] + 5.5 * len(beside[2])  # an average letter of 12 pixels


def main():
    graph, chrome, kineto, rank, gantt, memory, answer = sys.argv[1:]
    g = Graph(graph)
    d, k = (json.load(open(p), parse_float=Fraction) for p in (chrome, kineto))
    step_us, rows = Fraction(d["otherData"]["step_us"]), ordered(d["traceEvents"])
    assert abs(float(step_us) / (1e6 * json.load(open(answer))["step_s"]) - 1) < 1e-9, float(step_us)
    counters = {}
    for e in d["traceEvents"]:
        if e["ph"] == "C":
            counters.setdefault((e["pid"], e["name"].split(",")[0]), []).append(e)
    parts = []
    for number in range(len(g.classes)):
        of = {name: sorted(counters.get((number, name), []), key=lambda e: e["ts"])
              for name in ("memory", "links in use")}
        parts.append(Part(g, number, rows, of["memory"]))
        links(of["links in use"], number, rows)
    each = g.classes[0]["ranks"]
    world = sum(c["ranks"] for c in g.classes)
    n = recorded(g, parts[int(rank) // each], k, int(rank), step_us, world)
    fullest(memory, g, parts, step_us)
    drawn = boxes(gantt, g, parts, step_us, {i: rows[i, 100] for i in range(len(parts))})
    print(n, "kernels,", drawn, "boxes,", sum(len(p.samples) for p in parts), "samples")


main()
