# tests/stages.py TIMELINE PREFIX [LAYERS] - a simulated pipeline as its profilers would record it: PREFIX.STAGE.json,
# from Perfetto's timeline. Sends and receives are those of PyTorch; a receive begins when its stream is free. With LAYERS of
# each chunk passes are marked as PyTorch's schedules mark them.
import json, math, sys

NAMES = {"gemm": "gemm", "attention": "attention", "memory": "memory", "communication": "nccl"}
timeline, prefix, layers = sys.argv[1], sys.argv[2], int((sys.argv + ["0"])[3])
events = json.load(open(timeline))
events = events["traceEvents"] if isinstance(events, dict) else events
stages = sorted({e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["args"]["name"].startswith("stage")})
ends = {}  # of a message: its begin and its end, each a stage's
for e in events:
    if e["ph"] in "sf" and e["cat"] == "send":
        ends.setdefault(e["id"], []).append((e["pid"], e["tid"], e["ts"]))
peer_of = {a: b[0] for pair in ends.values() for a, b in (pair, pair[::-1])}
name_of = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
launch = {}  # of a kernel: when the host began it
begun = {e["id"]: e["ts"] for e in events if e["ph"] == "s" and e["cat"] == "launch"}
for e in events:
    if e["ph"] == "f" and e["cat"] == "launch":
        launch[e["pid"], e["tid"], e["ts"]] = begun[e["id"]]
def passes(stage):  # [name, begin, end] of each; what is of no layer belongs to the pass behind it, or before
    found, waiting = [], None
    for e in sorted((e for e in events if e["ph"] == "X" and e["pid"] == stage and e["cat"] == "host"), key=lambda e: e["ts"]):
        name, args, end = e["args"]["segment"], e["args"], e["ts"] + e["dur"]
        if "layer" not in args:
            if name.startswith(("embed.", "head_back.", "head_backward.")):
                waiting = e["ts"]
            elif found and name.startswith("head."):
                found[-1][2] = end
            continue
        kind = "F" if args["pass"] == "forward" else "I" if ".inputs" in name else "W" if ".weights" in name else "B"
        mark = "PP:%d%s%d" % (args["layer"] // layers, kind, args["micro_batch"])
        if not found or found[-1][0] != mark:
            found.append([mark, e["ts"] if waiting is None else waiting, end])
        found[-1][2], waiting = end, None
    return found
for stage in stages:
    out, free, number = [], {}, 0
    ops = [e for e in events if e["ph"] == "X" and e["pid"] == stage and e["cat"] in NAMES]
    compute = sorted((e for e in ops if e["tid"] == 0), key=lambda e: e["ts"])
    asked = {}  # of a receive: when the host does. Before the kernel that waits for it, and for what its sender sends later
    for e in sorted(ops, key=lambda e: -e["ts"]):
        if (stage, e["tid"], e["ts"]) in peer_of and name_of[stage, e["tid"]].startswith("recv"):
            waits = next(k for k in compute if k["ts"] >= e["ts"] + e["dur"] - 1e-3)
            peer = peer_of[stage, e["tid"], e["ts"]]
            asked[peer] = min(asked.get(peer, math.inf), launch[stage, 0, waits["ts"]])
            asked[peer, e["tid"], e["ts"]] = asked[peer]
    for e in sorted(ops, key=lambda e: e["ts"]):
        number += 1
        stream, begin, args = e["tid"], e["ts"], {}
        stop, posted = begin + e["dur"], begin
        if e["cat"] == "communication":
            named = name_of[stage, stream].split(",")[0]
            sends = named.startswith("send")
            peer = peer_of[stage, stream, e["ts"]]
            if not sends:
                posted = asked[peer, stream, e["ts"]]
                stream += 100 * (peer > stage)  # what comes from either side does not wait for the other
                begin = max(free.get(stream, 0), posted)
            args = {"Collective name": "send" if sends else "recv", "Dst Rank" if sends else "Src Rank": peer,
                    "In msg nelems": e["args"]["bytes"] // 2, "Out msg nelems": e["args"]["bytes"] // 2, "dtype": "BFloat16",
                    "Group size": len(stages), "Process Group Name": "1", "Process Group Description": "pp",
                    "Process Group Ranks": str(stages)}
        at = launch.get((stage, stream, e["ts"]), posted)
        optimizer = e["args"].get("segment", "").startswith("optimizer")
        name = "foretoken::%s<%s>" % ("optimizer" if optimizer else NAMES[e["cat"]], e["name"])
        free[stream] = stop
        base = {"ph": "X", "pid": 0}
        out.append({**base, "cat": "kernel", "name": name, "tid": stream, "ts": begin, "dur": stop - begin,
                    "args": {"device": 0, "stream": stream, "correlation": number, "External id": number, **args}})
        out.append({**base, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1000, "tid": 1000, "ts": at, "dur": 0,
                    "args": {"correlation": number, "External id": number}})
    for name, begin, stop in passes(stage) if layers else []:
        out.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1000, "tid": 1000, "ts": begin, "dur": stop - begin, "args": {}})
    end = max(e["ts"] + e["dur"] for e in out)
    out.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1000, "tid": 1000, "ts": 0, "dur": end, "args": {}})
    last = max(e["ts"] for e in out if e["cat"] == "cuda_runtime")
    out.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1000, "tid": 1000, "ts": last,
                "dur": end - last, "args": {"correlation": number + 1}})
    json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
               "distributedInfo": {"backend": "nccl", "rank": stage, "world_size": len(stages)}, "traceEvents": out},
              open("%s.%d.json" % (prefix, stage), "w"))
