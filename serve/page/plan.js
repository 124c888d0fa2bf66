/* plan.js - the search for plans: asked for with POST /api/plan, whose events say how far it is */
import { element, get } from "./form.js";
import { show, table } from "./answer.js";

/* What a plan decides. Those of the first list are searched anew where the scenario states them. */
const searched = ["parallel.tp", "parallel.pp", "parallel.vpp", "parallel.cp", "parallel.ep", "parallel.etp", "micro_batch_size", "schedule", "recompute"];
const follows = ["sharding", "zero_group", "shard", "sequence_parallel", "recompute_modules", "recompute_layers"];
const always = ["parallel.tp", "parallel.pp", "micro_batch_size", "zero_group", "shard", "sequence_parallel"];

/* Events of a stream, each as [name, text]. */
async function* events(stream) {
	const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
	for (let text = "";;) {
		const { done, value } = await reader.read();
		if (done)
			return;
		text += value;
		for (let at; (at = text.indexOf("\n\n")) >= 0; text = text.slice(at + 2)) {
			const lines = text.slice(0, at).split("\n");
			yield [lines[0].slice("event: ".length), lines.slice(1).map((l) => l.slice("data: ".length)).join("\n")];
		}
	}
}

/* The plan's keys as they go into the scenario: those that it states (what the plan
 * has not is taken out), those that change, and those on which defaults of others rest. */
export function changes(plan, tree, resolved) {
	return [...searched, ...follows].filter((key) => {
		const value = get(plan.training, key), stated = get(tree, "training." + key) !== undefined;
		return stated || (value !== undefined && (always.includes(key) || JSON.stringify(value) !== JSON.stringify(get(resolved, "training." + key))));
	}).map((key) => ["training." + key, get(plan.training, key)]);
}

/* "dp 64, micro-batch 2, zero1, recompute none": sizes of 1 go without saying. */
function words(b) {
	const p = b.training.parallel, sizes = [["tp", p.tp], ["pp", p.pp], ["vpp", p.vpp], ["dp", b.dp], ["cp", p.cp], ["ep", p.ep], ["etp", p.etp]];
	const over = b.training.zero_group || b.training.shard, modules = b.training.recompute === "selective" ? b.training.recompute_modules : undefined;
	return [...sizes.filter(([, n]) => n > 1).map(([k, n]) => k + " " + n), "micro-batch\u00a0" + b.training.micro_batch_size, b.training.sharding + (over && over !== b.dp * p.cp ? " over " + over : ""),
		p.pp > 1 ? b.training.schedule : "", "recompute " + (modules ? modules.join(" and ") : b.training.recompute)].filter(Boolean).join(", ");
}

function summary(found) {
	const all = `${show.count(found.considered)} legal plans, ${show.count(found.bounded)} looked at closely, ${show.count(found.feasible)} fit, ${show.count(found.simulated)} simulated`;
	return found.interrupted ? all + "; the time was up: a better one may be left. The command foretoken plan searches to the end." : all + "; no other can be among the best.";
}

export class PlanSearch {
	/* scenario(): {text, tree, resolved}; use(list of [path, value]) */
	constructor(ids, scenario, use) {
		Object.assign(this, { ids, scenario, use });
		ids("plan-start").addEventListener("click", () => this.start());
		ids("plan-stop").addEventListener("click", () => this.stopping && this.stopping.abort());
	}

	running(on) {
		this.ids("plan-start").disabled = on;
		this.ids("plan-stop").hidden = this.ids("plan-progress").hidden = !on;
	}

	async start() {
		const { text, tree } = this.scenario(), all = this.ids("plan-all").checked;
		const free = all ? searched.filter((k) => get(tree, "training." + k) !== undefined).map((k) => "training." + k) : [];
		this.stopping = new AbortController();
		this.progress({ phase: "bounds", finished: 0, total: 1, considered: 0, best: null });
		this.ids("plans").replaceChildren();
		this.running(true);
		this.ids("plan-stop").focus();
		try {
			const r = await fetch("/api/plan", { method: "POST", body: JSON.stringify({ scenario: text, rank_by: this.ids("plan-by").value, free }), signal: this.stopping.signal, headers: { "Content-Type": "application/json" } });
			if (!r.ok)
				throw Object.assign(new Error(), (await r.json()).error);
			for await (const [name, data] of events(r.body))
				this.take(name, JSON.parse(data));
		} catch (e) {
			this.ids("plans").replaceChildren(element("p", { class: e.name === "AbortError" ? "note" : "bad", role: e.name === "AbortError" ? "status" : "alert" },
				e.name === "AbortError" ? "The search was stopped." : e.text || "The server does not answer."));
		}
		const back = document.activeElement === this.ids("plan-stop") || document.activeElement === document.body;
		this.running(false);
		if (back)
			this.ids("plan-start").focus();
	}

	take(name, data) {
		if (name === "progress")
			this.progress(data);
		else if (name === "plans")
			this.show(data);
		else
			throw Object.assign(new Error(), data.error);
	}

	progress(p) {
		const bar = this.ids("plan-bar"), what = p.phase === "bounds" ? "least times of" : "steps of";
		bar.value = (p.phase === "bounds" ? 0 : .5) + p.finished / Math.max(p.total, 1) / 2;
		this.ids("plan-said").textContent = (p.considered ? `${show.count(p.considered)} legal plans: ${what} ${show.count(p.finished)} of ${show.count(p.total)}` : "Listing the legal plans")
			+ (p.considered ? `; at most ${Math.ceil(p.at_most_left_s)} s left` : "")
			+ (p.best ? `; best so far ${show.time(p.best.step_s)} a step, ${show.cents(p.best.usd_per_million_tokens)} per million tokens` : "");
	}

	show(answer) {
		this.ids("plans").replaceChildren(...(answer.plans || [answer]).flatMap((found) => this.one(found, Boolean(answer.plans))));
	}

	one(found, many) {
		const title = many ? found.name + ": " : "";
		if (!found.best.length)
			return [element("p", { role: "status" }, title + (found.interrupted ? "the time was up before a plan was found." : `no plan fits: ${show.count(found.over_gpu_memory)} are too large for a GPU's memory, ${show.count(found.over_node_memory)} for a node's.`)),
				found.ways_out && found.ways_out.length ? table("What would make a plan fit", ["change", "share of the memory"], found.ways_out.map((w) => [w.change, `${show.share(w.memory_frac)} of a ${w.memory === "node" ? "node" : "GPU"}'s`])) : ""];
		const rows = found.best.map((b, i) => {
			const button = element("button", { type: "button" }, `Use ${i + 1}`);
			button.addEventListener("click", () => this.use(changes(b, this.scenario().tree, this.scenario().resolved || {}), i + 1));
			return [button, words(b), show.time(b.step_s), show.count(b.tokens_per_s_per_gpu), show.cents(b.usd_per_million_tokens), show.bytes(b.memory_bytes_per_gpu.total)];
		});
		return [element("p", { role: "status" }, title + summary(found)),
			table(title + "The best plans; Use puts one into the scenario", ["take it", "plan", "step", "tokens/s/GPU", "per Mtoken", "memory"], rows, new Set([1])),
			element("p", {}, "Why the first: " + found.best[0].why),
			element("ol", { start: 2, class: "note" }, ...found.best.slice(1).map((b) => element("li", {}, b.why + (b.equal ? "; within the range of the first's prediction" : ""))))];
	}
}
