"""tests/skew.py FORETOKEN FILE FILE... - how long each rank waits in collectives, by `trace show`,
against the kernels of the recordings themselves: the N-th collective of one rank meets the N-th
of the others, and moves data from when the last of them has begun."""
import gzip
import json
import re
import subprocess
import sys

program, files = sys.argv[1], sys.argv[2:]
said = json.loads(subprocess.run([program, "trace", "show", *files, "--json"], check=True,
                                 capture_output=True, text=True).stdout)["skew"]


def collectives(path):
    """Begin and end, in seconds, in order; and the rank."""
    d = json.load(gzip.open(path))
    kernels = [(e["ts"] * 1e-6, (e["ts"] + e["dur"]) * 1e-6) for e in d["traceEvents"]
               if e.get("cat") == "kernel" and e["name"].startswith("ncclDevKernel")]
    return sorted(kernels), d["distributedInfo"]["rank"]


ranks = [collectives(f) for f in files]
assert len({len(k) for k, _ in ranks}) == 1 and len(said) == len(files)
late = [s["clock_s"] for s in said]
last = [max(range(len(ranks)), key=lambda r: ranks[r][0][i][0] - late[r])
        for i in range(len(ranks[0][0]))]
for r, ((kernels, rank), s) in enumerate(zip(ranks, said)):
    begun = [ranks[k][0][i][0] - late[k] for i, k in enumerate(last)]
    waits = sum(b - (k[0] - late[r]) for b, k in zip(begun, kernels))
    moves = sum(k[1] - late[r] - b for b, k in zip(begun, kernels))
    # they end together: so far apart are the clocks
    apart = sorted(k[1] - o[1] for k, o in zip(kernels, ranks[0][0]))
    assert s["rank"] == rank and s["collectives"] == len(kernels)
    assert s["came_last"] == last.count(r), (s, last)
    assert abs(s["waiting_s"] - waits) < 2e-6, (s, waits)
    assert abs(s["transfer_s"] - moves) < 2e-6, (s, moves)
    assert apart[0] - 1e-6 <= s["clock_s"] <= apart[-1] + 1e-6, (s, apart)

# the table says the same, and below it who comes last most often
text = subprocess.run([program, "trace", "show", *files], check=True, capture_output=True, text=True).stdout
head, *rows = re.search(r"^rank  +collectives .*\n(?:.*\n)+?\n", text, re.M)[0].rstrip().split("\n")
assert head.split("  ")[0] == "rank" and len(rows) == len(said) + 1, rows
for row, s in zip(rows, said):
    assert row.split() == [str(s["rank"]), "%g" % s["collectives"], "%.3f" % (1e3 * s["waiting_s"]), "%.3f" % (1e3 * s["transfer_s"]),
                           "%g" % s["came_last"], "%+.1f" % (1e6 * s["clock_s"])], (row, s)
most = max(said, key=lambda s: s["came_last"])
assert rows[-1] == ("Others wait for rank %d most often." % most["rank"] if most["came_last"] else "No rank waits for another."), rows
