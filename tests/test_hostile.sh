#!/bin/sh
# tests/test_hostile.sh - names and files that mean harm: nothing is run, followed or believed
. "$(dirname "$0")/tap.sh"
a=$PWD/examples/01-first-answer/h100.yaml
case $f in /*) ;; *) f=$PWD/$f ;; esac
tree=$PWD

fails() { # STATUS PATTERN command...: exits so, says so on stderr, prints no answer
	want=$1 says=$2
	shift 2
	timeout 20 "$@" >"$tmp/o" 2>"$tmp/e"
	got=$?
	cat "$tmp/e" >&2
	[ $got = "$want" ] || { echo "exit $got, wanted $want" >&2; return 1; }
	[ ! -s "$tmp/o" ] || { echo "printed an answer" >&2; return 1; }
	grep -q -- "$says" "$tmp/e"
}
named() { # NAME: a profile so called
	awk -v n="$1" '/^name:/ { print "name: " n; next } { print }' hw/gpus/h100-sxm.yaml >"$tmp/evil.yaml"
	cp hw/gpus/h100-sxm.*.csv "$tmp/"
}
refused() { # NAME
	named "$1"
	fails 1 "evil.yaml:[0-9]*:7: error: name: .* is not a name" \
		$f simulate $a --set cluster.gpu="$tmp/evil.yaml" --report "$tmp/r" && [ ! -e "$tmp/r/index.html" ]
}

# ---- names ----------------------------------------------------------------------
ok "a name that ends gnuplot's string is refused" refused "\"x'; system(\\\\\"touch $tmp/pwned\\\\\"); #\""
ok "a name that is a tag is refused" refused '"<script>alert(1)</script>"'
ok "a name of 65 letters is refused" refused "$(printf 'a%.0s' $(seq 65))"
ok "a name of two lines is refused" refused '"x\\ny"'
ok "a name that drives the terminal is refused" fails 1 "control character" \
	$f simulate $a --set 'cluster.gpu="\e[2J"'
ok "an error prints no control character" fails 1 'x1b' $f simulate $a --set "$(printf 'a\033[2Jb=1')"
ok "a price is called by a name" sh -c "sed 's/^  fiber:/  \"<b>\":/' cost/prices/neocloud-2026-09.yaml >$tmp/p.yaml && ! $f simulate $a --set cost.prices=$tmp/p.yaml 2>$tmp/e && grep -q 'is not a name' $tmp/e"
ok "a model is called by a name" fails 1 "is not a name" $f simulate $a --set "model={name: \"a'b\", model_type: llama}"
ok "nothing was run" test ! -e "$tmp/pwned"

# ---- scripts and pages -------------------------------------------------------------
if command -v gnuplot >/dev/null; then
	mkdir "$tmp/home"
	echo "system('touch $tmp/rc')" >"$tmp/home/.gnuplot"
	HOME=$tmp/home
	export HOME
	ok "a folder with quotes is a folder" $f simulate $a --report "$tmp/a'; system('touch pwned'); #"
	ok "and the user's own gnuplotrc is not run" test ! -e pwned -a ! -e "$tmp/a'; system('touch pwned'); #/pwned" -a ! -e "$tmp/rc"
	ok "a figure is drawn again in its folder" sh -c "cd $tmp/a*#* && rm scaling.svg && gnuplot -d scaling.gp && test -s scaling.svg"
	sed 's|^title:.*|title: "<img src=x onerror=alert(1)> \&amp; <!--<script"|' hw/gpus/h100-sxm.yaml >"$tmp/evil.yaml"
	sed 's|^title:.*|title: "</script><script>alert(1)</script>"|; /^provenance:/a\  note: "<script>alert(2)</script>"' stacks/nemo-24.11.yaml >"$tmp/stack.yaml"
	$f simulate $a --set cluster.gpu="$tmp/evil.yaml" --set stack="$tmp/stack.yaml" --report "$tmp/page" >/dev/null 2>"$tmp/e" || cat "$tmp/e" >&2
	ok "a page of hostile titles is written" test -s "$tmp/page/index.html"
	ok "a page holds the tags that are ours alone" sh -c "test \$(grep -oi '<script' $tmp/page/index.html | wc -l) = 1 && ! grep -q '<img src=x\|<!--' $tmp/page/index.html"
	printf '#!/bin/sh\nexit 3\n' >"$tmp/home/gnuplot"
	chmod +x "$tmp/home/gnuplot"
	cp -r "$tmp/page" "$tmp/kept"
	ok "a gnuplot that fails is told" fails 1 "gnuplot failed" env PATH="$tmp/home:$PATH" $f simulate $a --report "$tmp/page"
	ok "and leaves the figure that was there" cmp "$tmp/page/breakdown.svg" "$tmp/kept/breakdown.svg"
else
	skip "scripts and pages" "no gnuplot"
fi
finish
