# tests/chakra.py FILE.et NODES GPU COLLECTIVES - a Chakra trace, decoded by hand from the wire format
#
# Field numbers are those of mlcommons/chakra, schema/protobuf/et_def.proto: Node id 1, name 2,
# type 3, data_deps 5, start_time_micros 6, duration_micros 7, attr 10; AttributeProto name 1,
# int64_val 9, bool_val 27, string_val 29. Every dependency must be a node, and none go round.
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
depends, gpu, collectives = {}, 0, 0
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
    depends[node.get(1, 0)] = on
    gpu += not attributes["is_cpu_op"]
    if node[3] == 7:
        collectives += 1
        assert attributes["comm_size"] > 0 and attributes["comm_type"] in range(10)
assert [len(depends), gpu, collectives] == [int(x) for x in sys.argv[2:]], (len(depends), gpu, collectives)
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
