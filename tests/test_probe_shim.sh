#!/bin/sh
# tests/test_probe_shim.sh - the attention shim's loader finds, calls and refuses shims
. "$(dirname "$0")/tap.sh"
cc=${CC:-cc}
w="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I."
shim() { # FOLDER flags...
	mkdir -p "$tmp/$1"
	d=$1
	shift
	$cc $w -fPIC -shared "$@" tests/fake_shim.c -o "$tmp/$d/libft_attention_shim.so"
}
says() { # STATUS PATTERN FOLDER
	"$tmp/call" "$tmp/$3" >"$tmp/o" 2>&1
	got=$?
	cat "$tmp/o" >&2
	[ $got = "$1" ] && grep -q -- "$2" "$tmp/o"
}
ok "the loader compiles" $cc $w tests/shim_caller.c calibrate/probes/gpu/shim.c -o "$tmp/call" -ldl
ok "its header is C++ too" sh -c "echo '#include \"calibrate/probes/attention_shim.h\"' | ${CXX:-c++} -I. -fsyntax-only -x c++ -"
shim good
ok "a shim is found, called, and its result seen" says 0 "fake, Fake 1.2: 0 wrong, 512 refused" good
ok "no shim is no fault" says 2 "no shim" nowhere
shim old -DVERSION=0
ok "another version is refused" says 1 "is of version 0, this probe wants 1" old
shim unfused '-DNAME="unfused"'
ok "a name that is taken is refused" says 1 "its name must be" unfused
shim comma '-DNAME="a,b"'
ok "a name that breaks a CSV file is refused" says 1 "its name must be" comma
shim hollow -Dft_attention_shim=other
ok "a library without the function is refused" says 1 "lacks ft_attention_shim" hollow
mkdir "$tmp/text" && echo hello >"$tmp/text/libft_attention_shim.so"
ok "a file that is no library is told" says 1 "libft_attention_shim.so" text
finish
