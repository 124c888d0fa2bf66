"use strict";
/* Dollars at other prices: the closed form of the deals that lie in the page. */
(function () {
	const deals = JSON.parse(document.getElementById("deals").textContent);
	const form = document.getElementById("sliders");
	const $ = (id) => document.getElementById(id);
	const value = (id) => Number($(id).value);

	function recovery(i, n) {
		return i === 0 ? 1 / n : i / -Math.expm1(-n * Math.log1p(i));
	}

	/* USD per GPU-hour, as cost/flows.c has it for a purchase at once. */
	function hour(d, k) {
		const bought = d.capital_usd * k.gpu;
		const worth = Math.exp(-k.years * Math.log1p(d.cost_of_capital_frac));
		const capital = bought * (1 - d.residual_frac * worth) * recovery(d.cost_of_capital_frac, k.years);
		const running = bought * d.upkeep_frac + d.colocation_usd_per_year +
			d.electricity_usd_per_year * k.electricity + d.staff_usd_per_year;
		return d.rent_usd_per_gpu_hour > 0 ? d.rent_usd_per_gpu_hour * k.gpu
			: (capital + running) / (d.gpus * 8760);
	}

	/* What the closed form leaves out (tranches, burn-in) stays in proportion. */
	function at(d, k) {
		const asked = { gpu: 1, electricity: 1, years: d.years, utilisation: d.utilization_frac };
		const usd = d.usd_per_gpu_hour * hour(d, k) / hour(d, asked);
		return { hour: usd, tokens: usd * 1e6 / (3600 * d.tokens_per_s_per_gpu * k.utilisation * d.goodput) };
	}

	function row(cells) {
		const tr = document.createElement("tr");
		cells.forEach((text, i) => {
			const cell = document.createElement(i ? "td" : "th");
			if (!i) cell.scope = "row";
			cell.textContent = text;
			tr.appendChild(cell);
		});
		return tr;
	}

	function move() {
		const k = { gpu: value("gpu"), electricity: value("electricity"), years: value("years"),
			utilisation: value("utilisation") };
		const all = deals.map((d) => at(d, k));
		const best = all.reduce((b, x, i) => (x.tokens < all[b].tokens ? i : b), 0);
		$("gpu-now").textContent = Math.round(100 * k.gpu) + " %";
		$("electricity-now").textContent = Math.round(100 * k.electricity) + " %";
		$("years-now").textContent = k.years;
		$("utilisation-now").textContent = Math.round(100 * k.utilisation) + " %";
		$("moved").replaceChildren(...all.map((x, i) => row([deals[i].name, x.hour.toFixed(3), x.tokens.toFixed(4)])));
		$("moved-verdict").textContent = deals.length > 1
			? deals[best].name + " has the fewest dollars per million tokens at these prices (likely values; the odds are above)."
			: "";
	}

	function reset() {
		$("years").value = deals[0].years;
		$("utilisation").value = deals[0].utilization_frac;
		move();
	}

	form.addEventListener("input", move);
	form.addEventListener("reset", () => setTimeout(reset, 0));
	reset();
})();
