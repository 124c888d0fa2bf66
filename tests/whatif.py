"""tests/whatif.py - what-ifs of recordings against their definitions, computed from other answers of the program

whatif.py FORETOKEN RECORDING FOLDER: what each part adds is its mean over all orders of parts, from a replay of each
set of them; collectives of drawn recordings take, in other groups and on other machines, what `collective` predicts.
"""
import csv
import itertools
import json
import math
import random
import subprocess
import sys

program, recording, folder = sys.argv[1:]


def asked(*words):
    return json.loads(subprocess.run([program, *words, "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)


def near(a, b, by=1e-9):
    assert abs(a - b) <= by * max(abs(a), abs(b), 1e-6), (a, b)


# ---- parts
def parts(wishes):
    """A wish alone, and with others, in each order; parts that are not changed are not told."""
    def step(some):
        return asked("trace", "replay", recording, *(w for k in some for w in ("--speedup", "%s=%g" % (k, wishes[k]))))

    told = {frozenset(s): step(s) for n in range(len(wishes) + 1) for s in itertools.combinations(wishes, n)}
    for of, answer in told.items():
        orders = list(itertools.permutations(of))
        changes = {c["what"]: c for c in answer["changes"]}
        for part in of:
            adds = [told[frozenset(o[:o.index(part) + 1])]["step_s"] - told[frozenset(o[:o.index(part)])]["step_s"]
                    for o in orders]
            near(changes[part]["step_s"], sum(adds) / len(adds), 1e-8)
            if part != "memory":  # the update's kernels are of that part, and not of the wish
                near(changes[part]["replayed_s"], changes[part]["recorded_s"] / wishes[part], 1e-6)
        assert {k for k, c in changes.items() if c["step_s"]} <= set(of), changes
        assert all(c["replayed_s"] == c["recorded_s"] for k, c in changes.items() if k not in of), changes
        assert all(x == answer["step_s"] for x in answer["interval"]["step_s"]), answer["interval"]
    assert told[frozenset()]["step_s"] == told[frozenset()]["recorded_step_s"]
    return len(told)


# ---- collectives
OPS = {"all_reduce": ("allreduce", "AllReduce"), "all_gather": ("_allgather_base", "AllGather"),
       "reduce_scatter": ("_reduce_scatter_base", "ReduceScatter"), "broadcast": ("broadcast", "Broadcast"),
       "all_to_all": ("all_to_all", "SendRecv")}
SIZES = {"BFloat16": 2, "Float": 4, "Half": 2}
BESIDE = 1.3  # collective_beside_compute of hw/gpus/h100-sxm.yaml
WITHIN, ACROSS = 0.0948, 0.15  # spread of that file's collectives, and of stacks/ccl/nccl-2.30.yaml
P90 = 1.2815515655446004


class Drawn:
    """Rank 0 of tp x dp ranks: products, and between them collectives of both groups, one behind another."""

    def __init__(self, of):
        self.tp, self.dp = of.choice([(2, 4), (4, 4), (2, 8), (8, 2)])
        self.about = of.choice([("tp", "dp_shard"), ("tensor", "data"), ("TENSOR_MODEL", "DATA_PARALLEL")])
        self.n, self.at, self.events, self.calls = 0, 10.0, [], []
        for _ in range(of.randrange(2, 5)):
            self.collective(of)
        for call in list(self.calls):  # some once more, quicker or slower
            for _ in range(of.randrange(3)):
                self.put(call, call["us"][0] * of.choice([0.5, 0.9, 1.3, 2]))

    def collective(self, of):
        group = of.choice(["tp", "dp"]) if self.calls else "dp"
        op = of.choice(list(OPS)[:None if self.calls else 4] if group == "dp" else ["all_reduce", "broadcast"])
        dtype = of.choice(list(SIZES))
        elements = (1 << of.randrange(14, 25)) + 8 * of.randrange(99)
        self.put({"op": op, "group": group, "dtype": dtype, "elements": elements, "us": []},
                 float(of.randrange(50, 4000)))

    def put(self, call, us, behind=True):
        size, stride = (self.tp, 1) if call["group"] == "tp" else (self.dp, self.tp)
        name, kernel = OPS[call["op"]]
        part = call["elements"] // size
        about = self.about[call["group"] == "dp"]
        if behind:
            self.run("gemm", 300.0)
        self.run("ncclDevKernel_" + kernel, us, **{
            "Collective name": name, "dtype": call["dtype"], "Group size": size, "Process Group Name": about,
            "In msg nelems": part if call["op"] == "all_gather" else call["elements"],
            "Out msg nelems": part if call["op"] == "reduce_scatter" else call["elements"],
            "Process Group Description": about, "Process Group Ranks": str([stride * i for i in range(size)])})
        if not call["us"]:
            self.calls.append(call)
        call["us"].append(us)

    def run(self, name, us, **args):
        self.n += 1
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": self.n * 2.0,
                  "dur": 1, "args": {"correlation": self.n}}
        kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": self.at + 200, "dur": us,
                  "args": {"stream": 7, "correlation": self.n, **args}}
        self.events += [launch, kernel]
        self.at += us

    def write(self, path):
        json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": self.events,
                   "distributedInfo": {"rank": 0, "world_size": self.tp * self.dp}}, open(path, "w"))


def predicted(cluster, op, size_bytes, size, stride):
    """Microseconds, and the relative error: of tables within a node (half as much again beyond them), or across."""
    if size < 2:
        return 0, 0
    path = folder + "/cluster.yaml"
    open(path, "w").write("cluster: {%s}\n" % cluster)
    (row,) = asked("collective", path, "--op", op, "--bytes", str(size_bytes), "--gpus", str(size), "--stride",
                   str(stride))["rows"]
    return row["time_us"], ACROSS if (size - 1) * stride >= 8 else WITHIN * (1.5 if row["extrapolated"] else 1)


def collectives(of):
    d = Drawn(of)
    d.write(folder + "/drawn.json")
    with_tp = any(c["group"] == "tp" for c in d.calls)
    tp, dp, waiting = of.choice([d.tp, 1, 8]) if with_tp else d.tp, of.choice([1, 2, 16]), of.random() < 0.5
    fabric = of.choice(["", "roce-400-rail", "ib-ndr-rail"]) if tp * dp > 8 else ""
    was = "gpu: h100-sxm, gpus: %d" % (d.tp * d.dp)
    first = [c["us"] if len(c["us"]) > 1 else
             [predicted(was, c["op"], c["elements"] * SIZES[c["dtype"]], *((d.tp, 1) if c["group"] == "tp" else (d.dp, d.tp)))[0]]
             for c in d.calls]
    waiting |= not any(max(c["us"]) > min(alone) * BESIDE for c, alone in zip(d.calls, first))  # else it is refused
    options = ["--scale", "dp=%d" % dp, "--tokens-per-step", "1000"] + (["--scale", "tp=%d" % tp] if tp != d.tp else [])
    options += (["--fabric", fabric] if fabric else []) + ([] if waiting else ["--without", "waiting"])
    answer = asked("trace", "replay", folder + "/drawn.json", *options)
    to = "gpu: h100-sxm, gpus: %d%s" % (tp * dp, ", fabric: " + fabric if fabric else "")
    recorded = replayed = errors = 0
    for c in d.calls:
        size_bytes = c["elements"] * SIZES[c["dtype"]]
        in_tp = c["group"] == "tp"
        before, error = predicted(was, c["op"], size_bytes, *((d.tp, 1) if in_tp else (d.dp, d.tp)))
        if c["op"] == "all_to_all":  # is of no group that is scaled, but lies as far apart as ranks do
            size, less = d.dp, 1
        else:
            size, less = (tp, 1) if in_tp else (dp, tp / d.tp)
        if c["op"] == "all_to_all" and size * tp > tp * dp:
            return None  # it would not fit
        after, error_after = predicted(to, c["op"], round(size_bytes / less), size, 1 if in_tp else tp)
        alone = min(c["us"]) if len(c["us"]) > 1 else before
        for us in c["us"]:
            moving = min(us, alone * BESIDE)
            is_us = moving if not waiting else us
            is_us += moving * (after / before - 1)
            recorded += us
            replayed += is_us if size > 1 else 0
            if abs(is_us - us) > 1e-9:  # what stays as it was recorded is as sure as that
                errors += moving * after / before * math.hypot(error, error_after)
    (change,) = [c for c in answer["changes"] if c["what"] == "collective"]
    near(change["recorded_s"], recorded * 1e-6)
    near(change["replayed_s"], replayed * 1e-6, 1e-6)
    near(answer["recorded_step_s"], (d.at - 10 + 200 - 2) * 1e-6 + 10e-6, 1e-6)
    m = answer["machine"]
    assert (m["ranks_recorded"], m["dp_recorded"], m["dp"]) == (d.tp * d.dp, d.dp, dp), (m, d.dp, dp)
    if with_tp:
        assert (m["ranks"], m["tp_recorded"], m["tp"]) == (tp * dp, d.tp, tp), (m, d.tp, tp)
    if tp == d.tp:  # else products are others, and as unsure
        ranges(answer, change, errors * 1e-6)
    near(answer["step_s"] - answer["recorded_step_s"],
         sum(c["replayed_s"] - c["recorded_s"] for c in answer["changes"]), 1e-6)
    near(answer["cost"]["tokens_per_s"], 1000 * dp / d.dp / answer["step_s"])
    return len(d.calls)


def ranges(answer, change, s):
    """Errors of all collectives go together."""
    step = answer["step_s"]
    s *= min(1, step / change["replayed_s"]) if change["replayed_s"] else 0
    low, high = answer["interval"]["step_s"]
    near(high, step * (1 + P90 * s / step), 1e-5)
    near(low, step / (1 + P90 * s / step), 1e-5)


# ---- products of a tensor-parallel step
def products(of):
    """Weights have the hidden features, which messages tell, on one side: the other is divided. What has them on both or
    on neither side keeps its time, which is told."""
    tokens, hidden, tp, to = 2048, of.choice([4096, 5120]), of.choice([2, 4]), of.choice([1, 8, 16])
    d = Drawn.__new__(Drawn)
    d.tp, d.dp, d.about, d.n, d.at, d.events, d.calls = tp, 1, ("tp", "dp"), 0, 10.0, [], []
    d.put({"op": "all_reduce", "group": "tp", "dtype": "BFloat16", "elements": tokens * hidden, "us": []}, 100.0,
          behind=False)
    shapes = [(of.choice([2048, 7168, 8192]), hidden) for _ in range(4)] + [(hidden, 1024 * of.randrange(6, 9))]
    shapes += [(hidden, hidden), (2048, 8192)] * of.randrange(2)
    of.shuffle(shapes)
    kept_us, rows = [], []
    for n, k in shapes:
        us = float(of.randrange(100, 900))
        cut = [(n * tp // to, k), (n, k * tp // to)][n == hidden] if (n == hidden) != (k == hidden) else (n, k)
        kept_us += [us] if cut == (n, k) else []
        d.run("gemm", us, **{"External id": d.n + 1000})
        d.events[-2]["args"]["External id"] = d.n + 999
        d.events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": d.n * 2.0, "dur": 1.5,
                         "args": {"External id": d.n + 999, "Input Dims": [[tokens, k], [k, n]],
                                  "Input Strides": [[k, 1], [1, k]], "Input type": ["c10::BFloat16"] * 2}})
        rows.append((us, (n, k), cut))
    d.write(folder + "/drawn.json")
    answer = asked("trace", "replay", folder + "/drawn.json", "--scale", "tp=%d" % to)
    with open(folder + "/products.csv", "w") as out:
        out.write("kernel,gpu,dtype,clock,m,n,k\n")
        for _, *sides in rows:
            for n, k in sides:
                out.write("gemm,h100-sxm,bf16,sustained,%d,%d,%d\n" % (tokens, n, k))
    said = subprocess.run([program, "kernel", "--gpu", "h100-sxm", "--csv", folder + "/products.csv"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    times = [float(r["predicted.time_us"]) for r in csv.DictReader(said.splitlines())]
    want = sum(us * after / before for (us, _, _), before, after in zip(rows, times[::2], times[1::2]))
    (change,) = [c for c in answer["changes"] if c["what"] == "gemm"]
    near(change["recorded_s"], sum(us for us, _, _ in rows) * 1e-6)
    near(change["replayed_s"], want * 1e-6, 1e-5)  # times are told to a tenth of a nanosecond
    said = [n for n in answer["notes"] if "may be divided" in n]
    assert [n.split(" of all")[0] for n in said] == \
        (["%d kernels and copies (%.1f ms" % (len(kept_us), sum(kept_us) * 1e-3)] if kept_us else []), (said, kept_us)
    return len(rows)


print(parts({"gemm": 2, "attention": 3, "memory": 1.5, "collective": 4}), "sets of parts")
of = random.Random(7)
drawn = [collectives(of) for _ in range(40)]
print(sum(products(of) for _ in range(12)), "products")
print(sum(n or 0 for n in drawn), "collectives in", sum(n is not None for n in drawn), "recordings")
assert sum(n is not None for n in drawn) > 30
