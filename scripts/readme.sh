# scripts/readme.sh PROGRAM - put the first answer and the accuracy table into README.md anew
#
# What stands between "<!-- NAME -->" and "<!-- end -->" is replaced by the command's
# output, indented as code.
set -eu
f=$(realpath "${1:-build/foretoken}")
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
FORETOKEN=$f sh examples/01-first-answer/run.sh >"$tmp/first-answer"
sh scripts/validate.sh "$f" none | cat -s >"$tmp/accuracy"
awk -v dir="$tmp" '
	/^<!-- (first-answer|accuracy) -->$/ {
		print; print ""
		file = dir "/" $2
		while ((getline line < file) > 0) print (line == "" ? "" : "    " line)
		hold = 1
		next
	}
	/^<!-- end -->$/ { if (hold) print ""; hold = 0 }
	!hold { print }
' README.md | cat -s >"$tmp/README.md"
mv "$tmp/README.md" README.md
