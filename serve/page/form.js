/* form.js - the scenario as a tree, as a form and as YAML */

/* ---- the tree: maps as objects, as POST /api/document gives it */

export function get(tree, path) {
	return path.split(".").reduce((at, key) => (at && typeof at === "object" && !Array.isArray(at) ? at[key] : undefined), tree);
}

/* Under "a.b.c"; undefined takes it away, and maps that are empty then. A name in the way of
 * a map becomes its name, as --set has it. */
export function put(tree, path, value) {
	const [head, ...rest] = path.split(".");
	if (!rest.length) {
		if (value === undefined)
			delete tree[head];
		else
			tree[head] = value;
		return;
	}
	if (value === undefined && (tree[head] === undefined || typeof tree[head] !== "object"))
		return;
	if (tree[head] === undefined || tree[head] === null)
		tree[head] = {};
	else if (typeof tree[head] !== "object")
		tree[head] = { name: tree[head] };
	put(tree[head], rest.join("."), value);
	if (!Object.keys(tree[head]).length)
		delete tree[head];
}

/* What a person typed: a number, a truth, a list or map of JSON, or a word. */
export function typed(text) {
	const word = text.trim();
	if (word === "")
		return undefined;
	if (word === "true" || word === "false")
		return word === "true";
	if (/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(word))
		return Number(word);
	if (/^[[{]/.test(word)) {
		try {
			return JSON.parse(word);
		} catch {
			return word;
		}
	}
	return word;
}

/* ---- the tree as YAML */

function scalar(value) {
	if (value === null)
		return "null";
	if (typeof value !== "string")
		return String(value);
	const plain = /^[A-Za-z0-9.][A-Za-z0-9 ._+\/%-]*$/.test(value) && !/\s$/.test(value);
	const other = typeof typed(value) !== "string" || /^(null|~|yes|no|on|off)$/i.test(value) || /^\.(inf|nan)$/i.test(value);
	return plain && !other ? value : JSON.stringify(value);
}

function flow(value) {
	if (Array.isArray(value))
		return "[" + value.map(flow).join(", ") + "]";
	if (value && typeof value === "object")
		return "{" + Object.entries(value).map(([k, v]) => scalar(k) + ": " + flow(v)).join(", ") + "}";
	return scalar(value);
}

export function yaml(tree, indent = "") {
	let out = "";
	for (const [key, value] of Object.entries(tree)) {
		const map = value && typeof value === "object" && !Array.isArray(value);
		const line = flow(value);
		if (map && Object.keys(value).length && (indent === "" || line.length > 60))
			out += indent + scalar(key) + ":\n" + yaml(value, indent + "  ");
		else
			out += indent + scalar(key) + ": " + line + "\n";
	}
	return out;
}

/* ---- the form */

/* What most people change, in this order, with the words of a label. */
const first = [
	["model", "Model"], ["cluster.gpu", "GPU"], ["cluster.gpus", "GPUs"], ["cluster.fabric", "Network"],
	["stack", "Software stack"], ["training.sequence_length", "Sequence length"],
	["training.global_batch_size", "Global batch"], ["training.micro_batch_size", "Micro-batch"],
	["training.precision", "Precision"], ["training.sharding", "Sharding"],
	["training.parallel.tp", "Tensor parallel (tp)"], ["training.parallel.pp", "Pipeline stages (pp)"],
	["training.parallel.vpp", "Chunks a stage (vpp)"], ["training.parallel.cp", "Context parallel (cp)"],
	["training.parallel.ep", "Expert parallel (ep)"], ["training.recompute", "Recompute"],
	["cost.prices", "Price book"], ["run.tokens", "Tokens to train"],
];
const groups = { cluster: "Cluster", training: "Training", cost: "Cost", run: "What is asked", "": "Scenario" };

function element(name, set, ...children) {
	const e = document.createElement(name);
	for (const [key, value] of Object.entries(set || {}))
		if (value === true || value === false)
			e.toggleAttribute(key, value);
		else if (value !== undefined)
			e.setAttribute(key, value);
	e.append(...children.filter((c) => c !== null && c !== undefined));
	return e;
}
export { element };

const text_of = (value) => (value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/* The choices of a key: presets with their titles, or words. */
function options(key, names) {
	if (key.names)
		return (names[key.names] || []).map((n) => ({ value: n.name, label: n.name }));
	return (key.choices || []).map((word) => ({ value: word, label: word }));
}

function source(key, names, value) {
	const preset = key.names && (names[key.names] || []).find((n) => n.name === value);
	return preset ? [preset.title, [preset.kind, preset.source, preset.date].filter(Boolean).join(", ")].filter(Boolean).join(": ") : "";
}

export class Form {
	/* changed(path, value) is called when a person changes a field */
	constructor(root, keys, names, changed) {
		this.keys = new Map(keys.map((k) => [k.name, k]));
		this.names = names;
		this.fields = new Map();
		root.addEventListener("submit", (e) => e.preventDefault());
		root.addEventListener("input", (e) => {
			const path = e.target.dataset.key;
			if (path)
				changed(path, typed(e.target.value));
		});
		root.append(this.group("Scenario", first));
		const rest = keys.filter((k) => !first.some((f) => f[0] === k.name));
		const all = element("details", {}, element("summary", {}, "All keys (" + keys.length + ")"));
		for (const [head, title] of Object.entries(groups)) {
			const mine = rest.filter((k) => (groups[k.name.split(".")[0]] && k.name.includes(".") ? k.name.split(".")[0] : "") === head);
			if (mine.length)
				all.append(this.group(title, mine.map((k) => [k.name, head ? k.name.slice(head.length + 1) : k.name])));
		}
		root.append(all);
	}

	group(title, list) {
		return element("fieldset", {}, element("legend", {}, title),
			element("div", { class: "fields" }, ...list.filter(([path]) => this.keys.has(path)).map(([path, label]) => this.field(path, label))));
	}

	field(path, label) {
		const key = this.keys.get(path), id = "key-" + path, choices = options(key, this.names);
		const input = choices.length
			? element("select", { id, "data-key": path, "aria-describedby": id + "-about" }, element("option", { value: "" }, "default"),
				...choices.map((c) => element("option", { value: c.value }, c.label)))
			: element("input", { id, "data-key": path, "aria-describedby": id + "-about", type: "text", spellcheck: "false" });
		const about = element("span", { class: "about", id: id + "-about" }, key.title);
		const wide = ["model", "stack", "cost.prices"].includes(path);
		const box = element("div", { class: "field" + (wide ? " wide-field" : "") }, element("label", { for: id }, label), input, about);
		this.fields.set(path, { box, input, about, key });
		return box;
	}

	/* given: the tree; resolved: the answer's, with all defaults, or undefined */
	show(given, resolved) {
		for (const [path, { box, input, about, key }] of this.fields) {
			const value = text_of(get(given, path)), now = text_of(get(resolved, path));
			const standard = now || key.default || "";
			box.classList.toggle("given", value !== "");
			if (input.tagName === "SELECT") {
				if (value && ![...input.options].some((o) => o.value === value))
					input.append(element("option", { value }, value.length > 40 ? value.slice(0, 40) + " ..." : value));
				input.options[0].textContent = standard ? standard + " (default)" : "default";
				about.textContent = source(key, this.names, value || now) || key.title;
			} else {
				input.placeholder = standard;
			}
			if (document.activeElement !== input || input.tagName === "SELECT")
				input.value = value;
		}
	}
}
