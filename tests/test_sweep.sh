#!/bin/sh
# tests/test_sweep.sh - sweeps: complete, resumable, killed and gone on with
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
sweep() { $f sweep $a --vary cluster.gpus=256,512,1024 --vary training.parallel.tp=2,3,4 --db "$tmp/s.db" "$@"; }
rows() { sqlite3 "$tmp/s.db" "$1"; }
ok "nine runs, three of them impossible" sh -c "[ \"\$($f sweep $a --vary cluster.gpus=256,512,1024 --vary training.parallel.tp=2,3,4 --db $tmp/s.db)\" = '6 run, 0 there already, 3 impossible (see column error)' ]"
if command -v sqlite3 >/dev/null; then
	ok "every row is there, with the reason where it failed" sh -c "[ \$(sqlite3 $tmp/s.db 'select count(*), count(error), count(step_s) from runs') = '9|3|6' ]"
else
	skip "every row is there" "no sqlite3"
fi
ok "what is there is not run again" sh -c "$f sweep $a --vary cluster.gpus=256,512,1024 --vary training.parallel.tp=2,3,4 --db $tmp/s.db | grep -q '^0 run, 9 there already'"
echo "not a database" >"$tmp/bad.db"
ok "a file that is no database is refused" sh -c "! $f sweep $a --vary cluster.gpus=256 --db $tmp/bad.db"
ok "an unwritable place is refused" sh -c "! $f sweep $a --vary cluster.gpus=256 --db /nonexistent/x.db"
$f sweep $a --vary training.global_batch_size=$(seq -s, 256 256 60000) --db "$tmp/k.db" >/dev/null 2>&1 &
pid=$!
sleep 1
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
ok "a killed sweep goes on" sh -c "$f sweep $a --vary training.global_batch_size=\$(seq -s, 256 256 60000) --db $tmp/k.db | grep -q 'there already'"
finish
