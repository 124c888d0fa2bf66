# tests/nsight.py TRACE.json.gz OUT.sqlite - a recording of Kineto as Nsight Systems would export it:
# the tables and columns of its "SQLite Export Schema Reference" that recorded/nsight.c reads
import gzip, json, sqlite3, sys

db = sqlite3.connect(sys.argv[2])
db.executescript("""
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
    demangledName INT, shortName INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
    copyKind INT, bytes INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
    bytes INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);
CREATE TABLE TARGET_INFO_GPU (name TEXT);
""")
texts = {}


def text(t):
    if t not in texts:
        texts[t] = len(texts) + 1
        db.execute("INSERT INTO StringIds VALUES (?, ?)", (texts[t], t))
    return texts[t]


def put(table, *values):
    db.execute("INSERT INTO %s VALUES (%s)" % (table, ", ".join("?" * len(values))), values)


d = json.load(gzip.open(sys.argv[1]))
put("TARGET_INFO_GPU", d["deviceProperties"][0]["name"])
for e in d["traceEvents"]:
    kind, a = e.get("cat"), e.get("args", {})
    if e.get("ph") != "X" or kind == "Trace":
        continue
    start = round(1000 * e["ts"])
    end = start + round(1000 * e["dur"])
    gpu = (start, end, 0, a.get("stream"), a.get("correlation"))
    if kind == "kernel":
        put("CUPTI_ACTIVITY_KIND_KERNEL", *gpu, text(e["name"]), text(e["name"][:20]))
    elif kind == "gpu_memcpy":
        put("CUPTI_ACTIVITY_KIND_MEMCPY", *gpu, 1 if "HtoD" in e["name"] else 8, a["bytes"])
    elif kind == "gpu_memset":
        put("CUPTI_ACTIVITY_KIND_MEMSET", *gpu, a["bytes"])
    elif kind in ("cuda_runtime", "cuda_driver"):
        put("CUPTI_ACTIVITY_KIND_RUNTIME", start, end, e["tid"], a["correlation"], text(e["name"] + "_v3020"))
    elif kind == "user_annotation":
        put("NVTX_EVENTS", start, end, 59, e["name"], None, e["tid"])
db.commit()
