"""tests/figures.py - single plots: what gnuplot is given, against the JSON of the same command

    figures.py KIND FOLDER/NAME ANSWER.json TEXT      KIND: prices, busbw, busbw-by-gpus, front, gaps, runs

The tables of prices and of runs in TEXT, and FOLDER/NAME.dat, hold the numbers of the answer, block by block, and
FOLDER/NAME.gp draws each block once, under its name. Prints how many numbers were held against the answer, or ends with
what is wrong.
"""
import json
import math
import re
import shlex
import sys

kind, at, answer, text = sys.argv[1:]
answer = json.load(open(answer))
name = at.rsplit("/", 1)[1]
lines = open(at + ".gp").read().rstrip("\n").split("\n")
plots = [line[len("plot "):] for line in lines if line.startswith("plot ")]
numbers = 0


def same(shown, value, digits):
    """As many digits as the file has."""
    global numbers
    assert abs(float(shown) - value) <= 0.51 * 10 ** (1 - digits) * max(abs(value), abs(float(shown))) + 1e-300, (shown, value)
    numbers += 1


def blocks():
    """Its head and its rows of cells; blocks are two empty lines apart."""
    found = []
    for block in open(at + ".dat").read().rstrip("\n").split("\n\n\n"):
        head, *rows = block.split("\n")
        assert head.startswith("# ") and rows, block
        found.append((head[2:], [shlex.split(row) for row in rows]))
    return found


def sets(**wanted):
    """What the script says of the picture, besides what all of them say."""
    assert lines[1].startswith("set terminal svg size 720,%d font " % wanted.pop("height")), lines[1]
    assert lines[2].endswith("set output '%s.svg'" % name) and lines[3] == "dat = '%s.dat'" % name, lines[:4]
    for key, value in wanted.items():
        assert "set %s %s" % (key, value) in lines, (key, value, lines)


def grouped(rows, key):
    """In the order in which they come first."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def drawn(groups, how):
    """Each block once: how, given its number, says by which words."""
    (plot,) = plots
    assert plot == ", ".join("dat index %d %s title '%s'" % (i, how(i), title) for i, title in enumerate(groups)), plot


def year_of(date):
    """The middle of a year or a month, or the day."""
    year, *rest = [int(x) for x in date.split("-")]
    if len(rest) == 1 and rest[0] <= 12:
        return year + (rest[0] - 0.5) / 12
    if len(rest) == 2:
        return year + (rest[0] - 1) / 12 + (rest[1] - 1) / 365
    return year + 0.5  # of two years, as 2025-2026, the first


def listed():
    """The table of prices: in cents by the hour, else in whole dollars."""
    title, table = open(text).read().rstrip("\n").split("\n\n")
    head, *rows = [re.split("  +", line.rstrip()) for line in table.split("\n")]
    assert title == answer["item"] + (", a GPU and hour" if answer["per_hour"] else "")
    assert head == ["date", "low USD", "likely USD", "high USD", "price", "book", "buyer", "source"], head
    for row, p in zip(rows, answer["prices"], strict=True):
        usd = ["%.*f" % (2 if answer["per_hour"] else 0, p[key]) for key in ("low_usd", "usd", "high_usd")]
        assert row == [p["date"], *usd, p["kind"], p["book"], p["buyer"] or "-"] + [p["source"]] * bool(p["source"]), (row, p)


def prices():
    listed()
    groups = grouped(answer["prices"], lambda p: p["book"])
    years = [math.floor(year_of(p["date"])) for p in answer["prices"]]
    for (book, points), (head, rows) in zip(groups.items(), blocks(), strict=True):
        assert head == book + ": year, USD, low, high"
        for p, row in zip(points, rows, strict=True):
            assert row[0] == "%.4f" % year_of(p["date"]), (p, row)
            for shown, key in zip(row[1:], ("usd", "low_usd", "high_usd"), strict=True):
                same(shown, p[key], 9)
    sets(height=380, ylabel="'USD, %s%s'" % (answer["item"], ", a GPU and hour" if answer["per_hour"] else ""),
         xrange="[%d:%d]" % (years[0], years[-1] + 1), yrange="[0:*]")
    drawn(groups, lambda i: "using 1:2:3:4 with yerrorbars ls %d lw 2 pt 7 ps 0.8" % (i % 6 + 1))


def busbw(by_gpus):
    def size(n):
        return "%.4g MiB" % (n / 2 ** 20) if n >= 2 ** 20 else "%.4g KiB" % (n / 1024)

    groups = grouped(answer["rows"], lambda r: "%s, %s" % (r["op"], size(r["bytes"]) if by_gpus else "%d GPUs" % r["gpus"]))
    for (title, points), (head, rows) in zip(groups.items(), blocks(), strict=True):
        assert head == title + (": GPUs, GB/s" if by_gpus else ": bytes, GB/s")
        for r, row in zip(points, rows, strict=True):
            assert row[0] == "%d" % r["gpus" if by_gpus else "bytes"], (r, row)
            same(row[1], r["busbw_gb_per_s"], 9)
    sets(height=380, xlabel="'GPUs'" if by_gpus else "'bytes'", logscale="x 2", yrange="[0:*]")
    assert by_gpus != ("set format x '%.0b %BB'" in lines)
    drawn(groups, lambda i: "using 1:2 with linespoints lw 2 pt 7 ps 0.5")


def front():
    several = answer["plans"] if "plans" in answer else [answer]
    titles = []
    for plans, (head, rows) in zip(several, blocks(), strict=True):
        assert head == "tokens/s per GPU, USD per million tokens, GB"
        for o, row in zip(plans["front"], rows, strict=True):
            values = o["tokens_per_s_per_gpu"], o["usd_per_million_tokens"], o["memory_bytes_per_gpu"]["total"] * 1e-9
            for shown, value in zip(row, values, strict=True):
                same(shown, value, 9)
        titles.append(plans["name"])
    sets(height=380, xlabel="'tokens/s per GPU'", ylabel="'USD per million tokens'")
    drawn(titles, lambda i: "using 1:2:3 with linespoints lw 1 pt %d ps 1.2 palette" % (5 + 2 * (i % 5)))


def gaps():
    sides = [answer["by_layer"][side].get("layers", []) for side in ("recorded", "predicted")]
    layers = min(map(len, sides))
    (head, rows), *passes = blocks()
    assert head == "what, recorded ms, predicted ms" and len(passes) == (2 if layers else 0)
    whole = {"what": "step", "recorded_s": answer["recorded_step_s"], "predicted_s": answer["predicted_step_s"]}
    for gap, row in zip(answer["gaps"] + [whole], rows, strict=True):
        assert row[0] == gap["what"], (gap, row)
        for shown, key in zip(row[1:], ("recorded_s", "predicted_s"), strict=True):
            same(shown, 1e3 * gap[key], 6)
    for way, (head, rows) in zip(("forward", "backward"), passes):
        assert head == "layer, %s: recorded ms, predicted ms" % way and len(rows) == layers
        for i, row in enumerate(rows):
            assert row[0] == str(i)
            for shown, side in zip(row[1:], sides, strict=True):
                same(shown, 1e3 * side[i][way]["time_s"], 6)
    sets(height=760 if layers else 380, multiplot="layout %d,1" % (2 if layers else 1))
    assert lines[-1] == "unset multiplot" and len(plots) == (2 if layers else 1)
    assert plots[0] == "dat index 0 using 2:xtic(1) ls 1 title 'recorded', '' index 0 using 3 ls 2 title 'predicted'"
    if layers:
        assert "set xtics norotate %d" % (layers // 16 + 1) in lines
        found = re.findall(r"index (\d) using 1:(\d) with linespoints ls (\d) pt (\d) ps 0.6 (?:dt 2 )?title '([a-z, ]*)'", plots[1])
        assert found == [("1", "2", "1", "7", "forward, recorded"), ("1", "3", "2", "7", "predicted"),
                         ("2", "2", "1", "6", "backward, recorded"), ("2", "3", "2", "6", "predicted")], found


def rows_of_runs():
    """The table of runs, and below it the errors in sum."""
    lines = open(text).read().rstrip("\n").split("\n")
    for line, r in zip(lines[1:-2], answer["runs"], strict=True):
        t = r["traits"]
        plan = "%s tp%d pp%d cp%d ep%d" % tuple(t[k] for k in ("sharding", "tp", "pp", "cp", "ep"))
        assert re.split("  +", line) == [r["id"], t["gpu"], "%d" % t["gpus"], t["stack"], plan, t["precision"],
                                         "%.0f" % r["tokens_per_s_per_gpu"], "%+.1f %%" % (100 * r["error_frac"])], line
    off = sorted(abs(r["error_frac"]) for r in answer["runs"])
    n = len(off)
    middle = (off[n // 2] + off[(n - 1) // 2]) / 2
    assert lines[-2] == "" and lines[-1] == "%d runs; errors in time: mean of absolute values %.1f %%, median %.1f %%, P90 %.1f %%" % (
        n, 100 * sum(off) / n, 100 * middle, 100 * off[math.ceil(0.9 * n) - 1]), lines[-1]


def runs():
    rows_of_runs()
    groups = grouped(answer["runs"], lambda r: r["traits"]["gpu"])
    for (gpu, of), (head, rows) in zip(groups.items(), blocks(), strict=True):
        assert head == gpu + ": measured, predicted, run"
        for r, row in zip(of, rows, strict=True):
            same(row[0], r["tokens_per_s_per_gpu"], 6)
            same(row[1], r["tokens_per_s_per_gpu"] / (1 + r["error_frac"]), 6)
            assert row[2] == r["id"], (r, row)
    sets(height=600, logscale="xy", xlabel="'measured tokens/s per GPU'", ylabel="'predicted'")
    (plot,) = plots
    begin = "x with lines lc rgb '#555555' title 'exact', 1.1*x with lines dt 2 lc rgb '#999999' title '10 %', " \
            "x/1.1 with lines dt 2 lc rgb '#999999' notitle, "
    assert plot.startswith(begin), plot
    plots[0] = plot[len(begin):]
    drawn(groups, lambda i: "using 1:2 with points pt %d ps 0.6" % (4 + i % 10))


{"prices": prices, "front": front, "gaps": gaps, "runs": runs, "busbw": lambda: busbw(False),
 "busbw-by-gpus": lambda: busbw(True)}[kind]()
print(kind, numbers, "numbers")
