#!/bin/sh
# tests/test_options.sh - numbers and words of options: each bound is taken, and what is beyond it is wrong usage
. "$(dirname "$0")/tap.sh"
limit="timeout 20"
a=$tmp/plan.yaml
cat >"$a" <<'Y'
model: {name: llama3-8b, num_hidden_layers: 2}
cluster: {gpu: h100-sxm, gpus: 8}
training: {sequence_length: 2048, global_batch_size: 8, micro_batch_size: 1, parallel: {tp: 2, pp: 1, cp: 1},
  sharding: zero1, recompute: none}
Y
takes() {
	$limit "$@" >"$tmp/o" && [ -s "$tmp/o" ]
}
t=measurements/traces/h100-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz

for n in 15 4194305 16.5 x -16 99999999999999999999; do
	ok "--draws $n" wrong "draws: a whole number from 16 to 4194304" $f compare $a $a "--draws=$n"
done
ok "--draws 16" takes $f compare $a $a --draws=16
# of two words with one key the last counts, and a person is told so
twice() { # WORDS SET...: says so once, and answers what the last alone does
	words=$1 last=$2
	shift 2
	"$@" $last --json 2>"$tmp/e" | jq -S 'del(.command)' >"$tmp/o" && grep -qxe "foretoken: $words is given twice: the last counts" "$tmp/e" &&
		[ "$(wc -l <"$tmp/e")" = 1 ] && $f simulate "$a" $last --json | jq -S 'del(.command)' | cmp -s - "$tmp/o"
}
untold() {
	"$@" 2>"$tmp/e" >"$tmp/o" && [ -s "$tmp/o" ] && [ ! -s "$tmp/e" ]
}
ok "--set of a key twice" twice cluster.gpus "--set cluster.gpus=16" $f simulate "$a" --set cluster.gpus=8
if ! sanitized; then
	ok "--price of an item twice" twice "--price hgx-h100-server" "--price hgx-h100-server=250000" $f simulate "$a" --price hgx-h100-server=1
	ok "--tokens twice" twice --tokens "--tokens 2e9" $f simulate "$a" --tokens 1e9
	ok "not who is quiet" untold $f simulate "$a" --quiet --set cluster.gpus=8 --set cluster.gpus=16
	ok "a key and one below it are two" untold $f simulate "$a" --set 'training.parallel={}' --set training.parallel.tp=2
	ok "so are keys that begin alike" untold $f simulate "$a" --set training.recompute=full --set training.recompute_layers=1
fi
ok "a key of a node without a node" fails 1 "has keys but does not name what they change; add extends: NAME" $f simulate "$a" --set cluster.node.gpus=4
ok "and with one" takes $f simulate "$a" --set cluster.node.extends=hgx-h100 --set cluster.node.gpus=4

for at in gpus money megawatts time; do
	ok "--at $at" takes $f compare $a $a --draws=16 --at $at
done
ok "--at hope" wrong "at hope: write gpus, money, megawatts or time" $f compare $a $a --at hope

most=$($f plan "$a" --top 0 2>&1 | sed -n 's/.*--top takes 1 to //p')
ok "--top has a bound" [ "$most" -gt 1 ]
for n in 0 -1 $((most + 1)) 2x ''; do
	ok "--top '$n'" wrong "top takes 1 to $most" $f plan "$a" "--top=$n"
done
for n in 1 $most; do
	ok "--top $n" takes $f plan "$a" --top $n
done
for n in 0 257; do
	ok "plan --threads $n" wrong "threads takes 1 to 256" $f plan "$a" --threads $n
done
same() {
	for n in 1 256; do
		$f plan "$a" --json --threads $n | jq 'del(.command, .wall_s, .simulated)' >"$tmp/$n" || return 1
	done
	[ -s "$tmp/1" ] && cmp "$tmp/1" "$tmp/256"
}
ok "1 and 256 threads find the same" same
for by in tokens usd days; do
	ok "--rank-by $by" takes $f plan "$a" --rank-by $by --tokens 1G
done
ok "--rank-by luck" wrong "tokens, usd or days, not 'luck'" $f plan "$a" --rank-by luck
ok "--emit makefile" wrong "megatron, torchtitan, nemo or primus, not 'makefile'" $f plan "$a" --emit makefile
for to in megatron torchtitan nemo primus; do
	ok "--emit $to" takes $f plan "$a" --emit $to
done

for n in 65536 -1 x 1e3 ''; do
	ok "--port '$n'" wrong "port: a whole number from 0 to 65535" $f serve "--port=$n"
done
ok "serve of a file" wrong "serve takes no files" $f serve $a

sweep="$f sweep $a --vary training.sequence_length=1024,2048,4096"
for s in 0/3 4/3 3 1/ /2 1/100001 1/2/3 a/b -1/2; do
	ok "--shard $s" wrong "shard takes K/N, as 3/64" $sweep --db "$tmp/no.db" --shard "$s"
done
shards() { # of three, each has what no other has; the last shard of the most there can be may have nothing
	for s in 1/3 2/3 3/3; do
		$sweep --db "$tmp/shard.db" --shard $s || return 1
		sqlite3 "$tmp/shard.db" 'select count(*) from runs' >>"$tmp/counts"
	done
	[ "$(tr '\n' ' ' <"$tmp/counts")" = "1 2 3 " ]
}
ok "three shards have a third each" shards
for n in 1 256; do
	ok "sweep --threads $n" $limit $sweep --db "$tmp/t$n.db" --threads $n
done

replay="$f trace replay $t"
for v in gemm gemm= gemm=0 gemm=-1 gemm=inf gemm=1x wheels=2 =2; do
	ok "--speedup $v" wrong "speedup" $replay --speedup "$v"
done
for v in dp dp=0 dp=-1 dp=1.5 dp=67108865 pp=2 tp=0 tp=x 8; do
	ok "--scale $v" wrong "scale" $replay --scale "$v"
done
for v in 0 1.01 -0.5 nan x ''; do
	ok "--pace '$v'" wrong "pace: .* is not a fraction above 0, at most 1" $f trace compare $t $a --fit-stack "$tmp/x.yaml" "--pace=$v"
done
for v in 0 -5 x inf 0.5 1e-300 1000000001 1e300; do
	ok "--tokens-per-step $v" wrong "tokens-per-step: .* is not a number from 1 to 1000000000" $replay --tokens-per-step "$v"
done
for v in 1 1e9; do
	ok "--tokens-per-step $v is taken" takes $replay --tokens-per-step "$v"
done
for c in gemm attention memory optimizer collective copy; do
	ok "--speedup $c=1 changes nothing" takes sh -c "$replay --json --speedup $c=1 | jq -e '.step_s == .recorded_step_s'"
done
ok "--without prayer" wrong "or waiting; not 'prayer'" $replay --without prayer
ok "prices import takes no --plot" wrong "plot and --json belong to show" $f prices import neocloud-2026-09 --db "$tmp/p.db" --plot "$tmp/p.svg"
ok "nor --json" wrong "plot and --json belong to show" $f prices import neocloud-2026-09 --db "$tmp/p.db" --json
ok "show takes one item" wrong "show takes one ITEM" $f prices show a b
ok "import wants a database" wrong "db FILE is missing" $f prices import neocloud-2026-09
ok "import wants a book" wrong "BOOK is missing" $f prices import --db "$tmp/p.db"
ok "show wants an item" wrong "ITEM is missing" $f prices show
for n in -1 x 8 99999999999; do
	ok "--timeline-rank $n" sh -c "! $f simulate $a --timeline $tmp/t.json --timeline-rank=$n && [ ! -e $tmp/t.json ]"
done
once() { # MISTAKE command...: a wrong option is told once, by the command, and where its help is
	mistake=$1
	shift
	! "$@" 2>"$tmp/e" >"$tmp/o" && [ "$(wc -l <"$tmp/e")" -le 3 ] && sed -n 1p "$tmp/e" | grep -q "^foretoken [a-z]*: .*$mistake" &&
		sed -n 2p "$tmp/e" | grep -q "^Try "
}
ok "--timeline-rank x is told as others are" once "--timeline-rank: 'x' is not a whole number" $f simulate $a --timeline "$tmp/t.json" --timeline-rank=x
ok "so is --draws x" once "--draws: a whole" $f compare $a $a --draws x
ok "so is --run x" once "--run: 'x' is not a whole number" $f calibrate runs --run x
for c in "gpu does nothing in runs|runs --gpu h200" "json does nothing in show|show --json" "name does nothing in probe|probe --name x" \
	"run does nothing in diff|diff 1 2 --run 3" "quick does nothing in fit|fit --name x --quick" "'x' is too much: runs|runs x" "a FILE is missing|import"; do
	ok "calibrate ${c#*|}" once "${c%%|*}" $f calibrate ${c#*|}
done
ok "bom: a table or JSON" once "--csv or --json" $f bom $a --csv --json
ok "compare: a table or JSON" once "--csv or --json" $f compare $a $a --csv --json
ok "plan: arguments or JSON" once "--emit or --json" $f plan $a --emit nemo --json
ok "doctor takes nothing" once "'x' is too much" $f doctor x
ok "so is --port x" once "--port: a whole" $f serve --port x
ok "--timeline-rank 7" $limit $f simulate $a --timeline-format kineto --timeline "$tmp/t.json" --timeline-rank=7
ok "a timeline is JSON or SVG" wrong "name it FILE.json or FILE.svg, not '.*.png'" $f simulate $a --timeline "$tmp/t.png"
for o in --timeline-rank=0 --timeline-rank=1 --timeline-format=chrome --timeline-format=kineto --timeline-format=svg --timeline-format=memory; do
	ok "$o of no timeline" refused "need --timeline FILE" $f simulate $a $o
done
for form in chrome svg memory; do
	ok "the first rank of a timeline's form $form" refused "needs --timeline-format kineto" $f simulate $a --timeline "$tmp/t.out" --timeline-format $form --timeline-rank=0
done
ok "nor in a format of its own" wrong "chrome, kineto, svg or memory, not 'gif'" $f simulate $a --timeline "$tmp/t.json" --timeline-format gif
ok "explain takes one key" wrong "one KEY at a time" $f explain title name
sanitized || ok "explain tells of each key what list, simulate and the sources say" python3 tests/explain.py $f
sanitized || ok "and of each cell that a table prints" python3 tests/printed.py $f
if sanitized; then
	: # words, of which the other build has the same
elif command -v groff >/dev/null; then
	ok "of each key of a file explain says what the manual does, and each --help its page, as groff sets them" python3 tests/manual.py $f
else
	skip "the manual is what explain and --help say" "no groff"
fi
# what does not go together, said by name
s=examples/15-recorded-step/scenario.yaml
wrongs() { # "WORDS|ARGUMENT...": wrong usage, which says so
	for line in "$@"; do
		wrong "${line%%|*}" $f ${line#*|} || { echo "$line" >&2; return 1; }
	done
}
printf 'kernel,dtype,layout,m,n,k,measured.time_us\ngemm,bf16,forward,4096,4096,4096,300\n' >"$tmp/one.csv"
ok "a store of one row" $f calibrate import --store "$tmp/m.db" --format csv --device one "$tmp/one.csv"
ok "commands that lack something say what" wrongs "KEY is missing; 'foretoken list keys' has them all|explain" \
	"INTO.db and a FROM.db are needed|merge $tmp/o.db" "say which: scenario, gpu, node, fabric, stack, prices|new" \
	"import or show is missing|prices" "fit needs --name; --only takes gemm, attention|calibrate fit --store $tmp/m.db" \
	"fit needs --name; --only takes gemm, attention|calibrate fit --name x --only luck --store $tmp/m.db" \
	"plot needs --gpu|calibrate plot --store $tmp/m.db"
ok "an operation that is none" refused "there is no collective 'gossip'; known: all_reduce, all_gather" $f collective $a --op gossip
ok "options of trace that do not go together" wrongs \
	"--fit-stack goes with --step, --pace and --date alone|trace compare $t $s --fit-stack $tmp/x.yaml --plot $tmp/x.svg" \
	"--fit-stack goes with --step, --pace and --date alone|trace compare $t $s --fit-stack $tmp/x.yaml --gpu h200" \
	"--pace and --date are of --fit-stack|trace compare $t $s --pace 0.5" "--pace and --date are of --fit-stack|trace compare $t $s --date 2026" \
	"--date is no date: write 2026, 2026-11 or 2026-11-22|trace compare $t $s --fit-stack $tmp/x.yaml --date 2026-1" \
	"--plot is of compare|trace show $t --plot $tmp/x.svg" "--fit-stack is of compare|trace show $t --fit-stack $tmp/x.yaml" \
	"export writes a file, and prints no JSON|trace export $t --chakra $tmp/x --json" \
	"export takes --chakra PREFIX or --goal OUT|trace export $t" "export takes --chakra PREFIX or --goal OUT|trace show $t --goal $tmp/x" \
	"export takes --chakra PREFIX or --goal OUT|trace export $t --chakra $tmp/x --goal $tmp/x" \
	"--step and --timeline do nothing there|trace export $t --chakra $tmp/x --step 1" \
	"they are of replay and compare|trace show $t --from h200" "they are of replay and compare|trace show $t --set stack=generic" \
	"--graph is of a SCENARIO; a recording has its own|trace replay $t --graph $tmp/g" \
	"tokens-per-step are of replay|trace show $t --gpu h200" \
	"--from is the recording's GPU, for another machine|trace replay $t --from h100-sxm" \
	"compare and export --chakra take recordings|trace export $s --chakra $tmp/x" "compare and export --chakra take recordings|trace compare $s $s" \
	"of a recording, and the file is none|trace show $s --gpu h200" "one SCENARIO at a time|trace show $s $s" \
	"--graph FILE is missing, or the file is no recording|trace replay $s" \
	"--graph is of replay: show and export build|trace show $s --graph $tmp/g" "compare takes FILE... and then a SCENARIO|trace compare $t"
ok "each option of trace is taken by its verbs, and refused by name by all others" sh -c "mkdir $tmp/trace && python3 tests/trace_options.py $f $tmp/trace"
ok "calibrate dances not" wrong "calibrate has no action 'dance'; known: probe, import" $f calibrate dance
defaults() { # what the help states is what counts
	$f plan --help | grep -q "How many plans to show (default: 5)" && $f plan "$a" --free sharding --free recompute --json | jq -S 'del(.command, .wall_s, .simulated)' >"$tmp/1" &&
	$f plan "$a" --free sharding --free recompute --json --top 5 | jq -S 'del(.command, .wall_s, .simulated)' >"$tmp/2" &&
	[ "$(jq '.best | length' "$tmp/1")" = 5 ] && cmp "$tmp/1" "$tmp/2"
}
ok "plan shows five" defaults

# what is written is no file that is read, nor written twice, by whatever name
cp "$a" "$tmp/s.yaml"
cp "$a" "$tmp/other.yaml"
ln "$tmp/s.yaml" "$tmp/hard.yaml"
cp hw/fabrics/ib-ndr-rail.yaml "$tmp/fabric.yaml"
gunzip -c $t >"$tmp/step.json"
(cd "$tmp" && sha256sum s.yaml other.yaml fabric.yaml step.json) >"$tmp/before"
for out in s.yaml ./s.yaml hard.yaml other.yaml; do
	ok "flows into $out" fails 1 "is read, and would be written over" $f simulate "$tmp/s.yaml" --beside "$tmp/other.yaml" --flows "$tmp/$out"
done
ok "a timeline into a file of --set" fails 1 "is read, and would be written over" $f simulate "$tmp/s.yaml" --set "cluster.fabric=$tmp/fabric.yaml" --timeline "$tmp/fabric.yaml"
ok "a drawing into its scenario" fails 1 "is read, and would be written over" $f bom "$tmp/s.yaml" --plot "$tmp/s.yaml"
ok "a drawing's name says what it is" fails 1 "should be the name of an SVG file" $f bom "$tmp/s.yaml" --set cluster.gpus=64 --plot "$tmp/net"
ok "GOAL into its scenario" fails 1 "is read, and would be written over" $f trace export "$tmp/s.yaml" --goal "$tmp/s.yaml"
ok "a replay into its recording" fails 1 "is read, and would be written over" $f trace replay "$tmp/step.json" --speedup gemm=2 --timeline "$tmp/step.json"
ok "Chakra's files are written" takes $f trace export "$tmp/step.json" --chakra "$tmp/rank"
ok "but not over those that are read" fails 1 "is read, and would be written over" $f trace export "$tmp/rank.0.et" --chakra "$tmp/rank"
ok "two files of one name" fails 1 "would be written twice" $f simulate "$tmp/s.yaml" --flows "$tmp/new" --timeline "$tmp/./new"
ok "nothing was written" sh -c "cd $tmp && [ ! -e new ] && [ ! -e net ] && sha256sum -c before"
ok "a device may be named twice" takes $f simulate "$tmp/s.yaml" --flows /dev/null --timeline /dev/null
named() { # the options that skeletons name are those of the commands that they name
	grep -ho '`[a-z]* --[a-z-]*' cli/new/*.yaml | tr -d '`' >"$tmp/named" && [ -s "$tmp/named" ] &&
	while read -r command option; do
		"$f" "$command" --help | grep -q -e "$option" || return 1
	done <"$tmp/named"
}
ok "options that skeletons name exist" named
finish
