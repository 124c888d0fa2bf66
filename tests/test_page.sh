#!/bin/sh
# tests/test_page.sh - a report says what the JSON, the bills and the payments say, number by number (tests/page.py)
. "$(dirname "$0")/tap.sh"

page() { # SCENARIO...: the report that compares them
	bills=
	flows=
	for s in "$@"; do
		n=$tmp/$(basename "$s" .yaml)
		$f bom "$s" --json >"$n.json" && $f simulate "$s" --finance --flows "$n.csv" >"$tmp/o" || return 1
		bills=${bills:+$bills,}$n.json
		flows=${flows:+$flows,}$n.csv
	done
	rm -rf "$tmp/report"
	$f compare "$@" --json >"$tmp/answer.json" && $f compare "$@" --report "$tmp/report" >"$tmp/text" &&
		python3 tests/page.py "$tmp/report/index.html" "$tmp/answer.json" "$tmp/text" "$bills" "$flows" && plots "$1"
}
plots() { # SCENARIO: the report's first; what gnuplot was given
	$f simulate "$1" --set cluster.gpus=512 --set training.global_batch_size=512 --json >"$tmp/sized.json" &&
		python3 tests/plots.py "$tmp/report" "$tmp/answer.json" "$flows" "$tmp/sized.json" 512
}
rent() { # beside a purchase: there is no bill. So dear that by price alone the slow one would cost less than nothing
	sed '/^cost:/,$d' examples/01-first-answer/h100.yaml >"$tmp/rent.yaml"
	echo "cost: {usd_per_gpu_hour: 40 USD/h, prepaid_frac: 0.2, horizon: 3 y}" >>"$tmp/rent.yaml"
	sed 's/  sharding: zero1/&\n  recompute: full/' "$tmp/own.yaml" >"$tmp/slow.yaml"
	set -- "$tmp/rent.yaml" "$tmp/slow.yaml"
	flows=$tmp/rent.csv,$tmp/slow.csv
	$f simulate "$1" --flows "$tmp/rent.csv" >"$tmp/o" && $f simulate "$2" --flows "$tmp/slow.csv" >"$tmp/o" && $f compare "$@" --json >"$tmp/answer.json" &&
		$f compare "$@" --report "$tmp/report" >"$tmp/text" && plots "$1" && grep -q 'yrange \[-' "$tmp/report/waterfall-1.gp"
}
if command -v gnuplot >/dev/null; then
	ok "of two vendors" page examples/01-first-answer/h100.yaml examples/01-first-answer/mi300x.yaml
	sed '$a\
run: {tokens: 15 T, days: 60, budget: 300 MUSD, megawatts: 30}' examples/01-first-answer/h100.yaml >"$tmp/asked.yaml"
	sed '$a\
run: {tokens: 15 T, days: 1, budget: 1 USD}' examples/01-first-answer/mi300x.yaml >"$tmp/never.yaml"
	ok "of fleets that are asked for, and of none" page "$tmp/asked.yaml" "$tmp/never.yaml"
	sed 's/gpus: 1024/gpus: 512/' examples/01-first-answer/h100.yaml >"$tmp/half.yaml"
	ok "of three sizes and vendors" page examples/01-first-answer/h100.yaml examples/01-first-answer/mi300x.yaml "$tmp/half.yaml"
	more="cost: {residual_by_year: [0.7, 0.5, 0.3], horizon: 2.5 y, tax_frac: 0.05, insurance_frac: 0.01, staff: 0.2 MUSD/y}"
	sed "s/^cost:.*/x:/;/^x:/,\$d" examples/01-first-answer/h100.yaml >"$tmp/own.yaml"
	echo "$more" | sed 's/{/{prices: neocloud-2026-09, /' >>"$tmp/own.yaml"
	sed 's/staff:/against: 4.5 USD\/h, staff:/' "$tmp/own.yaml" >"$tmp/against.yaml"
	sed '/^cost:/,$d' examples/01-first-answer/h100.yaml >"$tmp/cheap.yaml"
	echo "cost: {prices: neocloud-2026-09, against: 0.5 USD/h}" >>"$tmp/cheap.yaml"
	ok "of unlike deals" page "$tmp/own.yaml" examples/01-first-answer/h100.yaml "$tmp/against.yaml" "$tmp/cheap.yaml"
	ok "and the plots of a rent beside a purchase" rent
else
	skip "of two vendors" "no gnuplot"
fi
finish
