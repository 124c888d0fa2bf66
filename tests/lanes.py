# tests/lanes.py N PREFIX - recordings with N streams, the last in the last event: PREFIX.json, .sqlite, .et
import json, sqlite3, sys

n, out = int(sys.argv[1]), sys.argv[2]
def event(cat, name, ts, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 1, "ts": ts, "dur": 2, "args": args}
events = []
for i in range(n):
    events.append(event("cuda_runtime", "cudaLaunchKernel", 10 * i, correlation=i + 1))
    events.append(event("kernel", "gemm", 10 * i + 5, correlation=i + 1, stream=i, device=0))
json.dump({"traceEvents": events}, open(out + ".json", "w"))

db = sqlite3.connect(out + ".sqlite")
db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
db.execute("INSERT INTO StringIds VALUES (1, 'gemm')")
db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL "
           "(start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER)")
db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, ?, ?, 1)",
               [(10000 * i, 10000 * i + 5000, i, i + 1) for i in range(n)])
db.commit()

# Chakra's messages, field by field as tests/test_chakra.c says
def varint(v):
    return bytes([v]) if v < 128 else bytes([v & 127 | 128]) + varint(v >> 7)
def sized(b, field=None):
    return (varint(field << 3 | 2) if field else b"") + varint(len(b)) + b
def whole(field, v):
    return varint(field << 3) + varint(v)
def node(i):
    stream = sized(sized(b"stream", 1) + whole(9, i), 10)
    gpu = sized(sized(b"is_cpu_op", 1) + whole(27, 0), 10)
    return whole(1, i + 1) + sized(b"gemm", 2) + whole(3, 4) + whole(6, 10 * i) + whole(7, 5) + stream + gpu
with open(out + ".et", "wb") as f:
    f.write(sized(b""))
    for i in range(n):
        f.write(sized(node(i)))
