"""tests/goal_graph.py GRAPH.txt STEP.goal [SLOW_RANK SPEED] - a step's GOAL against the graph that it is of

Each rank's program, of the text of `trace show SCENARIO`, is run through here, op by op, beside the rank's
statements: what each op is written as, to whom its messages go and of how many bytes, and what each statement
requires. Ranks are numbered stage by stage; a group's are STRIDE apart. Kernels of SLOW_RANK take 1 / SPEED as
long as those of rank 0 of its stage. Prints messages and bytes.
"""
import collections
import math
import re
import sys

FORWARD = ("send_forward", "recv_forward")
STREAMS = ("compute", "copy", "offload", "fetch", "gather", "reduce", "tp", "cp", "ep", "send_forward", "send_backward",
           "recv_forward", "recv_backward")
LINE = re.compile(r"l(\d+): (calc|send|recv) (\d+)b?(?: (?:to|from) (\d+) tag (\d+))? cpu (\d+)$")


def pairs(words):
    return dict(w.split("=", 1) for w in words if "=" in w)


def read_graph(path):
    g = {"group": {}, "work": [], "segment": [], "classes": []}
    for line in open(path):
        w = line.split()
        if w[0] == "group":
            g["group"][w[1]] = {k: int(v) for k, v in pairs(w).items() if k in ("size", "stride")}
        elif w[0] == "work":
            g["work"].append({"kind": w[2], **pairs(w[4:])})
        elif w[0] == "segment":
            g["segment"].append({"ops": [], "host": False})
        elif w[0] == "host" and line[0] == " ":
            g["segment"][-1]["host"] |= float(w[2]) > 0
        elif w[0] == "host":
            g["ahead"] = w[1] == "ahead"
        elif w[0] == "op":
            g["segment"][-1]["ops"].append({**pairs(w[1:]), "wait": [x[5:] for x in w if x.startswith("wait=")]})
        elif w[0] == "class":
            g["classes"].append({"ranks": int(w[2].split("=")[1]), "calls": []})
        elif w[0] == "call":
            g["classes"][-1]["calls"] += [g["segment"][int(w[1])]] * int(w[2][1:])
    return g


def read_goal(path):
    ranks = []
    for line in open(path):
        m, r = LINE.match(line), re.match(r"l(\d+) requires l(\d+)$", line)
        if line.startswith("rank "):
            ranks.append(([], collections.defaultdict(set)))
        elif m:
            n, what, amount, peer, tag, cpu = m.groups()
            assert int(n) == len(ranks[-1][0]) + 1
            ranks[-1][0].append((what, int(amount), peer and int(peer), tag and int(tag), int(cpu)))
        elif r:
            ranks[-1][1][int(r.group(1))].add(int(r.group(2)))
    return ranks


class Rank:
    def __init__(self, g, number, stage, goal):
        self.g, self.number, self.stage = g, number, stage
        self.statements, self.requires = goal
        self.at, self.host, self.awaited = 0, 0, 0
        self.tail, self.event, self.kernels, self.sent = {}, {}, [], 0

    def next(self, what, cpu, on):
        """The next statement is such a one and requires these (0: nothing)."""
        is_what, amount, peer, tag, is_cpu = self.statements[self.at]
        self.at += 1
        assert (is_what, is_cpu) == (what, cpu), (self.number, self.at, self.statements[self.at - 1], what, cpu)
        assert self.requires.pop(self.at, set()) == set(on) - {0}, (self.number, self.at, on)
        return self.at, amount, peer

    def message(self, what, cpu, size, peer, on):
        n, amount, to = self.next(what, cpu, on)
        assert to == peer and amount == max(1, math.ceil(size)), (self.number, n, amount, size, to, peer)
        self.sent += amount if what == "send" else 0
        return n

    def launch(self):
        self.host = self.next("calc", 0, (self.host, self.awaited))[0]
        self.awaited = 0

    def collective(self, work, cpu, on):
        shape, op, size = self.g["group"][work["group"]], work["op"], float(work["bytes"])
        n, place = shape["size"], self.number // shape["stride"] % shape["size"]
        mate = lambda k: self.number + ((place + k) % n - place) * shape["stride"]
        begin = self.next("calc", cpu, on)[0]
        if op == "broadcast":
            at = self.message("recv", cpu, size, mate(-1), (begin,)) if place else begin
            return self.message("send", cpu, size, mate(1), (at,)) if place + 1 < n else at
        steps, part = {"all_reduce": (2 * (n - 1), size / n), "sendrecv": (n - 1, size / (n - 1))}.get(op, (n - 1, size / n))
        sent = got = begin
        for k in range(steps):
            far = k + 1 if op == "all_to_all" else 1
            ours = self.message("send", cpu, part, mate(far), (sent,) if op == "all_to_all" else (sent, got))
            got = self.message("recv", cpu, part, mate(-far), (got,))
            sent = ours
        return self.next("calc", cpu, (sent, got))[0]

    def op(self, op):
        stream, work = op["stream"], self.g["work"][int(op["work"])]
        cpu = 1 + STREAMS.index(stream)
        if not self.g["ahead"]:
            self.launch()
        on = [self.host, self.tail.get(stream, 0)]
        on += [self.tail.get(w[5:], 0) if w.startswith("tail:") else self.event.get(w, 0) for w in op["wait"]]
        if work.get("group") == "pp":
            # what a V sends in reverse goes to the stage from which the same kind comes else
            receives, ranks = stream.startswith("recv"), sum(c["ranks"] for c in self.g["classes"])
            up = (stream in FORWARD) != (op.get("reverse") == "true")
            peer = (self.number + (1 if up != receives else -1) * ranks // len(self.g["classes"])) % ranks
            if not receives and self.statements[self.at][0] == "calc": # in its queue; all as long
                at, ns, _ = self.next("calc", cpu, on)
                queued.add(ns)
                on = (at,)
            at = self.message("recv" if receives else "send", cpu, float(work["bytes"]), peer, on)
        elif work["kind"] == "communication" and self.g["group"][work["group"]]["size"] > 1:
            at = self.collective(work, cpu, on)
        else:
            at, ns, _ = self.next("calc", cpu, on)
            self.kernels += [ns] if work["kind"] != "communication" and stream not in ("offload", "fetch") else []
        self.tail[stream] = at
        if "record" in op:
            self.event[op["record"]] = at
        if op.get("host_waits") == "true":
            self.awaited = at

    def run(self):
        if self.g["ahead"]: # all launches at once
            self.next("calc", 0, ())
        for segment in self.stage["calls"]:
            for op in segment["ops"]:
                self.op(op)
            if not segment["ops"] and segment["host"] and not self.g["ahead"]:
                self.launch()
        assert self.at == len(self.statements) and not self.requires, (self.number, self.at)
        return self


graph, goal = read_graph(sys.argv[1]), read_goal(sys.argv[2])
slow, speed = (int(sys.argv[3]), float(sys.argv[4])) if len(sys.argv) > 3 else (-1, 1)
sent, number, queued = [], 0, set()
for stage in graph["classes"]:
    first = None
    for _ in range(stage["ranks"]):
        rank = Rank(graph, number, stage, goal[number]).run()
        first = first or rank.kernels
        at = speed if number == slow else 1
        assert all(abs(x - y / at) <= 1 / at for x, y in zip(rank.kernels, first)), number
        sent.append(rank.sent)
        number += 1
assert number == len(goal) and len(queued) < 2
print(sum(s[0] == "send" for r in goal for s in r[0]), sum(sent))
