# tests/stages.py TIMELINE PREFIX - a simulated pipeline as its profilers would record it: PREFIX.STAGE.json,
# from Perfetto's timeline. Sends and receives are those of PyTorch; a receive begins when its stream is free.
import json, sys

NAMES = {"gemm": "gemm", "attention": "attention", "memory": "memory", "communication": "nccl"}
timeline, prefix = sys.argv[1], sys.argv[2]
events = json.load(open(timeline))
events = events["traceEvents"] if isinstance(events, dict) else events
stages = sorted({e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["args"]["name"].startswith("stage")})
NEXT = ("send_forward", "recv_backward")  # streams that reach the next stage
name_of = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
launch = {}  # of a kernel: when the host began it
begun = {e["id"]: e["ts"] for e in events if e["ph"] == "s" and e["cat"] == "launch"}
for e in events:
    if e["ph"] == "f" and e["cat"] == "launch":
        launch[e["pid"], e["tid"], e["ts"]] = begun[e["id"]]
for stage in stages:
    out, free, number = [], {}, 0
    ops = [e for e in events if e["ph"] == "X" and e["pid"] == stage and e["tid"] < 100 and e["cat"] in NAMES]
    compute = sorted((e for e in ops if e["tid"] == 0), key=lambda e: e["ts"])
    for e in sorted(ops, key=lambda e: e["ts"]):
        number += 1
        stream, begin, args = e["tid"], e["ts"], {}
        stop, posted = begin + e["dur"], begin
        if e["cat"] == "communication":
            named = name_of[stage, stream].split(",")[0]
            sends = named.startswith("send")
            peer = (stage + (1 if named in NEXT else -1)) % len(stages)
            if not sends:  # posted before the kernel that waits for it
                waits = next(k for k in compute if k["ts"] >= stop - 1e-3)
                posted = launch[stage, 0, waits["ts"]]
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
    end = max(e["ts"] + e["dur"] for e in out)
    out.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1000, "tid": 1000, "ts": 0, "dur": end, "args": {}})
    last = max(e["ts"] for e in out if e["cat"] == "cuda_runtime")
    out.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1000, "tid": 1000, "ts": last,
                "dur": end - last, "args": {"correlation": number + 1}})
    json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
               "distributedInfo": {"backend": "nccl", "rank": stage, "world_size": len(stages)}, "traceEvents": out},
              open("%s.%d.json" % (prefix, stage), "w"))
