#!/bin/sh
# tests/test_cli.sh - the program as a person meets it: answers, mistakes, exits
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml

with() { # a scenario with one line replaced
	sed "$1" $a >"$tmp/s.yaml"
}
bad() { # PATTERN SED: the changed scenario is refused with these words
	with "$2"
	fails 1 "$1" $f simulate "$tmp/s.yaml"
}
json() { $f "$@" --json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert eval(sys.argv[1]), d' "$check"; }

ok "simulate answers" $f simulate $a
check='abs(sum(d["breakdown_s"].values())/d["step_s"]-1)<1e-9 and d["fits"] and d["interval"]["step_s"][0]<d["step_s"]<d["interval"]["step_s"][1]'
ok "the breakdown adds up to the step" json simulate $a
check='d["scenario"]["training"]["parallel"]["tp"]==2 and "training.parallel.cp" in d["assumed"]'
ok "--set overrides, and what is assumed is told" json simulate $a --set training.parallel.tp=2
check='d["fabric"]["leaf"]==32 and d["fabric"]["spine"]==16 and d["fabric"]["cables_node_leaf"]==1020 and d["fabric"]["cables_leaf_spine"]==1024'
ok "bom of the 127-node SuperPOD" json bom $a --set cluster.gpus=1016 --set cluster.ufm_ports=4
check='len(d["rows"])==4 and all(r["busbw_gb_per_s"]>0 for r in d["rows"])'
ok "collective prints nccl-tests columns" json collective $a --op all_reduce,all_gather --bytes 16MiB,1GiB --gpus 64
check='len(d["scenarios"])==2 and d["differences"]'
ok "compare tells differences" json compare $a examples/01-first-answer/mi300x.yaml
ok "bom as CSV, each line with its role" sh -c "$f bom $a --csv >$tmp/b.csv && grep -q '^role,item,count' $tmp/b.csv && grep -q '^\"leaf switch\",switch-ndr-64,32,' $tmp/b.csv && [ \$(cut -d, -f1 $tmp/b.csv | sort | uniq -d | wc -l) = 0 ]"
printf 'id,model.name,cluster.gpu,cluster.gpus,training.sequence_length,training.global_batch_size,measured.mfu\n1,llama3-8b,h200,8,4096,8,0.5\n' >"$tmp/mfu.csv"
ok "a row with another measured key is no failure" sh -c "$f validate $tmp/mfu.csv >$tmp/o && grep -q '^mfu' $tmp/o && ! grep -q 'not simulated' $tmp/o"
sed -i 's/,0.5$/,52.7/' "$tmp/mfu.csv"
ok "a table without a row is no lack of memory" sh -c "$f validate $tmp/mfu.csv --rows | grep -q '1 of 1 rows'"
ok "an MFU in percent is told" sh -c "$f validate $tmp/mfu.csv | grep -q 'mfu is a fraction'"

# ---- names, and answers that can be asked again
sed '1i title: Our <first> choice' $a >"$tmp/titled.yaml"
check='d["name"]=="Our <first> choice"'
ok "a title names the answer" json simulate "$tmp/titled.yaml"
check='d["name"]=="h100" and d["derived"]["dp"]==64 and abs(d["derived"]["parameters"]/70.55e9-1)<1e-3'
ok "else the file does; parameters are counted" json simulate $a
x3="examples/03-infiniband-roce-spectrum-x"
check='[s["name"] for s in d["scenarios"]]==["ib","roce","spectrum-x"] and [x["key"] for x in d["differs"]]==["cluster.fabric"]'
ok "compare names its columns, and says what differs" json compare $x3/ib.yaml $x3/roce.yaml $x3/spectrum-x.yaml
check='len(set(s["id"] for s in d["scenarios"]))==3'
ok "no two columns have one name" json compare $a $a "$tmp/titled.yaml"
check='{x["key"]: x["values"] for x in d["differs"]}["training.overlap.tp"]==["true","false"]'
ok "defaults of stacks are compared, too" json compare $a examples/01-first-answer/mi300x.yaml
again() { # SCENARIO: the JSON's scenario gives the same answer, from elsewhere
	$f simulate "$1" --json >"$tmp/1" && python3 -c 'import json, sys
json.dump(json.load(open(sys.argv[1]))["scenario"], open(sys.argv[2], "w"))' "$tmp/1" "$tmp/fed.json" &&
	(cd "$tmp" && $f simulate fed.json --json >"$tmp/2") && python3 -c 'import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:3])
for k in ("step_s", "mfu", "memory_bytes_per_gpu", "cost", "breakdown_s", "items", "interval"):
    assert a[k] == b[k], (k, a[k], b[k])
assert b["assumed"] == [], b["assumed"]' "$tmp/1" "$tmp/2"
}
for s in 01-first-answer/h100 01-first-answer/mi300x 06-my-own-model/hugging-face 06-my-own-model/inline 08-mixture-of-experts/mixtral; do
	ok "the answer's scenario gives the same answer: $s" again examples/$s.yaml
done
ok "a scenario can come by standard input" sh -c "$f simulate - --json <$a | grep -q step_s"
ok "keys of a config.json that are not used are listed" sh -c "$f simulate examples/06-my-own-model/hugging-face.yaml | grep -q 'not used: architectures'"
ok "the timeline may lie in the report's folder" sh -c "$f simulate $a --report $tmp/both --timeline $tmp/both/t.json && test -s $tmp/both/t.json"
for c in simulate compare validate sweep bom collective kernel trace list; do
	ok "$c --help has an example" sh -c "$f $c --help | grep -q Example"
done
for k in gpus nodes fabrics models stacks ccl prices; do
	ok "list $k" $f list $k --json
done
ok "the same input gives the same bytes" sh -c "$f simulate $a --json >$tmp/1 && $f simulate $a --json >$tmp/2 && cmp $tmp/1 $tmp/2"
ok "a plan that does not fit is simulated all the same" sh -c "$f simulate $a --set cluster.gpus=8 --set training.global_batch_size=8 --set training.parallel.pp=1 --set training.parallel.vpp=1 --json 2>/dev/null | grep -q '\"fits\": false'"

ok "no argument is wrong usage" fails 64 Usage $f
ok "an unknown command names the nearest" fails 64 "did you mean 'simulate'" $f simulat
ok "a missing argument is wrong usage and named" fails 64 "a SCENARIO is missing" $f simulate
ok "a second scenario that is missing is named" fails 64 "one more SCENARIO is missing" $f compare $a
ok "one scenario too many is wrong usage" fails 64 "at most 1 SCENARIO" $f bom $a $a
ok "a missing action of trace is named" fails 64 "show, replay, compare or export is missing" $f trace
ok "another action of trace is refused" fails 64 "neither show, replay, compare nor export" $f trace sho $a
ok "a missing graph is named" fails 64 "--graph FILE is missing" $f trace replay $a
printf "kernel,dtype,m,n,k\ngemm,bf16,64,64,64\ngemmm,bf16,64,64,64\n" >"$tmp/gemmm.csv"
ok "one row is one row" sh -c "$f kernel --gpu h200 --csv $tmp/gemmm.csv 2>&1 >/dev/null | grep -q 'warning: 1 row cannot be predicted'"
ok "a row of kernels that cannot be predicted is told with its line" sh -c "$f kernel --gpu h200 --csv $tmp/gemmm.csv 2>&1 >/dev/null | grep -q \"the first, of line 3: unknown kernel .gemmm.; with k it is called gemm\""
ok "a missing --csv is named" fails 64 "--csv FILE is missing" $f kernel --gpu h200
ok "a missing action of calibrate is named" fails 64 "an action is missing" $f calibrate
ok "a missing file" fails 1 "No such file" $f simulate /nonexistent.yaml
ok "a folder" fails 1 "is a folder" $f simulate /
ok "a missing recording" fails 1 "No such file" $f trace replay /nonexistent.json.gz --gpu b200
ok "a folder for a recording" fails 1 "is a folder" $f trace replay / --scale dp=2
ok "an empty file" sh -c ": >$tmp/empty.yaml; $one $f simulate $tmp/empty.yaml"
head -c 4096 /dev/urandom >"$tmp/random.yaml"
ok "a binary file" fails 1 "error:" $f simulate "$tmp/random.yaml"
head -c 20000000 /dev/zero | tr '\0' 'a' >"$tmp/large.yaml"
ok "an enormous file" fails 1 "too large" $f simulate "$tmp/large.yaml"
ok "a config.json that is given as a scenario is told" fails 1 "is a model.s config.json; a scenario names it, as model: FILE" $f simulate examples/06-my-own-model/config.json
ok "a misspelt word of --set is marked itself" fails 1 "training.parallel.tpp=1:1:25: error: unknown key 'tpp'; did you mean 'tp'" $f simulate $a --set training.parallel.tpp=1
ok "and one in front of it" fails 1 "trainng.parallel.tp=1:1:7: error: unknown key 'trainng'" $f simulate $a --set trainng.parallel.tp=1
ok "an unknown key names the nearest" bad "did you mean 'training'" 's/^training:/trainig:/'
ok "an unknown GPU names the nearest" bad "did you mean 'h100-sxm'" 's/gpu: h100-sxm/gpu: h100-smx/'
ok "an unlike one does not" bad "known: .*mi355x" 's/gpu: h100-sxm/gpu: v100/'
ok "a GPU's short name finds it" bad "did you mean 'h100-sxm'" 's/gpu: h100-sxm/gpu: H100/'
ok "a model's name without its dash" fails 1 "did you mean 'llama3-70b'" $f simulate $a --set model=Llama3_70B
ok "a key in the wrong place is found" fails 1 "did you mean training.parallel.tp" $f simulate $a --set tp=8
ok "and one level too high" fails 1 "did you mean training.parallel.pp" $f simulate $a --set training.pp=8
ok "dp is not given" fails 1 "leave it out" $f simulate $a --set training.parallel.dp=8
ok "attention of sinks that it does not know is refused" fails 1 "attention 'flex' is not one of" $f simulate examples/01-first-answer/h100.yaml --set stack=nemo-automodel-2025 --set model=gpt-oss-20b --set 'cluster={gpu: b200, gpus: 8}' --set 'training={sharding: fsdp, parallel: {ep: 8}, sequence_length: 4096, global_batch_size: 64, precision: bf16}'
ok "and taken where the model has none" $f simulate examples/01-first-answer/h100.yaml --set stack=nemo-automodel-2025 --set model=llama3-8b --set 'cluster={gpu: b200, gpus: 8}' --set 'training={sharding: fsdp, sequence_length: 4096, global_batch_size: 64, precision: bf16}' -q
ok "attention that the GPU's profile does not know is refused" fails 1 "attention 'fa3-3.0' is not one of fa2, cudnn, trtllm" $f simulate examples/01-first-answer/h100.yaml --set stack=transformers-5-compile-fa3 --set 'cluster={gpu: a100-80g, gpus: 8}'
ok "a stack of another vendor is refused" fails 1 "nemo-24.11 runs on nvidia GPUs only, and mi300x is an amd GPU" $f simulate examples/01-first-answer/mi300x.yaml --set stack=nemo-24.11
ok "an option of a stack that did nothing is gone" fails 1 "unknown key 'rank_order'" sh -c "printf 'extends: nemo-24\\nprovenance: {kind: assumed}\\nlayout: {rank_order: tp-dp}\\n' >$tmp/r.yaml; $f simulate $a --set stack=$tmp/r.yaml"
ok "a mistake has file, line and column" bad "s.yaml:14:18: error" 's/tp: 4/tp: 3/'
ok "tp that does not divide the ranks" bad "error" 's/gpus: 1024/gpus: 72/'
ok "zero GPUs" bad "not between" 's/gpus: 1024/gpus: 0/'
ok "negative GPUs" bad "not between" 's/gpus: 1024/gpus: -8/'
ok "overflowing GPUs" bad "not between" 's/gpus: 1024/gpus: 99999999999999999999/'
ok "NaN" bad "whole number" 's/gpus: 1024/gpus: nan/'
ok "half a GPU" bad "whole number" 's/gpus: 1024/gpus: 1023.5/'
ok "a whole number however it is written" sh -c "$f simulate -q --json $a | grep step_s >$tmp/1; $f simulate -q --json $a --set cluster.gpus=1.024e3 --set training.parallel.tp=4.0 --set training.parallel.ep=1.0 | grep step_s | cmp - $tmp/1"
ok "a sequence of zero" bad "not between" 's/sequence_length: 8192/sequence_length: 0/'
ok "an unknown precision" bad "not one of" 's/precision: bf16/precision: bf17/'
ok "two documents" sh -c "cat $a >$tmp/two.yaml; echo '---' >>$tmp/two.yaml; cat $a >>$tmp/two.yaml; $one $f simulate $tmp/two.yaml"
ok "--set of nonsense" fails 1 "write --set KEY=VALUE" $f simulate $a --set nonsense
ok "--set of an unknown key" fails 1 "unknown key" $f simulate $a --set training.nonsense=1
ok "an unwritable timeline leaves no answer" fails 1 "cannot be written" $f simulate $a --timeline /nonexistent/t.json
ok "a full disk is told" sh -c "$one $f simulate $a >/dev/full"
ok "a group larger than the cluster" fails 1 "a group of" $f collective $a --gpus 4096
ok "a collective of 0 bytes" fails 1 "not a whole number from 1" $f collective $a --bytes 0
ok "a collective of half a GPU" fails 1 "not a whole number from 1" $f collective $a --gpus 8.5
ok "an unknown collective" fails 1 "known: all_reduce" $f collective $a --op all_redcue
printf 'id,modle.name,measured.step_s\n1,llama3-8b,1\n' >"$tmp/r.csv"
ok "an unknown column" fails 1 "unknown column" $f validate "$tmp/r.csv"
printf 'id,model.name,cluster.gpu,cluster.gpus,training.sequence_length,training.global_batch_size,measured.step_s\n1,llama3-8b,h200,8,4096,8,1\n2,llama3-8b,h200,8,4096,7,1\n3,nope,h200,8,4096,8,1\n' >"$tmp/r.csv"
check='d["summary"]["n"]==1 and d["summary"]["failed"]==2 and len(d["failed"])==2'
ok "rows that cannot be simulated are counted" json validate "$tmp/r.csv"
cp $a "$tmp/$(printf 'bad\377name').yaml"
printf "model: llama3-8b\n\377\376: 3\n" >"$tmp/bytes.yaml"
moe=examples/08-mixture-of-experts/mixtral.yaml
ok "pairs of passes compute no layers again" fails 1 "overlap.ep pairs the passes of two micro-batches" $f simulate $moe --set 'training={sequence_length: 4096, global_batch_size: 512, sharding: zero1, parallel: {ep: 8}, overlap: {ep: true}, recompute: full}'
ok "nor is an MLP recomputed where there is none" fails 1 "mlp: the model has no layer without experts" $f simulate $moe --set training.recompute=selective --set training.recompute_modules=mlp
ok "nor are shared experts one" fails 1 "mlp: .*moe computes a routed MLP again, with its shared experts" $f simulate $moe --set model=llama4-scout --set training.recompute=selective --set training.recompute_modules=mlp
ok "an answer for programs has the keys that do nothing" sh -c "$f simulate $a --set training.parallel.pp=1 --set training.parallel.vpp=1 --set training.schedule=gpipe --json 2>/dev/null | jq -e '.idle_keys == [{\"key\": \"training.schedule\", \"counts\": \"with pp above 1\"}]'"
ok "that FSDP gathers late cannot be said" fails 1 "param_gather has an effect only with sharding zero1 or zero2" $f simulate $a --set training.sharding=fsdp --set training.overlap.param_gather=false
ok "a byte that is no text is told with its place" sh -c "! $f simulate $tmp/bytes.yaml 2>$tmp/e && grep -q 'bytes.yaml:2:1: error: is not valid YAML' $tmp/e"
ok "an option of the run is named as it was typed" sh -c "! $f simulate $a --days=-3 2>$tmp/e && grep -q '^--days=-3:1:8: error: days: -3 is negative' $tmp/e"
ok "a name that is no UTF-8 is in the JSON, with a question mark" sh -c "$f simulate $tmp/bad*name.yaml --json | grep -qF '\"name\": \"bad?name\"'"
indented() { # each line of a JSON answer by as many blanks as it is deep
	for c in "simulate $a" "compare $a $a" "bom $a" "collective $a --op all_reduce" "prices show fiber"; do
		$f $c --json >"$tmp/deep.json" && python3 - "$tmp/deep.json" <<'P' || return 1
import json, sys
text, deep = open(sys.argv[1]).read(), 0
json.loads(text)
for line in text.splitlines():
    bare = line.strip()
    deep -= bare[0] in "]}"
    assert line == " " * deep + bare and (deep or bare in "{}[]"), line
    deep += bare[-1] in "[{"
P
	done
}
ok "JSON is indented" indented
mixture=examples/08-mixture-of-experts/mixtral.yaml
own_format() { # the headline says it where it differs, and nothing where it does not
	$f simulate $mixture --set training.precision=fp8 --set training.expert_precision=bf16 2>/dev/null | grep -q '^fp8, experts bf16, sequence ' &&
		$f simulate $mixture --set training.precision=fp8 2>/dev/null | grep -q '^fp8, sequence '
}
ok "a format of the experts' own is in the headline" own_format
# the leak sanitizer ends such a run with another status
cat >"$tmp/few.yaml" <<E
model: llama3-8b
cluster: {gpu: h100-sxm, gpus: 8}
training: {sequence_length: 2048, global_batch_size: 16, micro_batch_size: 1, sharding: zero1, parallel: {tp: 2}}
E
ends() { # STATUS command...
	want=$1
	shift
	"$@" >/dev/null
	got=$?
	[ $got = "$want" ] || { echo "exit $got, wanted $want" >&2; return 1; }
}
small="--set training.global_batch_size=256 --set training.parallel.pp=1 --set training.parallel.vpp=1"
ok "compare gives all memory back when a file is missing" ends 1 $f compare "$tmp/few.yaml" "$tmp/none.yaml"
ok "compare gives all memory back when it refuses" ends 1 $f compare $a $a $small --at money
ok "compare gives all memory back when it has searched" ends 0 $f compare "$tmp/few.yaml" "$tmp/few.yaml" --each-at-best
ok "compare gives all memory back when its report is not written" ends 1 $f compare "$tmp/few.yaml" "$tmp/few.yaml" --report "$tmp/few.yaml/folder"
ok "an error shows its line as it is, with a mark below its column" python3 tests/pointed.py pointed "$f" "$tmp"
ok "a command that an answer tells is the one that was given" python3 tests/pointed.py quoted "$f" "$tmp"
finish
