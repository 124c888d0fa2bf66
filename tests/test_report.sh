#!/bin/sh
# tests/test_report.sh - the HTML report: whole, true to the JSON, and it renders
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml b=examples/01-first-answer/mi300x.yaml
page=$tmp/report/index.html

ok "compare writes a report" $f compare $a $b --report "$tmp/report"
ok "the page is there" test -s "$page"
ok "nothing half-written is left beside it" sh -c "! ls $tmp/report | grep -q part"
ok "the verdict is its first sentence" sh -c "grep -q '<p class=\"verdict\">.* with probability 0\\.[0-9][0-9]: ' $page"
ok "every number of the first screen has a range" sh -c "sed -n '/class=\"numbers\"/,/<.div>/p' $page >$tmp/five && [ \$(grep -o '<td>' $tmp/five | wc -l) = 10 ] && [ \$(grep -o '<small>[0-9.,]* to [0-9.,]*</small>' $tmp/five | wc -l) = 10 ]"
ok "what was assumed is told with its value" grep -q 'cost.horizon 4 y, cost.cost_of_capital_frac 0.08,' "$page"
ok "and what the book says beside prices, once, with its source" sh -c "[ \$(grep -o '>failover, s<' $page | wc -l) = 1 ] && grep -A1 '>failover, s<' $page | grep -q '<td>60</td><td>10</td><td>300</td>.*assumed'"
items() { # each scenario's first item of the JSON stands under the heading
	$f compare $a $b --json | python3 -c 'import json, sys
page = open(sys.argv[1], encoding="utf-8").read()
head, under = page.split("<h3>Largest items of a rank\x27s step</h3>")
for s in json.load(sys.stdin)["scenarios"]:
    name = s["items"][0]["name"]
    assert name in under.split("<h3>")[0], name' "$page"
}
ok "the largest items of a step have a heading" items
ok "simulate writes one, too" sh -c "$f simulate $a --report $tmp/one && test -s $tmp/one/index.html"
charts() { # FOLDER N: so many charts of memory, and nothing is said to be missing
	[ "$(grep -o 'alt="Memory of the fullest rank' "$1/index.html" | wc -l)" = "$2" ] && ! grep 'is not drawn' "$1/index.html"
}
ok "each scenario's memory is drawn" charts "$tmp/report" 2
beside() { "$f" simulate $a --beside $a --report "$tmp/beside" && charts "$tmp/beside" 1; }
ok "with a job beside it, too" beside
drawn() { # beside a timeline of another form
	"$f" simulate $a --timeline "$tmp/t.json" --report "$tmp/drawn" && charts "$tmp/drawn" 1 && grep -q traceEvents "$tmp/t.json"
}
ok "and with a timeline" drawn
alike() { "$f" compare $a $b --at money --report "$tmp/alike" && charts "$tmp/alike" 2; }
ok "and at another size" alike
missing() {
	printf '%s\n' "model: llama3-8b" "cluster: {gpu: h100-sxm, gpus: 8}" "training: {sequence_length: 2048, global_batch_size: 1600, micro_batch_size: 1, sharding: ddp, parallel: {tp: 8}}" >"$tmp/large.yaml"
	"$f" simulate "$tmp/large.yaml" --report "$tmp/large" &&
		grep -q 'its memory over a step is not drawn: a step of [0-9]* operations is too much to draw, at most 2000000' "$tmp/large/index.html"
}
ok "where it is not drawn, the page says why" missing
ok "a report that cannot be written is refused" sh -c "$one $f simulate $a --report /proc/none/report 2>$tmp/e && grep -q 'error' $tmp/e"

# Resources and cells by an HTML parser, not by patterns.
cat >"$tmp/check.py" <<'P'
import base64, json, math, re, sys
from html.parser import HTMLParser

class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.loads, self.cells, self.styles, self.answer = [], [], [], None
        self.count, self.alts, self.labels = {}, [], []
        self.cell, self.within = None, None
    def handle_starttag(self, tag, attrs):
        at = dict(attrs)
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag == "img":
            self.alts.append(at.get("alt", ""))
        if tag in ("input", "label"):
            self.labels.append(at.get("id") or at.get("for"))
        for k in ("src", "href", "srcset", "data", "poster", "xlink:href", "action"):
            if k in at and not (tag == "a" and k == "href"):
                self.loads.append(at[k])
        if "style" in at:
            self.styles.append(at["style"])
        if tag == "td" and "data-key" in at:
            self.cell = [at["data-key"], int(at["data-scenario"]), "", float(at["data-scale"])]
        self.within = tag
        if tag == "script":
            self.script = at
    def handle_endtag(self, tag):
        if tag == "td" and self.cell:
            self.cells.append(self.cell)
            self.cell = None
        self.within = None
    def handle_data(self, text):
        if self.cell:
            self.cell[2] += text
        if self.within == "style":
            self.styles.append(text)
        if self.within == "script" and self.script.get("id") == "answer":
            self.answer = (self.answer or "") + text

def read(path):
    page = Page()
    page.feed(open(path, encoding="utf-8").read())
    return page

def outside(page):
    bad = [u for u in page.loads if not (u.startswith("data:") or u.startswith("#"))]
    for u in page.loads: # what a picture inside the page would load
        if u.startswith("data:image/svg+xml;base64,"):
            svg = base64.b64decode(u.split(",", 1)[1]).decode()
            bad += re.findall(r'(?:href|src)\s*=\s*["\'](?!#|data:)[^"\']*', svg)
            bad += re.findall(r'url\((?!["\']?#)[^)]*\)|@import[^;]*', svg)
    for s in page.styles:
        bad += re.findall(r'url\((?!["\']?(?:#|data:))[^)]*\)|@import[^;]*', s)
    return bad

def value(cell, scale):
    """The number of a cell in the JSON's unit, and half its last printed digit."""
    m = re.fullmatch(r"-?\d{1,3}(,\d{3})*(\.\d+)?", cell.strip())
    assert m, "no number in '%s'" % cell
    return float(cell.replace(",", "")) / scale, 0.5 * 10.0 ** -len((m[2] or ".")[1:]) / scale

def get(o, key):
    for k in key.split("."):
        o = o[k]
    return o

def agree(page, fresh):
    scenarios = json.loads(page.answer) # the objects of `simulate`, in order
    assert scenarios == fresh.get("scenarios", [fresh]), "the JSON of the page is another"
    assert len(page.cells) >= 9 * len(scenarios), "only %d cells" % len(page.cells)
    for key, i, text, scale in page.cells:
        shown, half = value(text, scale)
        true = get(scenarios[i], key)
        assert math.isclose(shown, true, rel_tol=5e-3, abs_tol=half * 1.001), (key, i, text, true)

def readable(page):
    """By a screen reader: one main part, tables with heads and captions, pictures that say what they show."""
    n = page.count
    assert n["main"] == 1 and n["h1"] == 1, n
    assert n["thead"] == n["table"] and n["caption"] >= n["table"] - 1, n
    assert page.alts and all(len(a) > 30 for a in page.alts), page.alts
    assert all(page.labels.count(i) == 2 for i in page.labels), page.labels

what, path = sys.argv[1:3]
page = read(path) if what != "screenshot" else None
if what == "outside":
    bad = outside(page)
    assert page.loads and not bad, bad
elif what == "readable":
    readable(page)
elif what == "agree":
    agree(page, json.load(open(sys.argv[3])))
elif what == "dom":
    drawn = read(sys.argv[3])
    assert drawn.cells == page.cells and drawn.answer == page.answer, "the browser's page differs"
elif what == "screenshot": # a PNG of some size that is not one colour
    png = open(path, "rb").read()
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and len(png) > 20000, len(png)
P
if command -v python3 >/dev/null; then
	ok "the page loads nothing from outside" python3 "$tmp/check.py" outside "$page"
	ok "a screen reader can read it" python3 "$tmp/check.py" readable "$page"
	$f compare $a $b --json >"$tmp/answer.json"
	ok "each cell shows a number of the JSON" python3 "$tmp/check.py" agree "$page" "$tmp/answer.json"
	$f simulate $a --json >"$tmp/answer1.json"
	ok "so does the report of one scenario" python3 "$tmp/check.py" agree "$tmp/one/index.html" "$tmp/answer1.json"
else
	skip "the page loads nothing from outside" "no python3"
	skip "a screen reader can read it" "no python3"
	skip "each cell shows a number of the JSON" "no python3"
	skip "so does the report of one scenario" "no python3"
fi

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
browse() { # WIDTH ARGUMENT...: the page in a browser; what it logs to $tmp/log
	w=$1
	shift
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--disable-dev-shm-usage --hide-scrollbars --user-data-dir="$(mktemp -d -p "$tmp")" \
		--window-size="$w",3200 --enable-logging=stderr "$@" "file://$page" 2>"$tmp/log"
}
quiet() { ! grep -E 'CONSOLE|Uncaught|ERR_' "$tmp/log" >&2; }
if [ -z "$browser" ] || ! command -v python3 >/dev/null; then
	for t in "the browser reads it all" "no console message" "it draws at 1200 px" "it draws at 390 px" \
		"what does not fit is never the cheapest"; do
		skip "$t" "no chromium"
	done
else
	browse 1200 --dump-dom >"$tmp/dom.html"
	ok "the browser reads it all" python3 "$tmp/check.py" dom "$page" "$tmp/dom.html"
	ok "no console message" quiet
	for w in 1200 390; do
		browse $w --screenshot="$tmp/$w.png" >/dev/null
		ok "it draws at $w px" python3 "$tmp/check.py" screenshot "$tmp/$w.png"
		[ -z "${KEEP_SCREENSHOTS:-}" ] || cp "$tmp/$w.png" "$KEEP_SCREENSHOTS/"
	done
	# 8 MI300X hold no 70B without shards, and would be the cheaper ones
	for side in "nofit mi300x-8x mi300x 1 1 primus-megatron-rocm7" "fits hgx-h100 h100-sxm 4 4 nemo-24.11"; do
		set -- $side
		echo "{title: $1, model: llama3-70b, cluster: {node: $2, gpu: $3, gpus: 64}, stack: $6, training: {sequence_length: 8192," \
			"global_batch_size: 128, parallel: {tp: $4, pp: $5}, sharding: zero1}}" >"$tmp/$1.yaml"
	done
	$f compare "$tmp/nofit.yaml" "$tmp/fits.yaml" --report "$tmp/unfit" >/dev/null 2>&1
	page=$tmp/unfit/index.html
	browse 1200 --dump-dom >"$tmp/unfit.html"
	ok "what does not fit is never the cheapest" grep -q 'id="moved-verdict"[^>]*>fits alone has a plan that fits' "$tmp/unfit.html"
fi
finish
