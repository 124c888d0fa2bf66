#!/bin/sh
# tests/test_money.sh - what would be free by mistake is refused
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml

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
		$f simulate $a --set cost.cost_of_capital_frac=$i --json | jq .cost.usd_per_gpu_hour
	done | sort -u | wc -l | grep -qx 1
}
whole() { # PATTERN HEAD LINES: a book with that head and these lines upon the default's
	printf 'name: mine\n%s\nprovenance: {kind: assumed}\nprices:\n  %s\nfacility: {}\noperation: {}\n' "$2" "$3" >"$tmp/mine.yaml"
	refused "$1" $f bom $a --set cost.prices="$tmp/mine.yaml"
}
of="provenance: {kind: assumed, date: 2026-11-20}"
ok "a server for nothing" book "mine.yaml:5:.*usd: is zero" "hgx-h100-server: {usd: 0 USD, $of}"
ok "a cable whose price another includes" sh -c "printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices:\n  fiber: {usd: 0 USD, included: true, $of}\nfacility: {}\noperation: {}\n' >$tmp/m.yaml && $f simulate $a --set cost.prices=$tmp/m.yaml"
ok "a cable that is included and has a price" book "mine.yaml:5:.*included: is true, and the item has a price of its own" "fiber: {usd: 60 USD, included: true, $of}"
ok "a price of tomorrow" book "date: 2999-01 lies in the future" "fiber: {usd: 5 USD, provenance: {kind: assumed, date: 2999-01}}"
ok "a price without a date" book "mine.yaml:5:.*usd: has no date" "fiber: {usd: 5 USD, provenance: {kind: assumed}}"
ok "a price in another currency" book "mine.yaml:5:.*usd: .*EUR" "fiber: {usd: 5 EUR, $of}"
ok "a book of tomorrow" whole "mine.yaml:2:.*date: 2999-01 lies in the future" "date: 2999-01" "fiber: {usd: 5 USD, $of}"
ok "a book without a date" whole "mine.yaml:1:.*lacks the key 'date'" "title: mine" "fiber: {usd: 5 USD, $of}"
ok "a book upon one of another year" whole "mine.yaml:3:.*extends: a book of 2025-01 cannot extend neocloud-2026-09, which is of 2026-09" "date: 2025-01
extends: neocloud-2026-09" "fiber: {usd: 5 USD, $of}"
chain() { # N: a book upon a book upon ... hyperscaler-2025-08, which is upon another; N of ours
	below=hyperscaler-2025-08
	for n in $(seq $1); do
		printf 'name: b%d\nextends: %s\nprovenance: {kind: assumed}\nprices: {}\nfacility: {}\noperation: {}\n' $n $below >"$tmp/b$n.yaml"
		below=$tmp/b$n.yaml
	done
	$f bom $a --set cost.prices="$below"
}
ok "eight books behind one" chain 7
ok "nine behind one are too many" refused "hyperscaler-2025-08.yaml:[0-9]*:[0-9]*: error: one book cannot lead to more than 8 others" chain 8
ok "a line that is taken and given" book "mine.yaml:5:.*fiber: a line that is taken" "fiber: {from: mixnet-2025, usd: 5 USD}"
ok "a line that is not there" book "mine.yaml:5:.*book mixnet-2025 has no string in its prices" "string: {from: mixnet-2025}"
ok "a book that takes from itself" book "leads back to itself" "fiber: {from: $tmp/mine.yaml}"
ok "the bill says whose a line is" sh -c "printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices:\n  optic-400g-generic: {from: mixnet-2025}\n  fiber: {usd: 7 USD, $of}\nfacility: {}\noperation: {}\n' >$tmp/m.yaml && $f bom $a --set cost.prices=$tmp/m.yaml >$tmp/o && grep -q '^optics in nodes.* 659 .* mixnet-2025 ' $tmp/o && grep -q '^cables node.* 7 .* mine ' $tmp/o && grep -q '^server .* neocloud-2026-09 ' $tmp/o && grep -q '^From mixnet-2025: optic-400g-generic' $tmp/o"
ok "a price given for an item that nobody has" refused "price hgx-h100-sever=1:1:24: .*did you mean 'hgx-h100-server'" $f bom $a --price hgx-h100-sever=1
ok "a price given as 0" refused "price fiber=0:1:15: .*should be above 0 and at most" $f simulate $a --price fiber=0
ok "a price given below 0" refused "fiber: -2 is negative" $f compare $a $a --price fiber=-2
ok "a price given in another currency" refused "'EUR' is not a unit of an amount" $f bom $a --price "fiber=3 EUR"
ok "a price given without an amount" refused "write --price ITEM=USD" $f bom $a --price fiber
ok "the highest price that can be given" sh -c "$f bom $a --set 'cost.price_of={hgx-h100-server: 1e12 USD}' >/dev/null"
ok "and a higher one" refused "should be above 0 and at most 1e12 USD" $f bom $a --set 'cost.price_of={hgx-h100-server: 1.001e12 USD}'
ok "and none" refused "should be above 0 and at most 1e12 USD" $f bom $a --set 'cost.price_of={hgx-h100-server: 0 USD}'
ok "a price given as a list" refused "price_of: should be a map" $f bom $a --set "cost.price_of=[1]"
ok "a server that would cost less than its adapters, which the book lists apart" refused "these cost USD 11992 of each server: the price of hgx-h100-server includes them" $f bom $a --set cost.prices=mixnet-2025 --price hgx-h100-server=11992
ok "prices given on the command line" sh -c "$f bom $a --price hgx-h100-server=250000 --price storage-server=90000 >$tmp/o && grep -q '^server  *hgx-h100-server  *128  *250000  *32000000  *given  *-  *given  *given on the command line' $tmp/o && grep -q '^Given: hgx-h100-server, storage-server.' $tmp/o"
ok "a price given of what no line is" sh -c "for c in bom simulate; do $f \$c $a --price nic-400g=1 --price fiber=5 >$tmp/o && grep -q '^Given: fiber[.]\$' $tmp/o && grep -q '^Given, but on no line of the bill: nic-400g[.]\$' $tmp/o && $f \$c $a --price nic-400g=1 --json | jq -e '.prices.given_in_vain == \"nic-400g\"' || exit; done"
added() { # PATTERN BOOK SECTION ITEM USD: a book upon that one with an item of its own, in text and JSON
	printf 'name: mine\nextends: %s\nprovenance: {kind: assumed}\n%s:\n  %s: {usd: %s, %s}\n' "$2" "$3" "$4" "$5" "$of" >"$tmp/mine.yaml"
	$f simulate $b --set cost.prices="$tmp/mine.yaml" >"$tmp/o" && $f simulate $b --set cost.prices="$tmp/mine.yaml" --json >"$tmp/j" || return 1
	if [ "$1" ]; then
		grep -qx "Given, but on no line of the bill: $1[.]" "$tmp/o" && jq -e ".prices.given_in_vain == \"$1\"" "$tmp/j"
	else
		! grep -q 'on no line' "$tmp/o" && jq -e '.prices.given_in_vain == ""' "$tmp/j"
	fi
}
sed '/^cost/,$d' $a >"$tmp/bare.yaml"
b=$tmp/bare.yaml
ok "an item misspelt in a book upon another is told" added hgx-h100-sever neocloud-2026-09 prices hgx-h100-sever "250000 USD"
ok "a rent, too" added h100-smx rent-2026 rent h100-smx "2 USD/h"
ok "not what the other book has" added "" neocloud-2026-09 prices mi300x-server "150000 USD"
ok "given on the line or in the scenario, it costs the same" sh -c "$f simulate $a --price hgx-h100-server=250000 --json | jq .cost >$tmp/o && $f simulate $a --set 'cost.price_of={hgx-h100-server: 250000 USD}' --json | jq .cost | cmp - $tmp/o"
ok "the scenario of the answer keeps them" sh -c "$f simulate $a --price hgx-h100-server=250000 --json | jq .scenario | $f simulate - --json | jq .cost | cmp - $tmp/o"
ok "one that the book lacks can be given" sh -c "sed '/^  ufm-licence:/,/^  aec/{/^  aec/!d}' cost/prices/neocloud-2026-09.yaml >$tmp/b.yaml && $f bom $a --set cluster.ufm_ports=4 --set cost.prices=$tmp/b.yaml --price ufm-licence=75 | grep -q '^fabric manager licences  *ufm-licence  *1024  *75  *76800  *given'"
ok "a sweep takes prices" sh -c "$f sweep $a --vary cluster.gpus=1024 --price fiber=5 --db $tmp/s.db >/dev/null && $f sweep $a --vary cluster.gpus=1024 --price fiber=6 --db $tmp/s.db | grep -q '^1 '"
sed '/^cost/,$d' $a >"$tmp/bare.yaml"
b=$tmp/bare.yaml
for key in horizon=3y cost_of_capital_frac=0.1 residual_frac=0.2 electricity=0.1USD/kWh 'price_of={fiber: 3 USD}'; do
	ok "rented, it has no effect: ${key%%=*}" refused "cost.${key%%=*} has no effect: with rent-2026 the cluster is rented" $f simulate "$b" --set cost.usd_per_gpu_hour=2USD/h --set "cost.$key"
done
ok "power that the colocation includes" refused "cost.electricity has no effect: with neocloud-2026-07 the colocation" $f simulate "$b" --set cost.prices=neocloud-2026-07 --set cost.electricity=0.1USD/kWh
ok "a rent beside a book of what is bought" refused "a rent, and mixnet-2025 is a book of what is bought" $f simulate "$b" --set cost.prices=mixnet-2025 --set cost.usd_per_gpu_hour=2USD/h
sed '/^  h100-sxm:/,/^  h200:/{/^  h200:/!d}' cost/prices/rent-2026.yaml >"$tmp/rents.yaml"
ok "the rent of a GPU that nobody lets" refused "rents.yaml:[0-9]*:[0-9]*: error: .*rent-2026 has no rent of h100-sxm; give cost.usd_per_gpu_hour" $f simulate "$b" --set cost.prices="$tmp/rents.yaml"
ok "the bill of what is rented" refused "no bill of a rented cluster: rent-2026 is a book of rents" $f bom "$b" --set cost.prices=rent-2026
ok "a rent that is given" sh -c "$f simulate $b --set cost.usd_per_gpu_hour=2.5USD/h >$tmp/o && grep -q '^USD per GPU-hour  *2.500' $tmp/o && grep -q '^capital  *0 USD' $tmp/o && grep -q '^Given: h100-sxm' $tmp/o"
ok "a rent below a dollar is one" sh -c "$f simulate $b --set cost.usd_per_gpu_hour=0.4USD/h --json | jq -e '.scenario.cost.prices == \"rent-2026\" and .cost.usd_per_gpu_hour == 0.4 and .cost.capex_usd == 0'"
ok "the scenario of a rented answer answers the same" sh -c "$f simulate $b --set cost.usd_per_gpu_hour=2.5USD/h --json >$tmp/j && jq .scenario $tmp/j | $f simulate - --json | jq .cost >$tmp/o && jq .cost $tmp/j | cmp - $tmp/o && jq -e '[.assumed[] | select(startswith(\"cost.\"))] == [\"cost.prices\", \"cost.pue\", \"cost.utilization_frac\", \"cost.goodput\"]' $tmp/j"
ok "rented and paid ahead, years and interest are told, as dollars depend on them" sh -c "$f simulate $b --set 'cost={usd_per_gpu_hour: 2.5 USD/h, prepaid_frac: 0.3}' --json >$tmp/j && jq -e '[.assumed[] | select(. == \"cost.horizon\" or . == \"cost.cost_of_capital_frac\")] | length == 2' $tmp/j && jq -e '.scenario.cost | .horizon == \"4 y\" and .cost_of_capital_frac == 0.08' $tmp/j && jq .scenario $tmp/j | $f simulate - --json | jq .cost >$tmp/o && jq .cost $tmp/j | cmp - $tmp/o"
ok "a report of what is rented and what is bought" sh -c "$f compare $b $a --set cluster.gpus=512 --report $tmp/r >/dev/null && $f simulate $b --set cost.prices=rent-2026 --report $tmp/r2 >/dev/null && grep -q 'of the rent is at quoted' $tmp/r2/index.html"
building() { # of 1,422 kW of IT: a building nobody described, and one that is known
	$f simulate $a --json >"$tmp/j" && jq .scenario "$tmp/j" | $f simulate - --json | jq .interval >"$tmp/o" &&
		jq .interval "$tmp/j" | cmp - "$tmp/o" &&
		jq -e '.cost.provisioned_w as $w | [.cost.facility_provisioned_w, .interval.facility_provisioned_w[]] | map(. / $w * 100 | round) == [125, 110, 152]' "$tmp/j" >/dev/null &&
		$f simulate $a --json --set cost.pue=1.2 | jq -e '.cost.facility_provisioned_w as $w | .interval.facility_provisioned_w | map(. / $w) | .[0] > 0.97 and .[1] < 1.03' >/dev/null &&
		$f compare $a examples/01-first-answer/mi300x.yaml --json | jq -e '[.verdict.causes[].cause] | index("PUE of the building")' >/dev/null
}
units() { # the book's own electricity, PUE and times are those in other units, too: with its range
	$f simulate $a --json | jq .interval >"$tmp/o" &&
		for e in "87 USD/MWh" "87.00 USD/MWh" "8.7e1 USD/MWh" "0.0870 USD/kWh"; do
			$f simulate $a --set "cost.electricity=$e" --json >"$tmp/j" && jq .interval "$tmp/j" | cmp - "$tmp/o" &&
				jq -e '.scenario.cost.electricity == "0.087 USD/kWh"' "$tmp/j" >/dev/null || return 1
		done
	for e in 135.1:0.1351 70.7:0.0707 0.3:0.0003; do
		$f simulate $a --set "cost.electricity=${e%:*} USD/MWh" --json | jq -e ".scenario.cost.electricity == \"${e#*:} USD/kWh\"" >/dev/null || return 1
	done
}
ok "a figure of the book in other units is the book's" units
ok "the building's overhead has a range unless it is known" building
watts() { # the law's constants move joules and mean megawatts, of one scenario as of two
	$f simulate $a --json | jq -e '.cost as $c | .interval | .average_power_w[0] < $c.average_power_w and .average_power_w[1] > $c.average_power_w and .joules_per_token[0] < $c.joules_per_token and .joules_per_token[1] > $c.joules_per_token' >/dev/null &&
		$f simulate $a --set cost.pue=1.2 --json | jq -e '.interval.average_power_w | .[1] / .[0] > 1.05' >/dev/null &&
		$f compare $a examples/01-first-answer/mi300x.yaml --json | jq -e '[.verdict.causes[].cause] | index("watts of GPUs and hosts")' >/dev/null &&
		$f simulate $a --tokens 1T --json | jq -e '.run | .megawatts_p10 < .megawatts and .megawatts < .megawatts_p90' >/dev/null &&
		$f simulate $a --tokens 1T | grep -q '>*MW  *P90 '
}
ok "what machines draw has a range" watts
of_book() { # times of a book, as the scenario's own would be
	for k in "repair cold" "failover fault_tolerant" "flap hot, flaps_per_1000_node_days: 40"; do
		key=${k%% *} how=${k#* }
		printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices: {}\nfacility: {}\noperation: {%s: {value: 2000 s, %s}}\n' "$key" "$of" >"$tmp/mine.yaml"
		$f simulate $a --set cost.prices="$tmp/mine.yaml" --set "cost.goodput={recovery: $how}" --json | jq .cost.goodput >"$tmp/book"
		$f simulate $a --set cost.prices=neocloud-2026-09 --set "cost.goodput={recovery: $how, $key: 2000 s}" --json | jq .cost.goodput >"$tmp/own"
		$f simulate $a --set cost.prices=neocloud-2026-09 --set "cost.goodput={recovery: $how}" --json | jq .cost.goodput >"$tmp/base"
		cmp -s "$tmp/book" "$tmp/own" && ! cmp -s "$tmp/own" "$tmp/base" || return 1
	done
}
ok "what the book says beside prices is told, in its units" sh -c "$f simulate $a --json | jq -e '.prices.figures | map(.figure) == [\"colocation\", \"electricity\", \"pue\", \"maintenance_frac\", \"failure_factor\", \"checkpoint\", \"restart\", \"repair\", \"failover\", \"flap\"] and .[0].value == 105 and .[0].low == 80 and .[9].unit == \"s\"' && $f simulate $a --set cost.prices=neocloud-2026-07 --json | jq -e '[.prices.figures[].figure] | index(\"electricity\") == null'"
ok "repair, failover and flap are the book's, or the scenario's" of_book
ok "and have a range until the scenario says them" sh -c "$f simulate $a --set 'cost.goodput={recovery: cold}' --json >$tmp/j && jq .scenario $tmp/j | $f simulate - --json | jq .interval >$tmp/o && jq .interval $tmp/j | cmp - $tmp/o && $f simulate $a --set 'cost.goodput={recovery: cold, repair: 14399 s}' --json | jq -e --slurpfile j $tmp/j '.interval.usd_per_million_tokens[1] < 0.99 * \$j[0].interval.usd_per_million_tokens[1]'"
hours() { # hours between failures that the bill tells, under a book of this failure_factor
	printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices: {}\nfacility: {}\noperation: {failure_factor: {value: %s, %s}}\n' "$1" "$of" >"$tmp/mine.yaml"
	$f bom $a --set cost.prices="$tmp/mine.yaml" | sed -n 's/.*stopped by a failure every \([0-9.]*\) h.*/\1/p'
}
ok "who looks after machines twice as well has half the failures, in the bill too" sh -c "echo $(hours 0.5) $(hours 1) | awk '{ exit !(\$2 > 0 && \$1 / \$2 > 1.99 && \$1 / \$2 < 2.01) }'"
ok "a range from 0, which would have been none" operation "maintenance_frac: has a range that begins at 0" "maintenance_frac: {value: 1 %, low: 0 %, high: 3 %, $of}"
ok "likewise of a price" refused "usd: has a range that begins at 0" sh -c "printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices:\n  fiber: {usd: {value: 60 USD, low: 0 USD, high: 90 USD}, $of}\nfacility: {}\noperation: {}\n' >$tmp/mine.yaml && $f simulate $a --set cost.prices=$tmp/mine.yaml"
ok "likewise of a PUE of 1" refused "pue: has a range that begins at 1" sh -c "printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices: {}\nfacility: {pue: {value: 1.2, low: 1, high: 1.4, $of}}\noperation: {}\n' >$tmp/mine.yaml && $f simulate $a --set cost.prices=$tmp/mine.yaml"
ok "a PUE below 1, of a book" refused "pue: 0.9 is not between 1 and 10" sh -c "printf 'name: mine\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices: {}\nfacility: {pue: {value: 0.9, $of}}\noperation: {}\n' >$tmp/mine.yaml && $f simulate $a --set cost.prices=$tmp/mine.yaml"
ok "an item without a price" sh -c "sed '/^  ufm-licence:/,/^  aec/{/^  aec/!d}' cost/prices/neocloud-2026-09.yaml >$tmp/b.yaml && $one $f bom $a --set cluster.ufm_ports=4 --set cost.prices=$tmp/b.yaml >$tmp/o 2>$tmp/e && grep -q 'b.yaml:[0-9]*:[0-9]*: error: price book .* no price for ufm-licence' $tmp/e && test ! -s $tmp/o"
ok "an allowance of nothing, beside parts that are priced" operation "mine.yaml:6:.*storage_per_gpu: is zero, and would stand for nothing" "storage_per_gpu: {value: 0 USD, $of}"
facility() { # PATTERN BOOK TEXT: a book upon another one, with such a facility
	printf 'name: mine\nextends: %s\nprovenance: {kind: assumed}\nprices: {}\nfacility: {%s}\noperation: {}\n' "$2" "$3" >"$tmp/mine.yaml"
	if [ "$1" ]; then refused "$1" $f bom $a --set cost.prices="$tmp/mine.yaml"; else $f bom $a --set cost.prices="$tmp/mine.yaml"; fi
}
in_vain="mine.yaml:5:12: error: electricity has no effect: the colocation includes power"
ok "electricity that the other book's colocation includes" facility "$in_vain" neocloud-2026-07 "electricity: {value: 0.2 USD/kWh, $of}"
ok "taken from a third book" facility "$in_vain" neocloud-2026-07 "electricity: {from: enterprise-2026}"
ok "that its own includes" facility "${in_vain%%:12*}" neocloud-2026-09 "colocation_includes_power: true, electricity: {value: 0.2 USD/kWh, $of}"
ok "paid for where it says so" facility "" neocloud-2026-07 "colocation_includes_power: false, colocation: {value: 105 USD/kW-month, $of}, electricity: {value: 0.2 USD/kWh, $of}"
ok "the other book's is passed over" facility "" neocloud-2026-09 "colocation_includes_power: true, colocation: {value: 180 USD/kW-month, $of}"
ok "a cluster that only fails" operation "goodput is 0: a cluster of 1024 GPUs fails every [0-9] s" "failure_factor: {value: 30000, $of}"
cat >"$tmp/one.yaml" <<END
model: gpt-1.5b
cluster: {gpu: h200, gpus: 1, node: hgx-h200}
stack: torch-2.11-eager
training: {sequence_length: 1024, global_batch_size: 64, micro_batch_size: 2, sharding: fsdp}
END
rarely() { # idle hours that are 1.6 times as long leave 0.3 / (0.3 + 0.7 x 1.6) = 0.21 of use, not nothing
	$f simulate "$tmp/one.yaml" --set cost.utilization_frac=0.3 --json | jq -e '.interval.usd_per_million_tokens as [$low, $high] | .cost.usd_per_million_tokens as $x | $high / $x > 1.3 and $high / $x < 2 and $low / $x < 0.85 and $low / $x > 0.5' >/dev/null
}
ok "a cluster that is used rarely has dollars that end somewhere" rarely
repaired() { # one GPU: a failure takes that one out for four hours, not eight of them
	for spares in true false; do
		$f simulate "$tmp/one.yaml" --set cost.goodput.spares=$spares --json | jq .cost.goodput
	done | jq -es '.[0] / .[1] - 1 | . > 0.00005 and . < 0.0003' >/dev/null
}
ok "a failure takes out no more GPUs than a job has" repaired
idle() { # seven GPUs of the server draw what idle ones do, and are provisioned for all the same
	$f simulate "$tmp/one.yaml" --json >"$tmp/1" && $f simulate "$tmp/one.yaml" --set cluster.gpus=8 --json >"$tmp/8" &&
		jq -e --slurpfile e "$tmp/8" '.cost | .provisioned_w == $e[0].cost.provisioned_w and .facility_power_w < 0.85 * $e[0].cost.facility_power_w' "$tmp/1" >/dev/null
}
ok "GPUs that a job leaves in a server idle" idle
ok "a goodput of 0" refused "goodput: should be above 0" $f simulate $a --set cost.goodput=0
ok "a goodput below 0" refused "goodput: -1 is negative" $f simulate $a --set cost.goodput=-1
twenty=$(seq -s, 20 | sed 's/[0-9][0-9]*/0.1/g')
for r in '[]' 0.5 "[$twenty,0.1]"; do
	ok "residuals by year: $r" refused "should be a list of 1 to 20 shares" $f simulate $a --set "cost.residual_by_year=$r"
done
ok "twenty years of residuals" $f simulate $a --set "cost.residual_by_year=[$twenty]"
for r in '[0.5,0.6]' '[[1]]' '[1.1]' '[-0.1]'; do
	ok "residuals by year: $r" refused "shares from 0 to 1 that do not grow" $f simulate $a --set "cost.residual_by_year=$r"
done
ok "servers sold for what they cost" refused "residual_frac: should be below 1" $f simulate $a --set cost.residual_frac=1
ok "a horizon of days" refused "horizon: should be between 4 d and 100 y" $f simulate $a --set cost.horizon=3.9d
ok "of four of them" sh -c "$f simulate $a --set cost.horizon=4d >/dev/null"
ok "a PUE of another kind of number" refused "pue: 12 is not between 1 and 10" $f simulate $a --set cost.pue=12
ok "a horizon of ages" refused "horizon: should be between" $f simulate $a --set cost.horizon=1e9y
ok "the smallest interest" same
cat >"$tmp/guessed.yaml" <<END
model: llama3-8b
cluster: {gpu: mi355x, gpus: 64}
training: {sequence_length: 4096, global_batch_size: 128}
END
ok "where most is guessed, whose quote to ask for" sh -c "$f simulate $tmp/guessed.yaml | grep -q '^The price of mi355x-server, [0-9]* % of the capital, is guessed: ask for a quote, and give it with --price mi355x-server=USD'"
ok "not where it is given" sh -c "! $f simulate $tmp/guessed.yaml --price mi355x-server=280000 | grep -q 'ask for a quote'"
told() { # the shares that a table shows add up to all of the capital
	$f "$@" | awk '/^  at [a-z]* prices/ { for (i = 4; i <= NF; i++) if ($i ~ /^[0-9.]+$/) { sum += $i; break } } END { exit !(sum > 99.8 && sum < 100.2) }'
}
ok "shares of prices add up, with those that were given" told simulate examples/01-first-answer/mi300x.yaml --price mi300x-server=150000
ok "side by side, too" told compare examples/01-first-answer/mi300x.yaml examples/01-first-answer/h100.yaml --price mi300x-server=150000
ok "and without" told simulate examples/01-first-answer/mi300x.yaml
ok "GPUs that are bought and idle are told" sh -c "$f simulate examples/01-first-answer/h100.yaml --set cluster.gpus=996 --set 'training.parallel={tp: 4}' --set training.global_batch_size=996 | grep -q '^4 of the 1000 GPUs that are bought stand idle, as servers are sold whole; USD per GPU-hour is of the 996 that work'"
ok "not where all work, or where they are rented" sh -c "! $f simulate examples/01-first-answer/h100.yaml | grep -q 'stand idle' && ! $f simulate examples/01-first-answer/h100.yaml --set cluster.gpus=996 --set 'training.parallel={tp: 4}' --set training.global_batch_size=996 --set 'cost={usd_per_gpu_hour: 2 USD/h}' | grep -q 'stand idle'"
ok "a module carries no more than its rate" sh -c "! $f bom examples/01-first-answer/h100.yaml --set cluster.fabric.links.ports_per_optic=4 2>$tmp/e && grep -q 'the module optic-2x400g carries 800 Gb.s, and the ports that share one 1600' $tmp/e"
ok "spare nodes that no port is bought for are told" sh -c "$f bom examples/01-first-answer/h100.yaml | grep -q '^The 2 spare nodes have no ports'"
ok "one that works, one that stands" sh -c "$f simulate $a --set cluster.gpus=7 --set 'training.parallel={}' --set training.global_batch_size=7 | grep -q '^1 of the 8 GPUs that are bought stands idle.* of the 7 that work\.' && $f simulate $a --set cluster.gpus=1 --set 'training.parallel={}' | grep -q '^7 of the 8 .* stand idle.* of the 1 that works\.'"
ports() { # SITE: cables of the front end
	$f bom $a --set "cluster.site={extends: standard, $1}" --json | jq '[.items[] | select(.what == "front-end cables") | .count] | add'
}
left_out() { # no storage server, no port of one; and none of the three of management, which have two each
	test "$(ports 'storage: {item: ""}')" = "$(ports 'storage: {per_gpu: 0 TB}')" &&
		test "$(ports 'storage: {item: ""}')" = $(($(ports 'storage: {item: ""}, management: {item: ""}') + 6)) &&
		for r in 'pdu: ""' 'pdus: 0'; do # 279 devices want six switches of 48 ports, 207 five
			$f bom $a --set "cluster.site={extends: standard, racks: {$r}}" --json | jq -e '[.items[] | select(.what == "out-of-band switch") | .count] == [5]' >/dev/null || return 1
		done
}
ok "what a site leaves out has no ports" left_out
digits() { # a small job's days, dollars, energy and failures are told in three digits or more
	$f simulate $a --set cluster.gpus=64 --set training.parallel.pp=1 --tokens 1G | awk '/^the cluster as given  / { for (i = 7; i <= NF; i++) { d = $i; gsub(/[.,]/, "", d); sub(/^0*/, "", d); if (length(d) < 3) bad = $i; n++ } } END { exit bad != "" || n != 8 }'
}
ok "a fleet that trains little is told as exactly" digits
rows() { # N ARGUMENT...: the report's table of prices has so many rows of given ones
	n=$1
	shift
	rm -rf "$tmp/trust" && $f simulate $a "$@" --report "$tmp/trust" >"$tmp/out" && test "$(grep -c '>given</th><td>[0-9]* %' "$tmp/trust/index.html")" = "$n"
}
ok "a report has a row of given prices where there are some" rows 1 --price cpu-server=1000
ok "and none where there are none, as tables have" rows 0
finish
