/* answer.js - an answer, or two, as tables and figures; computes nothing but shares */
import { element } from "./form.js";
import { bars, figure, ranges, waterfall } from "./draw.js";

const digits = (v, n) => v.toLocaleString("en-US", { maximumSignificantDigits: n });
const fixed = (v, n) => v.toLocaleString("en-US", { minimumFractionDigits: n, maximumFractionDigits: n });
export const show = {
	count: (v) => Math.round(v).toLocaleString("en-US"),
	time: (v) => (v >= 1 ? fixed(v, 3) + " s" : v >= 1e-3 ? fixed(v * 1e3, 2) + " ms" : digits(v * 1e6, 3) + " us"),
	share: (v) => fixed(100 * v, 1) + " %",
	bytes: (v) => fixed(v / 1e9, 1) + " GB",
	usd: (v) => (Math.abs(v) >= 1e6 ? fixed(v / 1e6, 2) + " million USD" : fixed(v, 0) + " USD"),
	cents: (v) => fixed(v, 4) + " USD",
	hour: (v) => fixed(v, 3) + " USD",
};

export function table(caption, head, rows, textual) {
	return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
		element("table", {}, element("caption", {}, caption),
			element("thead", {}, element("tr", {}, ...head.map((h, i) => element("th", { scope: "col", class: i && textual && textual.has(i) ? "text" : undefined }, h)))),
			element("tbody", {}, ...rows.map((r) => element("tr", {}, ...r.map((c, i) => (i
				? element("td", { class: textual && textual.has(i) ? "text" : undefined }, c)
				: element("th", { scope: "row" }, c))))))));
}

const names = (answers) => answers.map((a, i) => a.label || "AB"[i]);

/* ---- the short answer: what one wants to see move */

function card(term, value, small) {
	return element("div", { class: "card" }, element("dt", {}, term), element("dd", {}, value, element("small", {}, small || "")));
}

function short_one(a) {
	const i = a.interval, range = (pair, as) => `P10 to P90: ${as(pair[0])} to ${as(pair[1])}`;
	return element("dl", { class: "cards" },
		card("tokens/s per GPU", digits(a.tokens_per_s_per_gpu, 5), `${show.count(a.tokens_per_s)} tokens/s in all`),
		card("step", show.time(a.step_s), range(i.step_s, show.time)),
		card("MFU", show.share(a.mfu), Math.abs(a.hfu / a.mfu - 1) > 0.001 ? "HFU " + show.share(a.hfu) : ""),
		card("USD per million tokens", fixed(a.cost.usd_per_million_tokens, 4), range(i.usd_per_million_tokens, (v) => fixed(v, 4))),
		card("USD per GPU-hour", fixed(a.cost.usd_per_gpu_hour, 3), a.cost.capex_usd > 0 ? show.usd(a.cost.capex_usd) + " of capital" : "rented"),
		card("memory per GPU", show.bytes(a.memory_bytes_per_gpu.total), a.fits ? "fits" : "does NOT fit"));
}

function warnings(a) {
	const list = [];
	if (!a.fits)
		list.push("This plan does not fit in memory.");
	if (a.extrapolated_frac > .1)
		list.push(`${show.share(a.extrapolated_frac)} of the kernel time is of shapes far from anything measured.`);
	if (!a.gpu_measured)
		list.push("No measured training run has this GPU.");
	if (!a.stack_measured)
		list.push("No measured training run has this software stack.");
	if (!a.attention_measured)
		list.push("No measured training run has attention of this kind.");
	for (const k of a.idle_keys)
		list.push(`${k.key} has an effect only ${k.counts}.`);
	return list.map((t) => element("p", { class: a.fits ? "note" : "bad" }, t));
}

export function short(answers) {
	return [beside(answers.map((a, i) => [element("h2", {}, answers.length > 1 ? names(answers)[i] : "In short"),
		short_one(a), element("p", {}, a.bottleneck), ...warnings(a)]))];
}

/* Two next to each other where there is room. */
function beside(columns) {
	return element("div", { class: columns.length > 1 ? "beside" : undefined }, ...columns.map((c) => element("div", {}, ...c)));
}

/* ---- the long one */

const parts = (map, words) => Object.entries(words).filter(([k]) => map[k] !== undefined).map(([k, name]) => ({ name, value: map[k] }));
const rows_of = (answers, key, words) => answers.map((a, i) => ({ name: names(answers)[i], parts: parts(key(a), words) }));

function fleets(a, name) {
	if (!a.run)
		return [];
	return [element("h2", {}, "What was asked"), table("Fleets that answer" + (name ? ", " + name : ""), ["question", "GPUs", "days, P50", "million USD, P50", "MW", "beyond"],
		[a.run, ...(a.run.fleets || [])].map((f) => (f.none ? [f.for, f.none, "", "", "", ""]
			: [f.for, show.count(f.gpus), digits(f.days.p50, 3), fixed(f.usd.p50 / 1e6, 2), digits(f.megawatts, 3), f.beyond.join(", ")])))];
}

function nearest(a, name) {
	if (!a.nearest_runs.length)
		return element("p", { class: "note" }, "No measured run is near.");
	return table("Nearest measured runs" + (name ? " to " + name : "") + ", and how far off their own predictions are (positive: predicted too slow)",
		["run", "error", "distance", "differs in"], a.nearest_runs.map((r) => [r.id, (r.error_frac > 0 ? "+" : "") + show.share(r.error_frac), digits(r.distance, 2), r.differs]), new Set([3]));
}

function items(a, name) {
	return table("Largest items of a rank's time" + (name ? ", " + name : ""), ["item", "time", "share of the step", "times"],
		a.items.slice(0, 12).map((i) => [i.name, show.time(i.time_s), show.share(i.time_s / a.step_s), show.count(i.count)]));
}

function sources(a, name) {
	return table("Where the numbers come from" + (name ? ", " + name : ""), ["what", "source"], Object.entries(a.provenance), new Set([1]));
}

/* Written when it is opened: it is long. */
function numbers(of) {
	const text = element("pre", { class: "wide", tabindex: "0" });
	const all = element("details", {}, element("summary", {}, "All numbers as JSON"), text);
	all.addEventListener("toggle", () => { text.textContent = all.open ? JSON.stringify(of, null, 1) : ""; });
	return all;
}

export function long(answers) {
	const many = answers.length > 1, name = (i) => (many ? names(answers)[i] : "");
	return [
		...answers.flatMap((a, i) => fleets(a, name(i))),
		element("h2", {}, "Where a step goes"),
		figure("Time of a step, mean over ranks", ...bars(rows_of(answers, (a) => a.breakdown_s,
			{ compute: "compute", exposed_communication: "exposed communication", bubble: "bubble", host: "host", optimizer: "optimizer" }), "Parts of a step", show.time)),
		beside(answers.map((a, i) => [items(a, name(i))])),
		element("h2", {}, "Memory"),
		figure("Memory per GPU, of the fullest rank", ...bars(rows_of(answers, (a) => a.memory_bytes_per_gpu,
			{ weights: "weights", gradients: "gradients", optimizer: "optimizer", activations: "activations", other: "other" }), "Parts of the memory", show.bytes)),
		element("h2", {}, "Dollars"),
		figure("USD per GPU-hour", ...bars(rows_of(answers, (a) => ({ ...a.cost }),
			{ capital_usd_per_gpu_hour: "capital", electricity_usd_per_gpu_hour: "electricity", colocation_usd_per_gpu_hour: "colocation", maintenance_usd_per_gpu_hour: "maintenance", rent_usd_per_gpu_hour: "rent", staff_usd_per_gpu_hour: "staff and licences" }), "Parts of a GPU-hour", show.hour)),
		figure("USD per million tokens, P10 to P90", ranges(answers.map((a, i) => ({ name: name(i) || "USD/Mtok", value: a.cost.usd_per_million_tokens,
			low: a.interval.usd_per_million_tokens[0], high: a.interval.usd_per_million_tokens[1] })), show.cents)),
		element("h2", {}, "How far to trust it"),
		beside(answers.map((a, i) => [nearest(a, name(i)), sources(a, name(i))])),
		numbers(many ? answers : answers[0]),
	];
}

/* ---- two: verdict, odds, reasons */

const change = (c) => [c.what, digits(c.now, 4) + " " + c.unit, digits(c.value, 4) + " " + c.unit];

export function verdict(compared) {
	const v = compared.verdict, labels = compared.scenarios.map((s) => s.id), d = compared.cost_differences[0];
	const usd = compared.scenarios.map((s) => s.cost.usd_per_million_tokens);
	return [
		element("h2", {}, "Which is cheaper?"),
		element("p", { class: "verdict" }, v.sentence),
		compared.warning ? element("p", { class: "note" }, compared.warning) : "",
		figure("In how many of " + show.count(v.draws) + " draws of prices and errors each is the cheapest",
			...bars([{ name: "", parts: labels.map((name, i) => ({ name, value: v.cheapest_frac[i] })) }], "Odds", show.share)),
		d ? figure("USD per million tokens: from " + labels[0] + " to " + labels[1] + ", cause by cause",
			...waterfall({ name: labels[0], value: usd[0] }, d.parts.filter((p) => Math.abs(p.usd_per_million_tokens) > 5e-5).map((p) => ({ name: p.part, value: p.usd_per_million_tokens })),
				{ name: labels[1], value: usd[1] }, (x) => fixed(x, 4))) : "",
		table("Why the time differs, GPU-nanoseconds per token", ["part", labels[0], labels[1], "difference"],
			compared.differences.map((x) => [x.what, show.count(x.first_ns_per_token), show.count(x.this_ns_per_token), (x.this_ns_per_token > x.first_ns_per_token ? "+" : "") + show.count(x.this_ns_per_token - x.first_ns_per_token)])),
		v.likely_otherwise ? element("p", { class: "note" }, v.crossovers_of + " is the cheaper one at likely values already; the odds are of draws, whose ranges are skewed.") : "",
		(v.crossovers || []).length ? table("What would make both cost the same, of " + v.crossovers_of, ["what", "now", "then"], v.crossovers.map(change)) : "",
		table("What differs", ["key", ...labels], compared.differs.map((x) => [x.key, ...x.values]), new Set([1, 2])),
	];
}
