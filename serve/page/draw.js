/* draw.js - figures as inline SVG: bars with direct labels, a waterfall, a network; the timeline on a canvas */
import { element } from "./form.js";

const W = 720;

function svg(height, label, children) {
	const s = tag("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": label });
	s.append(...children);
	return s;
}

function tag(name, set, text) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [k, v] of Object.entries(set))
		e.setAttribute(k, v);
	if (text !== undefined)
		e.textContent = text;
	return e;
}

export function figure(caption, ...drawn) {
	return element("figure", { class: "drawn" }, element("figcaption", {}, caption), ...drawn);
}

const FILLS = 6; /* colours of page.css */

/* One bar, parts side by side; rows of [{name, value, text}]. The longest row fills the width. */
export function bars(rows, label, shown) {
	const most = Math.max(...rows.map((r) => r.parts.reduce((a, p) => a + p.value, 0)), 1e-30);
	const children = [], left = rows.length > 1 ? 90 : 0, height = 46, names = rows[0].parts.map((p) => p.name);
	rows.forEach((row, i) => {
		let x = left;
		if (left)
			children.push(tag("text", { x: 0, y: i * height + 24 }, row.name.slice(0, 12)));
		row.parts.forEach((p, k) => {
			const w = (W - left) * p.value / most;
			const r = tag("rect", { x, y: i * height, width: Math.max(w - 1, 0), height: height - 8, class: "f" + (k % FILLS + 1) });
			r.append(tag("title", {}, p.name + ": " + shown(p.value)));
			children.push(r);
			if (w > 9 * shown(p.value).length + 12 && k !== 3)
				children.push(tag("text", { x: x + 6, y: i * height + 24, class: "on" }, shown(p.value)));
			x += w;
		});
	});
	const list = element("ul", { class: "keys" }, ...names.map((name, k) => element("li", {},
		element("span", { class: "key f" + (k % FILLS + 1) }), name + ": " + rows.map((r) => shown(r.parts[k].value)).join(" | "))));
	return [svg(rows.length * height, label, children), list];
}

/* From one total to another, part by part. */
export function waterfall(from, parts, to, shown) {
	const row = 30, left = 190, right = 90, span = W - left - right, children = [];
	const list = [{ name: from.name, low: 0, high: from.value, total: true, value: from.value }];
	let at = from.value;
	for (const p of parts) {
		list.push({ name: p.name, low: Math.min(at, at + p.value), high: Math.max(at, at + p.value), value: p.value });
		at += p.value;
	}
	list.push({ name: to.name, low: 0, high: to.value, total: true, value: to.value });
	const highs = list.map((l) => l.high), lows = list.filter((l) => !l.total).map((l) => l.low);
	const least = Math.min(...lows, from.value, to.value), most = Math.max(...highs);
	const base = Math.max(0, least - (most - least) * .6), scale = span / (most - base || 1);
	list.forEach((l, i) => {
		const x = left + (Math.max(l.low, base) - base) * scale, w = Math.max((l.high - Math.max(l.low, base)) * scale, 1);
		children.push(tag("text", { x: 0, y: i * row + 19 }, l.name.slice(0, 28)));
		children.push(tag("rect", { x, y: i * row + 3, width: w, height: row - 8, class: l.total ? "f3" : l.value > 0 ? "f2" : "f5" }));
		children.push(tag("text", { x: x + w + 5, y: i * row + 19 }, (l.total || l.value < 0 ? "" : "+") + shown(l.value)));
	});
	return [svg(list.length * row, `From ${from.name} ${shown(from.value)} to ${to.name} ${shown(to.value)}`, children),
		base > 0 ? element("p", { class: "note" }, "The bars begin at " + shown(base) + ", not at 0.") : ""];
}

/* Ranges from P10 to P90 with the value, one below the other on one scale. */
export function ranges(rows, shown) {
	const row = 34, left = 110, span = W - left - 120;
	const low = Math.min(...rows.map((r) => r.low)) * .97, high = Math.max(...rows.map((r) => r.high)) * 1.01;
	const x = (v) => left + (v - low) / (high - low || 1) * span;
	return svg(rows.length * row, rows.map((r) => `${r.name}: ${shown(r.value)}, ${shown(r.low)} to ${shown(r.high)}`).join("; "),
		rows.flatMap((r, i) => [
			tag("text", { x: 0, y: i * row + 21 }, r.name.slice(0, 14)),
			tag("rect", { x: x(r.low), y: i * row + 10, width: Math.max(x(r.high) - x(r.low), 1), height: 12, class: "f4" }),
			tag("rect", { x: x(r.value) - 2, y: i * row + 5, width: 4, height: 22, class: "f1" }),
			tag("text", { x: x(r.high) + 6, y: i * row + 21 }, shown(r.value)),
		]));
}

/* Tiers of a fabric with how many switches and cables there are. */
export function network(f, gpus) {
	const number = (n) => Math.round(n).toLocaleString("en-US");
	const tiers = [["nodes", f.nodes, null], ["leaf switches", f.leaf, f.cables_node_leaf], ["spine switches", f.spine, f.cables_leaf_spine],
		["core switches", f.core, f.cables_spine_core], ["top switches", f.top, f.cables_core_top]].filter((t) => t[1] > 0).reverse();
	const gap = 92, children = [], left = 10, span = W - 190, h = 26;
	const places = (n) => { const k = Math.min(Math.max(Math.round(n), 1), 16); return [...Array(k)].map((_, i) => left + (i + .5) * span / k); };
	tiers.forEach(([name, n, cables], i) => {
		const here = places(n), y = i * gap, next = tiers[i + 1];
		if (next)
			for (const x of here)
				for (const z of places(next[1]))
					children.push(tag("line", { x1: x, y1: y + h, x2: z, y2: y + gap, "stroke-opacity": ".25" }));
		const w = Math.min(span / here.length - 6, 60);
		for (const x of here)
			children.push(tag("rect", { x: x - w / 2, y, width: w, height: h, rx: 3, class: name === "nodes" ? "f3" : "f1" }));
		children.push(tag("text", { x: W - 170, y: y + 17 }, number(n) + " " + name));
		if (cables)
			children.push(tag("text", { x: W - 170, y: y + gap - 26, class: "soft" }, number(cables) + " cables"));
	});
	const label = tiers.map((t) => number(t[1]) + " " + t[0]).join(", ");
	return figure(`${f.name}: ${number(gpus)} GPUs in ${label}; at most 16 of each are drawn.`, svg((tiers.length - 1) * gap + h + 4, "Network: " + label, children));
}

/* ---- timeline: spans of Chrome trace JSON on a canvas, a row for each stream of each stage */

const hue = (name) => { let h = 0; for (const c of name) h = (h * 31 + c.charCodeAt(0)) % 360; return h; };

export function timeline(trace) {
	const stages = new Map(), streams = new Map(), spans = [];
	let end = 0;
	for (const e of trace.traceEvents) {
		if (e.ph === "M" && e.name === "process_name")
			stages.set(e.pid, e.args.name);
		else if (e.ph === "M" && e.name === "thread_name")
			streams.set(e.pid + "/" + e.tid, e.args.name);
		else if (e.ph === "X") {
			spans.push(e);
			end = Math.max(end, e.ts + e.dur);
		}
	}
	const used = new Set(spans.map((e) => e.pid + "/" + e.tid));
	const rows = [...streams.keys()].filter((k) => used.has(k)).slice(0, 48);
	const place = new Map(rows.map((k, i) => [k, i]));
	const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": `A step of ${(end / 1e6).toPrecision(3)} s on ${rows.length} streams; left and right move, plus and minus zoom` });
	const said = element("p", { class: "note", role: "status" }, "Wheel or + and - zoom, drag or the arrow keys move; point at a span for its name.");
	const row = 18, left = 150, view = { from: 0, to: end };
	canvas.width = 1400;
	canvas.height = rows.length * row + 24;
	const x = (t) => left + (t - view.from) / (view.to - view.from) * (canvas.width - left);
	function draw() {
		const c = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
		c.fillStyle = style.getPropertyValue("--paper");
		c.fillRect(0, 0, canvas.width, canvas.height);
		for (const e of spans) {
			const i = place.get(e.pid + "/" + e.tid), a = Math.max(x(e.ts), left), b = Math.min(x(e.ts + e.dur), canvas.width);
			if (i === undefined || b <= left || a >= canvas.width)
				continue;
			c.fillStyle = `hsl(${hue(e.name)} 45% 50%)`;
			c.fillRect(a, i * row + 2, Math.max(b - a, .4), row - 4);
			if (b - a > 60) {
				c.fillStyle = "#fff";
				c.font = "11px system-ui";
				c.fillText(e.name, a + 3, i * row + 13, b - a - 6);
			}
		}
		c.fillStyle = style.getPropertyValue("--ink");
		c.font = "12px system-ui";
		rows.forEach((k, i) => c.fillText(`${stages.get(Number(k.split("/")[0])) || ""} ${streams.get(k)}`, 2, i * row + 13, left - 6));
		for (let i = 0; i <= 4; i++) {
			const t = view.from + (view.to - view.from) * i / 4;
			c.textAlign = i === 4 ? "right" : "left";
			c.fillText((t / 1e3).toFixed(2) + " ms", x(t), canvas.height - 6);
		}
		c.textAlign = "left";
	}
	function move(by, zoom, about) {
		const span = Math.min(Math.max((view.to - view.from) * zoom, 5), end), share = about === undefined ? .5 : about;
		let from = view.from + (view.to - view.from - span) * share + by * span;
		from = Math.max(0, Math.min(from, end - span));
		view.from = from;
		view.to = from + span;
		draw();
	}
	const at = (e) => { const r = canvas.getBoundingClientRect(); return (e.clientX - r.left) / r.width * canvas.width; };
	canvas.addEventListener("wheel", (e) => { e.preventDefault(); move(0, e.deltaY > 0 ? 1.25 : .8, (at(e) - left) / (canvas.width - left)); }, { passive: false });
	canvas.addEventListener("keydown", (e) => {
		const act = { ArrowLeft: [-.15, 1], ArrowRight: [.15, 1], "+": [0, .7], "=": [0, .7], "-": [0, 1.4] }[e.key];
		if (act) {
			e.preventDefault();
			move(...act);
		}
	});
	canvas.addEventListener("pointermove", (e) => {
		if (e.buttons & 1) {
			move(-e.movementX / canvas.clientWidth, 1);
			return;
		}
		const r = canvas.getBoundingClientRect(), i = Math.floor((e.clientY - r.top) / r.height * canvas.height / row);
		const t = view.from + (at(e) - left) / (canvas.width - left) * (view.to - view.from);
		const hit = spans.find((s) => place.get(s.pid + "/" + s.tid) === i && s.ts <= t && t <= s.ts + s.dur);
		if (hit)
			said.textContent = `${hit.name}: ${(hit.dur / 1e3).toFixed(3)} ms from ${(hit.ts / 1e3).toFixed(3)} ms on`;
	});
	requestAnimationFrame(draw);
	return [canvas, said];
}

/* ---- memory: the counters of the same trace, stacked, of the stage that holds the most */

const categories = [["weights", 1], ["optimizer", 4], ["gradients", 5], ["other", 3], ["activations", 2]];

export function memory(trace) {
	const sum = (e) => Object.values(e.args).reduce((a, b) => a + b, 0), stages = new Map();
	let peak = null, end = 0;
	for (const e of trace.traceEvents) {
		if (e.ph === "M" && e.name === "process_name")
			stages.set(e.pid, e.args.name);
		if (e.ph === "X")
			end = Math.max(end, e.ts + e.dur);
		if (e.ph === "C" && e.name === "memory, bytes" && (!peak || sum(e) > sum(peak)))
			peak = e;
	}
	if (!peak)
		return [];
	const left = 44, right = 150, top = 10, h = 190, columns = W - left - right, fullest = new Array(columns);
	for (const e of trace.traceEvents)
		if (e.ph === "C" && e.name === "memory, bytes" && e.pid === peak.pid) {
			const x = Math.min(Math.floor(e.ts / end * columns), columns - 1);
			if (!fullest[x] || sum(e) > sum(fullest[x]))
				fullest[x] = e;
		}
	for (let x = 0, last = fullest.find(Boolean); x < columns; x++)
		last = fullest[x] = fullest[x] || last;
	const upto = (e, k) => categories.slice(0, k).reduce((a, [name]) => a + (e.args[name] || 0), 0), y = (v) => (top + h * (1 - v / sum(peak))).toFixed(1);
	const gb = (v) => (v / 1e9).toFixed(1) + " GB", children = [];
	let below = top + h + 16;
	categories.forEach(([name, fill], k) => {
		const edge = (n) => fullest.map((e, x) => `${left + x} ${y(upto(e, n))}`), mine = peak.args[name] || 0;
		children.push(tag("path", { class: "f" + fill, d: "M" + edge(k + 1).join("L") + "L" + edge(k).reverse().join("L") + "Z" }));
		if (mine < sum(peak) / 1000)
			return;
		below = Math.min(Number(y(upto(peak, k) + mine / 2)) + 4, below - 15);
		children.push(tag("rect", { class: "f" + fill, x: left + columns + 8, y: below - 10, width: 10, height: 10 }), tag("text", { x: left + columns + 23, y: below }, `${name} ${gb(mine)}`));
	});
	children.push(tag("text", { x: 0, y: top + 5 }, (sum(peak) / 1e9).toFixed(0) + " GB"), tag("text", { x: 28, y: top + h }, "0"),
		tag("text", { x: left, y: top + h + 16 }, "0"), tag("text", { x: left + columns, y: top + h + 16, "text-anchor": "end" }, (end / 1e6).toPrecision(3) + " s"));
	const said = `Memory of a rank over the step, ${stages.size > 1 ? `${stages.get(peak.pid)}, the fullest` : "by category"}: at most ${gb(sum(peak))}, at ${(peak.ts / 1e6).toPrecision(3)} s`;
	return [figure(said, svg(top + h + 22, said, children))];
}
