#!/bin/sh
# tests/test_install.sh - make install, then the installed program from elsewhere
. "$(dirname "$0")/tap.sh"
tree=$PWD
root=$tmp/root
ok "make install DESTDIR" make -s install DESTDIR="$root" PREFIX=/usr
g=$root/usr/bin/foretoken
away() { # command...: from /, with nothing of this tree in the environment
	(cd / && env -i PATH="$PATH" LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" "$@")
}
ok "the program is a file of its own" sh -c "test -x $g && test ! -L $g"
ok "it tells its version" away $g --version
ok "it finds its data" sh -c "cd / && env -i PATH=$PATH $g list gpus | grep -q h100-sxm"
cp examples/01-first-answer/h100.yaml "$tmp/s.yaml"
away $g simulate "$tmp/s.yaml" --json >"$tmp/installed.json"
$f simulate "$tmp/s.yaml" --json >"$tmp/tree.json"
ok "it answers as the program of the tree does" cmp "$tmp/installed.json" "$tmp/tree.json"
same() { # KIND FOLDER: as many as the tree has
	n=$(away $g list "$1" --json | grep -c '"name"')
	m=$($f list "$1" --json | grep -c '"name"')
	[ "$n" = "$m" ] && [ "$n" -gt 0 ]
}
for k in gpus nodes fabrics models stacks ccl prices; do
	ok "all $k are there" same $k
done
ok "no path of this tree is in it" sh -c "! strings -a $g 2>/dev/null | grep -F '$tree/hw'"
ok "manual pages are there" test -s "$root/usr/share/man/man1/foretoken.1" -a -s "$root/usr/share/man/man5/foretoken-scenario.5"
documented() { # COMMAND: each long option of --help is in its page
	$f "$1" --help | grep -o -- '--[a-z][a-z-]*' | sort -u >"$tmp/options"
	sed 's/\\-/-/g' "man/foretoken-$1.1" >"$tmp/page"
	while read -r o; do
		grep -qF -e "$o" "$tmp/page" || { echo "$o is not in man/foretoken-$1.1" >&2; return 1; }
	done <"$tmp/options"
}
for c in $($f --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	ok "every option of $c is in its page" documented "$c"
done
keys() { # every key that a scenario may leave out is in foretoken-scenario(5)
	$f simulate --json "$tmp/s.yaml" | sed -n '/"assumed"/,/]/p' | grep -o '"[a-z_.]*"' | tr -d '"' |
		grep -v assumed | sort -u >"$tmp/keys"
	[ -s "$tmp/keys" ] || return 1
	while read -r k; do
		grep -qF -e "$k" man/foretoken-scenario.5 || { echo "$k is not in foretoken-scenario(5)" >&2; return 1; }
	done <"$tmp/keys"
}
ok "every scenario key has its entry" keys
finish
