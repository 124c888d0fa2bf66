#!/bin/sh
# tests/test_timeline_svg.sh - charts of a simulated step: passes of a pipeline, and memory
. "$(dirname "$0")/tap.sh"
# the Gantt chart: well formed, one box a pass, boxes of a row one after another, the same bytes
pipeline='--set cluster.gpus=64 --set training.global_batch_size=32 --set training.parallel.tp=8 --set training.parallel.pp=8 --set training.parallel.vpp=1'
chart() { # FILE SETTING...
	file=$1
	shift
	$f simulate examples/01-first-answer/h100.yaml $pipeline --set 'training.overlap={}' "$@" --timeline "$file"
}
boxes() { # FILE STAGES PASSES...: as many rows, as many numbered boxes in each, or in the first, second ...; FLUSHES more
	python3 - "$@" <<'P'
import os, sys, xml.etree.ElementTree as T
root = T.parse(sys.argv[1]).getroot()
stages, each = int(sys.argv[2]), [int(n) for n in sys.argv[3:]]
ns = "{http://www.w3.org/2000/svg}"
rows = {}
for r in root.iter(ns + "rect"):
    title = r.find(ns + "title")
    if title is None:
        continue
    x, w = float(r.get("x")), float(r.get("width"))
    assert w >= 0 and x >= 0 and x + w <= float(root.get("width")), title.text
    rows.setdefault(float(r.get("y")), []).append((x, x + w, title.text))
assert len(rows) == stages, rows.keys()
for i, y in enumerate(sorted(rows)):
    row, passes = rows[y], each[min(i, len(each) - 1)]
    numbered = [t for _, _, t in row if "of micro-batch" in t]
    flushes = [t for _, _, t in row if "flush of the pipeline behind micro-batch" in t]
    assert len(flushes) == len(set(flushes)) == int(os.environ.get("FLUSHES", 0)), flushes
    assert len(numbered) == len(set(t.split(",")[0] + t.split(",")[1] for t in numbered)) == passes, len(numbered)
    assert len(row) == passes + len(flushes) + 1, len(row)  # and the optimizer
    for a, b in zip(row, row[1:]):
        assert b[0] >= a[1] - 0.02, (a, b)
# a number stands in the middle of its box, where that is wide enough
box, numbers = None, 0
for e in root.iter():
    title = e.find(ns + "title") if e.tag == ns + "rect" else None
    if title is not None:
        box = e, title.text
    elif e.tag == ns + "text" and e.get("class") == "n":
        x, y, w, h = (float(box[0].get(k)) for k in ("x", "y", "width", "height"))
        assert "of micro-batch %s," % e.text in box[1], (box[1], e.text)
        assert abs(float(e.get("x")) - (x + w / 2)) < 0.02 and abs(float(e.get("y")) - 3 - (y + h / 2)) < 1, box[1]
        numbers += 1
assert numbers
words = [t.text for t in root.iter(ns + "text")]
assert sum(w.startswith("bubble") for w in words) == stages
assert any(w.startswith("Pipeline bubble: ") for w in words) and any("time of the step in " in w for w in words)
P
}
svg_is_written() { chart "$tmp/a.svg" && boxes "$tmp/a.svg" 8 64; }
ok "a Gantt chart of 8 stages and 32 micro-batches" svg_is_written
svg_again() { chart "$tmp/b.svg" && cmp "$tmp/a.svg" "$tmp/b.svg"; }
ok "the same bytes again" svg_again
svg_chunks() { chart "$tmp/c.svg" --set training.parallel.vpp=2 && boxes "$tmp/c.svg" 8 128 && grep -q "paler: later chunks" "$tmp/c.svg"; }
ok "with two chunks a stage" svg_chunks
# autograd has nothing to cut in the first chunk, whose input asks for no gradient: its 32 passes stay whole
svg_split() {
	chart "$tmp/z.svg" --set stack=torch-2.11-eager --set training.schedule=zero-bubble && FLUSHES=1 boxes "$tmp/z.svg" 8 64 96 &&
		grep -q "gradients of weights" "$tmp/z.svg" && ! grep -q ">backward<" "$tmp/z.svg"
}
ok "with backwards cut in two" svg_split
svg_vee() { chart "$tmp/v.svg" --set stack=torch-2.11-eager --set training.schedule=zbv --set training.parallel.vpp=2 && FLUSHES=1 boxes "$tmp/v.svg" 8 160 192; }
ok "and as a V" svg_vee
# each stage of 8: 2 x 32 forwards and backwards, and the weights of 2 x 8 - 1 - stage that are split, 8 of stage 0's
# of the first chunk
svg_dual() {
	chart "$tmp/d.svg" --set stack=torch-2.11-eager --set training.schedule=dualpipev --set training.parallel.vpp=2 &&
		FLUSHES=1 boxes "$tmp/d.svg" 8 135 142 141 140 139 138 137 136 && grep -q ">whole backward<" "$tmp/d.svg"
}
ok "and as DualPipeV" svg_dual
svg_flushes() {
	chart "$tmp/w.svg" --set stack=torch-2.11-eager --set training.pipeline_flushes=4 && FLUSHES=4 boxes "$tmp/w.svg" 8 64 &&
		grep -q ">flush<" "$tmp/w.svg"
}
ok "a pipeline drained four times" svg_flushes
svg_beside() { chart "$tmp/s.svg" --beside examples/01-first-answer/h100.yaml && boxes "$tmp/s.svg" 8 64; }
ok "a job beside it is not drawn" svg_beside
svg_named() {
	sed "s/^name:.*/name: '<b>\&amp;\"'/" examples/01-first-answer/h100.yaml >"$tmp/n.yaml"
	grep -q '^name:' "$tmp/n.yaml" || echo "name: '<b>&amp;\"'" >>"$tmp/n.yaml"
	$f simulate "$tmp/n.yaml" --set training.global_batch_size=256 --timeline "$tmp/n.svg" && ! grep -q '<b>' "$tmp/n.svg" &&
		python3 -c 'import sys, xml.etree.ElementTree as T; T.parse(sys.argv[1])' "$tmp/n.svg"
}
ok "names are escaped" svg_named
svg_asked() { chart "$tmp/d.out" --timeline-format svg && cmp "$tmp/a.svg" "$tmp/d.out"; }
ok "by its name or by --timeline-format" svg_asked
chrome_asked() { chart "$tmp/e.svg" --timeline-format chrome && grep -q traceEvents "$tmp/e.svg"; }
ok "what is asked for comes before the name" chrome_asked
heights() { # FILE PAIRS: a box fills its row, two that are of the same time have half each; pairs: are there some?
	python3 - "$@" <<'P'
import sys, xml.dom.minidom
boxes, idle = {}, set()
for r in xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("rect"):
    if "%" in r.getAttribute("width"):
        continue  # the ground
    x, y, w, h = (float(r.getAttribute(k) or 0) for k in ("x", "y", "width", "height"))
    if r.getAttribute("class") == "idle" and h == 24:
        idle.add(y)
    if r.getElementsByTagName("title"):
        row = max(i for i in idle if i <= y)
        boxes.setdefault((row, x, w), []).append((y - row, h))
both = [sorted(b) for b in boxes.values() if len(b) > 1]
assert all(b == [(0, 24)] for b in boxes.values() if len(b) == 1) and all(b == [(0, 12), (12, 12)] for b in both), boxes
assert bool(both) == (sys.argv[2] == "pairs"), len(both)
P
}
ok "a pass has the height of its row" heights "$tmp/a.svg" none
pairs() {
	$f simulate examples/08-mixture-of-experts/mixtral.yaml --set training.overlap.ep=true --timeline "$tmp/p.svg" && heights "$tmp/p.svg" pairs
}
ok "and two side by side have half of it each" pairs
memory() { # SCENARIO: the highest point of the chart is the memory that is told; XML
	$f simulate "$1" --timeline "$tmp/m.svg" --timeline-format memory --json >"$tmp/m.json" &&
	python3 -c 'import json, re, sys, xml.dom.minidom
text = open(sys.argv[1]).read()
xml.dom.minidom.parseString(text)
said = re.search(r"at most ([0-9.]+) GB", text).group(1)
want = json.load(open(sys.argv[2]))["memory_bytes_per_gpu"]
assert said == "%.1f" % (want["total"] / 1e9), (said, want)
for k, v in want.items():
    assert k == "total" or v < 5e5 or "%s %.1f GB" % (k, v / 1e9) in text, k' "$tmp/m.svg" "$tmp/m.json"
}
for s in 01-first-answer/h100 08-mixture-of-experts/mixtral 17-best-plan/lora; do
	ok "memory over the step of $s" memory examples/$s.yaml
done
ok "a format that is none" fails 64 "takes chrome, kineto, svg or memory, not 'png'" $f simulate examples/01-first-answer/h100.yaml --timeline "$tmp/t" --timeline-format png

charted() { # SCENARIO OPTION...: both charts, against the timeline and the answer
	$f simulate "$@" --timeline "$tmp/c.svg" >"$tmp/o" && $f simulate "$@" --timeline "$tmp/m.svg" --timeline-format memory >"$tmp/o" &&
		$f simulate "$@" --timeline "$tmp/c.json" >"$tmp/o" && $f simulate "$@" --json >"$tmp/a.json" &&
		python3 tests/charts.py "$tmp/c.svg" "$tmp/m.svg" "$tmp/c.json" "$tmp/a.json"
}
ok "boxes, lanes and bands stand where their times and bytes are" charted examples/01-first-answer/h100.yaml --set training.global_batch_size=256
ok "with one chunk, and backwards cut in two" charted examples/01-first-answer/h100.yaml --set training.global_batch_size=512 --set training.parallel.vpp=1 --set training.schedule=zero-bubble --set stack=torch-2.11-eager
ok "with some of them whole" charted examples/01-first-answer/h100.yaml --set training.global_batch_size=1024 --set training.parallel.vpp=2 --set training.schedule=dualpipev --set stack=torch-2.11-eager
finish
