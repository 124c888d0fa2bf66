"""tests/network_drawn.py - a drawn network against its bill

network_drawn.py NETWORK.svg BILL.json: a row of at most eight boxes for each tier, the highest on top, with how many there
are; between two rows a line from each box to each, and how many cables; all of it within the picture, nothing on top of
another.
"""
import itertools
import json
import sys
import xml.dom.minidom

svg = xml.dom.minidom.parse(sys.argv[1]).documentElement
fabric = json.load(open(sys.argv[2]))["fabric"]
TIERS = (("top", "top switch", "cables_core_top"), ("core", "core switch", "cables_spine_core"),
         ("spine", "spine switch", "cables_leaf_spine"), ("leaf", "leaf switch", "cables_node_leaf"),
         ("nodes", "node", None))


def many(count, what):
    return "%d %s%s" % (count, what, "" if count == 1 else "es" if what.endswith("switch") else "s")


def get(element, *names):
    return tuple(float(element.getAttribute(n)) for n in names)


_, _, wide, high = map(float, svg.getAttribute("viewBox").split())
rows = {}
for r in svg.getElementsByTagName("rect"):
    if r.getAttribute("width") == "100%":
        assert r.getAttribute("height") == "100%"
        continue
    x, y, w, h = get(r, "x", "y", "width", "height")
    assert 0 < x and x + w < wide and 0 < y and y + h < high
    rows.setdefault(y, []).append((x, y, x + w, y + h))
rows = [sorted(rows[y]) for y in sorted(rows)]
words = {t.firstChild.data: get(t, "x", "y") for t in svg.getElementsByTagName("text")}
tiers = [t for t in TIERS if fabric[t[0]]]
assert len(rows) == len(tiers), (len(rows), tiers)
said = set()
for row, (count, what, _) in zip(rows, tiers):
    assert len(row) == min(8, fabric[count]), (what, row)
    assert all(a[2] < b[0] for a, b in zip(row, row[1:]))  # side by side, as far apart
    assert len({b[0] - a[0] for a, b in zip(row, row[1:])}) <= 1 and len({b[2] - b[0] for b in row}) == 1
    said.add(many(fabric[count], what))
    x, y = words[many(fabric[count], what)]
    assert row[-1][2] < x < wide and row[0][1] < y <= row[0][3], (x, y, row)
lines = [get(line, "x1", "y1", "x2", "y2") for line in svg.getElementsByTagName("line")]
for above, below, (_, _, cables) in zip(rows, rows[1:], tiers):
    assert above[0][3] < below[0][1]
    ends = [(i, k) for x1, y1, x2, y2 in lines if y1 == above[0][3] and y2 == below[0][1]
            for i, a in enumerate(above) if x1 == (a[0] + a[2]) / 2 for k, b in enumerate(below) if x2 == (b[0] + b[2]) / 2]
    assert sorted(ends) == list(itertools.product(range(len(above)), range(len(below)))), ends
    said.add(many(fabric[cables], "cable"))
    at = [get(t, "x", "y") for t in svg.getElementsByTagName("text") if t.firstChild.data == many(fabric[cables], "cable")]
    assert any(above[-1][2] < x < wide and above[0][3] < y < below[0][1] for x, y in at), at
assert len(lines) == sum(len(a) * len(b) for a, b in zip(rows, rows[1:]))
assert words.keys() == said, words.keys() ^ said
assert high - rows[-1][0][3] == rows[0][0][1] < 20 and get(svg, "width") == (wide,)  # as much room above as below
assert len({b[0][1] - a[0][1] for a, b in zip(rows, rows[1:])}) <= 1  # tiers as far apart
print(len(lines), "lines")
