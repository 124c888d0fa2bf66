# scripts/readme.sh PROGRAM - put the first answer and the accuracy tables into README.md and
# docs/accuracy.md anew, and the numbers that README's text says (runs, odds at the best plans)
#
# Needs the tests to be built (make check-only), as two of them print the table of costs.
#
# What is between "<!-- NAME -->" and "<!-- end -->" is replaced by the command's output,
# indented as code; of `make validate` README has the tables by GPU and model, docs/accuracy.md that by source.
set -eu
f=$(realpath "${1:-build/foretoken}")
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# the verdict, the main rows, the largest four differences in time, and all in dollars
FORETOKEN=$f sh examples/01-first-answer/run.sh | fold -s -w 96 | awk '
	NR == 1, /^$/ { sub(/ +$/, ""); print }
	/^result/ { on = 1 }
	on && /^(result|step|tokens|  P|MFU,? *%|exposed|memory|capital|USD per |energy|power|fits)/ {
		if (!/, s / || /^step|^exposed/) print
	}
	/^Why .* differs/ { on = 0; left = 6; print "" }
	/^Why .* costs/ { left = 9; print "" }
	left-- > 0 { print }' >"$tmp/first-answer"
sh scripts/validate.sh "$f" none | cat -s >"$tmp/all"
awk -v RS= -v ORS='\n\n' '/^Errors/ || /^all files, by (gpu|model) /' "$tmp/all" >"$tmp/accuracy"
awk -v RS= -v ORS='\n\n' '!/^all files, by/' "$tmp/all" >"$tmp/by-source"
sh scripts/by_stack.sh "$f" >"$tmp/by-stack"
for t in parts published_costs; do
	build/rel/tests/test_$t >"$tmp/told" 2>/dev/null || {
		echo "build/rel/tests/test_$t is not built or does not pass: make build/rel/tests/test_$t" >&2
		exit 1
	}
	sed -n 's/^# //p' "$tmp/told" | sed 's/ *$//'
	echo
done >"$tmp/costs"
fill() { # FILE
	awk -v dir="$tmp" '
		/^<!-- (first-answer|accuracy|by-stack|by-source|costs) -->$/ {
			print; print ""
			file = dir "/" $2
			while ((getline line < file) > 0) print (line == "" ? "" : "    " line)
			hold = 1
			next
		}
		/^<!-- end -->$/ { if (hold) print ""; hold = 0 }
		!hold { print }
	' "$1" | cat -s >"$tmp/filled"
	cat "$tmp/filled" >"$1"
}
fill README.md
fill docs/accuracy.md
n=$("$f" runs | sed -n 's/^\([0-9]*\) runs;.*/\1/p' | sed 's/\([0-9]\)\([0-9]\{3\}\)$/\1,\2/')
sed -i "s/the [0-9,]* measured runs/the $n measured runs/" README.md
odds=$("$f" compare --each-at-best -q examples/01-first-answer/h100.yaml examples/01-first-answer/mi300x.yaml \
	--set 'training.parallel={}' --set training.overlap.tp=false |
	sed -n '1s/^\([a-z0-9]*\) is cheaper with probability \([0-9.]*\): no clear winner.*/\1 \2/p')
test -n "$odds" # else the text's words are wrong, too
sed -i "s/that a search finds, [A-Za-z0-9]* is cheaper with$/that a search finds, ${odds% *} is cheaper with/
	s/^probability [0-9.]*, which is still/probability ${odds#* }, which is still/" README.md
