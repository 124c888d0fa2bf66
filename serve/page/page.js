/*
 * page.js - the page: two scenarios at most, each a text of YAML and its tree; whichever
 * changes, the other follows, and the server is asked for the answer
 *
 * At most one question is under way: what changes meanwhile is asked when it has ended, so
 * that the answer is always that of the newest text, and never waits behind old ones.
 */
import { Form, element, get, put, yaml } from "./form.js";
import { long, short, show, verdict } from "./answer.js";
import { PlanSearch } from "./plan.js";
import { memory, network, timeline } from "./draw.js";

const $ = (id) => document.getElementById(id);
const start = `# Llama 3 70B on 1,024 H100
model: llama3-70b
cluster: {gpu: h100-sxm, gpus: 1024}
stack: nemo-24.11
training:
  sequence_length: 8192
  global_batch_size: 1024
  micro_batch_size: 1
  precision: bf16
  parallel: {tp: 4, pp: 4, vpp: 5}
  sharding: zero1
cost: {prices: hyperscaler-2025-08}
`;
const state = { sides: [{ text: start, tree: {}, answer: null, bill: null, mistake: null }], at: 0, asked: 0, working: false, verdict: null };
let form;
const side = () => state.sides[state.at];

/* ---- asking */

async function post(path, body) {
	const r = await fetch("/api/" + path, { method: "POST", body, headers: { "Content-Type": typeof body === "string" ? "application/yaml" : "application/json" } });
	const answer = await r.json();
	if (!r.ok)
		throw Object.assign(new Error(answer.error.text), answer.error);
	return answer;
}

const unreachable = (e) => (e.line === undefined ? { text: "the server does not answer: is foretoken serve running?", line: 0 } : e);

/* What side s needs: its answer. */
async function answer_of(s) {
	try {
		s.answer = await post("simulate", s.text);
		s.mistake = null;
	} catch (e) {
		s.mistake = unreachable(e);
	}
}

async function work() {
	if (state.working)
		return;
	state.working = true;
	for (let done = -1; done !== state.asked;) {
		done = state.asked;
		const began = performance.now();
		await Promise.all(state.sides.filter((s) => s.stale).map((s) => { s.stale = false; return answer_of(s); }));
		render();
		$("took").textContent = `Answered in ${Math.round(performance.now() - began)} ms.`;
		document.body.dataset.took = Math.round(performance.now() - state.typed);
	}
	state.working = false;
	clearTimeout(state.after);
	state.after = setTimeout(more, state.sides.length > 1 ? 80 : 150);
}

/* What may come later: the verdict, the network, prices for sliders. */
async function more() {
	const now = state.asked, ok = state.sides.every((s) => s.answer && !s.mistake);
	try {
		const compared = ok && state.sides.length > 1 ? await post("compare", JSON.stringify({ scenarios: state.sides.map((s) => s.text) })) : null;
		const bill = side().mistake ? side().bill : await post("bom", side().text);
		if (now !== state.asked)
			return;
		state.verdict = compared;
		side().bill = bill;
		render_later();
	} catch (e) {
		side().mistake ||= unreachable(e);
		render_mistake();
	}
	document.body.dataset.ready = "1";
}

function changed() {
	state.asked++;
	state.typed = performance.now();
	delete document.body.dataset.ready;
	side().stale = true;
	state.verdict = null;
	keep();
	work();
}

/* ---- the two forms of a scenario */

async function read_text() {
	const s = side(), text = s.text;
	try {
		const tree = await post("document", text);
		if (s.text === text && tree && typeof tree === "object" && !Array.isArray(tree)) {
			s.tree = tree;
			if (s === side())
				form.show(s.tree, s.answer && s.answer.scenario);
		}
	} catch {
		/* the answer says what is wrong with it */
	}
}

function key_changed(path, value) {
	const s = side();
	put(s.tree, path, value);
	const head = s.text.match(/^(#.*\n)+/);
	s.text = (head ? head[0] : "") + yaml(s.tree);
	$("yaml").value = s.text;
	changed();
}

/* Several keys at once: a plan. */
function plan_used(list, which) {
	const s = side();
	for (const [path, value] of list)
		put(s.tree, path, value);
	form.show(s.tree, s.answer && s.answer.scenario);
	key_changed(...list[0]);
	$("said").textContent = `Plan ${which} is in the scenario.`;
}

function text_changed(text) {
	side().text = text;
	read_text();
	changed();
}

/* ---- showing */

function render_mistake() {
	const bad = state.sides.find((s) => s.mistake), box = $("mistake"), s = side();
	$("yaml").setAttribute("aria-invalid", s.mistake ? "true" : "false");
	box.hidden = !bad;
	if (!bad)
		return;
	const e = bad.mistake, at = e.line ? ` (line ${e.line}, column ${e.column})` : "";
	const which = state.sides.length > 1 ? "AB"[state.sides.indexOf(bad)] + ": " : "";
	const line = e.line ? bad.text.split("\n")[e.line - 1] : undefined;
	box.replaceChildren(which + e.text + at + (e.hint && !e.text.includes(e.hint) ? ". " + e.hint : ""),
		...(line === undefined || e.file !== "scenario" ? [] : [element("code", {}, line + "\n" + " ".repeat(Math.max(e.column - 1, 0)) + "^")]));
}

function render() {
	const answers = state.sides.map((s) => s.answer).filter(Boolean);
	render_mistake();
	for (const id of ["short", "long", "verdict", "network"])
		$(id).classList.toggle("stale", state.sides.some((s) => s.mistake));
	form.show(side().tree, side().answer && side().answer.scenario);
	if (!answers.length)
		return;
	const labelled = answers.map((a, i) => ({ ...a, label: state.sides.length > 1 ? label(i) : a.name }));
	$("short").replaceChildren(...short(labelled));
	clearTimeout(state.lengthening); /* what is below comes when the short answer is painted */
	state.lengthening = setTimeout(() => $("long").replaceChildren(...long(labelled)), 30);
	if (state.sides.length < 2)
		$("verdict").replaceChildren();
	else if (!state.verdict)
		$("verdict").classList.add("stale");
	clearTimeout(state.saying); /* a reader is told once typing has paused */
	state.saying = setTimeout(() => {
		$("said").textContent = answers.map((a) => `${show.count(a.tokens_per_s_per_gpu)} tokens/s per GPU, ${show.cents(a.cost.usd_per_million_tokens)} per million tokens`).join("; ");
	}, 800);
}

/* "A" and what it is, short enough for a figure */
function label(i) {
	const a = state.sides[i].answer;
	return a.name === "scenario" ? "AB"[i] + " " + (typeof a.scenario.cluster.gpu === "string" ? a.scenario.cluster.gpu : "") : a.name;
}

function render_later() {
	if (state.verdict) {
		$("verdict").classList.remove("stale");
		$("verdict").replaceChildren(...verdict(state.verdict).filter(Boolean));
	}
	const s = side();
	if (s.bill && s.answer) {
		$("network").replaceChildren(element("h2", {}, "Network"), s.bill.fabric.leaf || s.bill.fabric.nodes > 1
			? network(s.bill.fabric, s.answer.scenario.cluster.gpus) : element("p", { class: "note" }, "One node: no network is needed."));
		sliders(s);
	}
}

/* Sliders write keys of the scenario: YAML, link and command line have what they say. */
function sliders(s) {
	const box = $("sliders"), scenario = s.answer.scenario, list = [];
	if (box.contains(document.activeElement))
		return;
	const server = s.bill.items.find((i) => i.class === "server" && i.unit_usd > 0);
	const power = parseFloat(get(scenario, "cost.electricity")), years = parseFloat(get(scenario, "cost.horizon"));
	if (server) {
		const own = parseFloat(get(s.tree, "cost.price_of." + server.item));
		/* with the adapters that a book lists apart, as a price that is given has them */
		const apart = s.bill.items.filter((i) => i.what === "NIC" || i.what === "DPU").reduce((usd, i) => usd + i.total_usd, 0);
		const now_usd = server.unit_usd + apart / server.count;
		s.book_usd = own && s.book_usd ? s.book_usd : now_usd;
		list.push(["Price of a " + server.item, "cost.price_of." + server.item, s.book_usd * .4, s.book_usd * 1.6, s.book_usd / 100, now_usd, (v) => Math.round(v) + " USD"]);
	}
	if (power >= 0)
		list.push(["Electricity", "cost.electricity", 0, .4, .001, power, (v) => Number(v.toFixed(4)) + " USD/kWh"]);
	if (years > 0)
		list.push(["Years of use", "cost.horizon", 1, 8, .25, years, (v) => v + " y"]);
	box.replaceChildren(...(list.length ? [element("h2", {}, "Move a price")] : []), ...list.map(([name, key, low, high, step, value, written]) => {
		const id = "slide-" + key, now = element("output", { for: id }, written(value));
		const input = element("input", { type: "range", id, min: low, max: high, step, value });
		input.addEventListener("input", () => {
			now.textContent = written(Number(input.value));
			key_changed(key, written(Number(input.value)));
		});
		return element("div", { class: "slider" }, element("label", { for: id }, name + ": ", now), input);
	}));
}

function show_side() {
	document.querySelectorAll("[data-side]").forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.side) === state.at)));
	$("yaml").value = side().text;
	form.show(side().tree, side().answer && side().answer.scenario);
	$("timeline").replaceChildren();
}

function show_sides() {
	$("sides").hidden = state.sides.length < 2;
	$("second").setAttribute("aria-pressed", String(state.sides.length > 1));
	show_side();
}

/* ---- the link: the texts behind #a= and &b= */

function fragment() {
	return "#" + state.sides.map((s, i) => "ab"[i] + "=" + encodeURIComponent(s.text)).join("&");
}

function keep() {
	clearTimeout(state.keeping);
	state.keeping = setTimeout(() => history.replaceState(null, "", fragment()), 300);
}

function from_fragment() {
	const given = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
	const texts = ["a", "b"].map((k) => given.get(k)).filter((t) => t !== null);
	if (!texts.length)
		return false;
	state.sides = texts.map((text) => ({ text, tree: {}, answer: null, bill: null, mistake: null, stale: true }));
	state.at = 0;
	return true;
}

async function all_anew() {
	show_sides();
	for (let i = 0; i < state.sides.length; i++) {
		state.at = i;
		state.sides[i].stale = true;
		await read_text();
	}
	state.at = 0;
	show_sides();
	changed();
}

function save(text, name, type) {
	const url = URL.createObjectURL(new Blob([text], { type })), a = element("a", { href: url, download: name });
	a.click();
	setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function with_timeline(use) {
	$("timeline").replaceChildren(element("p", { class: "note", role: "status" }, "Simulating ..."));
	try {
		const trace = await post("timeline", side().text);
		$("timeline").replaceChildren(...use(trace));
	} catch (e) {
		$("timeline").replaceChildren(element("p", { class: "bad", role: "alert" }, unreachable(e).text));
	}
}

function listen() {
	$("yaml").addEventListener("input", (e) => text_changed(e.target.value));
	document.querySelectorAll("[data-side]").forEach((b) => b.addEventListener("click", () => {
		state.at = Number(b.dataset.side);
		show_side();
		more();
	}));
	$("to-form").addEventListener("click", () => $("key-model").focus());
	$("second").addEventListener("click", () => {
		if (state.sides.length > 1)
			state.sides.length = 1;
		else
			state.sides.push({ ...side(), tree: structuredClone(side().tree) });
		state.at = state.sides.length - 1;
		show_sides();
		changed();
	});
	$("copy").addEventListener("click", () => {
		state.sides[1] = { ...state.sides[0], tree: structuredClone(state.sides[0].tree) };
		state.at = 1;
		show_sides();
		changed();
	});
	$("link").addEventListener("click", async () => {
		history.replaceState(null, "", fragment());
		try {
			await navigator.clipboard.writeText(location.href);
			$("said").textContent = "The link is copied.";
			$("link").textContent = "Link copied";
		} catch {
			$("link").textContent = "The link is in the address bar";
		}
		setTimeout(() => { $("link").textContent = "Copy link"; }, 2000);
	});
	$("save").addEventListener("click", () => save(side().text, "scenario.yaml", "application/yaml"));
	$("open").addEventListener("change", async (e) => {
		const file = e.target.files[0];
		if (file) {
			$("yaml").value = await file.text();
			text_changed($("yaml").value);
		}
	});
	$("draw-timeline").addEventListener("click", () => with_timeline((trace) => [...timeline(trace), ...memory(trace)]));
	$("save-timeline").addEventListener("click", () => with_timeline((trace) => {
		save(JSON.stringify(trace), "foretoken-timeline.json", "application/json");
		return [element("p", { class: "note" }, "Saved as foretoken-timeline.json; open it in ui.perfetto.dev.")];
	}));
	window.addEventListener("hashchange", () => from_fragment() && all_anew());
}

async function begin() {
	const [keys, names] = await Promise.all(["keys", "names"].map(async (k) => (await fetch("/api/" + k)).json()));
	from_fragment();
	form = new Form($("form"), keys, names, key_changed);
	listen();
	new PlanSearch($, () => ({ text: side().text, tree: side().tree, resolved: side().answer && side().answer.scenario }), plan_used);
	await all_anew();
}

begin().catch((e) => {
	$("mistake").hidden = false;
	$("mistake").textContent = "The page could not begin: " + e.message + ". Is foretoken serve running?";
});
