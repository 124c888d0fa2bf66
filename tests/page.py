"""tests/page.py - a report's page against the JSON, the bills and the payments that it tells of

page.py PAGE ANSWER.json TEXT BILL.json,... FLOWS.csv,...: the page is well formed, and each number of its tables,
and of the text that the command prints, is that of the JSON (of `bom --json` and `--flows` of each scenario),
rounded to as many digits as are shown. Prints what was checked, or ends with what is wrong.
"""
import base64
import csv
import html.parser
import json
import re
import sys
import xml.dom.minidom

VOID = {"meta", "link", "img", "input", "br", "hr", "rect", "line", "path", "circle"}
seen = 0


def number(text):
    return float(text.replace(",", ""))


def same(shown, value, scale=1):
    """The number shown, times scale, is the value, rounded."""
    global seen
    m = re.fullmatch(r"[+-]?[\d,]+(?:\.(\d+))?", shown)
    assert m, "'%s' is no number" % shown
    digits = len(m[1] or "")
    assert abs(number(shown) * scale - value) <= 0.5000001 * abs(scale) * 10 ** -digits, (shown, value, scale)
    seen += 1


def close(shown, value):
    """As many digits as %g gives."""
    global seen
    assert abs(number(shown) - value) <= 5.1e-4 * abs(value), (shown, value)
    seen += 1


def of(answer, key):
    for part in key.split("."):
        answer = answer[part]
    return answer


class Page(html.parser.HTMLParser):
    """Tables by caption: rows of cells, each text and attributes; lists, notes, drawings."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.items, self.paragraphs, self.headings, self.ids = [], {}, [], [], [], set()
        self.images, self.links, self.head, self.script = [], [], {}, ""
        self.rows = self.cell = self.caption = None
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        assert len(a) == len(attributes), (tag, attributes)
        if "id" in a:
            assert a["id"] not in self.ids, a["id"]
            self.ids.add(a["id"])
        if tag == "a" and a["href"].startswith("#"):
            self.links.append(a["href"][1:])
        if tag == "img":
            self.images.append(a)
        if tag == "table":
            self.rows, self.caption = [], ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th", "li", "p", "caption", "h1", "h3"):
            self.cell = ""
            self.attributes = a
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, "</%s> ends %s, line %d" % (tag, self.open[-1:], self.getpos()[0])
        self.open.pop()
        if tag in ("td", "th"):
            self.rows[-1].append((self.cell.strip(), self.attributes))
        elif tag == "caption":
            self.caption = self.cell
        elif tag == "li":
            self.items.append(self.cell)
        elif tag in ("p", "h3"):
            self.paragraphs.append(self.cell)
            if tag == "h3":
                self.headings.append(self.cell)
        elif tag == "h1":
            self.title = self.cell
        elif tag == "table" and self.caption:
            assert self.caption not in self.tables, self.caption
            for row in self.rows:
                wide = sum(int(a.get("colspan", 1)) for _, a in row)
                assert wide == len(self.rows[0]), (self.caption, row)
            self.tables[self.caption] = self.rows

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.script += data
        elif self.open and self.open[-1] == "title":
            self.head["title"] = data
        elif self.open and self.open[-1] == "small":
            self.cell += "|" + data
        elif self.cell is not None:
            self.cell += data

    def table(self, caption):
        return [[text for text, _ in row] for row in self.tables[caption]]


RANGES = {"USD per million tokens": ("usd_per_million_tokens", 1), "tokens/s": ("tokens_per_s", 1),
          "USD per GPU-hour": ("usd_per_gpu_hour", 1), "step, s": ("step_s", 1),
          "energy per token, J": ("joules_per_token", 1), "power at full load, MW": ("facility_provisioned_w", 1e6),
          "MW at full load, PUE included": ("facility_provisioned_w", 1e6)}


def labels(rows, answers, start=1):
    assert rows[0][start:] == [a["name"] for a in answers], rows[0]


def short(page, answers, bills):
    (caption,) = [c for c in page.tables if c.startswith("Likely values")]
    rows = page.table(caption)
    labels(rows, answers)
    for name, *cells in rows[1:]:
        for cell, a, bill in zip(cells, answers, bills, strict=True):
            m = re.fullmatch(r"(\S+)\|(\S+) to (\S+)", cell)
            if name.startswith("capital"):
                value, pair, scale = a["cost"]["capex_usd"], (bill["low_usd"], bill["high_usd"]), 1e6
                assert all(len(re.sub(r"\D", "", x).lstrip("0")) >= 3 for x in m.groups()), cell  # of a few GPUs, too
            else:
                key, scale = RANGES[name]
                value, pair = a.get(key, a["cost"].get(key)), a["interval"][key]
            for shown, is_ in zip(m.groups(), (value, *pair), strict=True):
                same(shown, is_, scale)


def results(page, answers):
    rows = page.tables["All results"]
    labels(page.table("All results"), answers)
    above = None
    for row in rows[1:]:
        name = row[0][0]
        if name == "P10 to P90":
            for (text, _), a in zip(row[1:], answers):
                key, scale = RANGES[above]
                for shown, is_ in zip(text.split(" to "), a["interval"][key], strict=True):
                    same(shown, is_, scale)
        elif name == "fits in memory":
            assert [t for t, _ in row[1:]] == ["yes" if a["fits"] else "no" for a in answers]
        else:
            above = name
    keyed = 0
    for table in page.tables.values():
        for row in table:
            for i, (text, attributes) in enumerate(row[1:]):
                if "data-key" in attributes:
                    assert attributes["data-scenario"] == str(i)
                    same(text, of(answers[i], attributes["data-key"]), 1 / float(attributes["data-scale"]))
                    keyed += 1
    assert keyed >= 20 * len(answers), keyed
    for a in answers:
        assert any(p == a["name"] + ": " + a["bottleneck"] for p in page.paragraphs), a["bottleneck"]


def parts_add_up(page, answers):
    rows = page.table("They add up to the step")
    labels(rows, answers)
    for i, a in enumerate(answers):
        total = 0
        for row in rows[1:]:
            total += number(row[1 + i]) * {"s": 1, "ms": 1e-3, "us": 1e-6}[row[0].rsplit(", ", 1)[1]]
        assert abs(total - a["step_s"]) < 3e-3, (total, a["step_s"])


def items(page, answers):
    units = {"s": 1, "ms": 1e-3, "us": 1e-6}
    for a in answers:
        rows = page.table(a["name"])
        for (name, count, time, share), item in zip(rows[1:], a["items"]):
            assert name == item["name"] + (" (extrapolated)" if item["extrapolated"] else ""), name
            same(count, item["count"])
            shown, unit = time.split()
            same(shown, item["time_s"], units[unit])
            assert bool(share) == (not item["communication"]), name
            if share:
                same(share.split()[0], item["roofline_s"] / item["time_s"], 0.01)


def memory(page, answers):
    rows = page.table("GB per GPU, of the fullest")
    labels(rows, answers)
    for name, *cells in rows[1:]:
        for cell, a in zip(cells, answers, strict=True):
            if name != "of":
                same(cell, a["memory_bytes_per_gpu"]["total" if name == "all" else name], 1e9)
            else:
                assert (number(cell) * 1e9 >= a["memory_bytes_per_gpu"]["total"]) == a["fits"]


def stages(page, answers):
    staged = [a for a in answers if len(a["stages"]) > 1]
    captions = [c for c in page.tables if c.startswith("Stages of the pipeline")]
    for caption, a in zip(captions, staged, strict=True):
        for row, stage in zip(page.table(caption)[1:], a["stages"], strict=True):
            assert row[0] == str(stage["stage"])
            same(row[1], stage["memory_bytes_per_gpu"]["total"], 1e9)
            for cell, key in zip(row[2:], ("compute", "exposed_communication", "bubble", "host", "optimizer"), strict=True):
                assert abs(float(cell) - stage["breakdown_s"][key]) <= 1e-3 * abs(stage["breakdown_s"][key]) + 1e-12


def trust(page, answers):
    (caption,) = [c for c in page.tables if c.startswith("Share of the capital")]
    rows = page.table(caption)
    labels(rows, answers)
    for name, *cells in rows[1:]:
        for cell, a in zip(cells, answers, strict=True):
            same(cell.split()[0], a["cost"][name + "_frac"], 0.01)
    for a in answers:
        rows = page.table(a["name"] + ": what was measured, and how far the prediction of it was off")
        for (run, error, distance, there, source), r in zip(rows[1:], a["nearest_runs"], strict=True):
            assert (run, there, source) == (r["id"], r["differs"], r["source"])
            same(error.split()[0], r["error_frac"], 0.01)
            same(distance, r["distance"])
        c = a["cost"]
        said = re.compile(r"Goodput (\S+) %: checkpoints (\S+) %, progress that is lost (\S+) %, recovery (\S+) %.*; a checkpoint every (\d+) min\.")
        goodput = [m for p in page.paragraphs if (m := said.fullmatch(p))]
        assert len(goodput) == len(answers)
        m = goodput[answers.index(a)]
        for shown, key in zip(m.groups(), ("goodput", "checkpoint_frac", "wasted_progress_frac", "recovery_frac")):
            same(shown, c[key], 0.01)
        same(m[5], c["checkpoint_interval_s"], 60)


def bills_of(page, answers, bills):
    for a, bill in zip(answers, bills, strict=True):
        rows = page.table("%s, prices of book %s" % (a["name"], a["prices"]["book"]))
        *lines, total = rows[1:]
        for line, item in zip(lines, bill["items"], strict=True):
            assert line[:2] == [item["what"], item["item"]] and line[8] == item["source"], line
            assert line[7] == item["kind"] + " " + item["date"], line
            for shown, key in zip(line[2:7], ("count", "unit_usd", "total_usd", "low_usd", "high_usd")):
                same(shown, item[key])
        for shown, key in zip(total[4:7], ("total_usd", "low_usd", "high_usd")):
            same(shown, bill[key])


FORMS = ("annuity", "levelised", "straight_line", "warehouse", "semianalysis")


def money(page, answers, flows):
    rows = page.table("Paid over the horizon, USD")
    labels(rows, answers)
    for i, (a, path) in enumerate(zip(answers, flows, strict=True)):
        paid = {}
        for line in csv.DictReader(open(path)):
            paid[line["ServiceName"]] = paid.get(line["ServiceName"], 0) + float(line["BilledCost"])
        for row in rows[1:-1]:
            assert row[1 + i] != "-0" or paid.get(row[0], 0) < 0, row
            if row[1 + i] != "-":
                # of cents, each rounded
                assert abs(number(row[1 + i]) - paid.pop(row[0], 0)) < 1, row
        assert not paid, paid
        assert rows[-1][0].startswith("net present value")
        same(rows[-1][1 + i], a["finance"]["npv_usd"])
    rows = page.table("An hour of a GPU, USD, in the forms in which others state it")
    labels(rows, answers)
    for row, form in zip(rows[1:-1], FORMS, strict=True):
        for cell, a in zip(row[1:], answers, strict=True):
            same(cell, a["finance"][form + "_usd_per_gpu_hour"])
    for cell, f in zip(rows[-1][1:], (a["finance"] for a in answers), strict=True):
        rent, used = f.get("rent_usd_per_gpu_hour"), f.get("break_even_utilization_frac")
        assert cell == ("-" if not rent else "%.1f %% of %.2f USD/h" % (100 * used, rent) if used < 1 else "never"), (cell, f)


def differences(page, answer, answers):
    rows = page.table("Keys whose values differ")
    labels(rows, answers)
    assert [r[0] for r in rows[1:]] == [d["key"] for d in answer["differs"]]
    for row, d in zip(rows[1:], answer["differs"]):
        assert row[1:] == d["values"], row
    (caption,) = [c for c in page.tables if c.startswith("USD per million tokens against the first")]
    rows = page.table(caption)
    labels(rows, answers)
    for i, other in enumerate(answer["cost_differences"]):
        for row, part in zip(rows[1:], other["parts"], strict=True):
            assert row[0] == part["part"] and row[1] == "-"
            same(row[2 + i], part["usd_per_million_tokens"])
    v, crossed = answer["verdict"], []
    assert v["sentence"] in open(sys.argv[1]).read().replace("&#39;", "'")
    for c in v["crossovers"]:
        (item,) = [i for i in page.items if i.startswith(c["what"] + ": ")]
        m = re.fullmatch(re.escape(c["what"]) + r": (\S+) (.+) \(now (\S+), ([+-]\d+) %\)", item)
        assert m and m[2] == c["unit"], item
        close(m[1], c["value"])
        close(m[3], c["now"])
        same(m[4], c["value"] / c["now"] - 1, 0.01)
        crossed.append(c["what"])
    assert crossed


def figures(page, answers):
    for a in {a["prices"]["book"]: a for a in answers}.values():
        (caption,) = [c for c in page.tables if c.startswith("Book %s beside" % a["prices"]["book"])]
        rows = page.table(caption)
        for (name, *numbers, source), f in zip(rows[1:], a["prices"]["figures"], strict=True):
            assert name == f["figure"] + (", " + f["unit"] if f["unit"] else ""), name
            assert source.startswith(f["kind"]) and f["source"] in source and f["date"] in source, source
            for shown, key in zip(numbers, ("value", "low", "high"), strict=True):
                close(shown, f[key])
    for a in answers:
        for part in ("gpu", "stack", "ccl"):
            kind, _, rest = a["provenance"][part].partition(": ")
            words = rest.rpartition(", ")[0] or rest
            assert any(kind in i and words in i for i in page.items), a["provenance"][part]


def sources(page, answers):
    """Six lines on each scenario: whose its figures are, and what nobody gave."""
    lines = page.items[[i.startswith("GPU profile: ") for i in page.items].index(True):]
    assert len(lines) == 6 * len(answers)
    for a, (*_, prices, kernels, assumed) in zip(answers, [lines[i:i + 6] for i in range(0, len(lines), 6)]):
        p, known = a["prices"], a["scenario"]
        said = "Prices: book %s (%s, of %s), dated %s to %s; " % tuple(p[k] for k in ("book", "buyer", "date", "first_date", "last_date"))
        assert prices.startswith(said), (prices, said)
        shares = re.search(r"; (\d+) % of the capital is at quoted, (\d+) % at derived, (\d+) % at guessed prices\.", prices).groups()
        for shown, kind in zip(shares, ("quoted", "derived", "guessed"), strict=True):
            same(shown, p[kind + "_frac"], 0.01)
        for taken in p["taken_from"]:
            assert re.search(r"From %s: [^.]*\b%s\b" % (taken["book"], re.escape(taken["item"])), prices), taken
        same(re.fullmatch(r"(\d+) % of the kernel time is for shapes far from anything measured\.", kernels)[1], a["extrapolated_frac"], 0.01)
        told = assumed.removeprefix("assumed, as the scenario does not give them: ").split(", ")
        assert [t.split(" ")[0] for t in told] == a["assumed"], told
        for key, _, value in (t.partition(" ") for t in told):
            text = str(of(known, key))
            assert value == (text.lower() if text in ("True", "False") else text), (key, value, text)
        assert "Fabric %s; at most eight of a kind are drawn." % known["cluster"]["fabric"] in page.paragraphs, known["cluster"]


def drawings(page, text, bills):
    """Pictures are XML that says what is drawn; of a network, switches and what joins them."""
    for image in page.images:
        kind, _, data = image["src"].partition(",")
        assert kind == "data:image/svg+xml;base64" and image["alt"]
        xml.dom.minidom.parseString(base64.b64decode(data))
    networks = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(networks) == len(bills)
    for svg, bill in zip(networks, bills):
        drawn, f = xml.dom.minidom.parseString(svg), bill["fabric"]
        height = {}
        for r in drawn.getElementsByTagName("rect"):
            height.setdefault(float(r.getAttribute("y")), []).append(float(r.getAttribute("x")))
        rows = [height[y] for y in sorted(height)]
        words = " ".join(t.firstChild.data for t in drawn.getElementsByTagName("text"))
        tiers = [n for n in ("core", "spine", "leaf") if f[n]]
        for tier, row in zip(tiers, rows):
            assert len(row) == min(8, f[tier]), (tier, row)
            assert "%d %s switch" % (f[tier], tier) in words, words
            assert len({b - a for a, b in zip(row, row[1:])}) <= 1
        assert str(f["nodes"]) in words, words
        for line in drawn.getElementsByTagName("line"):
            x, y = ([float(line.getAttribute(k + i)) for i in "12"] for k in "xy")
            assert all(0 < v < 640 for v in x) and y[0] < y[1] <= 200, line.toxml()


def common(path, page):
    """What is the same in all, and the command that made the page, as the command's text has them."""
    words = " ".join(re.search(r"The same in all:\n((?:  .*\n)+)", open(path).read())[1].split())
    settings, version, command = re.fullmatch(r"(.*), foretoken (\S+) (foretoken compare .*)", words).groups()
    (note,) = [p for p in page.paragraphs if "B parameters; foretoken " in p]
    shown, parameters, made = re.fullmatch(r"(.*); (\S+) B parameters; foretoken (.*)", note).groups()
    assert made == version + ": " + command and " (%s B parameters)" % parameters in settings, note
    assert shown.split("; ") == re.sub(r" \([^)]*\)", "", settings).split(", "), (shown, settings)


def text_of(path, page, answer, answers):
    """The command's own tables."""
    blocks = [b.split("\n") for b in open(path).read().split("\n\n")]
    cells = {b[0].split("  ")[0]: [re.split(r"  +", line.strip()) for line in b if line.strip()] for b in blocks}
    on_page = {r[0]: r[1:] for r in page.table("All results") + page.table("They add up to the step")}
    above, checked = None, 0
    for row in cells["result"][1:]:
        if row[0].startswith("P"):
            key, scale = RANGES[above]
            for shown, a in zip(row[1:], answers, strict=True):
                same(shown, a["interval"][key][row[0].startswith("P90")], scale)
        else:
            above = row[0]
            assert row[1:] == on_page[row[0]], row
        checked += 1
    assert checked > 30
    why = [b for b in blocks if b[0].startswith("Why") and "GPU-nanoseconds" in b[0]]
    shown = [re.split(r"  +", line.strip()) for b in why for line in b[2:]]
    for row, d in zip(shown, answer["differences"], strict=True):
        assert row[0] == d["what"]
        for cell, value in zip(row[1:], (d["first_ns_per_token"], d["this_ns_per_token"],
                                         d["this_ns_per_token"] - d["first_ns_per_token"]), strict=True):
            same(cell, value)
    *moves, whose = [b for b in blocks if b[0].startswith("What moves")][0]
    names = re.fullmatch(r"first: (.+); second: (.+)", whose).groups()
    both = [[a["name"] for a in answers].index(n) for n in names]
    for line, cause in zip(moves[2:], answer["verdict"]["causes"]):
        name, *numbers = re.split(r"  +", line.strip())
        assert name == cause["cause"]
        want = [v for i in both for v in (cause["p10"][i], cause["p90"][i])]
        for cell, value in zip(numbers, want, strict=True):
            close(cell, value)


def residual(d):
    """What is left at the end, as a share of the purchase."""
    by_year, years = d["residual_by_year"], d["years"]
    if not by_year:
        return d["residual_frac"]
    if years >= len(by_year):
        return by_year[-1]
    points = [1] + by_year
    whole = int(years)
    return points[whole] + (points[whole + 1] - points[whole]) * (years - whole)


def deals(text, answers):
    """What the sliders begin with: from it the closed form of docs/money.md gives the dollars of the JSON."""
    told = json.loads(re.search(r'<script type="application/json" id="deals">(.*?)</script>', text, re.S)[1])
    for d, a in zip(told, answers, strict=True):
        c, s, hours = a["cost"], a["scenario"]["cost"], d["gpus"] * 8760
        rate, years, used = d["cost_of_capital_frac"], d["years"], d["utilization_frac"]
        recovery = rate / (1 - (1 + rate) ** -years) if rate else 1 / years
        if d["rent_usd_per_gpu_hour"]:
            owed = max(0, (1 if d["take_or_pay"] else used) - d["prepaid_frac"])
            hour = d["rent_usd_per_gpu_hour"] * (owed + d["prepaid_frac"] * years * recovery)
            hour += d["staff_and_licences_usd_per_year"] / hours
        else:
            capital = d["capital_usd"] * (1 + d["extra_frac"] - residual(d) * (1 + rate) ** -years) * recovery
            kw = used * d["used_kw"] + (1 - used) * d["idle_kw"]
            hour = (capital + d["capital_usd"] * d["upkeep_frac"] + d["colocation_usd_per_year"]
                    + kw * 8760 * d["electricity_usd_per_kwh"] + d["staff_and_licences_usd_per_year"]) / hours
            assert abs(d["capital_usd"] / c["capex_usd"] - 1) < 1e-9, d
            assert abs(d["used_kw"] * 1e3 / c["facility_power_w"] - 1) < 1e-9, d
            assert abs(d["colocation_usd_per_year"] / hours / c["colocation_usd_per_gpu_hour"] - 1) < 1e-9, d
        assert abs(hour / c["usd_per_gpu_hour"] - 1) < 1e-9 and d["usd_per_gpu_hour"] == c["usd_per_gpu_hour"], (hour, c)
        assert d["name"] == a["name"] and d["gpus"] == a["scenario"]["cluster"]["gpus"]
        assert d["goodput"] == c["goodput"] and d["years"] == float(s["horizon"].split()[0]), (d, s)
        tokens = hour * 1e6 / (3600 * d["tokens_per_s_per_gpu"] * used * d["goodput"])
        assert abs(tokens / c["usd_per_million_tokens"] - 1) < 1e-9, tokens


def fleets(page, answers):
    told = {c: rows for c, rows in page.tables.items() if c.startswith("Fleets, as ")}
    assert len(told) == sum("run" in a for a in answers), list(told)
    for a in answers:
        if "run" not in a:
            continue
        (first, *rows) = page.table("Fleets, as %s; ranges are of P50 to P90" % a["name"])
        assert first == ["fleet", "GPUs", "T tokens", "days", "million USD", "MW", "MWh", "failures", "beyond"], first
        for row, f in zip(rows, [a["run"]] + a["run"]["fleets"], strict=True):
            assert row[0] == f["for"], (row, f["for"])
            if "none" in f:
                assert row[1] == "none: " + f["none"], (row, f)
                continue
            same(row[1], f["gpus"])
            close(row[2], f["tokens"] * 1e-12)
            for cell, of_it, scale in ((row[3], f["days"], 1), (row[4], f["usd"], 1e6)):
                for shown, value in zip(cell.split(" to "), (of_it["p50"], of_it["p90"]), strict=True):
                    same(shown, value, scale)
            for shown, value in zip(row[5].split(" to "), (f["megawatts"], f["megawatts_p90"]), strict=True):
                same(shown, value)
            same(row[6], f["energy_mwh"])
            same(row[7], f["failures"])
            assert row[8] == ", ".join(f["beyond"]), (row, f)


def main():
    path, json_path, text_path, bill_paths, flow_paths = sys.argv[1:]
    text, answer = open(path).read(), json.load(open(json_path))
    answers = answer["scenarios"]
    bills = [json.load(open(p)) for p in bill_paths.split(",")]
    page = Page(text)
    assert set(page.links) <= page.ids, page.links
    assert all(a["name"] in text for a in answers)
    assert any(json.loads(s) == answers for s in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>',
                                                            text, re.S))
    assert page.head["title"] == ", ".join(a["name"] for a in answers) + ": foretoken report", page.head
    model = answers[0]["scenario"]["model"]
    model = model if isinstance(model, str) else model["name"]
    assert page.title == model + ": what it trains at, why, and what it costs", page.title
    names = [a["name"] for a in answers]
    assert len(names) < 2 or set(names) <= set(page.headings) and all(page.headings), page.headings
    deals(text, answers)
    short(page, answers, bills)
    results(page, answers)
    parts_add_up(page, answers)
    items(page, answers)
    memory(page, answers)
    stages(page, answers)
    fleets(page, answers)
    trust(page, answers)
    bills_of(page, answers, bills)
    money(page, answers, flow_paths.split(","))
    differences(page, answer, answers)
    figures(page, answers)
    sources(page, answers)
    drawings(page, text, bills)
    text_of(text_path, page, answer, answers)
    common(text_path, page)
    print(seen, "numbers")
    assert seen > 400, seen


main()
