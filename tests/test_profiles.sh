#!/bin/sh
# tests/test_profiles.sh - the tree's profiles are what this program fits of the tree's rows: a part of `make profiles`
. "$(dirname "$0")/tap.sh"
if ! command -v python3 >/dev/null; then echo "1..0 # SKIP no python3"; exit 0; fi
published="a100-80g mi355x mi350x mi210" measured=h200 # and test_calibrate.sh others
! sanitized || published="mi100 mi350x" measured=
fitted() { # published or measured, GPU...: byte by byte, reports and rows
	mkdir -p "$tmp/$1" && sh "scripts/fit_$1.sh" $f "$tmp/$@" || return 1
	shift
	for gpu; do
		[ -f "$tmp"/*/"$gpu.yaml" ] || { echo "$gpu was not fitted" >&2; return 1; }
	done
}
same() {
	for file in "$tmp/$1"/*; do
		cmp "$file" "hw/gpus/${file##*/}" || return 1
	done
}
ok "profiles are fitted of published rows" fitted published $published
ok "they are those of the tree" same published
if [ "$measured" ]; then
	ok "a profile is fitted of measured rows" fitted measured $measured
	ok "it is that of the tree" same measured
fi
finish
