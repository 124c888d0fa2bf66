#!/usr/bin/env python3
"""scripts/derive_memory.py FROM.yaml TO.yaml - memory-bound curves of a GPU from a measured one
of the same die: starts, and rates out of the cache, as they are; rates from memory in the
proportion of the two data sheets.  TO is written anew."""
import re
import sys


def block(text):
    begin = text.index("memory_bound:")
    return begin, text.index("collectives:", begin)


def terabytes(text):
    return float(re.search(r"^memory: \{.*bandwidth: ([\d.]+) TB/s", text, re.M)[1])


source, target = (open(path).read() for path in sys.argv[1:3])
ratio = terabytes(target) / terabytes(source)
begin, end = block(source)
provenance = re.search(r'source: "([^":]*)', source[begin:end])[1]
date = re.search(r'date: "([^"]*)"', source[begin:end])[1]
curves = []
for line in source[begin:end].splitlines():
    if not re.match(r"    \w[\w.]*: \{start", line):
        continue
    if ".warm:" not in line:
        line = re.sub(r"bandwidth: ([\d.]+) GB/s",
                      lambda m: f"bandwidth: {float(m[1]) * ratio:.1f} GB/s", line)
    curves.append(line)
begin, end = block(target)
spread = re.search(r"^  spread: .*$", target[begin:end], re.M)[0]
note = (f"the same die: starts and warm rates as there, cold rates by memory bandwidth, "
        f"{terabytes(target):g} of {terabytes(source):g} TB/s")
head = ("memory_bound:\n"
        f'  provenance: {{kind: derived, source: "{provenance}", date: "{date}", note: "{note}"}}\n'
        f"{spread}\n  curves:\n")
open(sys.argv[2], "w").write(target[:begin] + head + "\n".join(curves) + "\n" + target[end:])
