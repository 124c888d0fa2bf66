/* report.js - the sliders of the report */
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

	/* What is left after so many years, as a share of the purchase. */
	function residual(d, years) {
		const list = d.residual_by_year;
		if (!list.length) return d.residual_frac;
		if (years >= list.length) return list[list.length - 1];
		const k = Math.floor(years), before = k ? list[k - 1] : 1;
		return before + (list[k] - before) * (years - k);
	}

	/* USD per GPU-hour, as cost/flows.c has it for a purchase at once, or a rent. */
	function hour(d, k) {
		const years = d.years * k.years, used = Math.min(1, d.utilization_frac * k.utilisation);
		const i = d.cost_of_capital_frac, staff = d.staff_and_licences_usd_per_year;
		if (d.rent_usd_per_gpu_hour > 0) {
			const owed = Math.max(0, (d.take_or_pay ? 1 : used) - d.prepaid_frac);
			const ahead = d.prepaid_frac * years * recovery(i, years);
			return d.rent_usd_per_gpu_hour * k.gpu * (owed + ahead) + staff / (d.gpus * 8760);
		}
		const bought = d.capital_usd * k.gpu;
		const worth = Math.exp(-years * Math.log1p(i));
		const capital = bought * (1 + d.extra_frac - residual(d, years) * worth) * recovery(i, years);
		const kw = used * d.used_kw + (1 - used) * d.idle_kw;
		const running = bought * d.upkeep_frac + d.colocation_usd_per_year +
			kw * 8760 * d.electricity_usd_per_kwh * k.electricity + staff;
		return (capital + running) / (d.gpus * 8760);
	}

	/* What the closed form leaves out (tranches, burn-in) stays in proportion. */
	function at(d, k) {
		const asked = { gpu: 1, electricity: 1, years: 1, utilisation: 1 };
		const usd = d.usd_per_gpu_hour * hour(d, k) / hour(d, asked);
		const used = Math.min(1, d.utilization_frac * k.utilisation);
		return { hour: usd, tokens: usd * 1e6 / (3600 * d.tokens_per_s_per_gpu * used * d.goodput) };
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
		const fit = all.map((x, i) => i).filter((i) => deals[i].fits);
		const best = fit.reduce((b, i) => (all[i].tokens < all[b].tokens ? i : b), fit[0]);
		$("gpu-now").textContent = Math.round(100 * k.gpu) + " %";
		$("electricity-now").textContent = Math.round(100 * k.electricity) + " %";
		$("years-now").textContent = Math.round(100 * k.years) + " %";
		$("utilisation-now").textContent = Math.round(100 * k.utilisation) + " %";
		$("moved").replaceChildren(...all.map((x, i) => row([deals[i].name + (deals[i].fits ? "" : ", which does not fit"), x.hour.toFixed(3), x.tokens.toFixed(4)])));
		$("moved-verdict").textContent = fit.length > 1
			? deals[best].name + " has the fewest dollars per million tokens at these prices (likely values; the odds are above)."
			: deals.length > 1 && fit.length ? deals[best].name + " alone has a plan that fits." : "";
	}

	form.addEventListener("input", move);
	form.addEventListener("reset", () => setTimeout(move, 0));
	move();
})();
