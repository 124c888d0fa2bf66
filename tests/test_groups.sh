#!/bin/sh
# tests/test_groups.sh - which collectives `foretoken collective` is asked for: all groups that
# the cluster has and none else, the lists of options in their order, and what goes without saying
. "$(dirname "$0")/tap.sh"
printf 'cluster: {gpu: h100-sxm, gpus: 24, fabric: ib-ndr-rail}\n' >"$tmp/c.yaml"
c="$f collective $tmp/c.yaml"
says() { # PATTERN command...: refused so
	refused "$@"
}
rows() { # PROGRAM-IN-PYTHON OPTION...: true of the rows
	program=$1
	shift
	$c "$@" --json | python3 -c "import json, sys; rows = json.load(sys.stdin)['rows']; assert $program, rows"
}
groups() { # the last member of n ranks, so far apart, is a rank of the 24
	for stride in 1 2 3 5 8 12 22 23 24; do
		for n in 1 2 3 5 8 12 13 23 24 25; do
			$c --gpus $n --stride $stride --bytes 1MiB >"$tmp/o" 2>"$tmp/e"
			got=$?
			if [ $n -ge 2 ] && [ $(((n - 1) * stride)) -lt 24 ]; then
				want=0
			else
				want=1
			fi
			[ $got = $want ] || { echo "$n ranks, $stride apart: exit $got" >&2; return 1; }
		done
	done
}
ok "a group is taken when its last member is a rank of the cluster, and else refused" groups
ok "why is said with its size" says "a group of 13 ranks so far apart, but the cluster has 24" $c --gpus 13 --stride 2
ok "and not that members are apart when they are not" says "a group of 25 ranks, but the cluster has 24" $c --gpus 25
ok "the mark is at the cluster's GPUs" says "c.yaml:1:" $c --gpus 25
ok "one rank has nobody to talk to" says "at least 2 ranks" $c --gpus 1
ok "all ranks and eleven sizes go without saying" rows "[(r['gpus'], r['bytes']) for r in rows] == [(24, 4 ** k * 1024) for k in range(11)]"
ok "with members apart, as many as there are whole distances" rows "{r['gpus'] for r in rows} == {4}" --stride 5
ok "operations, groups, sizes: in the order given" rows "[(r['op'], r['gpus'], r['bytes']) for r in rows] == [(o, g, b) for o in ('broadcast', 'all_reduce') for g in (16, 2) for b in (4096, 1024, 2048)]" --op broadcast,all_reduce --gpus 16,2 --bytes 4KiB,1024,2KiB
list() { # N WORD: so many, with commas; %g: 1, 2, 3
	case $2 in
	%g) seq -s , "$1" ;;
	*) seq -s , "$1" | sed "s/[0-9]\{1,\}/$2/g" ;;
	esac
}
ok "a list has 64 values" rows "len(rows) == 64" --gpus 2 --bytes "$(list 64 %g)"
ok "and no more" says "--bytes: more than 64 values" $c --bytes "$(list 65 %g)"
ok "of groups, too" says "--gpus: more than 64 values" $c --gpus "$(list 65 %g)"
ok "one distance is asked for" says "--stride takes one value" $c --stride 1,2
ok "the longest list of operations" rows "[r['op'] for r in rows] == 27 * ['sendrecv'] + ['all_reduce']" --op "$(list 27 sendrecv),all_reduce" --bytes 1
ok "a longer one is not cut" says "--op: the list is too long" $c --op "$(list 29 sendrecv)"
ok "4,096 lines are the most" rows "len(rows) == 4096" --gpus "$(list 64 2)" --bytes "$(list 64 %g)"
ok "and no operation more" says "too many lines" $c --op all_reduce,broadcast --gpus "$(list 64 2)" --bytes "$(list 64 %g)"
for o in op bytes gpus stride; do
	ok "nor with one that is missing" says "--$o: a comma in '8,,8' has nothing beside it" $c --$o 8,,8
	ok "a list of --$o without a member" says "--$o: a comma in ',' has nothing beside it" $c --$o ,
done
finish
