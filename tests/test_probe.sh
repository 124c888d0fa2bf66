#!/bin/sh
# tests/test_probe.sh - foretoken-probe by itself: which cells, in which order, what it goes on from
. "$(dirname "$0")/tap.sh"
b=${B:-build/rel}
p=$b/foretoken-probe
make -s B="$b" "$p" >/dev/null 2>&1 || { echo "1..0 # SKIP foretoken-probe does not build"; exit 0; }
plan() { "$p" --plan --quick "$@"; }

# ---- the plan
plan >"$tmp/all"
kinds() { # the cells of both kinds, and no others
	plan --only gemm,launch | sort >"$tmp/some" && awk '$1 == "gemm" || $1 == "launch"' "$tmp/all" | sort | cmp - "$tmp/some" && [ -s "$tmp/some" ]
}
ok "--only leaves the cells of its kinds" kinds
ok "each cell is there once" sh -c "[ -s $tmp/all ] && [ \$(sort -u $tmp/all | wc -l) = \$(wc -l <$tmp/all) ]"
ok "one device has no collectives" sh -c "! grep -q ^collective $tmp/all"
ok "two have" sh -c "$p --plan --quick --devices 2 | grep -q '^collective .* gpus2$' && ! $p --plan --quick --devices 2 | grep -q gpus3"
shuffled() { # another order of the same cells
	plan --seed 2 >"$tmp/two" && ! cmp -s "$tmp/all" "$tmp/two" && sort "$tmp/two" >"$tmp/two.s" && sort "$tmp/all" | cmp - "$tmp/two.s"
}
ok "another seed is another order" shuffled
ok "the same seed is the same order" sh -c "$p --plan --quick --seed 1 | cmp - $tmp/all"
more() { # beyond quick there are more cells
	[ "$("$p" --plan | wc -l)" -gt "$(wc -l <"$tmp/all")" ]
}
ok "--quick has fewer cells" more

# ---- runs
fake() { "$p" --backend fake --quick "$@"; }
ok "cells become lines" fake --only launch --date 2026-01-02 --seed 7 --devices 1 --out "$tmp/run"
ok "the first tells the run" sh -c "head -1 $tmp/run | grep -q '\"record\":\"run\".*\"date\":\"2026-01-02\".*\"devices\":1,.*\"seed\":7'"
ok "each line is JSON, each cell ok" python3 -c "
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
cells = [r for r in rows if r['record'] == 'measurement']
assert len(rows) == len(cells) + 1 and cells
assert all(r['status'] == 'ok' and r['kind'] == 'launch' and r['p10_us'] <= r['time_us'] <= r['p90_us'] for r in cells)" "$tmp/run"
n=$(grep -c measurement "$tmp/run")
ok "what the file holds is skipped" told 0 " 0 measured, $n already there" fake --only launch --out "$tmp/run"
ok "what another file names is skipped" told 0 " 0 measured, $n already there" fake --only launch --done "$tmp/run" --out "$tmp/o2"
spoilt() { # a line that broke off and one that failed are measured again
	{ sed -n 2p "$tmp/run" | cut -c1-60; sed -n 3p "$tmp/run" | sed 's/"status":"ok"/"status":"failed"/'; sed -n '4,$p' "$tmp/run"; } >"$tmp/part"
	told 0 " 2 measured, $((n - 2)) already there" fake --only launch --done "$tmp/part" --out "$tmp/o3"
}
ok "a broken and a failed cell are measured again" spoilt
names() { # cells named one a line, as --plan prints them; CRLF and empty lines as well
	{ fake --only launch --plan | sed 's/$/\r/'; echo; } >"$tmp/names"
	told 0 " 0 measured, $n already there" fake --only launch --done "$tmp/names" --out "$tmp/o4"
}
ok "cells by name are skipped" names
limited() { # fewer than all, none where the machine is slow
	fake --limit 0.000001 --out "$tmp/o5" --cell 0.001 2>&1 | grep -q ' [0-9]* measured, 0 already there' &&
		[ "$(grep -c measurement "$tmp/o5")" -lt "$(wc -l <"$tmp/all")" ]
}
ok "a limit ends it early" limited
ok "stdout is the file without --out" sh -c "$p -b fake -q -k launch 2>/dev/null | grep -c measurement | grep -qx $n"

# ---- mistakes
ok "a kind that is none" wrong "'foo' is not a kind of cell" "$p" --only gemm,foo
for a in "--limit 0" "--limit x" "--limit inf" "--cell -1" "--sustained nan"; do
	ok "$a is wrong usage" wrong "is not a number of seconds above zero" "$p" --plan $a
done
for a in "--devices 0" "--devices 1.5" "--devices 10000000000" "--seed x"; do
	ok "$a is wrong usage" wrong "is not a whole number from 1" "$p" --plan $a
done
ok "a word too many is wrong usage" wrong "Usage\|Too many\|--help" "$p" extra
ok "a backend's name is no path" fails 77 "'../x' is not a backend" "$p" -b ../x
ok "nor empty" fails 77 "is not a backend" "$p" -b ""
ok "a file of done cells must be there" fails 1 "/nowhere/done: No such file" "$p" -b fake -q --done /nowhere/done
ok "a folder must be there" fails 1 "/nowhere/out: No such file" "$p" -b fake -q --out /nowhere/out
[ ! -e /dev/full ] || ok "a full disk is told" fails 1 "cannot write the measurements" "$p" -b fake -q -k launch --out /dev/full
cp "$p" "$tmp/foretoken-probe"
: >"$tmp/libft_empty.so"
ok "a plug-in that is none is told" fails 77 "the backend 'empty' cannot be loaded" "$tmp/foretoken-probe" -b empty
finish
