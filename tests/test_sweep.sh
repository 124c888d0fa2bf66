#!/bin/sh
# tests/test_sweep.sh - sweeps: complete, honest about what changed, stopped and gone on with
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
grid="--vary cluster.gpus=256,512,1024 --vary training.parallel.tp=2,3,4"
says() { # "LINE" command...: its standard output is that line
	want=$1
	shift
	[ "$("$@" 2>/dev/null)" = "$want" ]
}
query() { # DB SQL: its answer
	python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print("|".join(str(x) for x in row))' "$1" "$2"
}
is() { # ANSWER DB SQL
	[ "$(query "$2" "$3")" = "$1" ]
}
ok "nine runs, three of them impossible" says "6 run, 0 already in the database, 3 failed: see column error" $f sweep $a $grid --db "$tmp/s.db"
ok "every row is there, with the reason where it failed" is "9|3|6|6" "$tmp/s.db" 'select count(*), count(error), count(step_s), count(fits) from runs'
told_of() { # what a row says of itself: its scenario, and the version that ran it
	says "$(query "$tmp/s.db" "select distinct version from runs")" sh -c "$f --version | sed 's/foretoken //; s/ .*//'" &&
		is "9|9" "$tmp/s.db" "select count(*), count(distinct settings) from runs where scenario like '%$a' and length(key) = 32"
}
ok "each row names its scenario, its settings and the version" told_of
ok "a column for each varied key, as a number" is "256|4|integer" "$tmp/s.db" 'select "cluster.gpus", "training.parallel.tp", typeof("cluster.gpus") from runs where "training.parallel.tp" = 4 order by 1 limit 1'
ok "where it failed, too, as it was asked for" is "3|3|3" "$tmp/s.db" 'select count(*), min("training.parallel.tp"), max("training.parallel.tp") from runs where error is not null'
$f sweep $a --vary training.recompute=none,sometimes --db "$tmp/w.db" -q >/dev/null 2>&1
ok "of a value that no scenario takes, too" is "sometimes" "$tmp/w.db" 'select "training.recompute" from runs where error is not null'
ok "ranges and parts of the step are columns" is "3" "$tmp/s.db" 'select count(*) from runs where step_s_p10 < step_s and step_s < step_s_p90 and usd_per_million_tokens_p10 < usd_per_million_tokens and abs(breakdown_s_compute + breakdown_s_exposed_communication + breakdown_s_bubble + breakdown_s_host + breakdown_s_optimizer - step_s) < 1e-9 and "training.parallel.tp" = 4'
same() { # a row's numbers are simulate's
	$f simulate $a --set cluster.gpus=512 --set training.parallel.tp=4 --json >"$tmp/j" &&
	python3 -c 'import json, sqlite3, sys
d = json.load(open(sys.argv[1]))
r = sqlite3.connect(sys.argv[2]).execute("select step_s, mfu, joules_per_token, memory_bytes_per_gpu_total, tokens_per_s_p90 from runs where \"cluster.gpus\" = 512 and \"training.parallel.tp\" = 4").fetchone()
want = (d["step_s"], d["mfu"], d["cost"]["joules_per_token"], d["memory_bytes_per_gpu"]["total"], d["interval"]["tokens_per_s"][1])
assert all(abs(x / y - 1) < 1e-9 for x, y in zip(r, want)), (r, want)' "$tmp/j" "$tmp/s.db"
}
ok "a row holds what simulate says" same
cat >"$tmp/cells.py" <<'P'
import json, sqlite3, subprocess, sys
program, scenario, db = sys.argv[1:]

def flat(o, head=""):
    """Numbers by the names that columns have: dots as _, and no cost."""
    for k, v in o.items():
        name = head + ("" if k == "cost" and not head else k + "_")
        if isinstance(v, dict):
            yield from flat(v, name)
        elif isinstance(v, (int, float)):
            yield name[:-1], v

c = sqlite3.connect(db)
c.row_factory = sqlite3.Row
n = 0
for r in c.execute('select * from runs where error is null'):
    sets = [x for k in ("cluster.gpus", "training.parallel.tp") for x in ("--set", "%s=%s" % (k, r[k]))]
    told = dict(flat(json.loads(subprocess.run([program, "simulate", scenario, "--json"] + sets, capture_output=True,
                                               text=True, check=True).stdout)))
    cells = [k for k in r.keys() if k in told and r[k] is not None]
    bad = [(k, r[k], told[k]) for k in cells if abs(r[k] - told[k]) > 1e-9 * abs(told[k])]
    assert not bad, bad
    assert len(cells) > 30, cells
    n += len(cells)
print("#", n, "cells", file=sys.stderr)
P
ok "and so does every cell of every row" python3 "$tmp/cells.py" "$f" "$a" "$tmp/s.db"
ok "what is there is not run again" says "0 run, 9 already in the database, 0 failed (3 before): see column error" $f sweep $a $grid --db "$tmp/s.db"
ok "the same settings in another order are the same runs" says "0 run, 9 already in the database, 0 failed (3 before): see column error" $f sweep $a --vary training.parallel.tp=4,3,2 --vary cluster.gpus=1024,512,256 --db "$tmp/s.db"

# ---- what a run was made from has changed
cp $a "$tmp/mine.yaml"
one() { $f sweep "$tmp/mine.yaml" --vary cluster.gpus=256 --db "$tmp/e.db"; }
ok "a scenario of one's own" says "1 run, 0 already in the database, 0 failed" one
sed -i 's/sequence_length: 8192/sequence_length: 4096/' "$tmp/mine.yaml"
ok "an edited scenario is run again" says "1 run, 0 already in the database, 0 failed" one
ok "both answers are kept, and differ" is "2|2" "$tmp/e.db" 'select count(*), count(distinct step_s) from runs'
sed -i '1i title: only another name' "$tmp/mine.yaml"
ok "another title is no other run" says "0 run, 1 already in the database, 0 failed" one
mkdir "$tmp/data" && cp -r hw models stacks cost study "$tmp/data/"
elsewhere() { FORETOKEN_DATA=$tmp/data $f sweep $a --vary cluster.gpus=256 --db "$tmp/d.db"; }
ok "data elsewhere" says "1 run, 0 already in the database, 0 failed" elsewhere
sed -i 's/bandwidth: 3.35 TB/bandwidth: 3.45 TB/' "$tmp/data/hw/gpus/h100-sxm.yaml"
ok "an edited GPU profile is run again" says "1 run, 0 already in the database, 0 failed" elsewhere
echo '# looked at again' >>"$tmp/data/hw/nodes/hgx-h100.yaml"
ok "an edited node is run again" says "1 run, 0 already in the database, 0 failed" elsewhere
echo '# looked at again' >>"$tmp/data/hw/fabrics/$(awk '$1 == "fabric:" { print $2 }' $a).yaml"
ok "an edited fabric is run again" says "1 run, 0 already in the database, 0 failed" elsewhere
rows=$tmp/data/hw/gpus/h100-sxm.gemm.csv
sed -i '$s/^\(.*\),[0-9.]*,/\1,9999,/' "$rows"
ok "an edited row beside it is run again" says "1 run, 0 already in the database, 0 failed" elsewhere
cp "$rows" "$tmp/rows" && sed -i 's/^bf16,forward,/bf16,forwards,/' "$rows"
ok "rows that cannot be read, of a kernel that is needed, are not stored" says "0 run, 0 already in the database, 0 failed, 1 could not be read and are not stored" elsewhere
cp "$tmp/rows" "$rows"
echo "# a remark" >>"$tmp/data/cost/prices/hyperscaler-2025-08.yaml"
ok "an edited price book is run again" says "1 run, 0 already in the database, 0 failed" elsewhere
ok "a book that is not there is not stored" says "0 run, 0 already in the database, 0 failed, 1 could not be read and are not stored" $f sweep $a --vary cost.prices="$tmp/book.yaml" --db "$tmp/b.db"
cp cost/prices/neocloud-2024-10.yaml "$tmp/book.yaml"
ok "and is run once it is there" says "1 run, 0 already in the database, 0 failed" $f sweep $a --vary cost.prices="$tmp/book.yaml" --db "$tmp/b.db"

# ---- what does not go together is a row, as what a plan cannot be is
cat >"$tmp/gpus.yaml" <<'END'
model: llama3-8b
cluster: {gpu: h100-sxm, gpus: 8}
training: {sequence_length: 4096, global_batch_size: 8, sharding: fsdp}
END
pairs() { $f sweep "$tmp/gpus.yaml" --vary cluster.gpu=h100-sxm,mi300x --vary stack=megatron-core,primus-megatron-rocm7 --db "$tmp/p.db"; }
ok "a GPU under another vendor's stack fails" says "2 run, 0 already in the database, 2 failed: see column error" pairs
ok "and is a row" is 2 "$tmp/p.db" "select count(*) from runs where error like '%GPUs only%'"
ok "that is there the next time" says "0 run, 4 already in the database, 0 failed (2 before): see column error" pairs
ok "so is a rent whose book has no use for a key" says "1 run, 0 already in the database, 1 failed: see column error" $f sweep "$tmp/gpus.yaml" --vary cost.prices=rent-2026,neocloud-2026-09 --set cost.horizon='3 y' --db "$tmp/p.db"
ok "a name that is not known is not stored" says "1 run, 0 already in the database, 0 failed, 1 could not be read and are not stored" $f sweep "$tmp/gpus.yaml" --vary cluster.gpu=h200,h201 --db "$tmp/p.db"

# ---- mistakes
ok "a misspelt key fails and is told" told 1 "did you mean 'parallel'" $f sweep $a --vary training.paralel.tp=4,8 --db "$tmp/m.db"
ok "a scenario that is not there" told 1 "No such file" $f sweep "$tmp/none.yaml" --vary cluster.gpus=8 --db "$tmp/m.db"
ok "no --db is told" told 64 "--db FILE is missing" $f sweep $a --vary cluster.gpus=256
ok "an empty --db is refused" told 1 "needs the path of a file" $f sweep $a --vary cluster.gpus=256 --db ""
echo "not a database" >"$tmp/bad.db"
ok "a file that is no database is refused" told 1 "not a database" $f sweep $a --vary cluster.gpus=256 --db "$tmp/bad.db"
ok "an unwritable place is refused" told 1 "unable to open" $f sweep $a --vary cluster.gpus=256 --db /nonexistent/x.db
query "$tmp/foreign.db" "create table letters (a)"
cp "$tmp/foreign.db" "$tmp/before.db"
ok "another program's database is refused" told 1 "of another program" $f sweep $a --vary cluster.gpus=256 --db "$tmp/foreign.db"
ok "and not touched" cmp "$tmp/foreign.db" "$tmp/before.db"
cp "$tmp/s.db" "$tmp/cut.db"
truncate -s 5000 "$tmp/cut.db"
ok "a damaged database is refused" told 1 "damaged\|malformed" $f sweep $a --vary cluster.gpus=256 --db "$tmp/cut.db"

# ---- stopped, killed, and two at once
runs=450 # some seconds, as a batch is committed each second
if sanitized; then runs=180; fi
many=$(seq -s, 256 256 $((runs / 6 * 256)))
slow="--vary training.global_batch_size=$many --vary training.sequence_length=2048,4096,8192 --vary cluster.gpus=1024,2048 --threads 1"
stopped() { # SIGNAL STATUS: something is kept, and the rest is run by the next call
	rm -f "$tmp/k.db"
	$f sweep $a $slow --db "$tmp/k.db" >/dev/null 2>"$tmp/said" &
	pid=$!
	for i in $(seq 100); do # until a batch is committed
		sleep 0.1
		[ "$(query "$tmp/k.db" 'select count(*) from runs' 2>/dev/null || echo 0)" -gt 0 ] && break
	done
	kill "-$1" $pid
	wait $pid
	[ $? = "$2" ] || return 1
	kept=$(query "$tmp/k.db" 'select count(*) from runs')
	[ "$kept" -gt 0 ] && [ "$kept" -lt $runs ] || return 1
	said=$($f sweep $a $slow --db "$tmp/k.db")
	echo "$said" >&2
	[ "$said" = "$((runs - kept)) run, $kept already in the database, 0 failed" ]
}
ok "Ctrl-C keeps what was run, and says how to go on" stopped INT 130
ok "it says so" grep -q "same command again" "$tmp/said"
ok "what was committed outlives a kill -9" stopped KILL 137
two() {
	$f sweep $a $slow --db "$tmp/t.db" >"$tmp/1" & one=$!
	$f sweep $a $slow --db "$tmp/t.db" >"$tmp/2" & two=$!
	wait $one && wait $two && is "$runs|$runs" "$tmp/t.db" 'select count(*), count(step_s) from runs'
}
ok "two sweeps write into one file" two

# ---- a key that an earlier sweep did not have
column() { # FILE: the values of a key that varied
	python3 -c 'import sqlite3, sys; print(sorted(r[0] for r in sqlite3.connect(sys.argv[1]).execute("select \"training.parallel.tp\" from runs")))' "$1"
}
again() {
	rm -f "$tmp/again.db" "$tmp/part.db" "$tmp/all.db"
	$f sweep $again --vary cluster.gpus=256 --db "$tmp/again.db" -q &&
		cp "$tmp/again.db" "$tmp/part.db" &&
		$f sweep $again --vary cluster.gpus=256 --vary training.parallel.tp=4,8 --db "$tmp/again.db" -q &&
		test "$(column "$tmp/again.db")" = "[4, 8]" &&
		$f merge "$tmp/all.db" "$tmp/part.db" "$tmp/again.db" &&
		test "$(column "$tmp/all.db")" = "[4, 8]"
}
again=examples/01-first-answer/h100.yaml
ok "a row that is there gets the columns of new keys, in a merged table too" again
ok "what is asked of a run is no key of a sweep" fails 1 "run.tokens changes no column of a sweep" $f sweep $again --vary run.tokens=1T,2T --db "$tmp/q.db"
ok "nor is a value twice" fails 1 "cluster.gpus=256 is given twice" $f sweep $again --vary cluster.gpus=256,512,256 --db "$tmp/q.db"
ok "with a blank before it, neither" fails 1 "cluster.gpus=256 is given twice" $f sweep $again --vary "cluster.gpus=256, 256" --db "$tmp/q.db"
for v in 256, ,256 "256, ,512"; do
	ok "nor is an empty value one: '$v'" fails 1 "cluster.gpus has an empty value; write null for the default" $f sweep $again --vary "cluster.gpus=$v" --db "$tmp/q.db"
done
ok "nor is a key varied twice" fails 1 "training.parallel.tp replaces what --vary training.parallel.tp says" $f sweep $again --vary training.parallel.tp=1,2 --vary training.parallel.tp=2,4 --db "$tmp/q.db"
ok "nor a map behind what is in it" fails 1 "training.parallel replaces what --vary training.parallel.tp says" $f sweep $again --vary training.parallel.tp=4,8 --vary "training.parallel={pp: 1},{pp: 2}" --db "$tmp/q.db"
ok "nor a key that is set" fails 1 "training.parallel replaces what --set training.parallel.tp says" $f sweep $again --set training.parallel.tp=4 --vary "training.parallel={pp: 1},{pp: 2}" --db "$tmp/q.db"
ok "before it, it is" $f sweep $again --vary "training.parallel={pp: 1},{pp: 2}" --vary training.parallel.tp=4,8 --db "$tmp/r.db" -q
open() {
	sed '/parallel:/d; /sharding:/d' $again >"$tmp/open.yaml" && printf 'run: {tokens: 1T}\n' >>"$tmp/open.yaml" &&
		! $f sweep "$tmp/open.yaml" --vary cluster.gpus=256,512 --db "$tmp/q.db" 2>"$tmp/e"
	grep -q 'which a sweep does not search' "$tmp/e"
}
ok "a plan that is left open is not guessed" open
finish
