# tests/layers.py TRACE.json.gz COMPARED.json - a recording's layers by FSDP's annotations
#
# The other way to the same: eager FSDP annotates each layer's hooks on the host. Products
# launched from a layer's pre_forward to its post_forward, and from its pre_backward to its
# post_backward, are that layer's. Sums must be those that were found by repetition.
import gzip
import json
import re
import sys

events = json.load(gzip.open(sys.argv[1]))["traceEvents"]
compared = json.load(open(sys.argv[2]))["by_layer"]["recorded"]["layers"]
launched = {e["args"]["correlation"]: e["ts"] for e in events
            if e.get("cat") in ("cuda_runtime", "cuda_driver") and "Launch" in e["name"]}
products = [(launched[e["args"]["correlation"]], e["dur"]) for e in events
            if e.get("cat") == "kernel" and re.search("nvjet|gemm|cutlass", e["name"])]


def at(name):
    found = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == name]
    assert len(found) == 1, (name, len(found))
    return found[0]["ts"]


for number, layer in enumerate(compared):
    for found, first, last in (("forward", "pre_forward", "post_forward"),
                               ("backward", "pre_backward", "post_backward_accumulate")):
        begin, end = (at("FSDP::%s (layers.%d)" % (x, number)) for x in (first, last))
        seconds = sum(dur for ts, dur in products if begin <= ts < end) * 1e-6
        assert seconds > 0
        same = layer[found]["kinds_s"]["matrix products"]
        assert abs(seconds - same) < 1e-9, (number, found, seconds, same)
