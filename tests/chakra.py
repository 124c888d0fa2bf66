# tests/chakra.py FILE.et NODES GPU COLLECTIVES TRACE.json.gz - a Chakra trace, decoded by hand from the wire format, and
# each of its nodes an event of the profiler's trace that it was written from
#
# Field numbers are those of mlcommons/chakra, schema/protobuf/et_def.proto: Node id 1, name 2,
# type 3, data_deps 5, start_time_micros 6, duration_micros 7, attr 10; AttributeProto name 1,
# int64_val 9, bool_val 27, string_val 29. Every dependency must be a node, and none go round.
import gzip
import json
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


data, at, messages = open(sys.argv[1], "rb").read(), 0, []
while at < len(data):
    size, at = varint(data, at)
    messages.append(data[at:at + size])
    at += size
assert dict(fields(messages[0]))[1] == b"0.0.4"
depends, gpu, collectives, begun, calls, rows, times = {}, 0, 0, set(), {}, {}, []
events = {}
for e in json.load(gzip.open(sys.argv[5]))["traceEvents"]:
    if e.get("ph") == "X" and "correlation" in e.get("args", {}):
        events.setdefault((e["name"].encode(), e["args"]["correlation"]), []).append(e)
for message in messages[1:]:
    node, on = {}, []
    attributes = {}
    for number, value in fields(message):
        if number == 10:
            a = dict(fields(value))
            attributes[a[1].decode()] = a.get(9, a.get(27, a.get(29)))
        elif number == 5: # packed
            place = 0
            while place < len(value):
                v, place = varint(value, place)
                on.append(v)
        else:
            node[number] = value
    # of a trace's events, one: its thread or stream, and times to the picosecond; fields of whole microseconds
    start, duration = attributes["foretoken.start_ps"], attributes["foretoken.duration_ps"]
    start -= 2**64 if start >= 2**63 else 0 # before the first of the file: 0 in the field
    assert node.get(6, 0) == max(0, start // 1000000) and node.get(7, 0) == (duration + 500000) // 1000000, node
    where = ("foretoken.device", "stream") if not attributes["is_cpu_op"] else ("foretoken.pid", "tid")
    of = [e for e in events[node[2], attributes["foretoken.correlation"]]
          if (e["pid"], e["tid"]) == tuple(attributes[k] for k in where) and round(e["dur"] * 1e6) == duration]
    assert len(of) == 1, (node, attributes)
    assert attributes["foretoken.external_id"] == of[0]["args"].get("External id", -1) % 2**64, (attributes, of)
    begun.add(round(of[0]["ts"] * 1e3) - round(start / 1e3))
    depends[node.get(1, 0)] = on
    times.append((start, attributes["is_cpu_op"] == 0))
    if attributes["is_cpu_op"]:
        calls[attributes["foretoken.correlation"]] = node.get(1, 0)
    else:
        rows.setdefault(tuple(attributes[k] for k in where), []).append(
            (start, node.get(1, 0), attributes["foretoken.correlation"]))
    gpu += not attributes["is_cpu_op"]
    if node[3] == 7:
        collectives += 1
        assert attributes["comm_size"] > 0 and attributes["comm_type"] in range(10)
assert [len(depends), gpu, collectives] == [int(x) for x in sys.argv[2:5]], (len(depends), gpu, collectives)
assert max(begun) - min(begun) <= 1, begun # nanoseconds that all were moved by
assert times == sorted(times), "nodes do not stand by their begin, calls first"
assert all(len(set(on)) == len(on) for on in depends.values())
for row in rows.values(): # an operation waits for its launch, and for the one before it on its stream
    row.sort()
    assert all(calls[c] in depends[n] for _, n, c in row)
    assert all(a[1] in depends[b[1]] for a, b in zip(row, row[1:]))
left = {n: set(on) for n, on in depends.items()}
assert all(on <= set(depends) for on in left.values())
waits = {n: [] for n in depends}
for n, on in left.items():
    for x in on:
        waits[x].append(n)
ready = [n for n, on in left.items() if not on]
done = 0
while ready:
    n = ready.pop()
    done += 1
    for x in waits[n]:
        left[x].discard(n)
        if not left[x]:
            ready.append(x)
assert done == len(depends), "a circle"
