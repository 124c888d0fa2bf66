#!/bin/sh
# tests/test_mpi.sh - sweep and plan over several ranks on this machine, killed at random and gone on with
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml
grid="--vary training.parallel.tp=1,2,4,8 --vary training.parallel.pp=1,2,4 --vary training.micro_batch_size=1,2 --vary cluster.gpus=256,512,1024"
plugin=$(dirname "$(realpath "$f")")/foretoken-mpi.so
as_part() { env OMPI_COMM_WORLD_SIZE=4 "$@"; } # as one of four, with no mpirun

mkdir "$tmp/alone"
cp "$f" "$tmp/alone/foretoken"
ok "without the plug-in, one of several ranks says what to do" told 1 "built without MPI; install openmpi-bin.*--shard K/N" as_part "$tmp/alone/foretoken" sweep $a $grid --db "$tmp/x.db"
ok "and alone it runs" sh -c "FORETOKEN_DATA=$PWD $tmp/alone/foretoken sweep $a --vary cluster.gpus=256 --db $tmp/alone.db"
ok "and as one of one, whoever says so" sh -c "
	for one in OMPI_COMM_WORLD_SIZE=1 PMI_SIZE=1 OMPI_COMM_WORLD_SIZE=0 SLURM_STEP_NUM_TASKS=4 'PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1'; do
		rm -f $tmp/alone.db
		env \$one FORETOKEN_DATA=$PWD $tmp/alone/foretoken sweep $a --vary cluster.gpus=256 --db $tmp/alone.db || exit
	done"
ok "one of several is one by each launcher's word" sh -c "
	for many in PMI_SIZE=2 'PMIX_RANK=0 SLURM_STEP_NUM_TASKS=2'; do
		! env \$many FORETOKEN_DATA=$PWD $tmp/alone/foretoken sweep $a --vary cluster.gpus=256 --db $tmp/x.db 2>$tmp/e &&
			grep -q 'one of 2 processes' $tmp/e || exit
	done"
ok "the program itself is linked with no MPI" sh -c "! readelf -d $f | grep -i 'NEEDED.*mpi'"
why=
command -v mpirun >/dev/null || why="no mpirun"
[ -e "$plugin" ] || why="built without MPI"
if sanitized; then why="built with sanitizers: tests/test_ranks.c asks the same"; fi
if [ -n "$why" ]; then
	skip "sweep and plan over ranks" "$why"
	finish
fi
as_root=
[ "$(id -u)" != 0 ] || as_root=--allow-run-as-root
ranks() { # N OPTION... -- ARGUMENT...: foretoken as N ranks
	n=$1
	shift
	more=
	while [ "$1" != -- ]; do
		more="$more $1"
		shift
	done
	shift
	timeout 120 mpirun $as_root --oversubscribe $more -n "$n" "$f" "$@"
}
rows() { sqlite3 "$1" "SELECT * FROM runs ORDER BY key"; }
$f sweep $a $grid --db "$tmp/one.db" >"$tmp/one" 2>/dev/null
rows "$tmp/one.db" >"$tmp/want"
ok "four ranks say what one process says" sh -c "timeout 120 mpirun $as_root --oversubscribe -n 4 $f sweep $a $grid --db $tmp/four.db 2>/dev/null | cmp - $tmp/one"
same() { rows "$1" >"$tmp/got" && cmp "$tmp/want" "$tmp/got"; }
ok "and leave the same bytes" same "$tmp/four.db"
again() { ranks 3 -- sweep $a $grid --db "$tmp/four.db" 2>/dev/null | grep -q '^0 run, [0-9]* already'; }
ok "what is there is not run again" again

# of the ranks of the mpirun $1, one that is not rank 0 (a whole number of the clock's chooses)
victim() {
	for p in $(ps -o pid= --ppid "$1" | shuf); do
		rank=$(tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
		[ -z "$rank" ] || [ "$rank" = 0 ] || { echo "$p"; return; }
	done
}
runs=540 # seconds of one core, as rank 0 commits each second
many="--vary training.global_batch_size=$(seq -s, 256 256 $((runs / 6 * 256))) --vary training.sequence_length=2048,4096,8192 --vary cluster.gpus=1024,2048"
begun() { # OPTION...: four ranks of these runs, of which something is in the table; $pid: mpirun's
	mpirun $as_root --oversubscribe "$@" -n 4 "$f" sweep $a $many --db "$tmp/k.db" >"$tmp/said" 2>&1 &
	pid=$!
	for _ in $(seq 400); do
		sleep 0.05
		[ "$(sqlite3 "$tmp/k.db" 'SELECT count(*) FROM runs' 2>/dev/null || echo 0)" -gt 0 ] && return
	done
	return 1
}
killed() { # the job ends, what was committed stays, the next goes on
	rm -f "$tmp"/k.db*
	begun || return 1
	kill -9 "$(victim $pid)"
	wait $pid && return 1
	kept=$(sqlite3 "$tmp/k.db" 'SELECT count(*) FROM runs')
	[ "$kept" -gt 0 ] && [ "$kept" -lt $runs ] || return 1
	said=$(ranks 4 -- sweep $a $many --db "$tmp/k.db")
	echo "$said" >&2
	[ "$said" = "$((runs - kept)) run, $kept already in the database, 0 failed" ]
}
ok "a rank killed ends the job, and the same command goes on" killed
rows "$tmp/k.db" >"$tmp/want"
recovered() { # where mpirun lets the others live, they do its work
	rm -f "$tmp"/k.db*
	begun --enable-recovery || return 1
	kill -9 "$(victim $pid)"
	wait $pid
	cat "$tmp/said" >&2
	grep -q "^$runs run, 0 already" "$tmp/said" && grep -q 'was lost; others did its work' "$tmp/said"
}
ok "with --enable-recovery the others do its work" recovered
ok "and find what the others found" same "$tmp/k.db"
stopped() { # SIGINT to mpirun
	rm -f "$tmp"/k.db*
	begun || return 1
	kill -INT $pid
	wait $pid && return 1
	[ "$(sqlite3 "$tmp/k.db" 'SELECT count(*) FROM runs')" -gt 0 ]
}
ok "Ctrl-C keeps what was run" stopped

echo '{model: llama3-8b, cluster: {gpu: h200, gpus: [8, 16]}, training: {sequence_length: 8192, global_batch_size: 64, sharding: zero1, recompute: none}}' >"$tmp/p.yaml"
# many processes bound all plans, one alone those that may still win
plans() { sed -E 's/"(wall_s|bounded|refused|feasible|over_gpu_memory|over_node_memory|simulated|known)": [0-9.e+-]+,?//'; }
$f plan "$tmp/p.yaml" --json | plans >"$tmp/want"
planned() { ranks 4 -- plan "$tmp/p.yaml" --json | plans | cmp - "$tmp/want"; }
ok "four ranks find the plans that one process finds" planned
once() { # PATTERN COMMAND...: one line of all that is said
	says=$1
	shift
	ranks 3 -- "$@" >"$tmp/o" 2>&1 && return 1
	[ "$(grep -c -- "$says" "$tmp/o")" = 1 ] || { cat "$tmp/o" >&2; return 1; }
}
ok "a mistake is told once" once "No such file" plan "$tmp/none.yaml"
ok "of a table, too" once "unable to open" sweep $a $grid --db /nonexistent/x.db
ok "doctor knows it" sh -c "$f doctor | grep -q '^MPI  *.*foretoken-mpi.so'"
finish
