#!/bin/sh
# tests/test_trace.sh - recorded steps: shown, replayed, asked what if; mistakes in words
. "$(dirname "$0")/tap.sh"
t=measurements/traces
eager=$t/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
peer=$t/h200-8b4L-fsdp2-s4096-b1-eager.rank1.kineto.json.gz

json() { # CHECK command...
	check=$1
	shift
	$f trace "$@" --json | python3 -c 'import json,sys; d=json.load(sys.stdin); assert eval(sys.argv[1]), d' "$check"
}
all_replay() {
	for x in $t/*.json.gz; do
		json 'abs(d["step_s"]/d["recorded_step_s"]-1)<1e-9 and d["classified_frac"]>0.95' replay "$x" || return 1
	done
}

ok "every recording replays to its own step, and is classified" all_replay
ok "two ranks replay together, and meet" json 'd["order"]["collectives_matched"]==30 and abs(d["step_s"]/d["recorded_step_s"]-1)<1e-9' replay $eager $peer
ok "the breakdown adds up to the step" json 'abs(sum(d["breakdown_s"].values())/d["recorded_step_s"]-1)<1e-9' show $eager
ok "idle time adds up by cause" json 'abs(sum(d["idle_s"].values())-d["breakdown_s"]["host"])<1e-12' show $eager
ok "what parts add to the step adds up to its change" json 'abs(sum(c["step_s"] for c in d["changes"])-(d["step_s"]-d["recorded_step_s"]))<1e-9' replay $eager --gpu mi300x --scale dp=8
certain='max(abs(x/d["step_s"]-1) for x in d["interval"]["step_s"])<1e-6'
ok "kernels that another number of ranks leaves as they are are certain" json "$certain" replay $eager --scale dp=8 --speedup collective=1000000 --speedup memory=1000000 --speedup optimizer=1000000
ok "and so is on another GPU what takes no time" json "$certain" replay $eager --gpu mi300x --speedup gemm=1000000 --speedup attention=1000000 --speedup memory=1000000 --speedup optimizer=1000000 --speedup copy=1000000 --speedup collective=1000000
ok "not what takes some" json "not $certain" replay $eager --gpu mi300x
ok "its own GPU changes nothing" json 'abs(d["step_s"]/d["recorded_step_s"]-1)<1e-9' replay $eager --gpu h200
ok "a faster kernel helps by less than it saves" json '0 < d["recorded_step_s"]-d["step_s"] <= sum(c["recorded_s"]-c["replayed_s"] for c in d["changes"])+1e-12' replay $eager --speedup attention=2
ok "without a collective the step is shorter" json 'd["step_s"]<d["recorded_step_s"]' replay $eager --without all_gather
eight=$t/h100-eight-8b16L-fsdp8-s2048-b1-compile.rank0.kineto.json.gz
ok "without waiting it is what ranks that come together take" json 'abs(d["step_s"]/0.17626-1)<0.1 and "is left out" in str(d["notes"])' replay $eight --scale dp=4 --without waiting
ok "a collective without recorded arguments is known by its kernel" json 'd["step_s"]<d["recorded_step_s"]' replay $t/h200-two-jax-1b3L-s4096-b2-products.perfetto.json.gz --without all_gather
ok "waiting is never negative" json 'd["step_s"]<d["recorded_step_s"]' replay $eight --without waiting
# the update of a smaller share of the weights is shorter by as much as collectives are longer: so network against network
among() { $f trace replay $eager --scale dp=64 --fabric "$1" --json | python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["machine"]["ranks"] == 64; print(d["step_s"])'; }
ok "a slower network is never faster" sh -c "awk -v slow=$(among roce-100-x4) -v fast=$(among roce-400-rail) 'BEGIN { exit !(slow > fast && fast > 0.1) }'"
ok "dollars when tokens are told" json 'd["cost"]["usd_per_million_tokens_low"]<d["cost"]["usd_per_million_tokens"]<d["cost"]["usd_per_million_tokens_high"]' replay $eager --tokens-per-step 8192 --gpu mi300x
ok "a host that faster products wait for is told" json 'd["step_s"]>0.999*d["recorded_step_s"] and "the host paces it" in str(d["notes"])' replay $t/h100-8b16L-fsdp2-s2048-b1-compile.rank0.kineto.json.gz --speedup gemm=2
ok "GPUs that are bought and idle are told" json '"6 of the 8 GPUs that are bought stand idle" in " ".join(d["notes"])' replay $eager --tokens-per-step 8192 --gpu h200
ok "and not where the servers are full" json 'not any("idle" in n for n in d["notes"])' replay $eager --tokens-per-step 8192 --gpu h200 --scale dp=8
ok "also where nothing is data-parallel" json '0<d["cost"]["usd_per_million_tokens"]<1e6' replay $t/h100-bert-small.tracelens.json.gz --tokens-per-step 512
ok "groups that could be tensor-parallel are not scaled" fails 1 "neither descriptions nor use tell" $f trace replay $t/h100-8b8L-tp4-s4096-b1-eager.rank0.kineto.json.gz --scale dp=8
ok "twice the rent, twice the price" sh -c "
	one=\$($f trace replay $eager --tokens-per-step 8192 --set 'cost.usd_per_gpu_hour=2 USD/h' --json | grep -o 'per_million_tokens\": [0-9.]*' | cut -d' ' -f2)
	two=\$($f trace replay $eager --tokens-per-step 8192 --set 'cost.usd_per_gpu_hour=4 USD/h' --json | grep -o 'per_million_tokens\": [0-9.]*' | cut -d' ' -f2)
	python3 -c \"assert abs(\$two/\$one-2)<1e-6\""
{ printf '\357\273\277'; gunzip -c $t/h100-bert-small.tracelens.json.gz; } >"$tmp/marked.json"
ok "a mark of UTF-8 before the file is passed over" json 'abs(d["step_s"]/d["recorded_step_s"]-1)<1e-9' replay "$tmp/marked.json"
ok "steps are told apart" json 'd["recorded_step_s"]>0' replay $t/h100-bert-small.tracelens.json.gz --step 6
ok "what-ifs come as near to what was measured as pairs.csv says" python3 scripts/whatif.py $f --check

# 950 launches in a row behind attention of 2 ms: the last waits for a place in the queue, which is there when the kernel
# behind attention begins; what the next call launches, on another stream, ends the step
python3 - >"$tmp/full.json" <<'P'
import json, sys
events = []
def launch(i, at, takes, name, stream, begins, runs):
    events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": takes,
                   "args": {"correlation": i}})
    events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": begins, "dur": runs,
                   "args": {"stream": stream, "correlation": i}})
launch(1, 0, 0.5, "flash_fwd_kernel", 7, 10, 2000)
for i in range(2, 950):
    launch(i, i, 0.5, "vectorized_elementwise_kernel", 7, 2008 + i, 1)
launch(950, 950, 1060, "vectorized_elementwise_kernel", 7, 2958, 1)
launch(951, 2011, 5, "gemm", 9, 2020.5, 5000)
json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events}, sys.stdout)
P
ok "a launch waits for a place in the queue, also in another time" json 'abs(d["recorded_step_s"]-d["step_s"]-1e-3)<1e-9' replay "$tmp/full.json" --speedup attention=2

python3 tests/small.py ahead >"$tmp/ahead.json"
ok "of several steps a part's durations are those of one" json '[(c["what"], round(c["recorded_s"], 12), round(c["replayed_s"], 12)) for c in d["changes"]] == [("gemm", 1.5e-3, 7.5e-4), ("memory", 5e-4, 5e-4)]' replay "$tmp/ahead.json" --speedup gemm=2
python3 tests/small.py ahead 1 >"$tmp/alone.json"
above() { $f trace replay "$1" --gpu h200 --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(round(d["interval"]["step_s"][1] / d["step_s"], 2))'; }
ok "and its range is that of one" [ "$(above "$tmp/ahead.json")" = "$(above "$tmp/alone.json")" ]
python3 tests/small.py ahead 3 cpu_op >"$tmp/old.json"
ok "old profilers mark steps among operators" json 'd["recorded_step_s"] == 2e-3' show "$tmp/old.json"
python3 tests/small.py ahead 3 user_annotation 1 >"$tmp/empty.json"
ok "a mark in which nothing is launched is left out of the mean" json 'd["recorded_step_s"] == 2e-3 and d["files"][0]["empty_steps"] == 1' show "$tmp/empty.json"
ok "and told of the file" sh -c "$f trace show $tmp/empty.json | grep -qx '  1 marked step has no operation and is left out'"
ok "or warned of" sh -c "$f trace replay $tmp/empty.json 2>&1 >$tmp/out | grep -q 'warning: $tmp/empty.json: 1 marked step has no operation and is left out' && cmp $tmp/out - <<E
\$($f trace replay $tmp/ahead.json)
E"
python3 tests/small.py ahead 0 user_annotation 2 | sed 's/"traceEvents": \[/&{"ph":"X","cat":"kernel","name":"gemm","pid":1,"tid":7,"ts":900,"dur":5,"args":{"stream":7}},/' >"$tmp/out.json"
ok "if all are, what was recorded is one step" sh -c "$f trace show $tmp/out.json | grep -qx '  2 marked steps have no operation and are left out: all that was recorded is one step'"
# steps 1 and 2 begin when the GPU has done with the one before: seven operations wait, then three, the last of each for 1500 us
ok "launches are told of a step that the host was ahead of" json 'd["launches"]["count"] == 4 and abs(d["launches"]["host_s"] - 2e-5) < 1e-12' show "$tmp/ahead.json"
ok "and what is launched and not begun, from its begin to its end" json 'abs(d["launches"]["queued_mean"] - (5.5 + 1.5) / 2) < 1e-9 and d["launches"]["queued_most"] == 7' show "$tmp/ahead.json"

# at full power, at 0.66 and at 0.37 of the way from idle to it (parts of a GPU, hw/parts/compute.yaml)
watts() { python3 tests/small.py kernels "$1" >"$tmp/one.json" && $f trace replay "$tmp/one.json" --tokens-per-step 1000 --json | grep -o 'joules_per_token": [0-9.]*' | cut -d' ' -f2; }
ok "kernels bound by memory and waiting draw less than products, as in simulate" python3 -c 'import sys; a, b, c, d = map(float, sys.argv[1:]); assert abs((b - c) / (a - c) / (0.29 / 0.63) - 1) < 1e-3 and c == d, (a, b, c, d)' "$(watts gemm)" "$(watts elementwise_kernel)" "$(watts ncclDevKernel_AllReduce)" "$(watts ncclDevKernel_SendRecv)"

for k in 0 1; do
	python3 tests/small.py late $k >"$tmp/late.$k.json"
done
skew() { # STEPS' WAITING us OPTION...
	us=$1
	shift
	json '[(round(1e6*s["waiting_s"], 6), round(1e6*s["transfer_s"], 6), s["collectives"], s["came_last"]) for s in d["skew"]] == [('$us', 20, 1, 0), (0, 20, 1, 1)]' show "$tmp/late.0.json" "$tmp/late.1.json" "$@"
}
ok "ranks wait for each other as long as in the mean of the steps, the first left out" skew 40
ok "or in the one asked for" skew 50 --step 1
sed 's/ProfilerStep#2/ProfilerStep#3/; s/ProfilerStep#1/ProfilerStep#2/; s/ProfilerStep#0/ProfilerStep#1/' "$tmp/late.1.json" >"$tmp/later.json"
ok "other steps of another rank are refused" fails 1 "begins with ProfilerStep#1, and .* with ProfilerStep#0" $f trace show "$tmp/late.0.json" "$tmp/later.json"
cut_at() { # us: rank 1, whose recording ends there
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); d["traceEvents"] = [e for e in d["traceEvents"] if e["ts"] < int(sys.argv[2])]; json.dump(d, sys.stdout)' "$tmp/late.1.json" "$1" >"$tmp/short.json"
	$f trace replay "$tmp/late.0.json" "$tmp/short.json" --json >"$tmp/all" && $f trace replay "$tmp/late.0.json" "$tmp/short.json" --step "$2" --json >"$tmp/one" && cmp "$tmp/all" "$tmp/one"
}
ok "where a rank lacks the last step, the mean is of those that all ranks have" cut_at 1000290 1
ok "be it the first alone" cut_at 1000120 0
echo '[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":0,"args":{"stream":7}}]' >"$tmp/none.json"
ok "a step of no time has a range, of no time" json 'd["step_s"] == 0 and d["interval"]["step_s"] == [0, 0]' replay "$tmp/none.json"
ok "and no tokens a second" fails 1 "none.json: error: its replayed step takes no time, so it has no tokens/s" $f trace replay "$tmp/none.json" --from h200 --tokens-per-step 1000
ok "one rank is told as one" sh -c "$f trace replay $tmp/ahead.json --gpu h200 | grep -q 'recorded on h100-sxm, 1 rank; replayed on h200, 1 rank, '"
ok "kernels are those of the step asked for" json '[k["class"] for k in d["kernels"]] == ["gemm", "collective"]' show "$tmp/late.0.json" --step 1
for k in 0 1; do
	python3 tests/small.py behind $k >"$tmp/behind.$k.json"
done
ok "what was launched before the recording meets nothing" json '[(round(1e6*s["waiting_s"], 6), round(1e6*s["transfer_s"], 6), s["collectives"], s["came_last"]) for s in d["skew"]] == [(120, 40, 4, 0), (0, 40, 4, 4)]' show "$tmp/behind.0.json" "$tmp/behind.1.json"
python3 tests/small.py groups _reduce_scatter_base:mesh_dp_shard:0,1 allreduce:mesh_dp_replicate:0,2 >"$tmp/hsdp.json"
ok "of shards and replicas of one size nothing tells which is to be scaled" fails 1 "neither descriptions nor use tell" $f trace replay "$tmp/hsdp.json" --scale dp=4

class() { # CLASS NAME...: all of these kernels are
	is=$1
	shift
	python3 tests/small.py kernels "$@" >"$tmp/kernels.json" && json '{k["class"] for k in d["kernels"]} == {"'$is'"} and len(d["kernels"]) == '$# show "$tmp/kernels.json"
}
ok "what Inductor fuses with others is none of them" class memory triton_red_fused__fused_rms_norm_add_all_reduce_3 \
	triton_poi_fused__scaled_dot_product_flash_attention_2 triton_poi_fused_bmm_5
ok "its templates are" class gemm triton_tem_fused_addmm_3 triton_tem_fused_bmm_1
ok "attention of flex_attention, of Composable Kernel" class attention triton_tem_fused_flex_attention_0 _ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_9BlockFmhaEEEEEvT1_
ok "an optimizer of 8 bits" class optimizer "void kOptimizerStatic8bit2StateBlockwise<float, 0, 256, 1>"
python3 tests/small.py groups allreduce:mesh_dp:0,1 allreduce:mesh_tp:0,1 >"$tmp/same.json"
for kind in dp:Data tp:Tensor; do
	ok "groups of the same ranks are told apart by their descriptions: ${kind%:*}" json 'd["machine"]["'${kind%:*}'"] == 4 and "'${kind#*:}'-parallel: the group of 2 ranks described as '"'mesh_${kind%:*}'"'" in str(d["notes"]).replace("\\", "")' replay "$tmp/same.json" --scale ${kind%:*}=4
done
python3 tests/small.py groups _reduce_scatter_base:mesh_dp:0,2 allreduce:mesh_tp:0,1 >"$tmp/mesh.json"
ok "ranks that are not told are as many as groups fill" json 'd["machine"]["ranks_recorded"] == 4 and d["machine"]["ranks"] == 8 and "4, by the groups" in str(d["notes"])' replay "$tmp/mesh.json" --scale dp=4

for k in 0 1; do
	python3 tests/small.py partly $k >"$tmp/partly.$k.json"
done
step() { $f trace replay "$@" --json | grep '"step_s": [0-9]'; }
same_by_two() { [ "$(step "$tmp/partly.0.json" "$@")" = "$(step "$tmp/partly.0.json" "$tmp/partly.1.json" "$@")" ]; }
ok "two of four ranks that come together tell what one does of waiting for the others" same_by_two --scale dp=8
ok "which is left out if that is asked" same_by_two --scale dp=8 --without waiting
python3 tests/small.py unfinished >"$tmp/unfinished.json"
ok "the host waits for what was launched before the recording, too" json 'abs(d["recorded_step_s"] - 2.015e-3) < 1e-12 and abs(d["step_s"] - 1.015e-3) < 1e-12' replay "$tmp/unfinished.json" --speedup gemm=2
python3 tests/small.py copy "Memcpy PtoP (Device -> Device)" >"$tmp/copy.json"
ok "a copy to another GPU is communication" json 'd["recorded_breakdown_s"]["exposed_communication"] == 1e-3 and d["step_s"] == d["recorded_step_s"]' replay "$tmp/copy.json" --gpu h200
python3 tests/small.py copy "Memcpy DtoD (Device -> Device)" >"$tmp/copy.json"
ok "within one it moves memory" json 'd["recorded_breakdown_s"]["compute"] == 1e-3 and d["step_s"] < d["recorded_step_s"]' replay "$tmp/copy.json" --gpu h200

for n in 4096 4097; do
	python3 tests/lanes.py $n "$tmp/streams.$n"
done
for x in json sqlite et; do
	ok "$x: as many streams as may be" $f trace show "$tmp/streams.4096.$x"
	ok "$x: one stream more is refused" fails 1 "too many.* streams" $f trace show "$tmp/streams.4097.$x"
done
zcat $eager >"$tmp/plain.json"
zstd -q -f "$tmp/plain.json" 2>/dev/null
ok "plain JSON is the same" sh -c "$f trace replay $tmp/plain.json | sed 1,2d >$tmp/a; $f trace replay $eager | sed 1,2d | diff - $tmp/a"
if [ -s "$tmp/plain.json.zst" ]; then
	ok "so is zstd" sh -c "$f trace replay $tmp/plain.json.zst | sed 1,2d | diff - $tmp/a"
else
	skip "so is zstd" "no zstd here"
fi
head -c 60000 $eager >"$tmp/cut.json.gz"
ok "a cut gzip file is told" fails 1 "the gzip file ends in the middle" $f trace show "$tmp/cut.json.gz"
head -c 500000 "$tmp/plain.json" >"$tmp/cut.json"
ok "cut JSON is told" fails 1 "was cut off" $f trace show "$tmp/cut.json"
sed '20i ]]]' "$tmp/plain.json" >"$tmp/bad.json"
ok "damage is told with its line" fails 1 "bad.json:20:" $f trace show "$tmp/bad.json"
gzip -kc "$tmp/bad.json" >"$tmp/bad.json.gz"
ok "packed, with the line unpacked" fails 1 "unpacked: line 20" $f trace show "$tmp/bad.json.gz"
head -c 200000000 /dev/zero | gzip >"$tmp/bomb.json.gz"
ok "a bomb is refused" fails 1 "error:" $f trace show "$tmp/bomb.json.gz"
python3 -c "
print('{\"traceEvents\":[' + ' ' * 200000000 + ']}')" | gzip >"$tmp/bomb.json.gz"
ok "so is one that is JSON" fails 1 "times its size" $f trace show "$tmp/bomb.json.gz"
python3 tests/nsight.py $eager "$tmp/n.sqlite"
ok "Nsight's export of the same shows the same" sh -c "$f trace show $tmp/n.sqlite | sed -n '/^where/,/^kernel/p' >$tmp/n; $f trace show $eager | sed -n '/^where/,/^kernel/p' | diff - $tmp/n"
cp "$tmp/n.sqlite" "$tmp/node.sqlite"
python3 -c "import sqlite3; c = sqlite3.connect('$tmp/node.sqlite'); c.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1 WHERE rowid % 2'); c.commit()"
ok "a report of all GPUs of a node is not taken for one rank" fails 1 "holds kernels of GPUs" $f trace show "$tmp/node.sqlite"
changed() { # SQL: of the same export
	cp "$tmp/n.sqlite" "$tmp/node.sqlite"
	python3 -c "import sqlite3, sys; c = sqlite3.connect('$tmp/node.sqlite'); c.executescript(sys.argv[1]); c.commit()" "$1"
}
changed "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD globalPid INTEGER DEFAULT 16777216"
ok "that of one process is" sh -c "$f trace show $tmp/node.sqlite | grep -q 'NVIDIA H200'"
changed "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD globalPid INTEGER; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = (1 + rowid % 2) << 24"
ok "nor one of processes that each call their GPU 0" fails 1 "node.sqlite: error: holds kernels of several processes" $f trace show "$tmp/node.sqlite"
changed "DELETE FROM TARGET_INFO_GPU; INSERT INTO TARGET_INFO_GPU (name) VALUES ('NVIDIA A2'), ('NVIDIA H200')"
ok "of two kinds of GPU neither is taken for the one that ran" sh -c "$f trace show $tmp/node.sqlite | grep -q 'device not told'"
changed "DROP TABLE TARGET_INFO_GPU; CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A2'), (1, 'NVIDIA H200');
	CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER); INSERT INTO TARGET_INFO_CUDA_DEVICE SELECT 1, deviceId, 7 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1"
ok "but the one that the export says" sh -c "$f trace show $tmp/node.sqlite | grep -q 'NVIDIA H200'"
ok "nor is a trace of two GPUs" sh -c "sed '0,/\"device\": 0/s//\"device\": 1/' $tmp/plain.json >$tmp/two.json; ! cmp -s $tmp/plain.json $tmp/two.json && ! $f trace show $tmp/two.json 2>$tmp/said && grep -q 'holds kernels of GPUs' $tmp/said"
python3 -c "import sqlite3; c = sqlite3.connect('$tmp/n.sqlite'); c.execute('DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL'); c.commit()"
ok "an export without kernels is refused" fails 1 "holds no table" $f trace show "$tmp/n.sqlite"
round() { # OPTION...: what is written is read, and replays to the step that was told
	$f trace replay $eager "$@" --timeline "$tmp/w.json" --json >"$tmp/one" && $f trace replay "$tmp/w.json" --json >"$tmp/two" &&
		python3 -c "
import json
one, two = (json.load(open('$tmp/' + x)) for x in ('one', 'two'))
assert one['step_s'] == two['recorded_step_s'] == two['step_s'], (one['step_s'], two['recorded_step_s'])
for k, v in one['breakdown_s'].items():
    assert abs(two['breakdown_s'][k] - v) < 1e-12, k"
}
ok "an unchanged step, written, is read and replayed the same" round
ok "so is a what-if" round --gpu mi300x --scale dp=8
ok "and one that is marked" sh -c "$f trace replay $t/h100-qwen1.5-0.5b.tracelens.json.gz --speedup gemm=2 --timeline $tmp/w.json --json | grep -o '\"step_s\": [0-9.]*,' | head -1 >$tmp/1; $f trace replay $tmp/w.json --json | grep -o '\"step_s\": [0-9.]*,' | head -1 | diff - $tmp/1"
chakra() { # what is exported is read back, and replays to the same step
	$f trace export $eager $peer --chakra "$tmp/et" >"$tmp/said" && grep -q "et.1.et" "$tmp/said" &&
		json 'd["order"]["collectives_matched"]==30 and abs(d["step_s"]-0.10918187)<1e-7 and d["recorded_step_s"]==d["step_s"]' replay "$tmp/et.0.et" "$tmp/et.1.et"
}
ok "a Chakra trace that is written is read, and replays the same" chakra
# clocks, too: each file tells when its times begin
python3 - "$tmp" <<'P'
import json, sys
for rank in 0, 1: # two that never meet, the second half a second later
    d = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1e6 + 5e5 * rank, "dur": 20, "args": {"device": 0, "stream": 7, "correlation": 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1e6 + 5e5 * rank - 5, "dur": 1, "args": {"correlation": 1}}]}
    json.dump(d, open("%s/apart.%d.json" % (sys.argv[1], rank), "w"))
P
clocks() {
	$f trace export "$tmp/apart.0.json" "$tmp/apart.1.json" --goal "$tmp/1.goal" >"$tmp/o" && $f trace export "$tmp/apart.0.json" "$tmp/apart.1.json" --chakra "$tmp/apart" >"$tmp/o" &&
		$f trace export "$tmp/apart.0.et" "$tmp/apart.1.et" --goal "$tmp/2.goal" >"$tmp/o" && grep -q 'calc 500000000 ' "$tmp/1.goal" && cmp "$tmp/1.goal" "$tmp/2.goal"
}
ok "so are the ranks' clocks" clocks
packed() { gzip -c "$tmp/et.0.et" >"$tmp/packed.et.gz" && $f trace show "$tmp/packed.et.gz" --json | grep -v file >"$tmp/1" && $f trace show "$tmp/et.0.et" --json | grep -v file | cmp - "$tmp/1"; }
ok "a packed one is read as it is" packed
ok "what-ifs on it are the same" sh -c "$f trace replay $eager $peer --gpu mi300x --json | grep '\"step_s\": 0' >$tmp/1; $f trace replay $tmp/et.0.et $tmp/et.1.et --gpu mi300x --json | grep '\"step_s\": 0' | diff - $tmp/1"
untold() { # alone it is the first rank: nothing in a name says otherwise, nor is one written into the trace
	$f trace export "$tmp/none.map" --chakra "$tmp/none" >"$tmp/said" && grep -q "none.0.et" "$tmp/said" &&
		! $f trace show "$tmp/none.0.et" | grep -q "rank 0"
}
echo "{\"traceEvents\":$(sed 's/"dur":0/"dur":5/' "$tmp/none.json")}" >"$tmp/none.map"
ok "a recording alone need not tell its rank" untold
sed 's/"traceEvents"/"distributedInfo":{"rank":0,"world_size":2},"traceEvents"/' "$tmp/none.map" >"$tmp/none.0.map"
ok "of several each must" fails 1 "none.map: error: does not tell its rank: of several recordings each must, in distributedInfo" $f trace export "$tmp/none.0.map" "$tmp/none.map" --chakra "$tmp/none"
sed 's/"traceEvents"/"distributedInfo":{"rank":5,"world_size":2},"traceEvents"/' "$tmp/none.map" >"$tmp/none.5.map"
ok "a rank is below the number of ranks" fails 1 "none.5.map: error: states rank 5 of a job of 2 ranks: ranks count from 0" $f trace show "$tmp/none.5.map"
ok "its nodes are those of the schema" python3 tests/chakra.py "$tmp/et.0.et" 1673 731 15 $eager
ok "so are those by what only annotations tell" sh -c "$f trace replay $eager $peer --scale dp=4 --json | grep '\"step_s\": 0' >$tmp/1; $f trace replay $tmp/et.0.et $tmp/et.1.et --scale dp=4 --json | grep '\"step_s\": 0' | diff - $tmp/1 && [ -s $tmp/1 ]"
python3 tests/small.py ahead >"$tmp/marked.json"
python3 tests/small.py told >"$tmp/told.json"
ok "waits that the profiler told" sh -c "$f trace export $tmp/told.json --chakra $tmp/told && $f trace show $tmp/told.0.et --json | grep -q 'waits_told.: 1'"
ok "a timeline's groups are those of the recording, which is told" sh -c "$f trace replay $eager --scale dp=4 --timeline $tmp/w.json | grep -q 'have the sizes that were recorded' && ! $f trace replay $eager --speedup gemm=2 --timeline $tmp/w.json | grep -q 'have the sizes'"
ok "which a timeline tells again" sh -c "$f trace replay $tmp/told.json --timeline $tmp/w.json && $f trace show $tmp/w.json --json | grep -q 'waits_told.: 1'"
ok "and steps" sh -c "$f trace export $tmp/marked.json --chakra $tmp/marked && $f trace show $tmp/marked.json --json | grep -v file >$tmp/1 && $f trace show $tmp/marked.0.et --json | grep -v file | diff - $tmp/1"
head -c 5000 "$tmp/et.0.et" >"$tmp/cut.et"
ok "a cut one is refused" fails 1 "ends in the middle" $f trace show "$tmp/cut.et"
ok "so is what is none" fails 1 "its metadata cannot be read" sh -c "cp $tmp/plain.json $tmp/no.et; $f trace show $tmp/no.et"
ok "export wants --chakra or --goal" fails 64 "export takes --chakra" $f trace export $eager
ok "one rank twice is refused" fails 1 "is rank 0, and so is" $f trace show $eager $eager
ok "an unknown GPU is refused" fails 1 "h900" $f trace replay $eager --gpu h900
sed 's/NVIDIA H200/Some GPU/' "$tmp/plain.json" >"$tmp/some.json"
ok "an unknown device wants --from" fails 1 "name the nearest" $f trace replay "$tmp/some.json" --gpu h200
ok "and takes it" $f trace replay "$tmp/some.json" --gpu h200 --from h200
# Lightning runs forward and backward inside of Optimizer.step: of two micro-batches the second, of one the only
lightning='0.008<d["classes"]["optimizer"]["time_s"]<0.009 and 0.14<d["classes"]["memory"]["time_s"]<0.15'
ok "passes inside of an optimizer's step are none of the update" json "$lightning" show $t/h200-llama-4L-lightning.rank0.kineto.json.gz
lightning='0.004<d["classes"]["optimizer"]["time_s"]<0.005 and 0.07<d["classes"]["memory"]["time_s"]<0.08'
ok "nor under FSDP1" json "$lightning" show $t/h200-two-mistral-5L-lightning-fsdp1.rank0.kineto.json.gz
last() { # layers forward end with their own operations, not where an update seemed to begin
	$f trace compare -q $t/h200-two-mistral-5L-lightning-fsdp1.rank0.kineto.json.gz examples/15-recorded-step/scenario.yaml --json | python3 -c '
import json, sys
s = [l["forward"]["time_s"] for l in json.load(sys.stdin)["by_layer"]["recorded"]["layers"]]
assert len(s) == 5 and s[4] > 0.8 * s[3], s'
}
ok "so the last layer is whole" last
other='The recording says that it is of NVIDIA H200, and is taken for one of h100-sxm, as --from has it.'
ok "--from against what the file says is told" sh -c "$f trace replay $eager --from h100-sxm --gpu h200 | grep -qx '$other'"
ok "and with it not" sh -c "! $f trace replay $eager --from h200 --gpu h100-sxm | grep 'taken for one of'"
sed 's/"world_size": *2/"world_size": 1000000000000/' "$tmp/plain.json" >"$tmp/many.json"
ok "more ranks than any cluster has are refused" fails 1 "many.json: error: states a job of 1000000000000 ranks: at most" $f trace show "$tmp/many.json"
sed 's/NVIDIA H200/NVIDIA GH200 480GB/' "$tmp/plain.json" >"$tmp/some.json"
ok "a GH200 of 96 GB, which its driver names by its host's memory, has a profile" sh -c "$f trace replay $tmp/some.json --gpu h200 | grep -q gh200"
for name in "GH200 144G HBM3e" "H200 NVL" "H800 PCIe"; do
	sed "s/NVIDIA H200/NVIDIA $name/" "$tmp/plain.json" >"$tmp/some.json"
	ok "so does $name, which is no SXM card" fails 1 "name the nearest" $f trace replay "$tmp/some.json" --gpu h100-sxm
done
ok "a class has a name" fails 64 "takes CLASS=TIMES" $f trace replay $eager --speedup wheels=2
ok "a factor is a number" fails 64 "not a number above 0" $f trace replay $eager --speedup gemm=-1
ok "and not so small that a step is longer than its picoseconds can say" fails 1 "gemm: 1e-12 times is not between 1e-06 and 1e+06" $f trace replay $eager --speedup gemm=1e-12
ok "only dp and tp scale" fails 64 "not .pp=4" $f trace replay $eager --scale pp=4
ok "an unknown step is refused" fails 1 "has no step '9'" $f trace replay $eager --step 9
ok "a recording has no --graph" fails 64 "is of a SCENARIO" $f trace replay $eager --graph x
ok "a scenario has no --gpu" fails 64 "are of a recording" $f trace show examples/01-first-answer/h100.yaml --gpu h200
flat() { # a step of FSDP1 on two, told by its annotations, on eight: as long as the program simulates it there
	printf 'model: {model_type: llama, hidden_size: 5120, num_attention_heads: 40, intermediate_size: 13824, vocab_size: 32000, num_hidden_layers: 10}\n' >"$tmp/flat.yaml"
	printf 'cluster: {gpu: h100-sxm, gpus: 8, fabric: none}\nstack: transformers-5-fsdp1\n' >>"$tmp/flat.yaml"
	printf 'training: {sequence_length: 2048, global_batch_size: 16, micro_batch_size: 2, sharding: fsdp, gradient_dtype: fp32, master_weights: true}\n' >>"$tmp/flat.yaml"
	$f trace replay $t/h100-two-flat-13b10L-s2048-b2.rank0.kineto.json.gz --scale dp=8 --json >"$tmp/r.json" &&
		$f simulate "$tmp/flat.yaml" --json >"$tmp/s.json" 2>/dev/null &&
		jq -es '.[0].step_s / .[1].step_s | . > 0.97 and . < 1.03' "$tmp/r.json" "$tmp/s.json" >/dev/null
}
ok "a step of FSDP1 goes to more ranks" flat
ok "a fabric that nothing crosses is said to carry nothing" json 'any("nvlink joins all 2 ranks: the fabric roce-400-rail carries nothing" in n for n in d["notes"])' replay $eager --fabric roce-400-rail
ok "and one that is crossed is not" json 'not any("carries nothing" in n for n in d["notes"])' replay $eager --fabric roce-400-rail --scale dp=16
gunzip -c $eager | python3 -c 'import json,sys; json.dump(json.load(sys.stdin)["traceEvents"], sys.stdout)' >"$tmp/list.json"
ok "a list of events alone is the same step" json 'abs(d["recorded_step_s"]-0.1071232)<1e-7' show "$tmp/list.json"
ok "a device that is not told is to be named" fails 1 "does not tell its device: name its GPU with --from" $f trace replay "$tmp/list.json" --gpu h100-sxm
ok "and then it is" json 'd["machine"]["from"]=="h200" and d["step_s"]>d["recorded_step_s"]' replay "$tmp/list.json" --gpu h100-sxm --from h200
ok "collectives far above what the network needs are told" json 'any("51 collectives (42.2 ms) are recorded at over 5 times" in n for n in d["notes"])' replay $t/h100-8b8L-tp4-s4096-b1-eager.rank0.kineto.json.gz --gpu h200
ok "and none where they are near it" json 'not any("over 5 times" in n for n in d["notes"])' replay $eager --scale dp=8
ok "without collectives nothing waits for other ranks" fails 1 "waiting changes nothing: no collective is known to have waited" $f trace replay $t/mi300x-bert-small.tracelens.json.gz --without waiting
ok "nor where all of its ranks are recorded" fails 1 "waiting changes nothing: .*all of its ranks are recorded" $f trace replay $eager $t/h200-8b4L-fsdp2-s4096-b1-eager.rank1.kineto.json.gz --without waiting
ok "no data-parallel group, no scaling" fails 1 "cannot be scaled by dp" $f trace replay $t/h100-bert-small.tracelens.json.gz --scale dp=2
for way in eager compile; do
	ok "nor where FSDP and a context group share one: $way" fails 1 "its group of 2 ranks gathers for FSDP and for something else" $f trace replay $t/h100-two-7b8L-cp2-s8192-$way.rank0.kineto.json.gz --scale dp=4
done
all=$(echo $t/*.gz)
! sanitized || all=$eager
ok "every step of every recording takes and idles as its raw events say" python3 tests/breakdown.py $f $all
for gpu in h100 h200; do
	two="$t/$gpu-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz $t/$gpu-8b4L-fsdp2-s4096-b1-eager.rank1.kineto.json.gz"
	ok "ranks of $gpu wait for each other as their kernels say" python3 tests/skew.py $f $two
done
python3 tests/small.py odd >"$tmp/odd.json"
odd() { # what is odd in a recording is said, and only there
	$f trace show "$tmp/odd.json" >"$tmp/o" && cat >"$tmp/want" <<'END'
  1 negative duration was taken as 0
  1 step overlaps the next; it ends where that begins
  1 event of an unknown phase was left out
END
	sed -n '2,4p' "$tmp/o" | cmp - "$tmp/want" && grep -qx "2 calls that take memory of the GPU or give it back took the host 0.300 ms:" "$tmp/o" &&
		grep -qx "2 launches took the host 0.010 ms (5.00 us each), synchronising 0.000 ms;" "$tmp/o" &&
		python3 tests/small.py ahead >"$tmp/even.json" && $f trace show "$tmp/even.json" >"$tmp/o" &&
		! grep -qE 'negative|overlap|unknown|marked|take memory' "$tmp/o" && [ -z "$(sed -n 2p "$tmp/o")" ]
}
ok "what is odd in a recording is said" odd
one=measurements/traces/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
ok "show and compare change nothing" fails 64 "are of replay" $f trace show $one --speedup gemm=2
ok "a collective that is not there cannot be left out" fails 1 "the recorded step has no such collective" $f trace replay $one --without all_reduce
ok "nor what is not there be faster" fails 1 "the recorded step has no such operation" $f trace replay $one --speedup other=2
ok "what ran cannot be set" fails 1 "only cluster, ccl and cost can be set" $f trace replay $one --set training.micro_batch_size=2
ok "a bill is of the step's ranks" fails 1 "the step has 2 ranks, the cluster 16" $f trace replay $one --set cluster.gpus=16 --tokens-per-step 8192
ok "prices without dollars" fails 1 "add --tokens-per-step" $f trace replay $one --price h100-server=1
ok "the recording's GPU alone changes nothing" fails 64 "add --gpu" $f trace replay $one --from mi300x
ok "a wish twice" fails 64 "is given twice" $f trace replay $one --speedup attention=2 --speedup attention=3
finish
