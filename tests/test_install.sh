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
# ---- the library, from C and C++, in a locale with a decimal comma
built() { # COMPILER FLAGS...: tests/library/answer.c against what was installed
	PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs foretoken >"$tmp/flags" || return 1
	flags=$(sed "s|-I/usr/include|-I$root/usr/include|; s|-L/usr/lib|-L$root/usr/lib|" "$tmp/flags")
	flags="-I$root/usr/include -L$root/usr/lib $flags" # those of /usr itself are not told
	if sanitized; then flags="-fsanitize=address,undefined $flags"; fi
	"$@" tests/library/answer.c -o "$tmp/answer" $flags
}
answers() { # environment...: what the program of the tree answers
	env FORETOKEN_DATA="$root/usr/share/foretoken" LD_LIBRARY_PATH="$root/usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@" "$tmp/answer" "$tmp/s.yaml" >"$tmp/library.json" && cmp "$tmp/library.json" "$tmp/tree.json"
}
ok "a C program links" built "${CC:-cc}" -std=c11 -Wall -Wextra -Werror
ok "and answers as the program does" answers
if command -v "${CXX:-g++}" >/dev/null; then
	ok "a C++ program links" built "${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror -x c++
	ok "and answers as the program does, from C++" answers
fi
if command -v localedef >/dev/null && [ -e /usr/share/i18n/locales/de_DE ]; then
	mkdir "$tmp/locales" && localedef -i de_DE -f UTF-8 "$tmp/locales/de_DE.UTF-8" 2>/dev/null
	# the C library itself leaks a string where it reads LOCPATH
	ok "numbers have a point where the locale has a comma" answers LOCPATH="$tmp/locales" LC_ALL=de_DE.UTF-8 ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
	comma() { env LOCPATH="$tmp/locales" LC_ALL=de_DE.UTF-8 FORETOKEN_DATA="$root/usr/share/foretoken" LD_LIBRARY_PATH="$root/usr/lib" "$tmp/answer" "$tmp/s.yaml" 2>&1 >/dev/null | grep -q ' 0,500'; }
	ok "and the caller keeps its locale" comma
else
	skip "numbers have a point where the locale has a comma" "no localedef or no de_DE"
fi
# ---- installed elsewhere, with nothing in the environment that says where: each finds its data
if ! sanitized && command -v python3 >/dev/null; then
	own=$tmp/own
	ok "make install PREFIX, behind an install under another" make -s install PREFIX="$own"
	alone() { env -i PATH="$PATH" "$@"; }
	in_c() {
		PKG_CONFIG_PATH=$own/lib/pkgconfig "${CC:-cc}" -std=c11 tests/library/answer.c -o "$tmp/own.out" \
			$(PKG_CONFIG_PATH=$own/lib/pkgconfig pkg-config --cflags --libs foretoken) &&
			alone LD_LIBRARY_PATH="$own/lib" "$tmp/own.out" "$tmp/s.yaml" | cmp - "$tmp/tree.json"
	}
	ok "a C program finds the library's data" in_c
	in_python() {
		alone PYTHONPATH="$own/lib/python3/dist-packages" python3 -c '
import foretoken, sys
print(foretoken.simulate(open(sys.argv[1]).read())["tokens_per_s"])' "$tmp/s.yaml" >"$tmp/rate" &&
			grep -q "\"tokens_per_s\": $(cut -c1-9 "$tmp/rate")" "$tmp/tree.json"
	}
	ok "so does Python's module, which finds the library" in_python
	ok "an example runs the program on PATH" sh -c "cd / && PATH=$own/bin:$PATH sh $own/share/doc/foretoken/examples/01-first-answer/run.sh | grep -q 'h100'"
	ok "spaces in DESTDIR are refused" sh -c "! make -s install DESTDIR='$tmp/a b' 2>$tmp/err && grep -q 'hold no spaces' $tmp/err"
	make -s install DESTDIR="$root" PREFIX=/usr >/dev/null
fi
ok "every symbol of the library has the prefix" sh -c "! nm -g --defined-only $root/usr/lib/libforetoken.a | grep -E ' [TDBRV] ' | grep -v ' ft_'"
completed() { # WORD... WANT: the last word is among what bash offers
	bash -c '. scripts/foretoken.bash; foretoken() { '"$f"' "$@"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _foretoken; printf "%s\n" "${COMPREPLY[@]}"' x "$@"
}
if command -v bash >/dev/null; then
	completed foretoken sim >"$tmp/offered"
	ok "commands are completed" grep -qx simulate "$tmp/offered"
	completed foretoken simulate --set training.parallel. >"$tmp/offered"
	ok "keys are completed" grep -qx training.parallel.tp= "$tmp/offered"
	completed foretoken collective --al >"$tmp/offered"
	ok "options are completed" grep -qx -- --algorithm "$tmp/offered"
fi
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
	$f simulate --json "$tmp/s.yaml" | sed -n '/"assumed": \[/,/\]/p' | grep -o '"[a-z_.]*"' | tr -d '"' |
		grep -v assumed | sort -u >"$tmp/keys"
	[ -s "$tmp/keys" ] || return 1
	while read -r k; do
		grep -qF -e "$k" man/foretoken-scenario.5 || { echo "$k is not in foretoken-scenario(5)" >&2; return 1; }
	done <"$tmp/keys"
}
ok "every scenario key has its entry" keys
also() { # foretoken(1) names all other pages
	for m in man/foretoken-*.[15]; do
		p=${m#man/} && p="${p%.?}(${p##*.})"
		sed -n '/SEE ALSO/,$p' man/foretoken.1 | grep -qF "$p" || { echo "$p" >&2; return 1; }
	done
}
ok "foretoken(1) names all other pages" also
ok "make uninstall" make -s uninstall DESTDIR="$root" PREFIX=/usr
ok "takes all away" sh -c "find $root -type f | sed 's|^|left: |' >&2; [ -z \"\$(find $root -type f)\" ]"
finish
