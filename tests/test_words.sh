#!/bin/sh
# tests/test_words.sh - every word that the program prints is explained, and in plain English
. "$(dirname "$0")/tap.sh"
reading=docs/reading-the-output.md
glossary=docs/glossary.md
cat "$reading" "$glossary" >"$tmp/explained"
awk -F '|' '/^\|/ { print $2 }' "$reading" "$glossary" >"$tmp/entries" # first cells of their tables
sed 's/\\f[BIRP]//g; s/\\-/-/g; s/\\,//g; s/\\\///g' man/*.[15] >"$tmp/man"

# ---- what is printed
every() { # FILE [WHERE]: each line of FILE is in the two pages; FILE has some
	bad=
	[ -s "$1" ] || { echo "nothing to look for" >&2; return 1; }
	while read -r word; do
		grep -qF -e "$word" "${2:-$tmp/explained}" || { echo "'$word' is explained in neither $reading nor $glossary" >&2; bad=1; }
	done <"$1"
	[ -z "$bad" ]
}
quoted() { # FILE: as every, each line in backquotes
	sed 's/.*/`&`/' "$1" >"$1.quoted"
	every "$1.quoted"
}

# items: the names that traces/ gives to works, and what scenarios of each kind print
sed -n 's/.*\(put_memory\|put_rows\|put_gemm\|put_collective\|side_memory\|side_collective\|element\|exchange\|shuffle\|reorder\|tensor_sum\|row_product\|row_back\|linear_back\)(b, \(s, \|&s, \|&r, \)\{0,1\}"\([a-z_0-9]*\)".*/\3/p' traces/*.c >"$tmp/source"
sed -n 's/.*? "\([a-z_]*\)" : "\([a-z_]*\)", [A-Zs].*/\1\n\2/p' traces/*.c >>"$tmp/source"
sed -n 's/.*\.name = "\([a-z_0-9]*\)".*/\1/p' traces/*.c >>"$tmp/source"
sort -u "$tmp/source" >"$tmp/names"
ok "every item that a step graph can hold is explained" quoted "$tmp/names"
h=examples/01-first-answer/h100.yaml
items() { # ARGUMENT...: names of the items of a scenario, without the pass
	$f simulate "$@" --json >"$tmp/json" 2>>"$tmp/log" || echo "$*" >>"$tmp/refused"
	python3 -c '
import json, sys
for i in json.load(sys.stdin)["items"]:
    print(i["name"].split(" (")[0])' <"$tmp/json"
}
: >"$tmp/refused"
{
	items $h
	items examples/01-first-answer/mi300x.yaml
	items examples/08-mixture-of-experts/mixtral.yaml
	items examples/03-infiniband-roce-spectrum-x/ib.yaml
	items $h --set training.sharding=hsdp --set training.parallel.vpp=1 --set training.recompute=full
	items $h --set training.sharding=ddp --set stack=llm-foundry-2023 --set training.parallel='{}'
	items $h --set training.parallel.cp=2
	items $h --set training.parallel='{cp: 2}' --set stack=torch-2.11-eager --set training.sharding=fsdp
	items $h --set model=gemma2-9b --set stack=transformers-5-eager --set training.sharding=fsdp --set training.parallel='{}'
	items $h --set training.precision=fp8 --set training.parallel.tp=8
	items $h --set model=deepseek-v3 --set training.parallel.ep=8 --set training.parallel.vpp=1
	items $h --set model=gpt-1.5b --set training.parallel.tp=1 --set stack=megatron-lm-2022 --set training.parallel.vpp=1 --set training.parallel.pp=2 --set training.sequence_length=1024
} | sort -u >"$tmp/printed"
ok "all these scenarios run" test ! -s "$tmp/refused"
ok "many items are printed" test "$(wc -l <"$tmp/printed")" -gt 50
ok "every item that is printed is explained" quoted "$tmp/printed"

# tables: the first cell of each row, and the heads of columns
first_cells() { # of tables on stdin: cells are two blanks or more apart
	awk -F '  +' '/^nearest measured runs/ { run = 1; print $1; next } !NF { run = 0 }
		/^ / || NF < 2 || run { next } { sub(/ +$/, "", $1); print $1 }'
}
heads() { # REGEX: the cells of the line that begins so
	awk -F '  +' -v head="^$1" '$0 ~ head { for (i = 1; i <= NF; i++) if ($i != "") print $i }'
}
not_items() { grep -vxFf "$tmp/printed" | sed 's/ (forward)$//; s/ (dgrad)$//; s/ (wgrad)$//' | grep -vxFf "$tmp/printed"; }
$f simulate $h >"$tmp/simulate"
printf '%s\n' result "where a step goes" "largest items (a rank's time)" "memory per GPU" part item "what differs" key stack ccl model >"$tmp/heads"
entered() { # as every, each line in the first cell of a table
	grep -vxFf "$tmp/heads" "$1" >"$1.entered"
	every "$1.entered" "$tmp/entries"
}
first_cells <"$tmp/simulate" | not_items >"$tmp/rows"
sed -n 's/^  \(of which [a-z]*\)  .*/\1/p' "$tmp/simulate" >>"$tmp/rows"
$f simulate examples/08-mixture-of-experts/mixtral.yaml --set training.parallel.ep=1 2>"$tmp/warning" |
	first_cells | not_items >>"$tmp/rows"
ok "every row of simulate has an entry" entered "$tmp/rows"
heads "(result|where|largest|memory)" <"$tmp/simulate" >"$tmp/rows"
ok "every column of simulate is explained" every "$tmp/rows"
labels() { # a column of labels: without the unit, and without the rows that say P10 or a key
	sed 's/, \(million USD\|TFLOP.s\|GB\|MB\|kW\|MW\|USD\|ms\|us\|s\|J\|%\)$//' | grep -v '^[a-z_]*\.[a-z_.]*$'
}
$f compare $h examples/01-first-answer/mi300x.yaml >"$tmp/compare"
first_cells <"$tmp/compare" | labels >"$tmp/rows"
ok "every row of compare has an entry" entered "$tmp/rows"
heads part <"$tmp/compare" >"$tmp/rows"
grep -o '^The same in all' "$tmp/compare" >>"$tmp/rows"
ok "every column of compare is explained" every "$tmp/rows"
{
	$f bom $h --set cluster.gpus=65536
	$f bom examples/05-bill-of-materials/superpod.yaml
	$f bom $h --set cluster.gpu=gb200 --set cluster.gpus=1152 --set cluster.node=gb200-nvl72 --set cluster.fabric=ib-ndr-rail --set cost.prices=mixnet-2025
} 2>>"$tmp/log" >"$tmp/bom"
first_cells <"$tmp/bom" | grep -v '^Prices: \|^From \|^Site \|^Optical \|^role$' | sort -u >"$tmp/rows"
ok "every row of bom has an entry" entered "$tmp/rows"
heads role <"$tmp/bom" | sort -u >"$tmp/rows"
ok "every column of bom is explained" every "$tmp/rows"
$f collective $h --bytes 1MiB --op all_reduce,all_gather,all_to_all,broadcast --gpus 8,64 >"$tmp/collective"
{ heads op <"$tmp/collective"; $f collective --help | sed -n 's/^  \([a-z]*\)   *\(ring\|each\|up\|reduced\|parallel\|three\).*/\1/p'; } >"$tmp/rows"
ok "every column and algorithm of collective is explained" every "$tmp/rows"
$f validate measurements/steps/h200-steps.csv --rows >"$tmp/validate"
{ heads group <"$tmp/validate"; heads id <"$tmp/validate"; } >"$tmp/rows"
ok "every column of validate is explained" every "$tmp/rows"
printf '%s\n' gemm.svg residuals.svg busbw.svg time_us p10_us p90_us first_us second_us >"$tmp/rows"
ok "columns of calibrate are explained" quoted "$tmp/rows"

# programs: keys of JSON, columns of a sweep, keys of a scenario
$f simulate $h --json | python3 -c '
import json, sys
def keys(o, head):
    for k, v in o.items():
        if k == "scenario":
            print(k)
        elif isinstance(v, dict):
            print(k)
            keys(v, head + k + ".")
        else:
            print(k)
keys(json.load(sys.stdin), "")' >"$tmp/json"
sed 's/^\(electricity\|colocation\|maintenance\|staff\)_usd_per_gpu_hour$/.\1_.../' "$tmp/json" >"$tmp/rows"
ok "every key of JSON is explained" every "$tmp/rows"
$f list keys | awk 'NR > 1 { print $1 }' >"$tmp/keys"
documented() { # every key of a scenario is in foretoken-scenario(5), whole or named beside its map
	[ -s "$tmp/keys" ] || return 1
	while read -r k; do
		grep -qF -e "$k" man/foretoken-scenario.5 ||
			{ grep -qE -e "^\.BR? ${k%.*}$" man/foretoken-scenario.5 &&
				grep -qE -e "^\.BR? (.* )?${k##*.}( |,|\$)" man/foretoken-scenario.5; } || { echo "$k is not in foretoken-scenario(5)" >&2; return 1; }
	done <"$tmp/keys"
}
ok "every key of a scenario is in its page" documented
laid_out() { # every key of a stack's layout, and each host activity, is in foretoken-stack(5)
	sed 's/\\f[BIRP]//g; s/\\-/-/g' man/foretoken-stack.5 >"$tmp/stack"
	{
		sed -n '/^static bool read_layout/,/^}/s/.*read_[a-z]*(&r, "\([a-z0-9_]*\)".*/\1/p' stacks/stack.c
		sed -n '/^} flags\[\] = {/,/^};/p' stacks/flags.c | grep -o '(\([a-z0-9_]*\))' | tr -d '()'
		sed -n '/hosts\[FT_HOSTS\]/,/};/p' stacks/stack.c | grep -o '"[a-z_]*"' | tr -d '"'
	} >"$tmp/laid"
	[ "$(wc -l <"$tmp/laid")" -gt 50 ] || return 1
	while read -r k; do
		grep -qw -e "$k" "$tmp/stack" || { echo "$k is not in foretoken-stack(5)" >&2; return 1; }
	done <"$tmp/laid"
}
ok "every key of a stack's layout is in its page" laid_out
pointed() { # every page of section 1 and 5 points at the two pages
	for m in man/*.[15]; do
		grep -q 'reading-the-output' "$m" && grep -q 'glossary' "$m" || { echo "$m does not point at $reading and $glossary" >&2; return 1; }
	done
}
ok "every manual page points at the glossary" pointed
ok "so does the README" grep -q 'docs/glossary.md' README.md
ok "the README points at reading the output" grep -q 'docs/reading-the-output.md' README.md

# ---- how it is said: phrases that readers stumbled over
cat >"$tmp/banned" <<'END'
per second and GPU
token and GPU
tokens a second
nothing is bought
is no unit
is no whole
is no multiple
is no number
is no key
' is none of
missing or is none
meanwhile, on the nodes
Ranks, from the first
one a node
that many send
two parts to one, which
families that there are
is there already is not
for what it is told
that is no recipe
shortest word that is true
of it network
a rank from which
beyond its bytes
to be what it should be
is two machines
as nobody gave
on the nodes behind
END
plain() { # TEXT-FILE...: none of the phrases, line breaks or not
	bad=
	cat "$@" | tr '\n' ' ' | tr -s ' *' >"$tmp/text"
	while read -r phrase; do
		! grep -qiF -e "$phrase" "$tmp/text" || { echo "'$phrase' stands in: $(grep -liF -e "$phrase" "$@" | tr '\n' ' ')" >&2; bad=1; }
	done <"$tmp/banned"
	[ -z "$bad" ]
}
ok "the documents are plain" plain README.md ARCHITECTURE.md CONTRIBUTING.md docs/*.md examples/README.md examples/*/README.md
ok "the manual is plain" plain "$tmp/man"
{
	$f --help
	for c in simulate compare bom prices collective validate sweep merge kernel calibrate trace runs explain new doctor serve list; do $f $c --help; done
} >"$tmp/help"
ok "--help is plain" plain "$tmp/help"
# literals that the compiler joins are joined here, too
cat base/*.c hw/*.c models/*.c stacks/*.c traces/*.c sim/*.c recorded/*.c cost/*.c study/*.c reports/*.c serve/*.c cli/*.c calibrate/*.c | tr '\n\t' '  ' |
	sed "s/'\"'//g" | sed 's/\\"//g; s/" *"//g' | grep -oE '"[^"]*"' >"$tmp/strings"
ok "what the program says is plain" plain "$tmp/strings"
cat */*.h include/foretoken/*.h >"$tmp/headers"
ok "the headers are plain" plain "$tmp/headers"

# ---- model types that the manual names
types_told() {
	sed -n '/^The model types are/,/^$/p' man/foretoken-scenario.5 | tr ' ;,' '\n\n\n' >"$tmp/named"
	sed -n '/families\[\] = {/,/refused\[\]/s/^\t{ \(\.type = \)\{0,1\}"\([^"]*\)".*/\2/p' models/families.c |
		grep -vxF -f "$tmp/named" >"$tmp/untold"
	[ ! -s "$tmp/untold" ] || { echo "foretoken-scenario(5) lacks $(tr '\n' ' ' <"$tmp/untold")" >&2; return 1; }
}
ok "the manual names each model type" types_told

# ---- numbers that README says
told() { # WHAT N: README says so many
	grep -q "$2" README.md || { echo "README does not say '$2'" >&2; return 1; }
}
n=$($f runs | sed -n 's/^\([0-9]*\) runs;.*/\1/p' | sed 's/\([0-9]\)\([0-9]\{3\}\)$/\1,\2/')
ok "the measured runs are as many as README says" told runs "the $n measured runs"
each_at_best() { # the odds that README's text gives
	odds=$($f compare --each-at-best -q examples/01-first-answer/h100.yaml examples/01-first-answer/mi300x.yaml \
		--set 'training.parallel={}' --set training.overlap.tp=false |
		sed -n '1s/^\([a-z0-9]*\) is cheaper with probability \([0-9.]*\): no clear winner.*/\1 \2/p')
	test -n "$odds" && told odds "that a search finds, ${odds% *} is cheaper with$" &&
		told odds "^probability ${odds#* }, which is still no clear winner"
}
ok "and the odds of both at their best plans are those that it says" each_at_best
ok "so are the GPUs" told gpus "$(ls hw/gpus/*.yaml | wc -l) GPUs from"
ok "so are the presets" told presets "$(ls models/*.yaml | xargs grep -L 'shape to be given' | wc -l) presets"
finish
