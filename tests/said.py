"""tests/said.py - the numbers of a printed table against those of the JSON

said.py FOLDER: each number that FOLDER/WHAT.CASE.text shows must be that of FOLDER/WHAT.CASE.json, rounded to
as many digits as are shown; FOLDER/WHAT.CASE.csv is there where the command writes one. A row of the text that
has no number to be held against is an error. Prints the cases that are as they should be.
"""
import csv
import glob
import json
import os
import re
import sys
import traceback

UNITS = {"": 1, "%": 0.01, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "B": 1, "kB": 1e3,
         "MB": 1e6, "GB": 1e9, "TB": 1e12, "W": 1, "kW": 1e3, "MW": 1e6, "J": 1, "kJ": 1e3, "USD": 1,
         "million USD": 1e6, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "million": 1e6}
seen = 0


def same(text, value, unit=""):
    """The text is the value, rounded."""
    global seen
    m = re.fullmatch(r"([+-]?)([\d,]+)(\.\d+)?(?: (.+))?", text.strip())
    assert m, "'%s' is no number" % text
    number = float((m[1] + m[2] + (m[3] or "")).replace(",", ""))
    scale = UNITS[m[4] or unit]
    digits = len(m[3]) - 1 if m[3] else 0
    assert abs(number * scale - value) <= 0.5000001 * scale * 10 ** -digits, (text, value)
    seen += 1


def cells(line):
    return re.split(r"  +", line.strip())


def tables(path):
    """{first word of the header: (header, rows)} of a text whose tables end with an empty line. A second of that word
    has the third of its header's, too."""
    found = {}
    for block in open(path).read().split("\n\n"):
        lines = [l for l in block.split("\n") if l.strip()]
        if lines:
            table = [cells(l) for l in lines]
            found[table[0][0] if table[0][0] not in found else table[0][2]] = table
    return found


def follows(answer):
    """What is derived of a scenario, of nodes of eight GPUs, is what it says."""
    d, s = answer["derived"], answer["scenario"]
    t, p = s["training"], s["training"]["parallel"]
    assert d["ranks"] == s["cluster"]["gpus"] and d["nodes"] == -(-d["ranks"] // 8), d
    assert d["dp"] * p["tp"] * p["pp"] * p["cp"] == d["ranks"], d
    assert d["micro_batches"] * d["dp"] * t["micro_batch_size"] == t["global_batch_size"], d
    assert d["trained_parameters"] == d["parameters"] >= d["active_parameters"], d
    assert abs(answer["tokens_per_s"] * answer["step_s"] / (t["global_batch_size"] * t["sequence_length"]) - 1) < 1e-9


def goes_to(answer):
    """The two parts of a step that are largest, and the largest item, in words."""
    words = {"compute": "compute kernels", "exposed_communication": "communication that nothing hides",
             "bubble": "the pipeline bubble", "host": "the host launching kernels", "optimizer": "the optimizer"}
    first, second = sorted(answer["breakdown_s"].items(), key=lambda p: -p[1])[:2]
    item = max(answer["items"], key=lambda i: i["time_s"])["name"]
    assert second[1] > 0 and answer["bottleneck"] == "%.0f %% of the step goes to %s, then %.0f %% to %s; the largest " \
        "single item is %s." % (100 * first[1] / answer["step_s"], words[first[0]], 100 * second[1] / answer["step_s"],
                                words[second[0]], item), answer["bottleneck"]


def simulated(text, answer):
    follows(answer)
    goes_to(answer)
    assert answer["bottleneck"] + "\n" in open(text).read()
    t, c, i = tables(text), answer["cost"], answer["interval"]
    rows = {"step": ("step_s", 1), "tokens/s": ("tokens_per_s", 1)}
    one = {"tokens/s per GPU": answer["tokens_per_s_per_gpu"], "MFU": answer["mfu"], "HFU": answer["hfu"],
           "model FLOP/s per GPU": answer["model_flop_per_s_per_gpu"],
           "MFU, attention counted whole": answer["mfu_full"],
           "extrapolated share of kernel time": answer["extrapolated_frac"], "capital": c["capex_usd"],
           "of which network": c["capex_network_usd"], "at quoted prices": c["quoted_frac"],
           "at derived prices": c["derived_frac"], "at guessed prices": c["guessed_frac"],
           "at prices given": c["given_frac"], "goodput": c["goodput"]}
    ranges = {"step": (answer["step_s"], "step_s"), "tokens/s": (answer["tokens_per_s"], "tokens_per_s"),
              "USD per GPU-hour": (c["usd_per_gpu_hour"], "usd_per_gpu_hour"),
              "USD per million tokens": (c["usd_per_million_tokens"], "usd_per_million_tokens"),
              "energy per token": (c["joules_per_token"], "joules_per_token"),
              "power at full load": (c["facility_provisioned_w"], "facility_provisioned_w")}
    assert t["result"][0] == ["result", "value", "P10", "P90"]
    for row in t["result"][1:]:
        if row[0] in ranges:
            value, key = ranges[row[0]]
            for shown, is_ in zip(row[1:], [value] + i[key], strict=True):
                same(shown, is_)
        else:
            same(row[1], one[row[0]])
    parts = dict(answer["breakdown_s"], step=answer["step_s"])
    assert len(t["where a step goes"]) == 7
    for name, time, share in t["where a step goes"][1:]:
        value = parts.get(name.replace("pipeline ", "").replace(" ", "_"))
        same(time, value)
        same(share, value / answer["step_s"])
    items = t["largest items (a rank's time)"][1:]
    assert len(items) == min(10, len(answer["items"]))
    for row, item in zip(items, answer["items"]):
        assert row[0] == item["name"]
        same(row[1], item["count"])
        same(row[2], item["time_s"])
        if item["communication"]:
            assert row[3] == "communication"
        else:
            same(row[3], item["roofline_s"] / item["time_s"])
    memory = t["memory per GPU"]
    assert memory[0][1] == "bytes"
    for row in memory[1:]:
        if row[0] != "it fits in":
            same(row[1], answer["memory_bytes_per_gpu"][row[0]])
    stages = t.get("pipeline stage", [["stage"]])[1:]
    assert len(stages) == (len(answer["stages"]) if len(answer["stages"]) > 1 else 0)
    for row, stage in zip(stages, answer["stages"]):
        assert row[0] == str(stage["stage"])
        parts = [stage["breakdown_s"][k] for k in ("compute", "exposed_communication", "bubble", "host", "optimizer")]
        for shown, is_ in zip(row[1:], [stage["memory_bytes_per_gpu"]["total"]] + parts, strict=True):
            same(shown, is_)
    for row, run in zip(t["nearest measured runs"][1:], answer["nearest_runs"], strict=True):
        assert row[0] == run["id"] and row[3] == run["differs"] and row[4] == run["source"], row
        same(row[1], run["error_frac"])
        same(row[2], run["distance"])


def financed(text, answer, flows):
    """Forms of an hour, and what is paid: JSON, and the CSV that finance gets."""
    t, forms = tables(text), answer["finance"]
    keys = ["annuity", "levelised", "straight_line", "warehouse", "semianalysis"]
    for row, key in zip(t["an hour of a GPU, by form"][1:], keys, strict=True):
        same(row[1], forms[key + "_usd_per_gpu_hour"])
    paid = {}
    for line in csv.DictReader(open(flows)):
        paid[line["ServiceName"]] = paid.get(line["ServiceName"], 0) + float(line["BilledCost"])
    for row in t["paid over the horizon"][1:]:
        if row[0].startswith("net present value"):
            same(row[1], forms["npv_usd"])
        else:
            same(row[1], round(paid.pop(row[0]), 0))
    assert not paid, paid
    words = open(text).read()
    m = re.search(r"Against a rent of (\S+) USD per GPU-hour: (?:owning is cheaper when more than (\S+ %) of the hours "
                  r"are used|owning is not cheaper, however many hours are used); "
                  r"it is (?:not paid back within the horizon|paid back in month (\d+))"
                  r"(?:; let at that rent it returns (\S+ %) a year)?\.\n", words)
    assert m, "no word on the rent"
    same(m[1], forms["rent_usd_per_gpu_hour"])
    assert (m[2] is None) == (forms["break_even_utilization_frac"] >= 1)
    assert int(m[3] or 0) == forms["break_even_months"]
    assert (m[4] is None) == (forms["irr_frac"] is None)
    if m[2]:
        same(m[2], forms["break_even_utilization_frac"])
    if m[4]:
        same(m[4], forms["irr_frac"])


def billed(text, answer, table):
    """The bill as text, JSON and CSV."""
    rows = [r for r in tables(text)["role"][1:]]
    *lines, total = csv.DictReader(open(table))
    assert total["role"] == "total"
    for key in ("total_usd", "low_usd", "high_usd"):
        same(total[key], answer[key])
    assert len(answer["items"]) == len(lines) == len(rows) - 2
    for row, item, line in zip(rows, answer["items"], lines):
        assert row[0] == item["what"] == line["role"] and row[1] == item["item"] == line["item"]
        same(row[2], item["count"])
        same(row[3], item["unit_usd"])
        same(row[4], item["total_usd"])
        assert row[5:8] == [item["kind"], item["date"], item["book"]], row
        assert (row[8] if len(row) > 8 else "") == item["source"] == line["source"]
        for key in ("count", "unit_usd", "total_usd", "low_usd", "high_usd"):
            same(line[key], item[key])
        for key in ("kind", "date", "book", "vendor", "address", "class"):
            assert line[key] == item[key], (key, line)
    assert [r[0] for r in rows[-2:]] == ["network", "total"]
    same(rows[-2][1], answer["network_usd"])
    same(rows[-1][1], answer["total_usd"])
    for key in ("total_usd", "low_usd", "high_usd"):
        same("%.2f" % sum(i[key] for i in answer["items"]), answer[key])
    p = answer["parts"]
    m = re.search(r"\nSite (\S+): (\S+ [kM]?W) of IT power at full load, (\d+) rack(s?), (\S+) t of CO2e embodied; a job is stopped by "
                  r"a failure every (\S+) h\.\n", open(text).read())
    assert m and m[1] == p["site"] and int(m[3]) == p["racks"] and (m[4] == "") == (p["racks"] == 1), m
    assert abs(float(m[2].split()[0]) * UNITS[m[2].split()[1]] / p["full_w"] - 1) < 5e-3, m  # three digits
    same(m[5], sum(l["count"] * l["carbon_kg"] for l in p["lines"] if l["class"] != "service") / 1000)
    stops = sum(n for kind, n in p["failures_per_hour"].items() if kind in ("server", "network", "service"))  # a job's own parts
    assert abs(float(m[6]) * stops - 1) < 5e-3, m
    assert abs(float(m[6]) * answer["job_failures_per_hour"] - 1) < 5e-3, m
    f = answer["fabric"]
    head = open(text).readline()
    m = re.search(r"in (\d+) nodes, fabric (\S+): (\d+) tiers, (\d+) leaf, (\d+) spine, (\d+) core; cables (\d+) / "
                  r"(\d+) / (\d+)", head)
    assert list(map(str, (f["nodes"], f["name"], f["tiers"], f["leaf"], f["spine"], f["core"], f["cables_node_leaf"],
                          f["cables_leaf_spine"], f["cables_spine_core"]))) == list(m.groups()), head


def at(value, path):
    for part in path.split("."):
        if part in ("name", "extends") and isinstance(value, str):  # a word where others have a map
            return value
        value = value[part]
    return value


COMPARED = {  # rows of `compare`, in order: a key, or of a range, and the row's indented name
    "step": "step_s", "tokens/s": "tokens_per_s", "tokens/s per GPU": "tokens_per_s_per_gpu",
    "model FLOP/s per GPU": "model_flop_per_s_per_gpu", "MFU": "mfu", "MFU, attention counted whole": "mfu_full",
    "HFU": "hfu", "memory per GPU": "memory_bytes_per_gpu.total", "compute": "breakdown_s.compute",
    "exposed communication": "breakdown_s.exposed_communication", "pipeline bubble": "breakdown_s.bubble",
    "host": "breakdown_s.host", "optimizer": "breakdown_s.optimizer",
    "extrapolated share of kernel time": "extrapolated_frac", "capital": "cost.capex_usd",
    "of which network": "cost.capex_network_usd", "at quoted prices": "cost.quoted_frac",
    "at derived prices": "cost.derived_frac", "at guessed prices": "cost.guessed_frac",
    "USD per GPU-hour": "cost.usd_per_gpu_hour", "USD per million tokens": "cost.usd_per_million_tokens",
    "energy per token": "cost.joules_per_token", "power at full load": "cost.facility_provisioned_w",
    "goodput": "cost.goodput"}
FLEET = ["tokens", "days.p10", "days.p50", "days.p90", "usd.p10", "usd.p50", "usd.p90", "megawatts", "megawatts.p10",
         "megawatts.p90", "energy_mwh", "failures", "tokens_per_s", "beyond.days", "beyond.budget", "beyond.megawatts",
         "beyond.horizon", "beyond.memory"]


def of_range(side, key, which):
    return side["interval"][key.rsplit(".", 1)[-1]][which == "p90"]


def of_csv(answer, i, row):
    """What a row of the CSV is in the JSON, of the i-th scenario; None: an empty cell."""
    side, v, group = answer["scenarios"][i], answer["verdict"], row.split(".")[0]
    if group == "difference":
        parts = answer["cost_differences"][i - 1]["parts"] if i else []
        return next((p["usd_per_million_tokens"] for p in parts if p["part"] == row.split(".", 1)[1]), 0)
    if group == "verdict":
        return v[row.split(".")[-1]][i]
    if group == "cause":
        return next(c for c in v["causes"] if c["cause"] == row[6:-4])[row[-3:]][i]
    if group == "crossover":
        value = next(c for c in v["crossovers"] if c["what"] == row[10:])["value"]
        return value if v["crossovers_of"] == side["name"] else None
    if group == "fleet":
        fleet = [side["run"]] + side["run"]["fleets"]
        name, key = re.fullmatch(r"fleet\.(.*?)\.((?:gpus|%s))" % "|".join(map(re.escape, FLEET)), row).groups()
        f = next(f for f in fleet if f["for"] == name)
        if key.startswith("beyond."):
            return int(key[len("beyond."):] in f["beyond"])
        return f[key.replace(".", "_")] if key.startswith("megawatts") else at(f, key)
    if row[-4:] in (".p10", ".p90"):
        return of_range(side, row[:-4], row[-3:])
    return side["scenario"]["cluster"]["gpus"] if row == "cluster.gpus" else at(side, row)


def fleets_follow(side):
    """Ranges of fleets are in order, and those of the cluster as given are its own, by other draws."""
    run, own = side["run"], side["interval"]
    for f in [run] + run["fleets"]:
        assert 0 < f["megawatts_p10"] < f["megawatts"] < f["megawatts_p90"], f
        for key in ("days", "usd"):
            assert 0 < f[key]["p10"] < f[key]["p50"] < f[key]["p90"], f
        assert abs(f["usd"]["p50"] / f["tokens"] / f["usd_per_million_tokens"] * 1e6 - 1) < 0.25, f
        assert f["days"]["p10"] * 86400 * f["tokens_per_s"] < 1.1 * f["tokens"] < 1.2 * f["days"]["p90"] * 86400 * f["tokens_per_s"], f
    for which, i in (("p10", 0), ("p90", 1)):
        assert abs(run["megawatts_" + which] * 1e6 / own["facility_provisioned_w"][i] - 1) < 0.05, (run, own)
        assert abs(run["usd"][which] / run["tokens"] * 1e6 / own["usd_per_million_tokens"][i] - 1) < 0.04, (run, own)


def in_common(words, answer):
    """What is the same in all is that of each, in lines as full as 80 columns let them be."""
    *lines, command = words.split("\nThe same in all:\n")[1].split("\n\n")[0].split("\n")
    assert command + " --json" == "  " + answer["command"] and all(line.startswith("  ") for line in lines)
    for line, after in zip(lines, lines[1:]):
        assert len(line) <= 80 < len(line + " " + after[2:].split(", ")[0].rstrip(",") + ","), (line, after)
    *items, version = " ".join(line[2:] for line in lines).split(", ")
    assert version == "foretoken " + answer["version"] and len(items) > 20, version
    for key, value in (i.split(" ", 1) for i in items):
        assert key not in [d["key"] for d in answer["differs"]], key
        for s in answer["scenarios"]:
            of = at(s["scenario"], key)
            of = str(of).lower() if isinstance(of, bool) else "%.12g" % of if isinstance(of, float) else str(of)
            if key in ("model", "model.name") and len({o["derived"]["parameters"] for o in answer["scenarios"]}) == 1:
                of += " (%.4g B parameters)" % (s["derived"]["parameters"] * 1e-9)
            assert value == of + (" (%s)" % s["prices"]["date"] if key == "cost.prices" else ""), (key, value, of)


def compared(text, answer, table):
    """Scenarios beside each other, as text, JSON and CSV."""
    sides, words = answer["scenarios"], open(text).read()
    in_common(words, answer)
    (key, *names), *rows = csv.reader(open(table))
    assert key == "key" and names == [s["name"] for s in sides], names
    for row, *values in rows:
        for i, shown in enumerate(values):
            value = of_csv(answer, i, row)
            assert (shown == "") == (value is None), (row, shown, value)
            if value is not None:
                assert abs(float(shown) - value) <= 1e-11 * abs(value), (row, shown, value)
    told = {r[0] for r in rows}
    assert {k[:-4] for k in told if k.endswith(".p10")} == {k[:-4] for k in told if k.endswith(".p90")}, told
    for group in ("step_s", "step_s.p90", "difference.", "cause.", "crossover.", "fleet."):
        assert any(r[0].startswith(group) for r in rows), group
    t, last, above, seen_rows = tables(text), None, None, set()
    for name, *values in t["result"][1:-1]:
        name, unit = re.fullmatch(r"(.*?)(?:, (%s))?" % "|".join(u for u in UNITS if u), name).groups()
        for shown, side in zip(values, sides, strict=True):
            value = of_range(side, last, name.lower()) if name in ("P10", "P90") else at(side, COMPARED[name])
            same(shown, value, unit or "")
        assert name not in ("P10", "P90") or unit == above, (name, unit, above)  # a range in the unit of its value
        last, above = (last, above) if name in ("P10", "P90") else (COMPARED[name], unit)
        seen_rows.add(name)
    assert seen_rows == set(COMPARED) | {"P10", "P90"}, set(COMPARED) - seen_rows
    assert t["result"][-1] == ["fits in memory"] + ["yes" if s["fits"] else "no" for s in sides]
    for row, d in zip(t["what differs"][1:], answer["differs"], strict=True):
        assert row == [d["key"]] + d["values"], row
    whys = [b.split("\n") for b in words.split("\n\n") if b.startswith("Why ") or b.startswith("What moves")]
    assert whys[0][0] == "Why %s differs from %s, GPU-nanoseconds per token:" % (names[1], names[0]), whys[0][0]
    assert whys[1][0] == "Why %s costs another amount than %s, USD per million tokens:" % (names[1], names[0]), whys[1][0]
    rows = [cells(l) for l in whys[0][2:]]
    for row, d in zip(rows, answer["differences"], strict=True):
        assert row[0] == d["what"], row
        for shown, value in zip(row[1:], (d["first_ns_per_token"], d["this_ns_per_token"],
                                          d["this_ns_per_token"] - d["first_ns_per_token"]), strict=True):
            same(shown, value)
    whole = sum(d["this_ns_per_token"] - d["first_ns_per_token"] for d in answer["differences"])
    for d in answer["differences"]:
        assert abs(d["share_frac"] * abs(whole) - d["this_ns_per_token"] + d["first_ns_per_token"]) < 1e-9 * abs(whole), d
    for d, side in zip(("first_ns_per_token", "this_ns_per_token"), sides):
        whole = side["scenario"]["cluster"]["gpus"] / side["tokens_per_s"] * 1e9
        assert abs(sum(x[d] for x in answer["differences"] if x["scenario"] == 1) / whole - 1) < 1e-9, (d, whole)
    parts = answer["cost_differences"][0]["parts"]
    added = sum(p["usd_per_million_tokens"] for p in parts)
    for row, (name, value) in zip([cells(l) for l in whys[1][2:]], [
            (p["part"], p["usd_per_million_tokens"]) for p in parts] + [("all", added)], strict=True):
        assert row[0] == name
        same(row[1], value)
    cost = [s["cost"]["usd_per_million_tokens"] for s in sides]
    assert abs(added - cost[1] + cost[0]) < 1e-9 * cost[0]
    near = lambda shown, value: float(shown.replace(",", "")) == float("%.4g" % value)
    assert whys[2][-1] == "first: %s; second: %s" % tuple(names)
    for line, c in zip(whys[2][2:-1], answer["verdict"]["causes"][:8], strict=True):
        row = cells(line)
        assert row[0] == c["cause"], row
        for shown, value in zip(row[1:], (c["p10"][0], c["p90"][0], c["p10"][1], c["p90"][1]), strict=True):
            assert near(shown, value), (row, value)
    ways = words[words.index("\none of "):].split("\n\n")[0].strip().split("\n")
    best = answer["verdict"]["best"]
    assert "\n%s is as cheap as %s at:\none of " % (*[n for n in names if n != best], best) in words
    for row, c in zip([cells(l) for l in ways[1:]], answer["verdict"]["crossovers"], strict=True):
        assert row[0] == c["what"] and (row[3:] or [""]) == [c["unit"]], row
        for shown, value in zip(row[1:3], (c["value"], c["now"])):
            digits = shown.replace(",", "")
            assert float(digits) == float("%.4g" % value) or float(digits) == round(value), (row, value)
    fleets = [b.strip().split("\n") for b in words.split("\n\n") if "\nfleet " in "\n" + b]
    for block, side in zip(fleets, sides, strict=True):
        head, *rows = [cells(l) for l in block if not l.endswith(":") and ": beyond the " not in l]
        for f in [side["run"]] + side["run"]["fleets"]:
            said = "%s: beyond the %s" % (f["for"], ", ".join(f["beyond"]))
            assert (said in block) == bool(f["beyond"]), (said, block)
        none = "No fleet keeps to all that is asked."
        assert (none in block) == all(f["beyond"] for f in [side["run"]] + side["run"]["fleets"]), block
        rows = [r for r in rows if r != cells(none)]
        for row, f in zip(rows, [side["run"]] + side["run"]["fleets"], strict=True):
            shown = dict(zip(["for", "gpus", "tokens", "50", "90", "usd50", "usd90", "mw", "mw90", "mwh", "failures"], row,
                             strict=True))
            assert shown["for"] == f["for"] and shown["gpus"] == str(f["gpus"]), row
            for key, value, scale in (("tokens", f["tokens"], 1e12), ("50", f["days"]["p50"], 1), ("90", f["days"]["p90"], 1),
                                      ("usd50", f["usd"]["p50"], 1e6), ("usd90", f["usd"]["p90"], 1e6),
                                      ("mw", f["megawatts"], 1), ("mw90", f["megawatts_p90"], 1),
                                      ("mwh", f["energy_mwh"], 1), ("failures", f["failures"], 1)):
                same(shown[key], value / scale)
    for side in sides:
        fleets_follow(side)
    v = answer["verdict"]
    assert abs(sum(v["cheapest_frac"]) - 1) < 1e-9 and v["probability"] == max(v["cheapest_frac"])
    assert v["best"] == names[v["cheapest_frac"].index(v["probability"])]


def planned(text, answer):
    words = open(text).read()
    head = re.match(r"([\d,]+) legal plans(?:, ([\d,]+) refused by the stack or the model)?, ([\d,]+) fit, (\d+) simulated", words)
    for shown, key in zip(head.groups("0"), ("considered", "refused", "feasible", "simulated"), strict=True):
        same(shown, answer[key])
    rows = [cells(l) for l in words.split("\n\n")[1].split("\n")]
    names = rows[0]
    for n, (row, best) in enumerate(zip(rows[1:], answer["best"], strict=True), 1):
        r, plan = dict(zip(["rank"] + names, row, strict=True)), best["training"]
        assert r["rank"] == str(n)
        for key in ("tp", "pp", "vpp", "cp", "ep", "etp"):
            assert r[key] == str(plan["parallel"][key]), (key, r)
        assert r["dp"] == str(best["dp"]) and r["micro"] == str(plan["micro_batch_size"])
        assert r["sharding"] == plan["sharding"] and r["recompute"].startswith(plan["recompute"])
        same(r["step"], best["step_s"])
        same(r["tokens/s/GPU"], best["tokens_per_s_per_gpu"])
        same(r["MFU"], best["mfu"])
        same(r["USD/Mtokens"], best["usd_per_million_tokens"])
        same(r["memory"], best["memory_bytes_per_gpu"]["total"])
    m = re.search(r"(\d+) of these (\d+) are within .*; the simplest of them is number (\d+)|(\d+) of these (\d+) are",
                  words)
    equal = [b["equal"] for b in answer["best"]]
    assert m and int(m[1] or m[4]) == sum(equal) and int(m[2] or m[5]) == len(equal), m


def collected(text, answer):
    rows = [cells(l) for l in open(text).read().strip().split("\n")]
    names = ["op", "gpus", "bytes", "time us", "algbw GB/s", "busbw GB/s", "algorithm", "protocol", "regret"]
    assert rows[0] == names, rows[0]
    for row, r in zip(rows[1:], answer["rows"], strict=True):
        assert row[0] == r["op"] and row[6] == r["algorithm"] and row[7] == r["protocol"], row
        for shown, key in zip(row[1:6], ("gpus", "bytes", "time_us", "algbw_gb_per_s", "busbw_gb_per_s")):
            same(shown, r[key])
        same(row[8], r["regret_frac"])
        # what nccl-tests calls these: bytes a second; all-reduce moves 2 (n - 1) / n of them
        same("%.2f" % (r["bytes"] / r["time_us"] / 1e3), r["algbw_gb_per_s"])
        n = r["gpus"]
        factor = {"all_reduce": 2 * (n - 1) / n, "all_gather": (n - 1) / n, "reduce_scatter": (n - 1) / n,
                  "all_to_all": (n - 1) / n, "broadcast": 1, "sendrecv": 1}[r["op"]]
        same("%.2f" % (r["algbw_gb_per_s"] * factor), r["busbw_gb_per_s"])


def summed_up(rows):
    """What an answer says of a group of rows, from each row's own figures; rates are wrong the other way round."""
    off = sorted(abs(r["error_frac"]) for r in rows)
    n, middle = len(rows), off[(len(rows) - 1) // 2:len(rows) // 2 + 1]
    late = [(r["measured"] - r["high"], r["low"] - r["measured"]) for r in rows]
    late = [(f, s) if "per_s" in r["key"] else (s, f) for r, (s, f) in zip(rows, late)]
    slow, fast = sum(s > 0 for s, f in late) / n, sum(f > 0 for s, f in late) / n
    return {"n": n, "mape": sum(off) / n, "bias": sum(r["error_frac"] for r in rows) / n, "median": sum(middle) / len(middle),
            "p90": off[-(-9 * n // 10) - 1], "max": off[-1], "inside_interval_frac": 1 - slow - fast, "slow_frac": slow,
            "fast_frac": fast}


def validated(text, answer):
    """Measured rows against predictions: each row's error, what each group adds up to, rows that did not run."""
    t, by = tables(text), answer["by"]
    for row, r in zip(t["id"][1:], answer["rows"], strict=True):
        assert row[:3] == [r["id"], r["group"], r["key"]], row
        assert float(row[3]) == float("%.5g" % r["measured"]) and float(row[4]) == float("%.5g" % r["predicted"]), row
        same(row[5], r["error_frac"])
        ratio = r["predicted"] / r["measured"]
        assert abs((1 / ratio if "per_s" in r["key"] else ratio) - 1 - r["error_frac"]) < 1e-9, r
    for row, r in zip(t.get("not scored", [[]])[1:], answer["other_rows"], strict=True):
        assert row[:3] == [r["id"], r["group"], r["key"]], row
        for shown, key in zip(row[3:], ("measured", "predicted", "error_frac"), strict=True):
            same(shown, r[key])
    groups = {}
    for r in answer["rows"]:
        groups.setdefault(r["group"] if by == "group" else r["classes"][by], []).append(r)
    want = [(g, summed_up(rows)) for g, rows in groups.items()] + [("all", summed_up(answer["rows"]))]
    told = list(answer["groups"].items()) + [("all", answer["summary"])] + list(answer["by_key"].items())
    assert [n for n, _ in told[:len(want)]] == [n for n, _ in want]
    for (_, is_), (name, should) in zip(told, want):
        for key, value in should.items():
            assert abs(is_[key] - value) < 1e-9, (name, key, is_[key], value)
    assert t[by][0][1:] == ["n", "MAPE", "bias", "median", "p90", "max", "in P10-P90", "slower", "faster"]
    rows, failed = t[by][1:], answer["failed"]
    for row, (name, group) in zip(rows, told):
        assert row[0] == name and row[1] == str(group["n"]), row
        for shown, key in zip(row[2:], list(want[0][1])[1:], strict=True):
            same(shown, group[key])
    rest = open(text).read().strip().split("\n")[-len(failed) - 1:] if failed else []
    assert rest[:-1] == ["%s: not simulated: %s" % (f["id"], f["reason"]) for f in failed], rest
    assert not failed or rest[-1] == "%d of %d rows could not be simulated." % (len(failed), len(failed) + len(answer["rows"]))


def differs(row, recorded, predicted, step_s):
    """recorded, predicted, difference, its share of the step."""
    for shown, value in zip(row[:3], (recorded, predicted, predicted - recorded), strict=True):
        same(shown, value, "ms")
    same(row[3], (predicted - recorded) / step_s, "%")


def gapped(text, answer):
    """A recorded step beside a predicted one."""
    t, step_s = tables(text), answer["recorded_step_s"]
    rows = t["where the step goes"][1:] + t["durations, added up"][1:]
    total = rows.pop(len(t["where the step goes"]) - 2)
    assert total[0] == "step"
    differs(total[1:], step_s, answer["predicted_step_s"], step_s)
    parts = [g for g in answer["gaps"] if g["part_of_step"]]
    for key in ("recorded", "predicted"):
        added = sum(g[key + "_s"] for g in parts)
        assert abs(added - answer[key + "_step_s"]) < 1e-6 * step_s, (key, added)
    named = {"idle: host and launch": "host"}
    for row, gap in zip(rows, sorted(answer["gaps"], key=lambda g: not g["part_of_step"]), strict=True):
        differs(row[1:], gap["recorded_s"], gap["predicted_s"], step_s)
        assert named.get(row[0], row[0]).split()[0] in gap["what"], (row, gap["what"])
    both, words = answer["by_layer"], open(text).read()
    for key in ("recorded", "predicted"):
        b = both[key]
        found = "%s step has %d layers, found where products and attention repeat: %d of them in a layer forward, %d backward"
        told = "%s step has %d layers: %d products and attention in the first one forward, %d backward"
        assert (told if b.get("told") == len(b["layers"]) else found) % (
            key, len(b["layers"]), b["in_forward"], b["in_backward"]) in words, key
        whole = b["outside"]["time_s"]
        for p in [b["outside"]] + [l[d] for l in b["layers"] for d in ("forward", "backward")]:
            # kernels that run at once count each
            more = sum(p["kinds_s"].values()) - p["time_s"]
            assert -1e-6 * step_s < more, p
        whole += sum(l[d]["time_s"] for l in b["layers"] for d in ("forward", "backward"))
        assert abs(whole - answer[key + "_step_s"]) < 1e-6 * step_s, (key, whole)
    rows, n = t["layer"][1:], min(len(both[k]["layers"]) for k in ("recorded", "predicted"))
    assert len(rows) == 2 * n + 1
    for i, row in enumerate(rows[:-1]):
        assert row[:2] == [str(i % n), "backward" if i >= n else "forward"], row
        differs(row[2:], *(both[k]["layers"][i % n][row[1]]["time_s"] for k in ("recorded", "predicted")), step_s)
    differs(rows[-1][2:], both["recorded"]["outside"]["time_s"], both["predicted"]["outside"]["time_s"], step_s)
    for row in t["in layers"][1:]:
        differs(row[2:], *(sum(l[row[1]]["kinds_s"][row[0]] for l in both[k]["layers"][:n])
                           for k in ("recorded", "predicted")), step_s)


def listed(text, answer):
    """Files of a kind: each cell, what a file lacks left empty."""
    global seen
    head, *rows = [l.rstrip("\n") for l in open(text)]
    begin = [head.index(n) for n in ("name", "title", "provenance", "date", "source")] + [None]
    assert head.split() == ["name", "title", "provenance", "date", "source"], head
    for row, file in zip(rows, answer, strict=True):
        for a, b, key in zip(begin, begin[1:], head.split()):
            want = " ".join((file.get(key.replace("provenance", "kind")) or "").split())
            shown = row[a:b].strip()  # long sources are cut, and say so
            cut = key == "source" and len(shown) >= 60 and shown.endswith("...") and want.startswith(shown[:-3].rstrip())
            assert shown == want or cut, (key, row, file)
            seen += 1


for text in sorted(glob.glob(sys.argv[1] + "/*.*.text")):
    stem, seen = text[:-len("text")], 0
    case = os.path.basename(stem)[:-1]
    try:
        table = [stem + "csv"] if os.path.exists(stem + "csv") else []
        globals()[case.split(".")[0]](text, json.load(open(stem + "json")), *table)
        assert seen > 9, "only %d numbers" % seen
        print(case)
    except Exception:
        traceback.print_exc()
