#!/usr/bin/env python3
"""scripts/derive_memory.py [--same-die] [--twin TWIN.yaml] FROM.yaml TO.yaml [ROWS.csv.gz GPU...] - memory-bound
curves of a GPU from a measured one: starts as they are, rates in the proportion of the two data
sheets.

TWIN was measured too and has FROM's die with another memory, so that the two tell which kernels
memory holds back and which the die: where memory of b times the bandwidth makes a kernel b^a times
as fast, it is taken to go with bandwidth^a x (compute units x clock)^(1 - a), 0 <= a <= 1. With
--same-die TO has that die, too: the rest is as it is, and so are rates out of the cache, and norms of rows of
less than 3,200 bytes, which blocks bind rather than the memory. No other GPU gets these.

ROWS are what others published (measurements/published/memory.csv.gz), taken of the GPUs named,
whose profiles lie beside FROM:

  cold copies and adds   say which share of the data sheet this kin of GPUs reaches: all
                         rates are multiplied by the geometric mean of curve / rows;
  a kernel's own rows    multiply its rate once more, so that they are met on average;
                         from eight rows on, start, rate and sharpness are its own;
  rows of strided        hold for all, whosever they are, by units x clock: instructions bind it,
                         not the memory (as H100 and H200 say, whose memories differ).

TO is written anew, but for curves that have a provenance of their own there: these stay."""
import csv
import gzip
import itertools
import math
import os
import re
import sys

TRAFFIC = {"copy": 2, "add": 3, "layernorm": 2, "rmsnorm": 2, "rope": 2,
           "permute": 2, "cross_entropy": 3, "strided": 2}
OWN_ROWS = 8


SHORT = re.compile(r", (\d{1,3}|[12]\d{3}|3[01]\d{2}): \{start: [\d.]+ us, bandwidth: [\d.]+ GB/s\}")


def without_short(curve):
    return {k: SHORT.sub("", v) if "norm" in k else v for k, v in curve.items()}


def with_short(line, there):
    """The short rows of another line, behind this one's last row."""
    found = "".join(m[0] for m in SHORT.finditer(there))
    return line.replace("}}", "}" + found + "}", 1) if found else line


def block(text):
    begin = text.index("memory_bound:")
    return begin, text.index("collectives:", begin)


def terabytes(text):
    found = re.search(r"^memory:.*\n(?:  .*\n)*?  bandwidth: ([\d.]+) ([TG])B/s", text, re.M)
    return float(found[1]) / (1000 if found[2] == "G" else 1)


def cycles(text):
    """Compute units x clock, in some unit: the fp32 peak over the lanes of a unit, of which A100
    has 64 and what came later 128 (NVIDIA's architecture white papers)."""
    vector = re.search(r"fp32:(?:\s+value:| \{value:)? ([\d.]+) TFLOP/s", text)
    return float(vector[1]) / (64 if "ccl_generation: ampere" in text else 128)


def exponents(curve, twin, ratio):
    """By kernel: how a rate goes with the memory alone; the mean over its rows' lengths."""
    rates = {k: [float(x) for x in re.findall(r"bandwidth: ([\d.]+) GB/s", line)]
             for k, line in curve.items()}
    found = {}
    for key, line in twin.items():
        theirs = [float(x) for x in re.findall(r"bandwidth: ([\d.]+) GB/s", line)]
        logs = [math.log(a / b) / math.log(ratio) for a, b in zip(rates.get(key, []), theirs)]
        if logs:
            found[key] = min(max(sum(logs) / len(logs), 0), 1)
    return found


def number(line, key, fallback=None):
    found = re.search(r"[{ ]" + key + r": ([\d.]+)", line)
    return float(found[1]) if found else fallback


def times(line, factor):
    return re.sub(r"bandwidth: ([\d.]+) GB/s",
                  lambda m: f"bandwidth: {float(m[1]) * factor:.1f} GB/s", line)


def capped(line, most):
    """Out of the memory nothing comes faster than a copy or an add, whatever the die could do."""
    return re.sub(r"bandwidth: ([\d.]+) GB/s",
                  lambda m: f"bandwidth: {min(float(m[1]), most):.1f} GB/s", line)


def law_us(moved, start, rate, sharpness):
    return (start ** sharpness + (moved / rate * 1e-3) ** sharpness) ** (1 / sharpness)


def curve_us(line, row, factor=1.0):
    return law_us(row["moved"], number(line, "start"),
                  number(line, "bandwidth") * row["scale"] * factor,
                  number(line, "sharpness", 1))


def read_rows(path, gpus, folder, source):
    found = []
    with gzip.open(path, "rt") as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            if row["gpu"] not in gpus or row["status"] not in ("", "ok"):
                continue
            profile = open(os.path.join(folder, row["gpu"] + ".yaml")).read()
            row["scale"] = terabytes(profile) / terabytes(source)
            row["warm"] = row["warm"] == "true"
            row["moved"] = float(row["bytes"] or 0) * TRAFFIC[row["kernel"]]
            row["us"] = float(row["measured.time_us"] or 0)
            row["rate"] = float(row["measured.gb_per_s"] or 0)
            found.append(row)
    return found


def share(curve, rows):
    """What cold copies and adds reach, against the measured GPU's; and of how many."""
    logs = []
    for r in rows:
        if r["warm"] or r["kernel"] not in ("copy", "add"):
            continue
        line = curve[r["kernel"]]
        logs.append(math.log(curve_us(line, r) / r["us"] if r["us"] else
                             r["rate"] / number(line, "bandwidth") / r["scale"]))
    return (math.exp(sum(logs) / len(logs)) if logs else 1), len(logs)


def met(line, rows):
    """The factor on a curve's rate that meets rows on average, by halving."""
    low, high = 0.02, 50.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        off = sum(math.log(curve_us(line, r, middle) / r["us"]) for r in rows)
        low, high = (middle, high) if off > 0 else (low, middle)
    return low


def fitted(line, rows):
    """A curve of its own: least squares of log t over a grid; the rate at scale 1."""
    def off(start, rate, sharpness):
        return sum(math.log(law_us(r["moved"], start, rate * r["scale"], sharpness) /
                            r["us"]) ** 2 for r in rows)
    least = min(r["us"] for r in rows)
    fastest = max(r["moved"] / r["us"] / r["scale"] * 1e-3 for r in rows)
    start, rate, sharpness = min(itertools.product(
        [least * (0.5 + 0.025 * i) for i in range(25)],
        [fastest * (0.5 + 0.02 * i) for i in range(50)], [1, 1.5, 2, 3]),
        key=lambda p: off(*p))
    line = re.sub(r", (sharpness|half): [\d.]+( MB)?", "", line)
    return re.sub(r"start: [\d.]+ us, bandwidth: [\d.]+ GB/s, traffic: 2",
                  f"start: {start:.3f} us, bandwidth: {rate:.1f} GB/s, traffic: 2, "
                  f"sharpness: {sharpness:g}", line)


def with_rows(curve, rows, ratio, plain=False):
    """Curves of TO where there are published rows; and what the note says of them. ratio: of
    a kernel's rate, before rows are seen. plain: rows go where a map says as fast as a copy,
    for want of a measurement."""
    reached, n = share(curve, rows)
    own = {}
    for key, line in curve.items():
        kernel, warm = key.split(".")[0], key.endswith(".warm")
        mine = [r for r in rows if r["kernel"] == kernel and r["us"]]
        here = [r for r in mine if r["warm"] == warm]
        if kernel == "rope":  # fused, as no eager PyTorch has it
            line = re.sub(r"traffic: [\d.]+", "traffic: 2", line)
        if key == "permute" and plain:
            line = curve["copy"].replace("copy", "permute")  # rates are TO's already
            curve[key] = line
            continue
        if len(here) >= OWN_ROWS:
            line = times(fitted(line, here), ratio(key))
        elif mine and (here or kernel not in ("copy", "add")):
            line = times(line, ratio(key) * met(line, here or mine))
        else:
            line = times(line, ratio(key) * reached)
            here = []
        if here:
            own[kernel] = len(mine)
        curve[key] = line
    note = f", times {reached:.3f}: what {n} published copies and adds reach" if n else ""
    if own:
        note += "; by rows of their own: " + ", ".join(f"{k} ({n})" for k, n in own.items())
    return note


def by_instructions(curve, published, folder, source, target):
    """`strided`, which instructions bind and not the memory: as the one GPU of which there are rows, and by
    units x clock from there; and what the note says of it."""
    with gzip.open(published[0], "rt") as f:
        gpus = {r["gpu"] for r in csv.DictReader(line for line in f if not line.startswith("#"))
                if r["kernel"] == "strided"}
    if "strided" not in curve or len(gpus) != 1:
        return ""
    gpu = gpus.pop()
    rows = [r for r in read_rows(published[0], [gpu], folder, source) if r["kernel"] == "strided"]
    theirs = open(os.path.join(folder, gpu + ".yaml")).read()
    of_theirs = rows[0]["scale"] * met(curve["strided"], rows)
    dies = cycles(target) / cycles(theirs)
    curve["strided"] = times(curve["strided"], of_theirs * dies)
    return f"; strided by {len(rows)} rows of {gpu} and units x clock, {dies:.3f} of its"


def by_units(curve, source, target, target_path):
    """A loop over as many sums as blocks run at once: by compute units; not measured on AMD's GPUs."""
    units = [re.search(r"^compute_units: (\d+)", t, re.M) for t in (source, target)]
    if os.path.basename(target_path).startswith("mi"):
        curve.pop("norm_finalize", None)
    elif "norm_finalize" in curve and all(units):
        start = number(curve["norm_finalize"], "start") * int(units[1][1]) / int(units[0][1])
        curve["norm_finalize"] = re.sub(r"start: [\d.]+", f"start: {start:.1f}", curve["norm_finalize"])


def curves(text):
    begin, end = block(text)
    found = {}
    for line in text[begin:end].splitlines():
        key = re.match(r"    (\w[\w.]*): \{(?:start|as)", line)
        if key:
            found[key[1]] = re.sub(r", provenance: \{.*?\}", "", line)  # here it is derived
    return found


def own_lines(text):
    """Curves of TO that were entered with a provenance."""
    begin, end = block(text)
    found = re.findall(r"^    (\w[\w.]*)(: \{.*, provenance: \{.*)$", text[begin:end], re.M)
    return {key: f"    {key}{rest}" for key, rest in found}


def main():
    arguments = sys.argv[1:]
    same_die = arguments[0] == "--same-die"
    if same_die:
        arguments.pop(0)
    twin = arguments.pop(1) if arguments[0] == "--twin" else None
    if twin:
        arguments.pop(0)
    path, target_path, *published = arguments
    if not (twin if same_die else twin or published):
        sys.exit("derive_memory.py: --same-die wants --twin; else --twin or ROWS.csv.gz and GPUs")
    source, target = open(path).read(), open(target_path).read()
    folder, whole = os.path.dirname(path) or ".", curves(source)
    curve = without_short(whole)
    ratio = terabytes(target) / terabytes(source)
    of = f"{terabytes(target):g} of {terabytes(source):g} TB/s"
    begin, end = block(source)
    provenance = re.search(r'source: "([^":]*)', source[begin:end])[1]
    date = re.search(r'date: "([^"]*)"', source[begin:end])[1]
    if twin:
        other = open(twin).read()
        a = exponents(curve, without_short(curves(other)), terabytes(source) / terabytes(other))
    if same_die:
        note = (f"the same die: starts and warm rates as there, cold rates by memory bandwidth, {of}, to the "
                f"power that this and {os.path.basename(twin)[:-5]} say")
        curve = {k: v if k.endswith(".warm") else times(v, ratio ** a.get(k, 1)) for k, v in curve.items()}
    elif twin:
        dies = cycles(target) / cycles(source)
        provenance += f" and {os.path.basename(twin)[:-5]}"
        note = (f"starts as there; a kernel's rate by memory bandwidth, {of}, to the power that "
                f"these two say, and by units x clock, {dies:.3f} of theirs, to the rest")
        rows = read_rows(published[0], published[1:], folder, source) if published else []
        for r in rows:
            theirs = open(os.path.join(folder, r["gpu"] + ".yaml")).read()
            power = a.get(r["kernel"], 1)
            r["scale"] = (r["scale"] ** power *
                          (cycles(theirs) / cycles(source)) ** (1 - power))
        note += with_rows(curve, rows, lambda k: ratio ** a.get(k, 1) * dies ** (1 - a.get(k, 1)))
    else:
        rows = read_rows(published[0], published[1:], folder, source)
        note = f"starts as there, rates by memory bandwidth, {of}"
        bound = by_instructions(curve, published, folder, source, target)
        strided = curve.get("strided")
        note += with_rows(curve, [r for r in rows if r["kernel"] != "strided"], lambda key: ratio, True)
        if bound:
            curve["strided"] = strided
        note += (f"; rows of {', '.join(published[1:])}" if rows else "") + bound
    if twin:
        most = max(number(curve[k], "bandwidth") for k in ("copy", "add"))
        curve = {k: v if k.endswith(".warm") else capped(v, most) for k, v in curve.items()}
    if same_die:
        curve = {k: with_short(v, whole[k]) if "norm" in k else v for k, v in curve.items()}
    by_units(curve, source, target, target_path)
    curve.update({k: v for k, v in own_lines(target).items() if k in curve})
    begin, end = block(target)
    spread = re.search(r"^  spread: .*$", target[begin:end], re.M)[0]
    head = ("memory_bound:\n"
            f'  provenance: {{kind: derived, source: "{provenance}", date: "{date}", note: "{note}"}}\n'
            f"{spread}\n  curves:\n")
    open(target_path, "w").write(target[:begin] + head + "\n".join(curve.values()) + "\n" +
                                 target[end:])


main()
