#!/bin/sh
# tests/test_faults.sh - the N-th allocation, read, write, open, rename or fsync fails
#
# Then a command ends with a clear error and status 1 (2, 64), or with the whole answer; never
# by a signal, never with a short answer, and what it writes is whole or not there. All of
# the first failures and the last are tried, and some between; FAULTS=all tries every one.
. "$(dirname "$0")/tap.sh"
case $f in *san*) echo "1..0 # SKIP sanitizers have an allocator of their own"; exit 0 ;; esac
shim=$tmp/shim.so
if ! ${CC:-cc} -shared -fPIC -O1 -o "$shim" tests/faults/shim.c -ldl 2>"$tmp/e"; then
	echo "1..0 # SKIP the shim does not build: $(head -1 "$tmp/e")"
	exit 0
fi
root=$PWD

# ---- commands; each leg runs in a folder of its own, $w ---------------------------------
mkdir "$tmp/bin"
printf '#!/bin/sh\necho "<svg></svg>"\n' >"$tmp/bin/gnuplot"
chmod +x "$tmp/bin/gnuplot"
printf 'id,model.name,cluster.gpu,cluster.gpus,training.sequence_length,training.global_batch_size,measured.step_s\n1,llama3-8b,h200,8,4096,8,1\n2,llama3-8b,h200,8,4096,16,2\n' >"$tmp/rows.csv"
$f calibrate import --store "$tmp/full.db" tests/fuzz/corpus/import-probe/fake.jsonl >/dev/null
E=$root/examples/07-edit-a-step/scenario.yaml

command_report() { PATH=$tmp/bin:$PATH "$@" $f simulate "$E" --report r; }
before_report() { rm -rf "$w/r"; }
# whole: every file that is there is the one of a run without a fault
whole_report() {
	for x in "$w"/r/*; do
		[ ! -e "$x" ] || cmp -s "$x" "$w/good/r/${x##*/}" || return 1
	done
}
command_validate() { "$@" $f validate "$tmp/rows.csv" --json; }
before_validate() { :; }
whole_validate() { :; }
printf 'model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 64, fabric: roce-400-rail, imperfections: {placement: scattered}}\ntraining: {sequence_length: 2048, global_batch_size: 64, parallel: {tp: 8}}\n' >"$tmp/scattered.yaml"
command_network() { "$@" $f simulate "$tmp/scattered.yaml" --json; }
before_network() { :; }
whole_network() { :; }
sed -n "1p; /torch-2.11-compile/p" "$root/measurements/steps/h200-two-steps.csv" | head -6 >"$tmp/runs.csv"
command_fitted() { "$@" $f validate "$tmp/runs.csv" --fit-stack mine; }
before_fitted() { rm -f "$w/mine.yaml"; }
whole_fitted() { [ ! -e "$w/mine.yaml" ] || cmp -s "$w/mine.yaml" "$w/good/mine.yaml"; }
command_import() { "$@" $f calibrate import --store s.db "$root/tests/fuzz/corpus/import-probe/fake.jsonl"; }
before_import() { rm -f "$w"/s.db*; cp "$tmp/full.db" "$w/s.db"; }
whole_import() { # one run as before, or two
	n=$($f calibrate runs --store "$w/s.db" --json 2>"$w/why" | grep -c '"cells": 13') || true
	[ "$n" = 1 ] && [ "$got" != 0 ] || [ "$n" = 2 ]
}
command_export() { "$@" $f calibrate export --gpu h200 --store s.db; }
before_export() { [ -e "$w/s.db" ] || cp "$tmp/full.db" "$w/s.db"; }
whole_export() { cmp -s "$w/s.db" "$tmp/full.db"; }
command_fit() { "$@" $f calibrate fit --store s.db --name mine --base h100-sxm --only gemm,memory --out o; }
before_fit() { [ -e "$w/s.db" ] || cp "$tmp/full.db" "$w/s.db"; rm -rf "$w/o"; mkdir "$w/o"; }
whole_fit() {
	for x in "$w"/o/*; do
		[ ! -e "$x" ] || cmp -s "$x" "$w/good/o/${x##*/}" || return 1
	done
}
command_timeline() { "$@" $f simulate "$E" --timeline t.json --json; }
before_timeline() { echo old >"$w/t.json"; }
whole_timeline() { [ "$(cat "$w/t.json")" = old ] || cmp -s "$w/t.json" "$w/good/t.json"; }

command_sweep() { "$@" $f sweep "$E" --vary training.micro_batch_size=1,2 --threads 1 --db s.db; }
before_sweep() { rm -f "$w"/s.db*; }
whole_sweep() { # what is kept is right
	[ ! -s "$w/s.db" ] || python3 - "$w/s.db" <<-'P'
	import sqlite3, sys
	c = sqlite3.connect(sys.argv[1])
	if c.execute("select count(*) from sqlite_schema").fetchone()[0]:
	    assert c.execute("select count(*) from runs where error is not null or step_s is null").fetchone() == (0,)
	P
}

$f sweep "$E" --vary training.micro_batch_size=1,2 --db "$tmp/a.db" >/dev/null 2>&1
$f sweep "$E" --vary training.global_batch_size=32,64 --db "$tmp/b.db" >/dev/null 2>&1
command_merge() { "$@" $f merge m.db "$tmp/a.db" "$tmp/b.db"; }
before_merge() { rm -f "$w"/m.db*; }
whole_merge() { # of each file all rows or none; all when it says so
	n=0
	[ ! -s "$w/m.db" ] || n=$(sqlite3 "$w/m.db" 'SELECT count(step_s) FROM runs' 2>/dev/null) || n=0
	[ "$n" = 3 ] || [ "$got" != 0 ] && case $n in 0 | 2 | 3) ;; *) return 1 ;; esac
}

command_prices() { "$@" $f prices import neocloud-2024-10 --db p.db; }
before_prices() { rm -f "$w"/p.db*; }
whole_prices() { # all prices of the book or none
	n=0
	[ ! -s "$w/p.db" ] || n=$(sqlite3 "$w/p.db" 'SELECT count(*) FROM prices' 2>/dev/null) || n=0
	[ "$n" = 7 ] || { [ "$got" != 0 ] && [ "$n" = 0 ]; }
}
command_history() { "$@" $f prices show switch-ndr-64 --db p.db; }
before_history() { [ -e "$w/p.db" ] || $f prices import neocloud-2024-10 --db "$w/p.db" >/dev/null; }
whole_history() { :; }

corpus=$root/tests/fuzz/corpus/recorded
command_nsight() { "$@" $f trace show "$corpus/step.sqlite" --json; }
before_nsight() { :; }
whole_nsight() { :; }
command_chakra() { "$@" $f trace replay "$corpus/step.et" --json; }
before_chakra() { :; }
whole_chakra() { :; }
command_packed() { "$@" $f trace export "$corpus/step.json.zst" --chakra et; }
before_packed() { rm -f "$w"/et.*; }
whole_packed() { [ ! -e "$w/et.0.et" ] || cmp -s "$w/et.0.et" "$w/good/et.0.et"; }

# ---- one fault ---------------------------------------------------------------------------
# try LEG KIND N: what is wrong, on stdout; nothing when all is well
try() {
	before_$1
	(cd "$w" && command_$1 timeout 20 env LD_PRELOAD="$shim" FAULT="$2:$3") >"$w/out" 2>"$w/err"
	got=$?
	if [ $got -ge 124 ]; then
		echo "$1: $2 $3: status $got"
	elif [ $got = 0 ]; then
		cmp -s "$w/out" "$w/good.out" || echo "$1: $2 $3: another answer, and status 0"
	elif [ ! -s "$w/err" ]; then
		echo "$1: $2 $3: status $got without a word"
	fi
	whole_$1 || echo "$1: $2 $3: left something half-written (status $got)"
	for x in "$w"/*.part* "$w"/*/*.part*; do
		[ ! -e "$x" ] || echo "$1: $2 $3: left ${x##*/}"
	done
}
leg() { # LEG: tries them; "tried" lines and faults into $tmp/LEG
	w=$tmp/leg-$1
	mkdir "$w"
	before_$1
	(cd "$w" && command_$1 env) >"$w/good.out" 2>"$w/err" || { echo "$1: fails without a fault"; return; }
	mkdir "$w/good"
	for x in r o t.json et.0.et mine.yaml; do [ ! -e "$w/$x" ] || cp -r "$w/$x" "$w/good/"; done
	for kind in malloc read write open rename sync; do
		before_$1
		rm -f "$w/count"
		(cd "$w" && command_$1 env LD_PRELOAD="$shim" FAULT="$kind:0" FAULT_COUNT="$w/count") >/dev/null 2>&1
		total=$(cat "$w/count" 2>/dev/null || echo 0)
		for n in $(awk -v t="$total" -v all="$FAULTS" 'BEGIN {
			for (n = 1; n <= t; n++)
				if (all == "all" || n <= 8 || n > t - 2 || n >= next_) {
					print n
					if (n > 8) next_ = n + (t / 10 > 1 ? int(t / 10) : 1)
				}
			if (t) { print "1+"; print int(t / 2) + 1 "+" } }'); do
			try "$1" $kind "$n"
			echo tried
		done
	done
}

first='report timeline sweep nsight chakra network' second='validate fitted import export fit merge prices history packed'
(for l in $first; do leg $l >"$tmp/$l" 2>&1; done) &
for l in $second; do leg $l >"$tmp/$l" 2>&1; done
wait
good() { # LEG: no fault did harm
	grep -v '^tried$' "$tmp/$1" >&2
	[ "$(grep -c '^tried$' "$tmp/$1")" -ge 20 ] && ! grep -qv '^tried$' "$tmp/$1"
}
for l in $first $second; do
	ok "$l: $(grep -c '^tried$' "$tmp/$l") faults" good $l
done
finish
