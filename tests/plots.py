"""tests/plots.py - the plots of a report: what gnuplot is given, against the JSON and the payments

plots.py FOLDER ANSWER.json FLOWS.csv,... SIZED.json GPUS: every .dat of the folder holds the numbers of the answer (the
point of GPUs those of SIZED.json, the first scenario at that size), and every .gp draws each column under its name,
each scenario in one style. Prints what was checked, or ends with what is wrong.
"""
import csv
import json
import math
import os
import re
import shlex
import sys

folder, answer, flow_paths, sized, sized_gpus = sys.argv[1:]
answer, sized = json.load(open(answer)), json.load(open(sized))
answers, names = answer["scenarios"], [a["name"] for a in answer["scenarios"]]
numbers = 0
SHAPES = ["7", "5", "9", "13", "11"]


def same(shown, value, digits=9):
    """As many digits as the file has."""
    global numbers
    assert abs(float(shown) - value) <= 0.51 * 10 ** (1 - digits) * max(abs(value), abs(float(shown)), 1e-300) + 1e-15, (shown, value)
    numbers += 1


def data(name):
    """Blocks of rows of cells, without comments."""
    text = open(os.path.join(folder, name + ".dat")).read()
    rows = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    blocks = [[shlex.split(line) for line in b.split("\n") if line] for b in rows.split("\n\n\n")]
    return [b for b in blocks if b]


def script(name):
    """Its lines by the first two words, and what it plots, a piece for each comma."""
    lines = open(os.path.join(folder, name + ".gp")).read().rstrip("\n").split("\n")
    (plot,) = [line for line in lines if line.startswith("plot ")]
    assert "dat = '%s.dat'" % name in lines and any("set output '%s.svg'" % name in line for line in lines)
    assert os.path.getsize(os.path.join(folder, name + ".svg")) > 2000
    height = 120 + 34 * len(answer["verdict"]["causes"][:10]) if name == "tornado" else 380
    assert lines[1].startswith("set terminal svg size 720,%d font " % height), (name, lines[1])
    return lines, re.split(r", (?![^(]*\))", plot[len("plot "):])


def columns(name, titles):
    """Columns from the second on are drawn in order, each in a style of its own, under these names."""
    _, pieces = script(name)
    found = [re.fullmatch(r"(?:dat|'') using (\d+)(?::xtic\(1\))? ls (\d) title '(.*)'", p.replace("''", "''"))
             for p in re.split(r", (?='' using)", ", ".join(pieces))]
    assert all(found), pieces
    assert [int(m[1]) for m in found] == list(range(2, 2 + len(titles))), pieces
    assert [m[3] for m in found] == titles and len({m[2] for m in found}) == len(titles), pieces


def breakdown():
    (rows,) = data("breakdown")
    keys = ("compute", "optimizer", "exposed_communication", "bubble", "host")
    for row, a in zip(rows, answers, strict=True):
        assert row[0] == a["name"]
        for cell, key in zip(row[1:], keys, strict=True):
            same(cell, a["breakdown_s"][key])
    columns("breakdown", ["compute", "optimizer", "exposed communication", "pipeline bubble", "host"])


def roofline():
    """Products and attention of the largest items; a name once, and only of the first scenario."""
    blocks = data("roofline")
    _, pieces = script("roofline")
    roofs = [re.fullmatch(r"roof\(x, (\S+), (\S+)\) ls (\d) lw 1.5 notitle", p) for p in pieces[:-1:2]]
    points = [re.fullmatch(r"dat index (\d+) using 1:2 with points ls (\d) pt (\d+) ps 1 title '(.*)'", p)
              for p in pieces[1:-1:2]]
    assert [m[4] for m in points] == names and [int(m[1]) for m in points] == list(range(len(names)))
    assert [m[2] for m in points] == [m[3] for m in roofs] and len({m[2] for m in points}) == min(5, len(names))
    assert len({m[3] for m in points}) == min(5, len(names))
    for i, (block, a, roof) in enumerate(zip(blocks, answers, roofs, strict=True)):
        items, called = [x for x in a["items"] if x.get("flop", 0) > 0], set()
        assert len(block) == min(12, len(items)), (len(block), len(items))
        assert points[i][3] == str(5 + 2 * (i % 5)), points[i][0]
        # the roofs are those of the items' shortest times: the fastest product's, and the fastest copy's
        ideal = [x for x in a["items"] if x.get("roofline_s")]
        same(roof[1], max(x["flop"] / x["roofline_s"] for x in ideal) * 1e-12)
        same(roof[2], max(x["bytes"] / x["roofline_s"] for x in ideal) * 1e-12)
        line, put = 0.045 * max(float(m[1]) for m in roofs), []
        for x, y, _, at in sorted((row for row in block if row[2]), key=lambda row: float(row[1])):
            x, y, at = float(x), float(y), float(at)
            covered = [b for a, b in put if a < 2.5 * x and x < 2.5 * a]
            same("%.6g" % at, max([y] + [b + line for b in covered]), 5)
            put.append((x, at))
        for (x, y, name, _), item in zip(block, items):
            same(x, item["flop"] / item["bytes"], 6)
            same(y, item["flop"] / item["time_s"] * 1e-12, 6)
            assert float(y) <= min(float(roof[1]), float(x) * float(roof[2])), (x, y)
            family = item["name"].split(" ")[0]
            assert name == (family if i == 0 and family not in called else ""), (name, item)
            called.add(family)


def waterfall():
    for i, other in enumerate(answer["cost_differences"], 1):
        (rows,) = data("waterfall-%d" % i)
        (ends, first, last) = rows[1:-1], rows[0], rows[-1]
        usd = [answers[k]["cost"]["usd_per_million_tokens"] for k in (0, i)]
        for row, name, value, number in ((first, names[0], usd[0], 0), (last, names[i], usd[1], len(rows) - 1)):
            assert (row[0], row[1], row[2], row[4], row[5]) == (str(number), name, "0", "0", "%.4f" % value), row
            same(row[3], value)
        at = usd[0]
        for k, (row, part) in enumerate(zip(ends, other["parts"], strict=True), 1):
            change = part["usd_per_million_tokens"]
            assert row[:2] == [str(k), part["part"]] and row[5] == "%+.4f" % change
            same(row[2], at, 8)
            same(row[3], at + change, 8)
            assert change == 0 or row[4] == ("1" if change > 0 else "2"), row
            at += change
        lines, _ = script("waterfall-%d" % i)
        low, high = [float(v) for v in re.search(r"set yrange \[(.*):(.*)\]", "\n".join(lines)).groups()]
        tops = [float(v) for row in rows for v in row[2:4]]
        same(high, 1.1 * max(tops), 8)
        same(low, min(0, 1.1 * min(tops)), 8)
        assert "set xrange [-0.6:%d.6]" % (len(rows) - 1) in lines


def tornado():
    """A row for each cause, the largest on top; bars of the scenarios lie in it, beside each other."""
    blocks, causes = data("tornado"), answer["verdict"]["causes"][:10]
    lines, pieces = script("tornado")
    taken = {}
    assert "set yrange [-0.6:%d - 0.4]" % len(causes) in lines
    (tics,) = [line for line in lines if line.startswith("set ytics")]
    assert re.findall(r"'([^']*)' (\d+)", tics) == [(c["cause"], str(len(causes) - 1 - k)) for k, c in enumerate(causes)]
    for i, (block, piece, a) in enumerate(zip(blocks, pieces, answers, strict=True)):
        m = re.fullmatch(r"dat index (\d+) using \((\S+)\):1:3:4:\(\$1-(\S+)\):\(\$1\+(\S+)\) with boxxyerror ls (\d) "
                         r"title '(.*)'", piece)
        assert int(m[1]) == i and m[3] == m[4] and m[5] == str(i % 5 + 1) and m[6] == a["name"], piece
        same(m[2], a["cost"]["usd_per_million_tokens"])
        for k, (row, cause) in enumerate(zip(block, causes, strict=True)):
            assert row[1] == cause["cause"]
            same(row[2], cause["p10"][i])
            same(row[3], cause["p90"][i])
            middle, half = float(row[0]), float(m[3])
            assert abs(middle - (len(causes) - 1 - k)) + half < 0.5, row
            taken.setdefault(k, []).append((middle - half, middle + half))
    for spans in taken.values():  # downwards, in the order of the scenarios, and the row is filled evenly
        assert all(b[1] <= a[0] + 1e-3 for a, b in zip(spans, spans[1:])), spans
        assert all(a[1] - a[0] > 0.6 / len(answers) for a in spans)
        middle = sum(a + b for a, b in spans) / 2 / len(spans)
        assert abs(middle - round(middle)) < 1e-3, spans


def sizes(name, usd):
    blocks = data(name)
    lines, pieces = script(name)
    curves = [pieces[i:i + 2] for i in range(0, len(pieces), 2)]
    ends, styles, most = {}, {}, 0
    for i, (block, (band, curve), a) in enumerate(zip(blocks, curves, answers, strict=True)):
        style = str(i % 5 + 1)
        assert band == "dat index %d using 1:3:4 with filledcurves ls %s" % (i, style)
        assert curve == "dat index %d using 1:2 with linespoints ls %s lw 2 pt %s" % (i, style, SHAPES[i % 5])
        points = {int(row[0]): [float(v) for v in row[1:]] for row in block}
        gpus = a["scenario"]["cluster"]["gpus"]
        assert gpus in points and list(points) == sorted(points), points
        assert all(math.frexp(n / gpus)[0] == 0.5 and 0.125 <= n / gpus <= 4 for n in points), points
        assert all(low < v < high for v, low, high in points.values())
        if usd:
            same(points[gpus][0], a["cost"]["usd_per_million_tokens"])
        else:  # shares of the best size: that is 100
            assert max(p[0] for p in points.values()) == 100
        if i == 0:  # draws of a comparison are others, so a range is held against that of one scenario
            point, ranges = points[int(sized_gpus)], sized["interval"]
            if usd:
                for shown, value in zip(point, [sized["cost"]["usd_per_million_tokens"]]
                                        + ranges["usd_per_million_tokens"], strict=True):
                    same(shown, value)
            else:
                same(point[0] / points[gpus][0], sized["tokens_per_s_per_gpu"] / a["tokens_per_s_per_gpu"], 7)
                for shown, value in zip(point[1:], ranges["tokens_per_s"], strict=True):
                    same(shown / point[0], value / sized["tokens_per_s"], 7)
        ends[a["name"]], styles[a["name"]] = list(points.values())[-1][0], (style, SHAPES[i % 5])
        most = max([most] + [p[2] for p in points.values()])
    # names stand at the curves' ends, from the top down, 6 % of the height apart at least
    above, order = math.inf, []
    for line in lines:
        m = re.fullmatch(r"set label '(.*)' at graph 1.03, first (\S+) left point ls (\d) pt (\d+) offset 1", line)
        if m:
            same(m[2], min(ends[m[1]], above - 0.06 * most), 7)
            assert (m[3], m[4]) == styles[m[1]], line
            above = float(m[2])
            order.append(ends[m[1]])
    assert order == sorted(ends.values(), reverse=True), order
    assert "set rmargin %d" % (7 + min(32, max(map(len, names)))) in lines


COLUMN = {"servers": 0, "network": 0, "storage and management": 0, "tax": 0, "duty": 0, "prepaid rent": 1, "rent": 1,
          "colocation": 2, "electricity": 3, "maintenance": 4, "staff": 4, "licences": 4, "insurance": 4}


def cash():
    """Payments of the months, by year and kind; without what comes in at the end."""
    for i, path in enumerate(flow_paths.split(",")):
        (rows,) = data("cash-%d" % i)
        paid, begin = [], None
        for line in csv.DictReader(open(path)):
            year, month, _ = line["ChargePeriodStart"].split("-")
            month = 12 * int(year) + int(month)
            begin = month if begin is None else begin
            while len(paid) <= (month - begin) // 12:
                paid.append([0] * 5)
            if line["ServiceName"] != "residual value":
                paid[(month - begin) // 12][COLUMN[line["ServiceName"]]] += float(line["BilledCost"]) * 1e-6
        for k, (row, year) in enumerate(zip(rows, paid, strict=True)):
            assert row[0] == str(k + 1)
            for shown, value in zip(row[1:], year, strict=True):  # of cents, each rounded
                assert abs(float(shown) - value) < 1e-5 * abs(value) + 1e-6, (row, year)
                global numbers
                numbers += 1
        columns("cash-%d" % i, ["purchases", "rent", "colocation", "electricity", "maintenance, staff, licences, insurance"])


breakdown()
roofline()
waterfall()
tornado()
sizes("scaling-usd", True)
sizes("efficiency", False)
cash()
print("plots", numbers, "numbers")
