#!/bin/sh
# tests/test_money.sh - what would be free by mistake is refused
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml

refused() { # PATTERN command...
	says=$1
	shift
	"$@" >"$tmp/o" 2>"$tmp/e"
	got=$?
	cat "$tmp/e" >&2
	[ $got = 1 ] && [ ! -s "$tmp/o" ] && grep -q -- "$says" "$tmp/e"
}
book() { # PATTERN ENTRY: a book with such an item over the default one
	printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices:\n  %s\nfacility: {}\noperation: {}\n' "$2" >"$tmp/mine.yaml"
	refused "$1" $f simulate $a --set cost.prices="$tmp/mine.yaml"
}
operation() { # PATTERN TEXT
	printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices: {}\nfacility: {}\noperation: {%s}\n' "$2" >"$tmp/mine.yaml"
	refused "$1" $f simulate $a --set cost.prices="$tmp/mine.yaml"
}
same() { # the interest of next to nothing costs what none does
	for i in 0 1e-16 1e-15 1e-14; do # 1e-12 may change the twelfth digit, and rightly
		$f simulate $a --set cost.cost_of_capital_frac=$i --json | grep '"usd_per_gpu_hour"'
	done | sort -u | wc -l | grep -qx 1
}
of="provenance: {kind: assumed}"
ok "a server for nothing" book "mine.yaml:5:.*usd: is zero" "hgx-h100-server: {usd: 0 USD, $of}"
ok "a cable whose price another includes" sh -c "printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices:\n  fiber: {usd: 0 USD, included: true, $of}\nfacility: {}\noperation: {}\n' >$tmp/m.yaml && $f simulate $a --set cost.prices=$tmp/m.yaml"
ok "a price of tomorrow" book "date: 2999-01 lies in the future" "fiber: {usd: 5 USD, provenance: {kind: assumed, date: 2999-01}}"
ok "an item without a price" sh -c "sed '/^  ufm-licence:/,/^facility/{/^facility/!d}' cost/prices/neocloud-2026-09.yaml >$tmp/b.yaml && $one $f bom $a --set cluster.ufm_ports=4 --set cost.prices=$tmp/b.yaml >$tmp/o 2>$tmp/e && grep -q 'no price for ufm-licence' $tmp/e && test ! -s $tmp/o"
ok "a cluster that only fails" operation "goodput is 0: a cluster of 128 nodes fails every" "failures_per_1000_node_days: {value: 100000, $of}"
ok "a goodput of 0" refused "goodput: should be above 0" $f simulate $a --set cost.goodput=0
ok "a goodput below 0" refused "goodput: -1 is negative" $f simulate $a --set cost.goodput=-1
ok "servers sold for what they cost" refused "residual_frac: should be below 1" $f simulate $a --set cost.residual_frac=1
ok "a horizon of ages" refused "horizon: should be between" $f simulate $a --set cost.horizon=1e9y
ok "the smallest interest" same
finish
