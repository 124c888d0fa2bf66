# tests/goal.py FILE.goal NS_PER_BYTE LATENCY_NS - a GOAL text, checked and evaluated by LogGP
#
# The grammar is that of LogGOPSim's txt2bin. Every statement is defined once and before it is
# required; every send has its receive (of equal bytes, per sender, receiver and tag in order);
# nothing goes round. Prints the step in seconds and the number of messages.
#
# LogGP with o = g = 0: a message occupies its rank's port out and then in for G a byte, and
# arrives L after it was begun there; statements of one cpu run one after another, in the order
# in which they can. (Alexandrov et al., LogGP, 1995.)
import collections
import heapq
import re
import sys

RANK = re.compile(r"rank (\d+) \{$")
CALC = re.compile(r"l(\d+): calc (\d+) cpu (\d+)$")
MESSAGE = re.compile(r"l(\d+): (send|recv) (\d+)b (to|from) (\d+) tag (\d+) cpu (\d+)$")
REQUIRES = re.compile(r"l(\d+) requires l(\d+)$")
byte_ns, latency_ns = float(sys.argv[2]), float(sys.argv[3])

rank, ranks = None, None
node, after, waits = {}, collections.defaultdict(list), collections.Counter()
for line in open(sys.argv[1]):
    line = line.strip()
    if not line or line.startswith("//"):
        continue
    if line.startswith("num_ranks "):
        assert ranks is None
        ranks = int(line[10:])
    elif RANK.match(line):
        assert rank is None
        rank = int(RANK.match(line).group(1))
    elif line == "}":
        rank = None
    elif CALC.match(line):
        n, ns, cpu = (int(x) for x in CALC.match(line).groups())
        assert (rank, n) not in node
        node[rank, n] = ("calc", ns, None, None, cpu)
    elif MESSAGE.match(line):
        n, what, size, way, peer, tag, cpu = MESSAGE.match(line).groups()
        assert (rank, int(n)) not in node and (what, way) in (("send", "to"), ("recv", "from"))
        assert int(peer) < ranks and int(peer) != rank and int(size) > 0 and int(tag) < 2**32
        node[rank, int(n)] = (what, int(size), int(peer), int(tag), int(cpu))
    else:
        n, on = (int(x) for x in REQUIRES.match(line).groups())
        assert (rank, n) in node and (rank, on) in node and n != on
        after[rank, on].append((rank, n))
        waits[rank, n] += 1
assert rank is None and {r for r, _ in node} == set(range(ranks))

# sends and receives in the order of their text, by sender, receiver and tag
sent, received = collections.defaultdict(list), collections.defaultdict(list)
for key, (what, size, peer, tag, _) in node.items():
    if what == "send":
        sent[key[0], peer, tag].append((key, size))
    elif what == "recv":
        received[peer, key[0], tag].append((key, size))
assert sent.keys() == received.keys()
pair, messages = {}, 0
for key in sent:
    assert [s for _, s in sent[key]] == [s for _, s in received[key]], key
    for (s, _), (r, _) in zip(sent[key], received[key]):
        pair[s], messages = r, messages + 1

# in the order of time: a heap of what may begin, by when
ready_ns, arrived = collections.defaultdict(float), {}
cpu_free, out_free, in_free = (collections.defaultdict(float) for _ in range(3))
heap = [(0.0, key) for key in node if not waits[key]]
heapq.heapify(heap)
posted, done, last = {}, 0, 0.0


def over(key, at):
    global done, last
    done, last = done + 1, max(last, at)
    for x in after[key]:
        ready_ns[x] = max(ready_ns[x], at)
        waits[x] -= 1
        if not waits[x]:
            heapq.heappush(heap, (ready_ns[x], x))


while heap:
    at, key = heapq.heappop(heap)
    what, amount, peer, tag, cpu = node[key]
    if what == "calc":
        begin = max(at, cpu_free[key[0], cpu])
        if begin > at: # another of its cpu came first
            heapq.heappush(heap, (begin, key))
            continue
        cpu_free[key[0], cpu] = begin + amount
        over(key, begin + amount)
    elif what == "send":
        begin = max(at, out_free[key[0]])
        if begin > at:
            heapq.heappush(heap, (begin, key))
            continue
        out_free[key[0]] = begin + amount * byte_ns
        comes = max(begin + latency_ns, in_free[peer]) + amount * byte_ns
        in_free[peer] = comes
        arrived[pair[key]] = comes
        over(key, begin + amount * byte_ns)
        if pair[key] in posted:
            over(pair[key], max(comes, posted[pair[key]]))
    else:
        posted[key] = at
        if key in arrived:
            over(key, max(at, arrived[key]))
assert done == len(node), "%d of %d statements ran: a circle" % (done, len(node))
print("%.9f %d" % (last * 1e-9, messages))
