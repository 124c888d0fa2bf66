# tests/sizes.sh - files under 500 lines, headers under 200, functions under 60
bad=0
for f in $(find base hw models stacks traces sim cost study calibrate reports cli include tests -name '*.[ch]'); do
	n=$(wc -l <"$f")
	[ "$n" -le 500 ] || { echo "$f: $n lines, 500 at most"; bad=1; }
done
if command -v pmccabe >/dev/null; then
	long=$(find base hw models stacks traces sim cost study calibrate reports cli -name '*.c' |
		xargs pmccabe 2>/dev/null | awk '$5 > 60 { print $6 ": " $7 " has " $5 " lines, 60 at most" }')
	[ -z "$long" ] || { echo "$long"; bad=1; }
fi
exit $bad
