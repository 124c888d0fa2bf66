"""tests/breakdown.py - what `trace show` says of recordings, counted anew from their raw events

breakdown.py PROGRAM FILE...: for each step of each file when it begins and ends, for how long something computes, for
how long communication runs and how long it is exposed, all idle time, and (of files without marks of steps) the host's
launches and the queue. Intervals are united and cut as sets, not swept as the program does; times are whole picoseconds.
Prints the number of steps.
"""
import decimal
import gzip
import json
import re
import subprocess
import sys

FAR = re.compile("HtoD|DtoH|HostToDevice|DeviceToHost|PtoP")


def united(events):
    spans = []
    for begin, end in sorted((e["ts"], e["ts"] + e["dur"]) for e in events):
        if spans and begin <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([begin, end])
    return spans


def inside(spans, begin, end):
    return [(max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin]


def length(spans):
    return sum(b - a for a, b in spans) * 1e-12


def near(got, want, what):
    assert abs(got - want) <= 1e-12 + 1e-9 * want, (what, got, want)


def of_jax(events):
    """Those of JAX's profiler: its first GPU's, with categories as Kineto has them, and marks where its busiest stream repeats."""
    called = lambda what: {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e.get("name") == what}
    gpu = min(pid for (pid, _), name in called("process_name").items() if name.startswith("/device:GPU:"))
    streams = [tid for (pid, tid), name in called("thread_name").items() if pid == gpu and name.startswith("Stream #")]
    ran = sorted((e for e in events if e.get("ph") == "X" and e["pid"] == gpu and e["tid"] in streams), key=lambda e: e["ts"])
    for e in ran:
        e["cat"] = "gpu_memcpy" if e["name"].startswith(("Memcpy", "Memset")) else "kernel"
    tids = [e["tid"] for e in ran]
    busiest = [e for e in ran if e["tid"] == max(set(tids), key=tids.count)]
    names, n = [e["name"] for e in busiest], len(busiest)
    turns = max(k for k in range(1, 65) if n % k == 0 and names == names[:n // k] * k)
    at = [e["ts"] for e in busiest[::n // turns]] + [busiest[-1]["ts"] + busiest[-1]["dur"]]
    return ran + [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % k, "ts": at[k], "dur": at[k + 1] - at[k]}
                  for k in range(turns)]


class Recording:
    def __init__(self, path):
        read = json.load(gzip.open(path), parse_float=decimal.Decimal)
        events = [e for e in read["traceEvents"] if e.get("ph") == "X"]
        if path.endswith(".perfetto.json.gz"):
            events = of_jax(read["traceEvents"])
        for e in events:
            e["ts"], e["dur"] = int(e["ts"] * 10**6), int(e["dur"] * 10**6)
        of = lambda *categories: [e for e in events if e.get("cat") in categories]
        self.ran = of("kernel", "gpu_memcpy", "gpu_memset")
        calls = {e["args"]["correlation"]: e for e in of("cuda_runtime", "cuda_driver") if "correlation" in e["args"]}
        self.launched = [(calls[e["args"]["correlation"]], e) for e in self.ran if e["args"].get("correlation") in calls]
        talks = lambda e: "nccl" in e["name"].lower() or (e["cat"] == "gpu_memcpy" and FAR.search(e["name"]))
        self.busy = united(self.ran)
        self.talk = united(e for e in self.ran if talks(e))
        self.compute = united(e for e in self.ran if not talks(e))
        self.marks = sorted((e["ts"], e["ts"] + e["dur"], e["name"].partition("#")[2]) for e in of("user_annotation")
                            if e["name"].startswith("ProfilerStep#"))

    def steps(self):
        """Name, begin and end: a step ends with the last operation launched in it, and there the next begins."""
        ends = lambda pairs: max((e["ts"] + e["dur"] for _, e in pairs), default=0)
        if not self.marks:
            begin = min([c["ts"] for c, _ in self.launched] + [e["ts"] for e in self.ran])
            return [(None, begin, self.busy[-1][1])]
        steps = []
        for i, (begin, end, name) in enumerate(self.marks):
            end = min([end] + [m[0] for m in self.marks[i + 1:i + 2]])
            last = max(end, ends((c, e) for c, e in self.launched if begin <= c["ts"] < end))
            steps.append((name, max([begin] + [s[2] for s in steps]), last))
        return steps


def queue(launched):
    """Launched and not begun: the sum over time, and the most at once."""
    turns = sorted([(c["ts"], 1) for c, e in launched if e["ts"] > c["ts"]] +
                   [(e["ts"], -1) for c, e in launched if e["ts"] > c["ts"]])
    waiting = most = 0
    for _, turn in turns:
        waiting += turn
        most = max(most, waiting)
    return -sum(at * turn for at, turn in turns) * 1e-12, most


def held(program, path):
    r = Recording(path)
    for name, begin, end in r.steps():
        told = json.loads(subprocess.run([program, "trace", "show", path, "--json"] + (["--step", name] if name else []),
                                         check=True, stdout=subprocess.PIPE).stdout)
        parts, step = told["breakdown_s"], (end - begin) * 1e-12
        busy, talk, compute = (length(inside(s, begin, end)) for s in (r.busy, r.talk, r.compute))
        near(told["recorded_step_s"], step, "step")
        near(parts["compute"] + parts["optimizer"], compute, "compute")
        near(told["communication_s"], talk, "communication")
        near(parts["exposed_communication"] + parts["bubble"], busy - compute, "exposed")
        near(parts["host"], step - busy, "idle")
        near(sum(told["idle_s"].values()), step - busy, "causes")
        if name:
            continue
        waited, most = queue(r.launched)
        launches = told["launches"]
        assert launches["count"] == len({id(c) for c, _ in r.launched}), launches
        near(launches["host_s"], length({id(c): (0, c["dur"]) for c, _ in r.launched}.values()), "launches")
        assert abs(launches["queued_mean"] - waited / step) < 1e-6, (launches, waited / step)
        assert launches["queued_most"] == most, (launches, most)
    return len(r.steps())


steps = 0
for file in sys.argv[2:]:
    try:
        steps += held(sys.argv[1], file)
    except AssertionError as e:
        sys.exit("%s: %s" % (file, e))
print(steps)
