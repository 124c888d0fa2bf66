# tests/sizes.sh - files have at most 500 lines, headers private to a folder of ours 200; functions, but
# those of tests and probes, 60 lines and 15 of McCabe's complexity (by pmccabe, a switch as one);
# all functions of ours have six parameters at most, beyond which a struct names them
bad=0
folders="base hw models stacks traces sim recorded cost study calibrate reports serve cli"
too_long() {
	n=$(wc -l <"$1")
	[ "$n" -le "$2" ] || { echo "$1: $n lines, $2 at most"; bad=1; }
}
for f in $(find $folders include tests -name '*.[ch]'); do
	case $f in
	include/* | tests/* | *.c) too_long "$f" 500 ;;
	*) too_long "$f" 200 ;;
	esac
done
if command -v pmccabe >/dev/null; then
	out=$(find $folders -name '*.c' -not -path '*/probes/*' | xargs pmccabe 2>/dev/null | awk '
		$5 > 60 { print $6 ": " $7 " has " $5 " lines, 60 at most" }
		$1 > 15 { print $6 ": " $7 " has complexity " $1 ", 15 at most" }')
	[ -z "$out" ] || { echo "$out"; bad=1; }
else
	echo "sizes of functions are not checked: pmccabe is not installed (CI=1 make deps)" >&2
fi
awk -f tests/parameters.awk $(find $folders tests -name '*.c' -not -path '*/probes/*' -not -path 'tests/hip_on_cpu/*') || bad=1
exit $bad
