#!/bin/sh
# tests/test_derived.sh - figures that stand in the tree are what this program finds: a slice of `make residuals`,
# from which ranges are, and the table of docs/traces.md
. "$(dirname "$0")/tap.sh"
if ! command -v python3 >/dev/null; then echo "1..0 # SKIP no python3"; exit 0; fi
every=6
! sanitized || every=60
ok "measured steps are predicted as study/residuals.csv says" python3 scripts/residuals.py --check $every $f
table() {
	python3 scripts/whatif.py $f | while IFS= read -r line; do
		grep -qxF -- "$line" docs/traces.md || echo "$line" >>"$tmp/other"
		echo >>"$tmp/lines"
	done
	cat "$tmp/other" >&2 2>/dev/null
	[ "$(wc -l <"$tmp/lines")" -gt 20 ] && [ ! -e "$tmp/other" ]
}
ok "what-ifs on recorded steps are as docs/traces.md says" table
finish
