# scripts/man.sh PROGRAM - write man/foretoken*.1 anew from --help (needs help2man)
#
# The results are in the tree: run this after changing an option.
# tests/test_install.sh checks that every option of --help is in its page.
set -eu
f=$(realpath "${1:-build/foretoken}")
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SOURCE_DATE_EPOCH=1793491200 # 2026-11
version=$("$f" --version)
number=${version#* }
see='foretoken(1), foretoken-scenario(5). docs/reading-the-output.md explains the output,
docs/glossary.md the words; both are installed in PREFIX/share/doc/foretoken.'
page() { # NAME WHAT ARGUMENT...: man/NAME.1 from `foretoken ARGUMENT... --help`
	name=$1 what=$2
	shift 2
	printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$f" "$*" >"$tmp/$name"
	chmod +x "$tmp/$name"
	printf '[see also]\n%s\n' "$see" >"$tmp/more"
	[ -n "$*" ] || cat man/foretoken.1.inc >"$tmp/more"
	help2man --no-info --section=1 --name="$what" --version-string="$name $number" \
		--manual="User Commands" --source="$version" --include="$tmp/more" \
		--output="man/$name.1" "$tmp/$name"
	# argp writes the usage as "foretoken COMMAND"; bold what is typed
	sed -i "s/^\.B $name\$/.B foretoken${*:+ $*}/; s/DO NOT MODIFY THIS FILE!  /From --help by scripts\/man.sh; /" "man/$name.1"
}
page foretoken "tokens/s and USD per million tokens of a training cluster"
"$f" --help | sed -n 's/^  \([a-z]*\)  *\(.*\)$/\1 \2/p' | while read -r c what; do
	if "$f" "$c" --help >/dev/null 2>&1; then
		page "foretoken-$c" "$what" "$c"
	else
		echo "no page for $c: it has no --help" >&2
	fi
done
