"""tests/charts.py - the Gantt chart and the memory chart of a step against its timeline and its answer

charts.py GANTT.svg MEMORY.svg TIMELINE.json ANSWER.json: each box stands where its time is on the axis, its time is
that of the timeline's kernels, shares and bytes are those of the answer, bands lie upon each other.
"""
import json
import re
import sys
import xml.dom.minidom

gantt, memory = (xml.dom.minidom.parse(p).documentElement for p in sys.argv[1:3])
events = json.load(open(sys.argv[3]))
events = events["traceEvents"] if isinstance(events, dict) else events
answer = json.load(open(sys.argv[4]))
UNITS = {"s": 1e6, "ms": 1e3, "us": 1}  # microseconds, as the timeline has them
step_us = answer["step_s"] * 1e6


def get(element, name):
    return float(element.getAttribute(name))


def texts(svg):
    return [(t, t.firstChild.data) for t in svg.getElementsByTagName("text")]


def within(svg):
    """Boxes and words stand within the picture, and so does what paths draw."""
    wide, high = get(svg, "width"), get(svg, "height")
    for element in [e for name in ("rect", "text") for e in svg.getElementsByTagName(name)]:
        if element.getAttribute("width") == "100%":
            continue  # the ground
        x, y, w, h = (float(element.getAttribute(k) or 0) for k in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= wide and 0 <= y and y + h <= high, element.toxml()
    for path in svg.getElementsByTagName("path"):
        x = y = 0
        for letter, a, b in re.findall(r"([MHVhv])([\d.-]+)(?: ([\d.-]+))?", path.getAttribute("d")):
            a = float(a)
            x, y = {"M": (a, float(b or 0)), "H": (a, y), "h": (x + a, y), "V": (x, a), "v": (x, y + a)}[letter]
            assert 0 <= x <= wide and 0 <= y <= high, path.toxml()


def near(a, b, by):
    assert abs(a - b) <= by, (a, b, by)


def axis(svg, name, place):
    """Pixels of a tick's number: even steps from 0. Returns the pixel of 0, pixels of one, the unit."""
    ticks = [(float(w.split()[0]), get(t, place), w.split()[1:]) for t, w in texts(svg)
             if t.getAttribute("class") == name and re.fullmatch(r"[\d.]+( \w+)?", w)]
    assert len(ticks) > 3 and ticks[0][0] == 0 and len(ticks[0][2]) == 1, ticks
    one = (ticks[-1][1] - ticks[0][1]) / ticks[-1][0]
    for number, pixel, _ in ticks:
        near(pixel, ticks[0][1] + number * one, 0.02)
    assert len({round(b[0] - a[0], 9) for a, b in zip(ticks, ticks[1:])}) == 1
    return ticks[0][1], one, ticks[0][2][0], ticks[-1][0]


within(gantt)
within(memory)

# ---- passes of stages
zero, per_unit, unit, _ = axis(gantt, "axis", "x")
per_us = per_unit / UNITS[unit]
rows = {w: get(t, "y") for t, w in texts(gantt) if t.getAttribute("class") == "name"}
kernels = {}
for e in events:
    if e["ph"] == "X" and e["tid"] == 0:
        kernels.setdefault(e["pid"], []).append(e)
begins = {p: sorted(e["ts"] for e in k) for p, k in kernels.items()}
ends = {p: sorted(e["ts"] + e["dur"] for e in k) for p, k in kernels.items()}
idle = {get(r, "y"): r for r in gantt.getElementsByTagName("rect") if r.getAttribute("class") == "idle"}
found = {}
chunks = answer["scenario"]["training"]["parallel"]["vpp"]
(legend,) = [w for _, w in texts(gantt) if w.startswith("numbers: micro-batches")]
assert ("paler" in legend) == (chunks > 1), legend
for box in gantt.getElementsByTagName("rect"):
    if not box.getElementsByTagName("title"):
        continue
    m = re.fullmatch(r"(stage (\d+)|.*?): (?:(.+) of micro-batch (\d+)(?:, chunk (\d+))?|flush of the pipeline behind micro-batch \d+|update|what belongs to no pass|[a-z ]+), "
                     r"(\S+) to (\S+) (s|ms|us)", box.getElementsByTagName("title")[0].firstChild.data)
    assert m, box.toxml()
    stage, begin, end = int(m[2] or 0), float(m[6]) * UNITS[m[8]], float(m[7]) * UNITS[m[8]]
    near(get(box, "x"), zero + begin * per_us, 0.02)
    near(get(box, "width"), (end - begin) * per_us, 0.03)
    row = rows["stage %d" % stage if m[2] else m[1]]
    assert row - 24 < get(box, "y") < row and get(box, "height") <= 24
    # it begins as one of the stage's kernels does, and ends as one does
    assert min(abs(t - begin) for t in begins[stage]) < 1e-5 * step_us, m[0]
    assert min(abs(t - end) for t in ends[stage]) < 1e-5 * step_us, m[0]
    # later chunks are paler, and only they have a number
    assert m[3] is None or bool(m[5]) == (chunks > 1)
    near(get(box, "fill-opacity"), 1 - 0.6 * (int(m[5]) - 1) / (chunks - 1) if m[5] else 1, 0.0051)
    if m[3]:
        assert (stage, m[3], m[4], m[5]) not in found
        found[stage, m[3], m[4], m[5]] = begin, end
for stage, own in kernels.items():
    boxes = sorted(v for k, v in found.items() if k[0] == stage)
    for a, b in zip(boxes, boxes[1:]):
        assert a[1] <= b[0] + 1e-5 * step_us, (a, b)
    for e in own:
        if "micro_batch" in e["args"]:
            number = str(e["args"]["micro_batch"] + 1)
            assert any(v[0] - 1e-5 * step_us <= e["ts"] and e["ts"] + e["dur"] <= v[1] + 1e-5 * step_us
                       for k, v in found.items() if k[0] == stage and k[2] == number), e
scenario = answer["scenario"]["training"]
plan, batches = scenario["parallel"], answer["derived"]["micro_batches"]
kinds = {k[1] for k in found}
# dualpipev leaves some backwards whole: each is as much as the two parts of others
parts = len(kinds - {"whole backward"})
wholes = {k for k in found if k[1] == "whole backward"}
assert len(found) + len(wholes) == plan["pp"] * plan["vpp"] * batches * parts, (len(found), kinds)
for f in {k for k in found if k[1] == "forward"}:
    backward = [k for k in found if k[0] == f[0] and k[2:] == f[2:] and k[1] != "forward"]
    assert sum(2 if k in wholes else 1 for k in backward) == parts - 1
    assert all(found[f][1] <= found[k][0] + 1e-5 * step_us for k in backward)
near(max(ends[p][-1] for p in ends), step_us, 0.02 * step_us)
for bar in idle.values():
    if bar.getAttribute("height") == "24":
        near(get(bar, "width"), step_us * per_us, 0.02)
words = [w for _, w in texts(gantt)]
each = [float(w.split()[1]) for w in words if w.startswith("bubble ")]
assert len(each) == plan["pp"]
(head,) = [w for w in words if w.startswith("Pipeline bubble: ")]
mean = float(head.split()[2])
near(mean, 100 * answer["breakdown_s"]["bubble"] / answer["step_s"], 0.0501)
near(sum(each) / len(each), mean, 0.11)
(title,) = [w for t, w in texts(gantt) if t.getAttribute("class") == "title"]
m = re.fullmatch(re.escape(answer["name"]) + r": one step, (\S+) (s|ms|us)", title)
near(float(m[1]) * UNITS[m[2]], step_us, 5e-4 * step_us)

# ---- collectives and sends, in lanes below
for lane, streams in (("c", {1, 2, 3, 4, 5, 6}), ("s", {7, 8, 9, 10})):
    for path in gantt.getElementsByTagName("path"):
        if path.getAttribute("class") != lane:
            continue
        pieces = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v5H([\d.]+)z", path.getAttribute("d"))
        assert "".join("M%s %sh%sv5H%sz" % p for p in pieces) == path.getAttribute("d") and len({p[1] for p in pieces}) == 1
        stage = min(range(len(rows)), key=lambda s: abs(rows["stage %d" % s] - float(pieces[0][1])))
        spans = [(float(x), float(x) + float(w)) for x, _, w, _ in pieces]
        assert all(a[1] < b[0] + 0.9 for a, b in zip(spans, spans[1:]))
        for e in events:
            if e["ph"] == "X" and e["pid"] == stage and e["tid"] in streams and e["tid"] < 9:
                x = zero + e["ts"] * per_us
                assert any(a - 0.02 <= x and x + e["dur"] * per_us <= b + 0.02 for a, b in spans), (lane, e, spans[:3])

# ---- memory
zero, per_unit, unit, _ = axis(memory, "x", "x")
floor, per_gb, gb, most = axis(memory, "y", "y")
assert gb == "GB"
floor -= 4  # words stand a little lower than their lines
lines = [float(p.getAttribute("d").split()[1].split("h")[0]) for p in memory.getElementsByTagName("path")
         if p.getAttribute("class") == "grid"]
near(lines[0], floor, 0.01)
near(lines[-1], floor + most * per_gb, 0.02)
words = dict((w, t) for t, w in texts(memory))
(head,) = [w for w in words if w.startswith("stage") or ", at " in w]
peak, at, of = re.search(r"at most (\S+) GB, at (\S+) (\w+)$", head).groups()
told = answer["memory_bytes_per_gpu"]
near(float(peak), told["total"] / 1e9, 0.0501)
(capacity,) = [w for w in words if w.startswith("what a process can use: ")]
line = [p for p in memory.getElementsByTagName("path") if p.getAttribute("class") == "most"][0].getAttribute("d")
near(float(re.match(r"M\d+ ([\d.]+)h", line)[1]), floor + float(capacity.split()[5]) * per_gb, 0.3)
near(get(words[capacity], "y"), float(re.match(r"M\d+ ([\d.]+)h", line)[1]) - 5, 0.01)
named, below = {}, None
bands = [p for p in memory.getElementsByTagName("path") if p.getElementsByTagName("title")]
for w, t in words.items():
    m = re.fullmatch(r"(\w+) (\S+) GB", w)
    if m:
        named[m[1]] = t
        near(float(m[2]), told[m[1]] / 1e9, 0.0501)
assert all((told[k] > 5e5) == (k in named) for k in told if k != "total"), named
boxes = {b.getAttribute("fill"): b for b in memory.getElementsByTagName("rect")}
for band in bands:
    name = band.getElementsByTagName("title")[0].firstChild.data
    d = band.getAttribute("d")
    points = [(float(x), float(y)) for x, y in re.findall(r"[MH](\d+)[ V]([\d.]+)", d)]
    turn = points.index(max(points, key=lambda p: p[0]))
    upper, lower = points[:turn], points[turn:]
    assert [p[0] for p in upper] == sorted(p[0] for p in upper) and [p[0] for p in lower] == sorted((p[0] for p in lower), reverse=True)
    assert d.endswith("H%dZ" % points[0][0]) and points[0][0] == zero
    near(points[turn][0], zero + step_us / UNITS[unit] * per_unit, 0.5)
    heights = sorted({y for _, y in lower})
    if below is None:
        assert heights == [floor], heights  # the first stands on the axis
    else:
        assert set(heights) == below, name  # the others on the one before
    below = {y for _, y in upper}
    if name in named:
        assert boxes[band.getAttribute("fill")] and name in [w.split()[0] for w in words]
        # beside its legend stands its colour
        assert get(boxes[band.getAttribute("fill")], "y") == get(named[name], "y") - 9
near(floor + told["total"] / 1e9 * per_gb, min(below), 0.02)
when = zero + float(at) * UNITS[of] / UNITS[unit] * per_unit
highest = [x for x, y in upper if y == min(below)]
assert min(abs(x - when) for x in highest) < 2.1, (when, highest)
print("passes", len(found), "bands", len(bands))
