#!/bin/sh
# tests/test_ccl.sh - the communication library as an input of the program
. "$(dirname "$0")/tap.sh"
h=examples/01-first-answer/h100.yaml
m=examples/01-first-answer/mi300x.yaml

says() { # PATTERN command...: it fails and says so
	want=$1
	shift
	! "$@" >"$tmp/o" 2>"$tmp/e" || return 1
	cat "$tmp/e" >&2
	[ ! -s "$tmp/o" ] && grep -q -- "$want" "$tmp/e"
}
holds() { # CHECK command...: of its JSON d
	check=$1
	shift
	"$@" --json | python3 -c "import json, sys; d = json.load(sys.stdin); assert $check, d"
}
lists_algorithms() { # PAGE: as --help does
	$f collective --help | sed -n '/^Algorithms:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$tmp/names"
	[ "$(wc -l <"$tmp/names")" -ge 8 ] || return 1
	while read -r a; do
		grep -qx -- "$a" "$1" || { echo "$1 lacks $a" >&2; return 1; }
	done <"$tmp/names"
}

ok "the stack names the library" holds 'd["scenario"]["ccl"] == "nccl-2.20" and "ccl" in d["assumed"]' $f simulate $h
ok "the first that knows the GPU serves" holds 'd["scenario"]["ccl"] == "nccl-2.27"' $f simulate $h --set cluster.gpu=b200 --set cluster.node=hgx-b200
ok "the scenario names another" holds 'd["scenario"]["ccl"] == "nccl-2.30" and "ccl" not in d["assumed"]' $f simulate $h --set ccl=nccl-2.30
ok "a library that does not know the GPU names those that do" says "1:11: error: the library rccl-7 does not know GPUs of the generation 'hopper'; these do: nccl-2.20, nccl-2.27, nccl-2.30" $f simulate $h --set ccl=rccl-7
ok "an unknown library names the nearest" says "nccl-2.30" $f collective $h --set ccl=nccl-2.31
ok "a library that is no name is refused" says "ccl: should be a name or a path" $f simulate $h --set 'ccl=[a, b]'
ok "another version is another time" sh -c "[ \"\$($f collective $m --set ccl=rccl-6 -g 32)\" != \"\$($f collective $m --set ccl=rccl-7 -g 32)\" ]"
ok "what the library chooses badly, it says" sh -c "$f collective $m -g 32 -b 256MiB | grep -q \"the library's choice; ring Simple would be faster\""
ok "the regret is in the JSON" holds 'd["rows"][0]["regret_frac"] > 0.5 and d["rows"][0]["best_algorithm"] == "ring" and d["rows"][0]["chosen_by"] == "library"' $f collective $m -g 32 -b 256MiB
cat >"$tmp/no-nvls.yaml" <<'END'
extends: nccl-2.30
provenance: {kind: assumed, date: 2026-11-22, note: NCCL_NVLS_ENABLE=0}
nvls: false
END
ok "reduction in the switch can be kept out of a node" sh -c "$f collective $h --set ccl=nccl-2.30 -g 8 -b 1GiB | grep -q nvls && $f collective $h --set ccl=$tmp/no-nvls.yaml -g 8 -b 1GiB | grep -q 'ring  *Simple'"
ok "and takes longer then" python3 -c "
import json, subprocess
t = [json.loads(subprocess.check_output(['$f', 'collective', '$h', '-g', '8', '-b', '1GiB', '--json', '--set', 'ccl=' + c]))['rows'][0]['time_us'] for c in ('nccl-2.30', '$tmp/no-nvls.yaml')]
assert t[1] > 1.2 * t[0], t"
ok "nor do trees of switches run then" sh -c "$f collective $h --set ccl=nccl-2.30 -g 32 -b 1GiB --algorithm nvlstree | grep -q 'nvlstree  *Simple' && ! $f collective $h --set ccl=$tmp/no-nvls.yaml -g 32 -b 1GiB --algorithm nvlstree 2>$tmp/e && grep -q \"cannot run as 'nvlstree' here\" $tmp/e"
mesh() { # in a mesh as elsewhere: by LL, of low latency, what is small, and what is large not
	$f collective examples/01-first-answer/mi300x.yaml --op "$1" -g 8 -b 4KiB,1GiB --json | jq -e '[.rows[].protocol] == ["LL", "Simple"]'
}
ok "a mesh sends little by LL" mesh all_reduce
ok "and gathers so" mesh all_gather
ok "a damaged file is told at its place" sh -c "sed 's/nvls: false/nvls: perhaps/' $tmp/no-nvls.yaml >$tmp/bad.yaml; $one $f collective $h --set ccl=$tmp/bad.yaml 2>$tmp/e && grep -q 'bad.yaml:3:7: error' $tmp/e"
chain() { # N files, each of which extends the one before
	n=1
	printf 'extends: nccl-2.30\n' >"$tmp/chain1.yaml"
	while [ $n -lt "$1" ]; do
		n=$((n + 1))
		printf 'extends: %s\n' "$tmp/chain$((n - 1)).yaml" >"$tmp/chain$n.yaml"
	done
	$f collective $h --set ccl="$tmp/chain$n.yaml"
}
ok "files may extend one another many times" chain 12
ok "but not without end, which is no circle" says "more than 32 files extend one another" chain 40
ok "a circle of extends is told" sh -c "printf 'extends: $tmp/b.yaml\n' >$tmp/a.yaml; printf 'extends: $tmp/a.yaml\n' >$tmp/b.yaml; $one $f collective $h --set ccl=$tmp/a.yaml 2>$tmp/e && grep -q circle $tmp/e"
ok "the manual lists the algorithms of --help" lists_algorithms man/foretoken-collective.1
ok "an algorithm that is not there is answered with those that are" says "there are ring, tree, nvls, nvlstree, sharp, pat, hierarchical, direct" $f collective $h --algorithm rings
finish
