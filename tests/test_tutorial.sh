#!/bin/sh
# tests/test_tutorial.sh - the tutorial of CONTRIBUTING.md, made in a copy of the tree and broken
. "$(dirname "$0")/tap.sh"

b=${B:-$PWD/build/rel}
case $b in *san) san=SAN=1 ;; *) san= ;; esac
copy=$tmp/tree
t=build/${b##*/}/tests/test_binomial

# The blocks that a line "<!-- tutorial: ... -->" announces, put where it says: new FILE,
# append FILE, before "TEXT" in FILE.
apply() {
	awk -v out="$copy" '
	/^<!-- tutorial: / { rule = $0; sub(/^<!-- tutorial: /, "", rule); sub(/ -->$/, "", rule); next }
	rule != "" && /^```c$/ { inside = 1; block = ""; next }
	inside && /^```$/ { put(rule, block); rule = ""; inside = 0; next }
	inside { block = block $0 "\n" }
	function put(r, text,    file, anchor, all, line, done) {
		n++
		file = r
		sub(/^.*[ ]/, "", file)
		file = out "/" file
		if (r ~ /^new /)
			printf "%s", text >file
		else if (r ~ /^append /)
			printf "%s", text >>file
		else {
			anchor = r
			sub(/^before "/, "", anchor)
			sub(/" in [^ ]*$/, "", anchor)
			while ((getline line <file) > 0) {
				if (!done && index(line, anchor)) {
					all = all text
					done = 1
				}
				all = all line "\n"
			}
			close(file)
			printf "%s", all >file
			if (!done) {
				print "no place for: " r >"/dev/stderr"
				bad = 1
			}
		}
		close(file)
	}
	END { exit bad || n != 4 }' CONTRIBUTING.md
}

make_it() {
	env -u MAKEFLAGS -u MFLAGS make -s -C "$copy" $san "$t" >&2
}

run_it() {
	(cd "$copy" && FORETOKEN_DATA=$copy "./$t" >&2)
}

mkdir -p "$copy/build"
for x in Makefile layers base hw models stacks traces sim recorded cost study calibrate reports cli include tests; do
	cp -a "$x" "$copy/"
done
# its objects are as new as its sources, so that little is compiled
cp -a "$b" "$copy/build/"
ok "each block of the tutorial finds its place" apply
ok "the tutorial compiles" make_it
ok "its test passes" run_it
sed -i 's/ceil(log2(g->domains))/floor(log2(g->domains))/' "$copy/sim/across.c"
ok "its mutation compiles" make_it
ok "its test fails once the code is broken" sh -c "cd '$copy' && ! FORETOKEN_DATA='$copy' ./$t"
finish
