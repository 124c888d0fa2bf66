"""tests/fitted.py - what `calibrate plot` gives gnuplot, against the export of the same store and its validation

fitted.py FOLDER STORE PROFILE.yaml KERNELS.csv KERNELS.json COLLECTIVES.csv COLLECTIVES.json: each point of gemm.dat and busbw.dat is
a measured row with its prediction, in the units of the axes; residuals.dat counts the rows by how far off they are. Layouts of the profile are ratios of
rows of the same sizes.
"""
import csv
import json
import re
import sqlite3
import statistics
import sys

folder, store, profile, *files = sys.argv[1:]
SIZES = {"bf16": 2, "fp8": 1, "fp32": 4}
OPS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n,
       "all_to_all": lambda n: (n - 1) / n, "broadcast": lambda n: 1, "sendrecv": lambda n: 1}


def rows(table, answer):
    """Measured rows with what was predicted of them."""
    told = {r["id"]: r for r in json.load(open(answer))["rows"]}
    for line, row in enumerate(csv.DictReader(open(table)), 2):
        row["us"], row["predicted"] = float(row["measured.time_us"]), told["line %d" % line]["predicted"]
        yield row


def blocks(name):
    text = open("%s/%s.dat" % (folder, name)).read()
    return [[tuple(map(float, line.split())) for line in b.split("\n") if line and line[0] != "#"]
            for b in text.split("\n\n\n") if b.strip()]


def close(a, b, by):
    return abs(a - b) <= by * abs(b)


kernels, collectives = (list(rows(*f)) for f in (files[:2], files[2:]))
in_store = sqlite3.connect(store).execute("SELECT kind, dtype, accumulate FROM measurement WHERE status = 'ok' "
                                          "AND time_us > 0").fetchall()


def products():
    seen = 0
    for dtype, plotted in zip(SIZES, blocks("gemm"), strict=True):
        assert plotted.pop(0) == (0.01, 0.0001, 0.0001)  # beyond the axes
        assert len(plotted) == sum(r[:2] == ("gemm", dtype) for r in in_store)
        left = iter(plotted)
        for r in kernels:
            if r["kernel"] != "gemm" or r["dtype"] != dtype:
                continue
            m, n, k = (float(r[x]) for x in "mnk")
            flop, e = 2 * m * n * k, SIZES[dtype]
            # both operands in the format, the result in bf16
            want = flop / (e * (m * k + n * k) + 2 * m * n), flop / r["us"] / 1e6, flop / r["predicted"] / 1e6
            # products that accumulate are plotted, but not exported
            assert any(all(close(a, b, 1e-3) for a, b in zip(p, want)) for p in left), (r, want)
            seen += 1
    script = open(folder + "/gemm.gp").read()
    top = float(re.search(r"yrange \[0.1:([\d.]+)\]", script)[1])
    roofs = [float(x) for x in re.findall(r"roof\(x, ([\d.]+)\)", script)]
    # of the H100 SXM, whose data sheet the fake machine's profile is based on: 3.35 TB/s, 989 TFLOP/s of BF16
    assert re.findall(r"x \* ([\d.]+)", script) == ["3.35", "3.35"]
    assert abs(roofs[0] - 989.5) <= 0.51 and abs(roofs[1] - 2 * roofs[0]) <= 1, roofs
    assert len(roofs) == 2 and abs(top - 2 * max(roofs) - 1) <= 1e-5 * top, (top, roofs)
    return seen


def residuals():
    for kind, counted in zip(("gemm", "attention", "memory", "collective"), blocks("residuals"), strict=True):
        assert [b for b, _ in counted] == list(range(-40, 42, 2))
        if kind == "collective":
            of = collectives
        else:
            of = [r for r in kernels if (r["kernel"] if r["kernel"] in ("gemm", "attention") else "memory") == kind]
        want = dict.fromkeys(range(-40, 42, 2), 0)
        edge = 0
        for r in of:
            off = 100 * (r["predicted"] / r["us"] - 1)
            want[max(-40, min(40, 2 * int((off + 41) // 2) - 40))] += 1
            edge += abs((off + 41) % 2 - 1) > 0.995  # times are exported with five digits
        more = sum(r[0] == kind for r in in_store) - len(of)  # that accumulate
        assert sum(n for _, n in counted) == len(of) + more and (more == 0 or kind == "gemm"), (kind, more)
        assert sum(abs(n - want[b]) for b, n in counted) <= more + 2 * edge, (kind, counted, want)


def bandwidths():
    plotted, of = blocks("busbw"), []
    for op, factor in OPS.items():
        for n in (2, 4, 8, 16, 32, 64):
            some = [r for r in collectives if r["op"] == op and int(r["gpus"]) == n]
            if some:
                of.append((op, n))
                for got, r in zip(plotted[len(of) - 1], some, strict=True):
                    size = float(r["bytes"]) * factor(n)
                    want = float(r["bytes"]), size / r["us"] / 1e3, size / r["predicted"] / 1e3
                    assert all(close(a, b, 1e-4) for a, b in zip(got, want)), (got, want)
    assert len(plotted) == len(of)
    drawn, op, script = [], None, open(folder + "/busbw.gp").read()
    for title, index, points, n, again, lines in re.findall(
            r"set title '(\w+)'|index (\d+) using 1:2 with points pt 7 ps 0.4 lt (\d+) title '(\d+)', '' "
            r"index (\d+) using 1:3 smooth unique with lines lt (\d+)", script):
        op = title or op
        if not title:
            assert index == again == str(len(drawn)) and points == lines
            assert points == str(1 + sum(o == op for o, _ in drawn))
            drawn.append((op, int(n)))
    assert drawn == of, (drawn, of)
    return len(of)


def layouts():
    """Backward products against forward ones of the same sizes; of weights the shorter side comes first."""
    of = [(r["layout"], r["dtype"], *(int(r[x]) for x in "mnk"), r["us"]) for r in kernels
          if r["kernel"] == "gemm" and r["clock"] == "burst"]
    forward = {}
    for layout, *cell, us in of:
        if layout == "forward":
            forward.setdefault(tuple(cell), []).append(us)
    for name, turned in (("dgrad", lambda m, n, k: (m, k, n)), ("wgrad", lambda m, n, k: (min(n, k), max(n, k), m))):
        cells = [(forward.get((dtype, *turned(*sizes))), us) for layout, dtype, *sizes, us in of if layout == name]
        ratios = sorted(us * len(like) / sum(like) for like, us in cells if like)
        told = re.search(r"    %s: \{value: (\S+), low: (\S+), high: (\S+), .*of (\d+) products" % name, open(profile).read())
        assert int(told[4]) == len(ratios), (name, told[4], len(ratios))
        last = len(ratios) - 1
        for shown, p in zip(told.groups(), (statistics.median(ratios), ratios[last // 10], ratios[9 * last // 10])):
            assert abs(float(shown) - p) <= 0.00055, (name, shown, p)


layouts()
print(products(), "products,", bandwidths(), "curves")
residuals()
