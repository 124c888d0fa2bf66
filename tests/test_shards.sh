#!/bin/sh
# tests/test_shards.sh - a study over several processes: shards, killed at random, merged
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
grid="--vary training.parallel.tp=1,2,4,8 --vary training.parallel.pp=1,2,4 --vary cluster.gpus=256,512"

rows() { sqlite3 "$1" "SELECT settings, step_s, error IS NULL FROM runs ORDER BY settings"; }
$f sweep $a $grid --db "$tmp/whole.db" >/dev/null 2>&1
for k in 1 2 3; do
	$f sweep $a $grid --shard $k/3 --db "$tmp/$k.db" >"$tmp/o$k" 2>/dev/null &
done
wait
ok "three shards run all, each its own" sh -c "test \$(cat $tmp/o[123] | awk '{ n += \$1 + \$7 } END { print n }') = 24"
ok "merged they are what one sweep finds" sh -c "$f merge $tmp/all.db $tmp/1.db $tmp/2.db $tmp/3.db | grep -q '^3 files: 24 runs taken, 0 were there'"
rows "$tmp/whole.db" >"$tmp/want"
rows "$tmp/all.db" >"$tmp/got"
ok "row by row" cmp "$tmp/want" "$tmp/got"
ok "again, nothing is new" sh -c "$f merge $tmp/all.db $tmp/2.db | grep -q '^1 file: 0 runs taken, 8 were there'"
halves() { # of two shards each has half, and none has the other's
	for k in 1 2; do $f sweep $a $grid --shard $k/2 --db "$tmp/half$k.db" >/dev/null 2>&1; done
	[ "$(sqlite3 "$tmp/half1.db" 'SELECT count(*) FROM runs')" = 12 ] && [ "$(sqlite3 "$tmp/half2.db" 'SELECT count(*) FROM runs')" = 12 ] &&
	{ rows "$tmp/half1.db"; rows "$tmp/half2.db"; } | sort | cmp - "$tmp/want.sorted"
}
sort "$tmp/want" >"$tmp/want.sorted"
ok "two shards are halves" halves
fifths() { # of five, four have five and one has four; together they are all
	for k in 1 2 3 4 5; do
		$f sweep $a $grid --shard $k/5 --db "$tmp/fifth$k.db" >/dev/null 2>&1
		sqlite3 "$tmp/fifth$k.db" 'SELECT count(*) FROM runs' >>"$tmp/counts"
		rows "$tmp/fifth$k.db" >>"$tmp/fifths"
	done
	[ "$(tr '\n' ' ' <"$tmp/counts")" = "5 5 5 5 4 " ] && sort "$tmp/fifths" | cmp - "$tmp/want.sorted"
}
ok "five shards that are not alike are all, too" fifths
ok "of twelve each has two" sh -c "$f sweep $a $grid --shard 12/12 --db $tmp/twelve.db >/dev/null 2>&1; test \$(sqlite3 $tmp/twelve.db 'SELECT count(*) FROM runs') = 2"
ok "a shard goes on where it was killed" sh -c "
	$f sweep $a $grid --shard 1/2 --threads 1 --db $tmp/k.db >/dev/null 2>&1 & p=\$!
	sleep 0.3; kill -9 \$p; wait \$p 2>/dev/null
	$f sweep $a $grid --shard 1/2 --db $tmp/k.db >/dev/null 2>&1
	test \$(sqlite3 $tmp/k.db 'SELECT count(*) FROM runs') = 12"
$f sweep $a --vary training.micro_batch_size=1,2 --db "$tmp/other.db" >/dev/null 2>&1
ok "files of other grids bring their columns" sh -c "$f merge $tmp/all.db $tmp/other.db >/dev/null && test \$(sqlite3 $tmp/all.db 'SELECT count(\"training.micro_batch_size\") FROM runs') = 2"
ok "no such file" refused "none.db" $f merge "$tmp/x.db" "$tmp/none.db"
echo text >"$tmp/text.db"
ok "a file that is no database" refused "text.db" $f merge "$tmp/x.db" "$tmp/text.db"
sqlite3 "$tmp/alien.db" "CREATE TABLE t (a)"
ok "another program's database" refused "is the database of another program" $f merge "$tmp/x.db" "$tmp/alien.db"
sqlite3 "$tmp/bare.db" "CREATE TABLE t (a); DROP TABLE t"
cp "$tmp/bare.db" "$tmp/bare.was"
ok "a database without tables is no sweep" refused "bare.db: error: holds no sweep" $f merge "$tmp/x.db" "$tmp/bare.db"
ok "and is left as it was" cmp "$tmp/bare.db" "$tmp/bare.was"
ok "into itself nothing is put" refused "is the file that the others are put into" timeout 20 $f merge "$tmp/all.db" "$tmp/../$(basename "$tmp")/all.db"
ok "a shard that is none" sh -c "$f sweep $a $grid --shard 4/3 --db $tmp/y.db 2>&1 | grep -q 'takes K/N, as 3/64'"
ok "a shard larger than numbers are" sh -c "$f sweep $a $grid --shard 1/4294967297 --db $tmp/y.db 2>&1 | grep -q 'takes K/N, as 3/64'"
finish
