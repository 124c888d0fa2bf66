"""tests/recorded.py - what `trace replay` says of recorded steps, against the recordings themselves

recorded.py PROGRAM FILE...: kernels and copies of each file (of PyTorch's profiler), added up by Python: all of them,
those of NCCL, and each name's; where each instant went, what was launched and had not begun; what parts add to a step
adds up to its change. What `trace show` prints is what its JSON says.
"""
import gzip
import json
import re
import subprocess
import sys
from decimal import Decimal

GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
ALLOCATES = re.compile(r"(?:cuda|cu|hip)(?:Malloc|Free|MemAlloc|MemFree|MemCreate|MemMap|MemUnmap|MemRelease)")
WAITS = re.compile(r"(?:cuda|cu|hip)(?:Event|Stream|Device|Ctx|Thread)Synchronize")
LAUNCHES = re.compile(r".*aunch|(?:cuda|cu|hip)(?:Memcpy|Memset)")


def answer(program, files, *options):
    done = subprocess.run([program, "trace", "replay", *files, *options, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def near(got, want, what):
    assert abs(got - want) <= 1e-9 * max(abs(want), 1e-3), (what, got, want)


def same(shown, value, scale=1):
    """The number shown is the value, rounded."""
    digits = len(shown.partition(".")[2])
    assert abs(float(shown) - value * scale) <= 0.5000001 * 10 ** -digits, (shown, value)


def shown(program, path, ran):
    """`trace show` as text and JSON."""
    command = [program, "trace", "show", path]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    told = json.loads(subprocess.run(command + ["--json"], stdout=subprocess.PIPE, check=True).stdout)
    step, blocks = told["recorded_step_s"], [b.split("\n") for b in text.strip().split("\n\n")]
    rows = lambda head: [re.split(r"  +", l.strip()) for b in blocks for l in b[1:] if b[0].startswith(head)]
    by_name = {}
    for e in ran:
        by_name.setdefault(e["name"], []).append(e["dur"] * 1e-6)
    assert len(told["kernels"]) == len(by_name)
    assert [k["time_s"] for k in told["kernels"]] == sorted((k["time_s"] for k in told["kernels"]), reverse=True)
    for k in told["kernels"]:
        times = by_name[k["name"]]
        assert k["count"] == len(times), k
        for key, want in (("time_s", sum(times)), ("shortest_s", min(times)), ("longest_s", max(times))):
            near(k[key], want, k["name"])
    listed = rows("kernel ")
    *listed, more = listed if len(by_name) > len(listed) - 1 else listed + [None]
    assert more is None or more == ["... and %d more names" % (len(by_name) - len(listed))], more
    for row, k in zip(listed, told["kernels"]):
        assert k["name"].startswith(row[0].rstrip()) and row[1:3] == [k["class"], str(k["count"])], row
        for cell, value, scale in zip(row[3:], (k["time_s"], k["time_s"] / k["count"], k["shortest_s"], k["longest_s"]),
                                      (1e3, 1e6, 1e6, 1e6), strict=True):
            same(cell, value, scale)
    names = ["compute", "optimizer", "exposed_communication", "bubble"]
    where = rows("where the step went")
    values = [told["breakdown_s"][n] for n in names] + [told["idle_s"][n] for n in (
        "host", "between_kernels", "event", "room", "unexplained", "after_the_last") if told["idle_s"][n] or
        n == "after_the_last"] + [step]
    for row, value in zip(where, values, strict=True):
        same(row[1], value, 1e3)
        same(row[2], value / step, 100)
    near(sum(told["idle_s"].values()), told["breakdown_s"]["host"], "idle")
    classes = {n: c for n, c in told["classes"].items() if c["count"]}
    for row, (name, c) in zip(rows("operations "), classes.items(), strict=True):
        assert row[:2] == [name, str(c["count"])], row
        same(row[2], c["time_s"], 1e3)
        same(row[3], c["time_s"] / step, 100)
    near(told["classified_frac"], 1 - told["classes"]["other"]["time_s"] / sum(c["time_s"] for c in classes.values()), "classes")
    assert sum(c["count"] for c in classes.values()) == len(ran) == told["files"][0]["operations"]
    order = told["order"]
    waits = tuple(order["waits_" + k] for k in ("told", "by_time", "by_order", "unresolved"))
    assert not any(waits) or "profiler told %d, times showed %d, the order of calls %d, nothing %d." % waits in text
    found = (order["collectives_matched"], order["collectives_unmatched"])
    assert not any(found) or "Collectives: %d found on all ranks given, %d whose" % found in text
    if order["gaps"]:
        m = re.search(r"explains: (\d+), (\S+) ms in all", text)
        assert int(m[1]) == order["gaps"], m
        same(m[2], order["gaps_s"], 1e3)
    l = told["launches"]
    m = re.search(r"(\d+) launches took the host (\S+) ms \((\S+) us each\)(?:, synchronising (\S+) ms)?;\nfrom launch to begin "
                  r"(\S+) us where nothing was before; (\S+) launched and not begun on average, (\d+) at most", text)
    assert m and int(m[1]) == l["count"] and int(m[7]) == l["queued_most"], m
    for cell, value, scale in ((m[2], l["host_s"], 1e3), (m[3], l["host_s"] / l["count"], 1e6),
                               (m[4] or "0", l["synchronising_s"], 1e3), (m[5], l["latency_s"], 1e6),
                               (m[6], l["queued_mean"], 1)):
        same(cell, value, scale)
    m = re.search(r"Communication runs (\S+) ms of the step, (\S+) % of it under kernels", text)
    if m and not told["breakdown_s"]["bubble"]:
        same(m[1], told["communication_s"], 1e3)
        same(m[2], 1 - told["breakdown_s"]["exposed_communication"] / told["communication_s"], 100)
    return told


def sends(e):
    return "SendRecv" in e["name"] and not e["args"].get("Collective name", "").startswith("all")


def instant(e, classes):
    """What an operation counts as, while nothing runs that comes before it in the list below."""
    if classes[e["name"]] == "optimizer":
        return "optimizer"
    if classes[e["name"]] == "collective":
        return "bubble" if sends(e) else "exposed_communication"
    if e["cat"] == "gpu_memcpy" and re.search(r"HtoD|DtoH|PtoP|HtoH", e["name"]):
        return "exposed_communication"
    return "compute"


def counted(told, path):
    """Each instant of a recording that is one step, and what the host called, from its events alone."""
    events = [e for e in json.load(gzip.open(path), parse_float=Decimal)["traceEvents"] if e.get("ph") == "X"]
    ran = [e for e in events if e.get("cat") in GPU]
    calls = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    launch = {e["args"]["correlation"]: e for e in calls if LAUNCHES.match(e["name"])}
    begin = min([e["ts"] for e in ran] + [e["ts"] for e in launch.values()])
    end = max(e["ts"] + e["dur"] for e in ran)
    near(told["recorded_step_s"], float(end - begin) * 1e-6, "step")
    classes = {k["name"]: k["class"] for k in told["kernels"]}
    kinds, order = {}, ("optimizer", "compute", "exposed_communication", "bubble")
    assert not any(e["name"].startswith("ProfilerStep#") for e in events)
    moments = sorted((t, sign, instant(e, classes)) for e in ran if e["dur"]
                     for t, sign in ((e["ts"], 1), (e["ts"] + e["dur"], -1)))
    running, last, together = dict.fromkeys(order, 0), begin, 0
    for t, sign, kind in moments:
        now = next((k for k in order if running[k]), "host")
        kinds[now] = kinds.get(now, 0) + t - last
        together += t - last if running["bubble"] or running["exposed_communication"] else 0
        running[kind] += sign
        last = t
    for kind in told["breakdown_s"]:
        near(told["breakdown_s"][kind], float(kinds.get(kind, 0)) * 1e-6, kind)
    near(told["communication_s"], float(together) * 1e-6, "communication")
    for name in {*classes.values()}:
        of = [e for e in ran if classes[e["name"]] == name]
        assert told["classes"][name]["count"] == len(of), name
        near(told["classes"][name]["time_s"], float(sum(e["dur"] for e in of)) * 1e-6, name)
    hosts, l = [e for e in calls if begin <= e["ts"] < end], told["launches"]
    for pattern, count, seconds in ((LAUNCHES, "count", "host_s"), (ALLOCATES, "allocations", "allocating_s"),
                                    (WAITS, None, "synchronising_s")):
        of = [e for e in hosts if pattern.match(e["name"])]
        assert count is None or l[count] == len(of), count
        near(l[seconds], float(sum(e["dur"] for e in of)) * 1e-6, seconds)
    ahead = [(launch[e["args"]["correlation"]]["ts"], e["ts"]) for e in ran if e["args"]["correlation"] in launch]
    ahead = [(a, b) for a, b in ahead if a < b]
    near(l["queued_mean"], float(sum(b - a for a, b in ahead) / (end - begin)), "queued")
    most = now = 0
    for _, sign in sorted([(a, 1) for a, _ in ahead] + [(b, -1) for _, b in ahead]):
        now += sign
        most = max(most, now)
    assert l["queued_most"] == most, (l, most)
    file = told["files"][0]
    assert file["operators"] == sum(e["cat"] == "cpu_op" for e in events), file
    assert file["streams"] == len({(e["args"]["device"], e["args"]["stream"]) for e in ran}), file


def replayed(program, path, *options):
    """`trace replay` as text and JSON."""
    command = [program, "trace", "replay", path, *options]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    told = answer(program, [path], *options)
    m = re.match(r"recorded (\S+) ms, replayed (\S+) ms \((\S+) %\)(?:, P10 (\S+), P90 (\S+))?\n", text)
    same(m[1], told["recorded_step_s"], 1e3)
    same(m[2], told["step_s"], 1e3)
    same(m[3], told["step_s"] / told["recorded_step_s"] - 1, 100)
    low, high = told["interval"]["step_s"]
    assert low <= told["step_s"] <= high, told["interval"]
    if m[4]:
        same(m[4], low, 1e3)
        same(m[5], high, 1e3)
    else:
        assert low == high
    table = lambda head: [re.split(r"  +", l.strip()) for b in text.split("\n\n") if b.startswith(head)
                          for l in b.split("\n")[1:] if l]
    *rows, step = table("where the step goes")
    names = {"compute kernels": "compute", "optimizer kernels": "optimizer", "exposed communication": "exposed_communication",
             "bubble (send and receive)": "bubble", "idle": "host"}
    assert [names[r[0]] for r in rows] == ["compute", "optimizer", "exposed_communication", "bubble", "host"], rows
    for name, before, after in rows:
        same(before, told["recorded_breakdown_s"][names[name]], 1e3)
        same(after, told["breakdown_s"][names[name]], 1e3)
    same(step[1], sum(told["recorded_breakdown_s"].values()), 1e3)
    same(step[2], sum(told["breakdown_s"].values()), 1e3)
    parts = table("part ")
    assert parts or told["step_s"] == told["recorded_step_s"]
    for row, c in zip(parts, told["changes"] if parts else [], strict=True):
        assert row[0] == c["what"]
        for shown, key in zip(row[1:], ("recorded_s", "replayed_s", "step_s"), strict=True):
            same(shown, c[key], 1e3)
    m = re.search(r"(\S+) % is classified(?:; re-timed by recorded shapes (\S+) %, by stand-ins (\S+) %, not (\S+) %)?", text)
    same(m[1], told["classified_frac"], 100)
    if m[2]:
        same(m[2], told["by_work_frac"], 100)
        same(m[3], told["by_stand_in_frac"], 100)
    for note in told["notes"]:
        assert note in text.replace("\n", " "), note


def held(program, path):
    events = json.load(gzip.open(path))["traceEvents"]
    ran = [e for e in events if e.get("ph") == "X" and e.get("cat") in GPU]
    seconds = lambda some: sum(e["dur"] for e in some) * 1e-6
    counted(shown(program, path, ran), path)
    late = ("--without", "waiting")
    if subprocess.run([program, "trace", "replay", path, *late], capture_output=True).returncode:
        late = ()  # no collective is known to have waited
    for options in ((), ("--speedup", "gemm=2"), ("--gpu", "h200"), ("--gpu", "mi300x", *late)):
        replayed(program, path, *options)
    told = answer(program, [path])
    changes = {c["what"]: c for c in told["changes"]}
    near(sum(c["recorded_s"] for c in changes.values()), seconds(ran), "all")
    near(changes.get("collective", {"recorded_s": 0})["recorded_s"],
         seconds(e for e in ran if "nccl" in e["name"].lower()), "collectives")
    near(sum(told["recorded_breakdown_s"].values()), told["recorded_step_s"], "parts")
    near(sum(told["breakdown_s"].values()), told["step_s"], "parts, replayed")
    for c in changes.values():
        near(c["replayed_s"], c["recorded_s"], c["what"])
        assert c["step_s"] == 0, c
    classes = json.loads(subprocess.run([program, "trace", "show", path, "--json"], stdout=subprocess.PIPE, check=True, text=True).stdout)["classes"]
    for part, kinds in (("gemm", ["gemm"]), ("attention", ["attention"]), ("memory", ["memory", "copy"]), ("optimizer", ["optimizer"])):
        has = [k for k in kinds if classes[k]["count"]]  # one that is not there is refused
        twice = answer(program, [path], *(w for k in has for w in ("--speedup", k + "=2")))
        for c in twice["changes"]:
            # picoseconds, each op's cut
            left = abs(c["replayed_s"] - c["recorded_s"] / (2 if c["what"] == part else 1))
            assert left < 1e-12 * len(ran), (part, c)
        near(sum(c["step_s"] for c in twice["changes"]), twice["step_s"] - twice["recorded_step_s"], "added")
        assert twice["step_s"] <= told["step_s"], part
    for op, word in (("all_gather", "AllGather"), ("reduce_scatter", "ReduceScatter"), ("all_reduce", "AllReduce")):
        gone = seconds(e for e in ran if "nccl" in e["name"].lower() and word in e["name"])
        if gone:
            without = {c["what"]: c for c in answer(program, [path], "--without", op)["changes"]}["collective"]
            near(without["recorded_s"] - without["replayed_s"], gone, op)


for file in sys.argv[2:]:
    try:
        held(sys.argv[1], file)
    except AssertionError as e:
        sys.exit("%s: %s" % (file, e))
print(len(sys.argv) - 2)
