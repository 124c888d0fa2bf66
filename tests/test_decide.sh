#!/bin/sh
# tests/test_decide.sh - verdicts, fleets for what is asked, cash flows, failures: from the command line
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml b=examples/01-first-answer/mi300x.yaml


# ---- the verdict
$f compare $a $b --json >"$tmp/c.json"
ok "the parts add up to the difference" jq -e '(.cost_differences[0].parts | map(.usd_per_million_tokens) | add) - (.scenarios[1].cost.usd_per_million_tokens - .scenarios[0].cost.usd_per_million_tokens) | fabs < 1e-9' "$tmp/c.json"
ok "the best is the most often cheapest" jq -e '.verdict | .probability == (.cheapest_frac | max) and (.cheapest_frac | add) > 0.999 and .tie == (.probability < 0.8)' "$tmp/c.json"
ok "intervals are those of the odds" jq -e '.scenarios[0].interval.usd_per_million_tokens == [.verdict.p10[0], .verdict.p90[0]]' "$tmp/c.json"
ok "asked again, the same bytes" sh -c "$f compare $a $b --json | cmp - $tmp/c.json"
# the same one twice is one, and no rival of itself
twice() { # of "$a $a $b" and "$a $b $b" they are those of "$a $b"
	$f compare $a $a $b --json >"$tmp/aab.json" && $f compare $a $b $b --json >"$tmp/abb.json" && $f compare $a $a --json >"$tmp/aa.json" &&
		jq -e --slurpfile c "$tmp/c.json" --slurpfile x "$tmp/abb.json" '$c[0].verdict as $v | (.verdict, $x[0].verdict) |
			((.probability - $v.probability) | fabs) < 0.02 and .tie == $v.tie and (.best | startswith($v.best)) and
			.crossovers_of != .best and ((.cheapest_frac | add) - 1 | fabs) < 1e-9' "$tmp/aab.json" &&
		jq -e '.verdict | .probability == 0.5 and .tie' "$tmp/aa.json" &&
		jq -e '.verdict.sentence | test(" \\(and what costs the same\\) is the cheapest with probability")' "$tmp/aab.json"
}
ok "a scenario given twice has the odds of one" twice
printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 64}\ntraining: {sequence_length: 2048, global_batch_size: 128}\ncost: {prices: neocloud-2026-09}\n' >"$tmp/book.yaml"
printf 'name: own\ntitle: ours\ndate: 2026-11\nextends: neocloud-2026-09\nprovenance: {kind: assumed}\nprices: {hgx-h100-server: {usd: 280000 USD, provenance: {kind: assumed, date: 2026-11}}}\nfacility: {}\noperation: {}\n' >"$tmp/own.yaml"
own_book() { # whose other lines are those of the book that it extends: as uncertain together as if one price was given
	sed "s,neocloud-2026-09,$tmp/own.yaml," "$tmp/book.yaml" >"$tmp/mine.yaml" &&
		sed 's/-09}/-09, price_of: {hgx-h100-server: 280000 USD}}/' "$tmp/book.yaml" >"$tmp/given/mine.yaml" &&
		$f compare "$tmp/book.yaml" "$tmp/mine.yaml" --json | jq .verdict >"$tmp/mine.json" &&
		$f compare "$tmp/book.yaml" "$tmp/given/mine.yaml" --json | jq .verdict | cmp - "$tmp/mine.json"
}
mkdir "$tmp/given"
ok "a book that extends another is as uncertain as that one" own_book
ok "it decides where it can" sh -c "$f compare $a $b --price mi300x-server=60000 --json | jq -e '.verdict | .best == \"mi300x\" and .tie == false and .probability > 0.8'"
ok "a scenario beside itself is a tie that all share" sh -c "$f compare $a $a --json | jq -e '.verdict.crossovers == [] and .verdict.p50[0] > 0'"
ok "a crossover makes both equal" sh -c "x=\$(jq '.verdict.crossovers[] | select(.what == \"price of a server\") | .value' $tmp/c.json) && i=\$(jq -r .verdict.crossovers_of $tmp/c.json) && $f compare $a $b --json --price \$(test \$i = mi300x && echo mi300x-server || echo hgx-h100-server)=\$x | jq -e '(.scenarios[0].cost.usd_per_million_tokens / .scenarios[1].cost.usd_per_million_tokens - 1) | fabs < 2e-3'"
cat >"$tmp/hgx.yaml" <<END
model: llama3-70b
cluster: {gpu: b200, gpus: 3600, node: hgx-b200}
training: {sequence_length: 8192, global_batch_size: 3600, micro_batch_size: 1, sharding: zero1, parallel: {tp: 4, pp: 4}}
END
sed 's/b200, gpus: 3600, node: hgx-b200/gb200, gpus: 3600, node: gb200-nvl72/; $ a cost: {price_of: {gb200-nvl72-rack: 9000000 USD}}' "$tmp/hgx.yaml" >"$tmp/nvl.yaml"
racks() { # the price at which a rack is worth it makes both equal; spare racks are counted as racks
	$f compare "$tmp/hgx.yaml" "$tmp/nvl.yaml" --json >"$tmp/r.json" &&
		jq -e '.verdict | .crossovers_of == "nvl" and ([.crossovers[] | select(.what == "price of a server") | .now] == [9000000])' "$tmp/r.json" >/dev/null &&
		x=$(jq '.verdict.crossovers[] | select(.what == "price of a server") | .value' "$tmp/r.json") &&
		$f compare "$tmp/hgx.yaml" "$tmp/nvl.yaml" --price "gb200-nvl72-rack=$x" --json | jq -e '(.scenarios[0].cost.usd_per_million_tokens / .scenarios[1].cost.usd_per_million_tokens - 1) | fabs < 2e-3' >/dev/null
}
ok "a crossover of what is sold by the rack" racks
printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 128}\ntraining: {sequence_length: 4096, global_batch_size: 512, parallel: {tp: 2}}\ncost: {prices: mixnet-2025}\n' >"$tmp/apart.yaml"
sed 's/h100-sxm/mi300x/; s/mixnet-2025/neocloud-2026-09/' "$tmp/apart.yaml" >"$tmp/within.yaml"
adapters() { # a server is told with the adapters that its book lists apart, as --price takes it
	$f compare "$tmp/apart.yaml" "$tmp/within.yaml" --json >"$tmp/r.json" &&
		jq -e '.verdict | .crossovers_of == "apart" and ([.crossovers[] | select(.what == "price of a server") | .now] == [285000])' "$tmp/r.json" >/dev/null &&
		x=$(jq '.verdict.crossovers[] | select(.what == "price of a server") | .value' "$tmp/r.json") &&
		$f compare "$tmp/apart.yaml" "$tmp/within.yaml" --price "hgx-h100-server=$x" --json | jq -e '(.scenarios[0].cost.usd_per_million_tokens / .scenarios[1].cost.usd_per_million_tokens - 1) | fabs < 1e-6' >/dev/null &&
		$f bom "$tmp/apart.yaml" | grep -q '^The book lists adapters apart: ' && ! $f bom "$tmp/within.yaml" | grep -q 'adapters apart'
}
ok "a crossover of a server whose adapters stand apart" adapters
ok "the CSV has all of it" sh -c "$f compare $a $b --csv >$tmp/c.csv && grep -q '^step_s,' $tmp/c.csv && grep -q '^step_s.p10,' $tmp/c.csv && grep -q '^difference.GPU price,0,' $tmp/c.csv && grep -q '^verdict.cheapest_frac,' $tmp/c.csv && sed 's/\"[^\"]*\"/quoted/' $tmp/c.csv | awk -F, 'NF != 3 { exit 1 }'"
ok "and the causes, crossovers and fleets" sh -c "$f compare $a $b --csv --set run.tokens=1T --set run.days=60 >$tmp/c.csv && grep -q '^cause\..*\.p90,' $tmp/c.csv && grep -q '^crossover.price of a server,' $tmp/c.csv && [ \$(grep -c '^.*fleet\..*\.gpus' $tmp/c.csv) = 3 ] && grep -q '^fleet.the cluster as given.days.p50,' $tmp/c.csv && sed 's/\"[^\"]*\"/quoted/' $tmp/c.csv | awk -F, 'NF != 3 { exit 1 }'"
ok "a crossover says what it is now" jq -e '.verdict as $v | (.scenarios[] | select(.name == $v.crossovers_of)) as $s | ($v.crossovers[] | select(.what == "model FLOP/s per GPU") | .now) / ($s.model_flop_per_s_per_gpu / 1e12) - 1 | fabs < 1e-9' "$tmp/c.json"
ok "more draws hardly change the odds" sh -c "$f compare $a $b --draws 131072 --json | jq -e --slurpfile c $tmp/c.json '(.verdict.probability - \$c[0].verdict.probability) | fabs < 0.01'"
cat >"$tmp/wide.yaml" <<END
model: llama3-8b
cluster: {gpu: h100-sxm, gpus: 64}
training: {sequence_length: 4096, global_batch_size: 128}
END
alike() { # one scenario has one range, whoever is asked, within what draws differ by
	$f simulate "$tmp/wide.yaml" --json >"$tmp/w.json" && $f compare "$tmp/wide.yaml" $a --json >"$tmp/wa.json" &&
		jq -e --slurpfile w "$tmp/w.json" '.scenarios[0].interval as $c | $w[0].interval | to_entries | map(select(.value | type == "array") | (.value[0] / $c[.key][0] - 1 | fabs), (.value[1] / $c[.key][1] - 1 | fabs)) | max < 0.02' "$tmp/wa.json"
}
ok "simulate and compare say the same range" alike
ok "too few draws" wrong "draws" $f compare $a $b --draws 3
ok "a basis that is none" wrong "gpus, money, megawatts or time" $f compare $a $b --at dollars
ok "for equal money the cheaper one is larger" sh -c "$f compare $a $b --at money --json | jq -e '.scenarios[1].scenario.cluster.gpus >= 1024 and .verdict.basis == \"money\"'"
ok "in equal time the slower one is larger" sh -c "$f compare $a $b --at time --json | jq -e '.scenarios[1].scenario.cluster.gpus > 1024 and .scenarios[1].tokens_per_s * .scenarios[1].cost.goodput >= .scenarios[0].tokens_per_s * .scenarios[0].cost.goodput'"

# ---- fleets
$f simulate $a --tokens 15T --days 60 --json >"$tmp/f.json"
ok "the fleet for so many tokens in so many days" jq -e '.run | .tokens == 15e12 and .gpus == 1024 and .days.p10 < .days.p50 and .days.p50 < .days.p90 and (.fleets | length) == 2 and .fleets[0].days.p50 <= 60 and .fleets[1].days.p90 <= 60 and .fleets[0].gpus <= .fleets[1].gpus' "$tmp/f.json"
ok "the next smaller one takes longer" sh -c "n=\$(jq '.run.fleets[0].gpus / 2' $tmp/f.json) && $f simulate $a --set cluster.gpus=\$n --tokens 15T --json | jq -e '.run.days.p50 > 60'"
ok "days times rate is tokens" jq -e '(.run.days.p50 * 86400 * .tokens_per_s * .cost.goodput / 15e12 - 1) | fabs < 0.15' "$tmp/f.json"
ok "in the scenario it is the same question" sh -c "jq .scenario $tmp/f.json | $f simulate - --json | jq .run >$tmp/o && jq .run $tmp/f.json | cmp - $tmp/o"
cat >"$tmp/odd.yaml" <<END
model: {name: two-layers, model_type: llama, num_hidden_layers: 2, hidden_size: 4096, intermediate_size: 14336, num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 32000}
cluster: {gpu: h100-sxm, gpus: 112}
stack: torchtitan-2024
training: {sequence_length: 4096, global_batch_size: 5040, micro_batch_size: 1, sharding: fsdp, parallel: {tp: 8}}
END
sixty() { # sizes: ..., 96, 112, 120, ...: none is passed over; the oracle: each alone
	days=$($f simulate "$tmp/odd.yaml" --tokens 4T --json | jq '.run.days.p50 * 1.0001') mw=$($f simulate "$tmp/odd.yaml" --json | jq '.cost.facility_provisioned_w * 1.0001e-6')
	$f simulate "$tmp/odd.yaml" --set cluster.gpus=96 --tokens 4T --json | jq -e ".run.days.p50 > $days" >/dev/null &&
		$f simulate "$tmp/odd.yaml" --set cluster.gpus=120 --json | jq -e ".cost.facility_provisioned_w * 1e-6 > $mw" >/dev/null &&
		$f simulate "$tmp/odd.yaml" --tokens 4T --days "$days" --megawatts "$mw" --json | jq -e '[.run.fleets[] | select(.for | test("P50|megawatts")) | .gpus] == [112, 112]' >/dev/null &&
		$f compare "$tmp/odd.yaml" "$tmp/odd.yaml" --at time --json | jq -e '.scenarios[1].scenario.cluster.gpus == 112' >/dev/null
}
ok "of sixty sizes none is passed over" sixty
sed '/^  ufm-licence:/,/^  aec/{/^  aec/!d}' cost/prices/neocloud-2026-09.yaml >"$tmp/no-licence.yaml"
printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 64, ufm_ports: 4}\ntraining: {sequence_length: 4096, global_batch_size: 512, parallel: {tp: 2}}\n' >"$tmp/ports.yaml"
lone() { # the price of a licence, of which one node without a network has none, keeps no size away
	$f simulate "$tmp/ports.yaml" --price ufm-licence=75 --tokens 1T --days 200 --json | jq .run.fleets >"$tmp/with" &&
		$f simulate "$tmp/ports.yaml" --set cost.prices="$tmp/no-licence.yaml" --price ufm-licence=75 --tokens 1T --days 200 --json | jq .run.fleets | cmp - "$tmp/with" &&
		jq -e '.[0].gpus == 8' "$tmp/with" >/dev/null &&
		$f compare "$tmp/ports.yaml" "$tmp/ports.yaml" --price ufm-licence=75 --set cost.prices="$tmp/no-licence.yaml" --at money >/dev/null
}
ok "a size that lacks a part whose price is given is not passed over" lone
ok "a price of what no size has is refused" refused "neither book neocloud-2026-09 nor the cluster has an item 'ufm-licenc'; did you mean" $f simulate "$tmp/ports.yaml" --price ufm-licenc=75 --tokens 1T --days 200
ok "FLOPs instead of tokens" sh -c "t=\$($f simulate $a --flop 3.1e24 --json | jq .run.tokens) && awk \"BEGIN { exit !($t > 6e12 && $t < 8e12) }\" t=\$t || test \$(printf '%.0f' \$t) -gt 6000000000000"
ok "what a budget trains" sh -c "$f simulate $a --budget 2M --json | jq -e '(.run.usd.p50 / 2e6 - 1) | fabs < 1e-6'"
ok "a budget's cheapest size trains more for the same money" sh -c "$f simulate $a --budget 2M --json | jq -e '.run | .fleets[0].tokens > .tokens and .fleets[0].gpus < .gpus and (.fleets[0].usd.p50 / 2e6 - 1 | fabs) < 1e-6'"
ok "a budget's fleet is done in time at P50" sh -c "$f simulate $a --tokens 1T --budget 20M --days 21 --json | jq -e '.run.fleets[] | select(.for == \"cheapest within the budget\") | .days.p50 <= 21 and .gpus > 512'"
ok "a goodput that is told has no causes of its own" sh -c "$f compare $a $b --json | jq -e '[.verdict.causes[].cause] | contains([\"failure rate\", \"restart time\", \"checkpoint time\"])' && $f compare $a $b --set cost.goodput=0.9 --json | jq -e '[.verdict.causes[].cause | select(. == \"failure rate\" or . == \"restart time\" or . == \"checkpoint time\")] == []'"
sed '/^cost:/,$d' $a >"$tmp/unpriced.yaml"
ok "servers that are rented need no spare one in a bill" sh -c "$f simulate $tmp/unpriced.yaml --set cluster.site=bare --set 'cost.goodput={recovery: hot}' | grep -q 'the bill has none' && $f simulate $tmp/unpriced.yaml --set cluster.site=bare --set 'cost.goodput={recovery: hot}' --set 'cost.usd_per_gpu_hour=3 USD/h' >$tmp/o && grep -q 'recovery' $tmp/o && ! grep -q 'the bill has none' $tmp/o"
cat >"$tmp/unfit.yaml" <<'END'
model: llama3-8b
cluster: {gpu: h100-sxm, gpus: 8}
training: {sequence_length: 8192, global_batch_size: 64, micro_batch_size: 2, sharding: fsdp, parallel: {tp: 1}}
run: {tokens: 10G, days: 10}
END
ok "a cluster that does not hold the plan keeps to no limits" sh -c "$f simulate $tmp/unfit.yaml >$tmp/o 2>$tmp/e && grep -qx 'the cluster as given: beyond the memory' $tmp/o && grep -q 'No fleet keeps to all' $tmp/o && $f simulate $tmp/unfit.yaml --json | jq -e '.run.beyond == [\"memory\"]'"
sed 's/micro_batch_size: 2, //; s/, parallel: {tp: 1}//; s/gpus: 8/gpus: 16/; s/llama3-8b/{name: llama3-8b, num_hidden_layers: 4}/' "$tmp/unfit.yaml" >"$tmp/open.yaml"
sed 's/h100-sxm/mi300x/' "$tmp/open.yaml" >"$tmp/open2.yaml"
ok "a plan that was searched is told of whatever size the other gets" sh -c "$f compare $tmp/open.yaml $tmp/open2.yaml --at money --json | jq -e 'all(.scenarios[]; .derived.plans_searched > 100)'"
slow='cluster.imperfections.slow_gpus=[{gpu: 1000, speed_frac: 0.9}]'
ok "a smaller fleet is not passed over for a slow GPU that it has not" sh -c "! $f simulate $a --tokens 1T --days 60 --set '$slow' >$tmp/o 2>$tmp/e && grep -q 'cannot have these imperfections (gpu: 1000 is not between 0 and' $tmp/e && ! $f compare $a $a --at time --set '$slow' >$tmp/o 2>$tmp/e && grep -q 'cannot have these imperfections' $tmp/e"
ok "which matters where sizes are compared" sh -c "$f simulate $a --tokens 1T --set '$slow' --json | jq -e '.run.days.p50 > 0' && $f simulate $a --tokens 1T --days 60 --set 'cluster.imperfections.slow_gpus=[{gpu: 0, speed_frac: 0.9}]' --json | jq -e '.run.fleets[0].gpus > 0'"
ok "what megawatts hold" sh -c "$f simulate $a --megawatts 4 --days 30 --json | jq -e '.run.fleets[0] | .megawatts <= 4 and .gpus > 1024'"
printf 'model: llama3.1-405b\ncluster: {gpu: h100-sxm, gpus: 1024}\ntraining: {sequence_length: 2048, global_batch_size: 8192, sharding: fsdp, parallel: {tp: 8}}\n' >"$tmp/large.yaml"
large() { # of 8 and 16 GPUs a step is too much to simulate, and they alone are left out
	$f simulate "$tmp/large.yaml" --tokens 15T --days 20000 >"$tmp/o" && grep -q "^Sizes of 16 GPUs and fewer are left out: a step of theirs" "$tmp/o" &&
		grep -q "^smallest in time, at P50  *[1-9]" "$tmp/o" &&
		$f simulate "$tmp/large.yaml" --tokens 15T --days 20000 --json | jq -e '.run.left_out_gpus == 16 and .run.fleets[0].gpus > 16' &&
		$f simulate "$tmp/large.yaml" --set cluster.gpus=32 | grep -q '^step' && ! $f simulate "$tmp/large.yaml" --set cluster.gpus=16 &&
		$f compare "$tmp/large.yaml" "$tmp/large.yaml" --at money | grep -q 'with 1024 GPUs, .* with 1024 GPUs,'
}
ok "sizes whose step is too much to simulate are left out" large
ok "no fleet is fast enough" sh -c "$f simulate $a --tokens 15T --days 1 | grep -q 'no size that the batch allows is done in time'"
ok "a budget below the smallest size" sh -c "$f simulate $a --budget 10 --days 30 | grep -q 'the budget pays for no size that fits'"
ok "days of zero" refused "days=0:1:8: .*days: should be above 0" $f simulate $a --days 0
ok "tokens below zero" refused "tokens: -5 is negative" $f simulate $a --tokens -5
ok "tokens and FLOPs" refused "run has tokens and flop; give one of the two" $f simulate $a --tokens 1T --flop 1e24
wishes() { # of all sets of wishes, those are refused that have two sizes of the run, or megawatts and nothing to train
	for set in $(seq 1 31); do
		asked 3 || continue
		said=
		for wish in 1:tokens=1T 2:flop=1e24 4:days=30 8:budget=2M 16:megawatts=5; do
			[ $((set & ${wish%%:*})) = 0 ] || said="$said --${wish#*:}"
		done
		want=0
		[ $((set & 3)) != 3 ] && [ $set != 16 ] || want=1
		$f simulate $a $said >"$tmp/o" 2>"$tmp/e"
		[ $? = $want ] || { echo "$said: wanted $want" >&2; return 1; }
	done
}
ok "every set of wishes is answered, or refused for its reason" wishes
ok "megawatts alone" refused "run.megawatts alone trains nothing" $f simulate $a --megawatts 5
ok "a budget in another currency" refused "not a unit of an amount" $f simulate $a --set "run.budget=5 EUR"
ok "on the command line, too" refused "budget=2MEUR:1:10: error: budget: 'MEUR' is not a unit of an amount" $f simulate $a --budget 2MEUR
ok "a budget with and without its unit" sh -c "for b in 2M 2MUSD '2 MUSD' 2e6 2000k 2000000USD; do $f simulate $a --budget \"\$b\" --json | jq -c .run; done | sort -u | wc -l | grep -qx 1"
ok "a key of run that is none" refused "'dyas'" $f simulate $a --set run.dyas=3

# ---- the plan left open
cat >"$tmp/open.yaml" <<END
model: {name: llama3-8b}
cluster: {gpu: h100-sxm, gpus: 16, fabric: ib-ndr-rail}
stack: nemo-24.11
training: {sequence_length: 8192, global_batch_size: 64, micro_batch_size: 1, sharding: zero1, recompute: none, schedule: 1f1b}
END
sed 's/llama3-8b/llama3.1-405b/; s/zero1/ddp/' "$tmp/open.yaml" >"$tmp/large.yaml"
found() { # the plan that `plan` finds; fed back, the same answer without a search
	$f plan "$tmp/open.yaml" --top 1 --json | jq '.best[0] | .step_s, .training.parallel.tp, .mfu' >"$tmp/want" &&
		$f simulate "$tmp/open.yaml" --tokens 1T --json >"$tmp/j" && jq '.step_s, .scenario.training.parallel.tp, .mfu' "$tmp/j" | cmp - "$tmp/want" &&
		jq -e '.derived.plans_searched > 10 and .fits' "$tmp/j" >/dev/null &&
		$f simulate "$tmp/open.yaml" --json | jq -e --slurpfile j "$tmp/j" '(.fits | not) or .step_s > $j[0].step_s' >/dev/null &&
		jq .scenario "$tmp/j" | $f simulate - --json | jq 'del(.derived, .assumed, .name, .id)' >"$tmp/k" && jq 'del(.derived, .assumed, .name, .id)' "$tmp/j" | cmp - "$tmp/k" &&
		$f simulate "$tmp/open.yaml" --tokens 1T | grep -q '^training.parallel is left open: tp .* is in the fastest of [0-9]* legal plans' &&
		$f simulate - --tokens 1T <"$tmp/open.yaml" --json | jq -e '.derived.plans_searched > 10' >/dev/null
}
ok "the planner's questions search a plan that is left open" found
ok "nothing is searched without a question" sh -c "$f simulate $tmp/open.yaml --json | jq -e '.derived.plans_searched == null and (.assumed | index(\"training.parallel.tp\"))'"
ok "nor where one key of the plan is stated" sh -c "$f simulate $tmp/open.yaml --set training.parallel.pp=1 --tokens 1T --json | jq -e '.derived.plans_searched == null and (.assumed | index(\"training.parallel.tp\"))'"
ok "compare does the same for each" sh -c "$f compare $tmp/open.yaml $tmp/open.yaml --set cluster.gpus=8 --tokens 1T >$tmp/o && [ \$(grep -c '^training.parallel is left open' $tmp/o) = 2 ]"
ok "no plan fits: said, and simulated as it is" sh -c "$f simulate $tmp/large.yaml --tokens 1T >$tmp/o 2>$tmp/e && grep -q '^training.parallel is left open, and none of [0-9]* legal plans fits' $tmp/o && grep -q 'does not fit' $tmp/e"

# ---- cash flows and terms
ok "what a repair is assumed to take is told" sh -c "$f simulate $a --set 'cost.goodput={recovery: cold}' --json >$tmp/j && jq -e '.assumed | index(\"cost.goodput.repair\")' $tmp/j && jq .scenario $tmp/j | $f simulate - --json | jq -e '.assumed | index(\"cost.goodput.repair\") == null'"
ok "flows are written" sh -c "$f simulate $a --flows $tmp/f.csv >/dev/null && head -1 $tmp/f.csv | grep -q '^BilledCost,.*EffectiveCost.*ServiceName\$' && grep -q '2025-08-01T00:00:00Z,Purchase' $tmp/f.csv"
periods() { # each a month, one after the other, and both costs add up to the same
	python3 - "$tmp/f.csv" <<-END
	import csv, sys
	from decimal import Decimal
	billed = effective = 0
	months = set()
	for r in csv.DictReader(open(sys.argv[1])):
	    month = lambda k: int(r[k][:4]) * 12 + int(r[k][5:7]) - 1
	    assert r["ChargePeriodStart"][7:] == r["ChargePeriodEnd"][7:] == "-01T00:00:00Z"
	    assert month("ChargePeriodEnd") == month("ChargePeriodStart") + 1, r
	    months.add(month("ChargePeriodStart"))
	    billed += Decimal(r["BilledCost"])
	    effective += Decimal(r["EffectiveCost"])
	assert max(months) - min(months) + 1 == len(months) >= 48
	assert billed == effective, (billed, effective) # to the cent
	END
}
ok "a line is of one month, and none is left out" periods
ok "nothing is used up before it is there" sh -c "$f simulate $a --set 'cost.tranches=[{month: 3, share: 1}]' --flows $tmp/f.csv >/dev/null && python3 -c 'import csv, sys; assert min(r[\"ChargePeriodStart\"] for r in csv.DictReader(open(sys.argv[1]))) == \"2025-11-01T00:00:00Z\"' $tmp/f.csv"
ok "they begin when they are told to" sh -c "$f simulate $a --set cost.start=2027-03 --flows $tmp/f.csv >/dev/null && grep -q '2027-03-01T00:00:00Z,Purchase' $tmp/f.csv"
ok "a folder that is not there" refused "error" $f simulate $a --flows /proc/none/f.csv
ok "a month that is none" refused "start: should be a month" $f simulate $a --set cost.start=2027-13
ok "tax, duty, staff, licences and insurance cost" sh -c "base=\$($f simulate $a --json | jq .cost.usd_per_gpu_hour) && for k in tax_frac=0.1 duty_frac=0.25 insurance_frac=0.01 'staff=2 MUSD/y' 'licences_per_gpu=4500 USD/y' burn_in=21d 'residual_by_year=[0.5,0.2,0.1,0]' 'tranches=[{month: 0, share: 0.5}, {month: 6, share: 0.5}]'; do $f simulate $a --set \"cost.\$k\" --json | jq -e --argjson b \$base '.cost.usd_per_gpu_hour > \$b' || exit 1; done"
ok "shares of tranches that do not add up" refused "have shares that add up to 0.9, not 1" $f simulate $a --set 'cost.tranches=[{month: 0, share: 0.5}, {month: 6, share: 0.4}]'
ok "a tranche that names no month comes at the start" sh -c "one() { $f simulate $a --set \"cost.tranches=\$1\" --json | jq .cost.usd_per_gpu_hour; }; [ \$(one '[{share: 0.5}, {month: 6, share: 0.5}]') = \$(one '[{month: 0, share: 0.5}, {month: 6, share: 0.5}]') ] && [ \$(one '[{share: 0.5}, {month: 6, share: 0.5}]') != \$(one '[{month: 1, share: 0.5}, {month: 6, share: 0.5}]') ]"
ok "a tranche after the end" refused "month: lies after the horizon" $f simulate $a --set 'cost.tranches=[{month: 60, share: 1}]'
ok "residual values that grow" refused "shares from 0 to 1 that do not grow" $f simulate $a --set 'cost.residual_by_year=[0.1, 0.5]'
ok "two ways to say the residual" refused "is said by residual_by_year" $f simulate $a --set 'cost.residual_by_year=[0.5]' --set cost.residual_frac=0.1
ok "interest of 500 %" refused "cost_of_capital_frac: should be at most 1" $f simulate $a --set cost.cost_of_capital_frac=5
ok "owning against renting" sh -c "$f simulate $a --finance --set 'cost.against=2 USD/h' | grep -q 'owning is cheaper when more than'"
ok "what belongs to a rent is refused of a purchase" refused "cost.prepaid_frac has no effect: with hyperscaler-2025-08 the cluster is bought" $f simulate $a --set cost.prepaid_frac=0.2
sed '/^cost/,$d' $a >"$tmp/bare.yaml"
ok "a burn-in after the end" refused "burn_in: of the last tranche ends after the horizon" $f simulate $a --set 'cost.tranches=[{month: 47, share: 1}]' --set cost.burn_in=60d
ok "a burn-in of more than half of the horizon" refused "burn_in: takes more than half of the horizon" $f simulate $a --set cost.burn_in=731d
ok "and one of half of it" sh -c "$f simulate $a --set cost.burn_in=730d >/dev/null"
ok "a title of two lines" refused "title: holds a line break" $f simulate $a --set "title=\"a\\nb\""
ok "sixteen scenarios" sh -c "$f compare $a $b $a $b $a $b $a $b $a $b $a $b $a $b $a $b --draws 64 --json | jq -e '.scenarios | length == 16'"
priced_pue() { sed "s/^cost:/cost:\n  pue: $1/" $a; } # given, so without a range
priced_pue 1.05 >"$tmp/pue.yaml"
priced_pue 1.2 >"$tmp/dearer.yaml"
ok "the same job, dearer, never wins" sh -c "$f compare $tmp/dearer.yaml $tmp/pue.yaml --json | jq -e '.verdict | .probability == 1 and (.tie | not)'"
ok "tokens are paid for by the budget, or there is no fleet" sh -c "$f simulate $a --tokens 15T --budget 1M | grep -q 'the budget pays for no size that fits' && $f simulate $a --tokens 1T --budget 1M --json | jq -e '.run.fleets[0].usd.p50 <= 1e6'"
ok "alike in megawatts, itself is itself" sh -c "$f compare $a $a --at megawatts --json | jq -e '.scenarios[1].scenario.cluster.gpus == 1024' && $f compare $a $b --at megawatts | grep -q '^Sizes alike in power: .* MW;'"
ok "a map of failures starts from what auto is" sh -c "test \$($f simulate $a --json | jq .cost.goodput) = \$($f simulate $a --set 'cost.goodput={}' --json | jq .cost.goodput)"
ok "rent on demand is paid for the hours used" sh -c "$f simulate $tmp/bare.yaml --set 'cost.usd_per_gpu_hour=2 USD/h' --set cost.take_or_pay=false --json | jq -e '(.cost.usd_per_gpu_hour - 1.8) | fabs < 1e-9'"

# ---- failures
ok "all time is told" sh -c "$f simulate $a --set 'cost.goodput={recovery: hot, spares: false, flaps_per_1000_node_days: 300, straggler_frac: 0.01}' --json >$tmp/j && jq -e '.cost | [.goodput, .checkpoint_frac, .wasted_progress_frac, .recovery_frac, .repair_frac, .stalls_frac, .stragglers_frac] | (add - 1 | fabs < 1e-9) and (map(select(. > 0)) | length == 7)' $tmp/j && jq -e '.cost.checkpoint_interval_s > 60' $tmp/j"
ok "in one sentence" sh -c "$f simulate $a --set 'cost.goodput={recovery: cold, interval: 30 min}' | grep -q '^Goodput 9[0-9.]* %: checkpoints [0-9.]* %, progress that is lost [0-9.]* %, recovery [0-9.]* %; a checkpoint every 30 min[.]\$' && ! $f simulate $a --set cost.goodput=0.9 | grep -q '^Goodput'"
ok "of an interval of seconds, too" sh -c "$f simulate $a --set 'cost.goodput={interval: 20 s}' | grep -q '^Goodput .*; a checkpoint every 20 s[.]\$'"
goodput() { $f simulate $a --set "cost.goodput=$1" --json | jq .cost.goodput; }
ok "ways to recover, best last" sh -c "$f simulate $a --set 'cost.goodput={recovery: cold}' --json | jq .cost.goodput >$tmp/g; $f simulate $a --set 'cost.goodput={recovery: hot, spares: false}' --json | jq .cost.goodput >>$tmp/g; $f simulate $a --set 'cost.goodput={recovery: hot}' --json | jq .cost.goodput >>$tmp/g; $f simulate $a --set 'cost.goodput={recovery: fault_tolerant, spares: true}' --json | jq .cost.goodput >>$tmp/g; sort -g $tmp/g | cmp - $tmp/g"
ok "checkpoints by bytes and bandwidth" sh -c "$f simulate $a --set 'cost.goodput={storage_bandwidth: 500 GB/s}' --json | jq -e '.cost.goodput > 0.98'"
ok "a checkpoint and its bandwidth" refused "follows from storage_bandwidth" $f simulate $a --set 'cost.goodput={storage_bandwidth: 500 GB/s, checkpoint: 3 s}'
ok "a failover without fault tolerance" refused "failover: has an effect only under 'recovery: fault_tolerant'" $f simulate $a --set 'cost.goodput={failover: 3 s}'
ok "a repair that nothing waits for" refused "repair: has an effect only under 'recovery: cold' and 'spares: false'" $f simulate $a --set 'cost.goodput={repair: 48 h}'
ok "a flap of no link" refused "flap: has an effect only with flaps_per_1000_node_days" $f simulate $a --set 'cost.goodput={flap: 3 s}'
ok "checkpoints nobody goes back to" refused "has no effect under 'recovery: fault_tolerant'" $f simulate $a --set 'cost.goodput={recovery: fault_tolerant, checkpoint: 3 s}'
ok "where nothing fails nothing is lost" sh -c "$f simulate $a --set 'cost.goodput={failures_per_1000_node_days: 0, spares: false}' --json | jq -e '.cost.goodput == 1 and .cost.repair_frac == 0'"
ok "a way to recover that is none" refused "recovery" $f simulate $a --set 'cost.goodput={recovery: warm}'
ok "the map of failures survives a round trip" sh -c "$f simulate $a --set 'cost.goodput={recovery: cold, repair: 2 h}' --json >$tmp/j && jq .scenario $tmp/j | $f simulate - --json | jq .cost >$tmp/o && jq .cost $tmp/j | cmp - $tmp/o"
level="--price mi300x-server=108000" # near enough for both to have a crossover
$f compare $a $b $level --json >"$tmp/level.json"
both() { # WHAT KEY UNIT: at that value of both, a token costs the same
	x=$(jq ".verdict.crossovers[] | select(.what == \"$1\") | .value" "$tmp/level.json") &&
		$f compare $a $b $level --set "$2=$x $3" --json | jq -e '[.scenarios[].cost.usd_per_million_tokens] | (.[0] / .[1] - 1 | fabs) < 1e-6'
}
ok "electricity at its crossover makes both equal" both "electricity of both" cost.electricity USD/kWh
ok "and so do years" both "years of use of both" cost.horizon y
years() { # N TERMS: so many crossovers of years, at each of which a token costs the same, as everything else is what it was
	for s in h100 mi300x; do
		printf 'model: llama3-8b\ncluster: {gpu: %s, gpus: %d}\ntraining: {sequence_length: 4096, global_batch_size: 512, parallel: {tp: 2}}\ncost: {%s}\n' $(test $s = h100 && echo h100-sxm 64 || echo mi300x 128) "$2" >"$tmp/$s.yaml"
	done
	set -- "$1" "$tmp/h100.yaml" "$tmp/mi300x.yaml"
	x=$($f compare "$2" "$3" --json | jq '.verdict.crossovers[] | select(.what == "years of use of both") | .value') || return 1
	[ "$1" = "$(echo "$x" | grep -c .)" ] || return 1
	[ "$1" = 0 ] || $f compare "$2" "$3" --set "cost.horizon=$x y" --json | jq -e '[.scenarios[].cost.usd_per_million_tokens] | (.[0] / .[1] - 1 | fabs) < 1e-6'
}
ok "years of clusters that arrive in parts" years 1 "tranches: [{month: 0, share: 0.5}, {month: 9, share: 0.5}]"
ok "and burn in" years 1 "burn_in: 60 d"
ok "none in which not all of it is there" years 0 "tranches: [{month: 0, share: 0.5}, {month: 40, share: 0.5}]"
printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 64}\ntraining: {sequence_length: 4096, global_batch_size: 512, parallel: {tp: 2}}\ncost: {usd_per_gpu_hour: 0.75 USD/h, prepaid_frac: 0.3}\n' >"$tmp/rent.yaml"
sed '/^cost/s/{.*/{residual_by_year: [0.9, 0.85, 0.8, 0.75], cost_of_capital_frac: 0.01}/' "$tmp/rent.yaml" >"$tmp/keeps.yaml"
ok "nor of which no residual value is known" sh -c "$f compare $tmp/keeps.yaml $tmp/rent.yaml --json | jq -e '[.verdict.crossovers[].what] | index(\"price of a server\") and index(\"years of use of both\") == null'"
# ---- what is compared
$f compare $a $a --json >"$tmp/same.json"
ok "equal dollars share each draw" jq -e '.verdict | .cheapest_frac == [0.5, 0.5] and .tie' "$tmp/same.json"
unfit() {
	$f compare $a $a --set training.parallel.tp=4 --csv >/dev/null && sed 's/tp: 4, pp: 4, vpp: 5/tp: 1, pp: 1, vpp: 1/; s/^stack/title: too large\nstack/' $a >"$tmp/unfit.yaml" &&
		$f compare $a "$tmp/unfit.yaml" --json | jq -e '.verdict.best != "too large" and .verdict.cheapest_frac == [1, 0] and (.verdict.sentence | test("alone has a plan that fits")) and (.warning | test("does not fit"))' &&
		$f compare $a "$tmp/unfit.yaml" --csv | grep -q '^fits,1,0$' &&
		$f compare "$tmp/unfit.yaml" "$tmp/unfit.yaml" | grep -q 'No plan fits'
}
ok "a plan that does not fit wins nothing" unfit
ok "models that differ are told" sh -c "$f compare $a $a --set model=llama3-8b | grep -q 'The models differ' && exit 1; sed 's/llama3-70b/llama2-70b/' $a >$tmp/other.yaml && $f compare $a $tmp/other.yaml | grep -q 'The models differ (llama3-70b, llama2-70b)'"
ok "a server of another GPU is refused" refused "hgx-h100 is a server of h100-sxm; that of b200 is hgx-b200" $f simulate $a --set cluster.gpu=b200
ok "but one of the user's own holds it" sh -c "$f simulate $a --set cluster.gpu=b200 --set 'cluster.node={extends: hgx-h100}'"
finish
