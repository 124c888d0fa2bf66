#!/bin/sh
# tests/test_hostile.sh - names and files that mean harm: nothing is run, followed or believed
. "$(dirname "$0")/tap.sh"
limit="timeout 20"
a=$PWD/examples/01-first-answer/h100.yaml
case $f in /*) ;; *) f=$PWD/$f ;; esac
tree=$PWD

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
ok "a price is called by a name" sh -c "sed 's/^  fiber:/  \"<b>\":/' cost/prices/neocloud-2026-09.yaml >$tmp/p.yaml && $one $f simulate $a --set cost.prices=$tmp/p.yaml 2>$tmp/e && grep -q 'is not a name' $tmp/e"
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
	ok "a figure is drawn again in its folder" sh -c "cd $tmp/a*#* && rm scaling-usd.svg && gnuplot -d scaling-usd.gp && test -s scaling-usd.svg"
	sed 's|^title:.*|title: "<img src=x onerror=alert(1)> \&amp; <!--<script"|' hw/gpus/h100-sxm.yaml >"$tmp/evil.yaml"
	sed 's|^title:.*|title: "</script><script>alert(1)</script>"|; /^provenance:/a\  note: "<script>alert(2)</script>"' stacks/nemo-24.11.yaml >"$tmp/stack.yaml"
	$f simulate $a --set cluster.gpu="$tmp/evil.yaml" --set stack="$tmp/stack.yaml" --report "$tmp/page" >/dev/null 2>"$tmp/e" || cat "$tmp/e" >&2
	ok "a page of hostile titles is written" test -s "$tmp/page/index.html"
	ok "a page holds the tags that are ours alone" sh -c "test \$(grep -oi '<script' $tmp/page/index.html | wc -l) = 3 && ! grep -q '<img src=x\|<!--' $tmp/page/index.html"
	printf '#!/bin/sh\nexit 3\n' >"$tmp/home/gnuplot"
	chmod +x "$tmp/home/gnuplot"
	cp -r "$tmp/page" "$tmp/kept"
	ok "a gnuplot that fails is told" told 1 "gnuplot failed" env PATH="$tmp/home:$PATH" $f simulate $a --report "$tmp/page"
	printf '#!/bin/sh\nprintf "<svg><g>"\n' >"$tmp/home/gnuplot" # as on a full disk, of which it says nothing
	ok "half a figure is told" told 1 "did not write all of this script's figure" env PATH="$tmp/home:$PATH" $f simulate $a --report "$tmp/page"
	ok "behind the answer, which stands" grep -q "tokens/s" "$tmp/o"
	ok "and leaves the figure that was there" cmp "$tmp/page/breakdown.svg" "$tmp/kept/breakdown.svg"
else
	skip "scripts and pages" "no gnuplot"
fi

# ---- files -----------------------------------------------------------------------
mkdir "$tmp/files"
echo precious >"$tmp/precious"
for i in $(seq 1 400); do ln -s "$tmp/precious" "$tmp/files/t.json.part$(($$ + i))"; done
ok "a temporary name that was planted is not followed" sh -c "$f simulate $a --timeline $tmp/files/t.json >$tmp/o && test -s $tmp/files/t.json && grep -qx precious $tmp/precious"
killed() { # writers killed at any time leave nothing half-written
	mkdir -p "$tmp/killed"
	for i in 1 2 3 4 5 6 7 8; do
		timeout -s KILL 0.0$((i * 3)) $f simulate $a --timeline "$tmp/killed/t.json" >/dev/null 2>&1
		ls "$tmp/killed" | grep -q part && return 1
	done
	true
}
ok "a killed writer leaves nothing beside" killed
ok "a full disk is told by --help" fails 1 "cannot write" sh -c "$f --help >/dev/full"
ok "and by a command's --help" fails 1 "cannot write" sh -c "$f simulate --help >/dev/full"
ok "once" sh -c "[ \$($f list gpus 2>&1 >/dev/full | grep -c 'cannot write') = 1 ]"
mkdir -p "$tmp/cwd/hw"
cp -r hw/gpus "$tmp/cwd/hw/"
sed 's/^title:.*/title: planted/' hw/gpus/h100-sxm.yaml >"$tmp/cwd/hw/gpus/h100-sxm.yaml"
cp "$f" "$tmp/alone" 2>/dev/null
ok "data in the current folder are nobody's" sh -c "cd $tmp/cwd && ! $tmp/alone list gpus 2>&1 | grep planted"
mkdir -p "$tmp/data/hw/gpus"
ln -s /nonexistent/x "$tmp/data/hw/gpus/a.yaml"
ok "list fails on what it cannot read" fails 1 "a.yaml.*folder lists it" env FORETOKEN_DATA="$tmp/data" $f list gpus

# ---- the store's words --------------------------------------------------------------
line='"record":"measurement","kind":"gemm","dtype":"bf16","layout":"forward","m":4096,"n":4096,"k":4096,"status":"ok"'
store() { # DEVICE KERNEL: a store with such words
	rm -f "$tmp/s.db"
	{
		printf '{"record":"run","format":1,"backend":"fake","device":"%s","date":"2026-01-02"}\n' "$1"
		for i in 1 2 3; do printf '{%s,"cell":"c%s","time_us":%s00,"kernel":"%s"}\n' "$line" $i $i "$2"; done
	} >"$tmp/p.jsonl"
	$f calibrate import --store "$tmp/s.db" "$tmp/p.jsonl" >/dev/null
}
store 'd\"x\ny: z' ''
ok "a device of quotes and lines is JSON" sh -c "$f calibrate runs --store $tmp/s.db --json | python3 -c 'import json,sys; assert json.load(sys.stdin)[\"runs\"][0][\"device\"] == \"d\\\"x\\ny: z\"'"
mkdir "$tmp/fit"
ok "and YAML" sh -c "$f calibrate fit --store $tmp/s.db --name mine --base h100-sxm --only gemm --out $tmp/fit && $f simulate $a --set cluster.gpu=$tmp/fit/mine.yaml"
store d 'x, y'
ok "a kernel that is no name is not fitted" fails 1 "which is not a name" $f calibrate fit --store "$tmp/s.db" --name mine --base h100-sxm --out "$tmp/fit"
ok "a profile that is no name is not written" fails 1 "is not a name" $f calibrate fit --store "$tmp/s.db" --name ../x --base h100-sxm --out "$tmp/fit"
ok "a run that is no number" fails 64 "not a whole number" $f calibrate show --store "$tmp/s.db" --run x
ok "a run that is not there" fails 1 "there is no run 7" $f calibrate show --store "$tmp/s.db" --run 7
ok "a family that is none" fails 64 "takes gemm" $f calibrate fit --store "$tmp/s.db" --name mine --only gemmx
ok "runs that are no numbers" fails 64 "not a whole number" $f calibrate diff --store "$tmp/s.db" a b
printf '# nThread 1\n# Rank 0 x\n#  Rank  1\n#  Rank  2\n# all_reduce_perf\n 8 2 float sum -1 inf 0.1 0.1 0 1 1 1 0\n' >"$tmp/log"
ok "a time of inf is no time" fails 1 "log:6:1: error: a size or a time is not a number" $f calibrate import --store "$tmp/n.db" --format nccl-tests "$tmp/log"
ok "layers run again only under full recomputation" fails 1 "recompute_layers has an effect only under 'recompute: full'" $f simulate $a --set training.recompute_layers=4
ok "modules run again only under selective" fails 1 "recompute_modules has an effect only under 'recompute: selective'" $f simulate $a --set training.recompute_modules=mlp
ok "no more layers run again than there are" fails 1 "more than the model's 80 layers" $f simulate $a --set training.recompute=full --set training.recompute_layers=90
printf 'op,gpu,gpus,bytes,dtype,measured.busbw_gb_per_s\nall_reduce,x,8.9e57,8,bf16,9\n' >"$tmp/g.csv"
ok "no node has that many GPUs" fails 1 "g.csv:2:14: error: 'gpus' is not between 2 and" $f calibrate import --store "$tmp/n.db" --format csv "$tmp/g.csv"
sed -i 's/ inf / 9.5 /' "$tmp/log"
ok "a cell's name holds no null" sh -c "$f calibrate import --store $tmp/n.db --format nccl-tests $tmp/log && $f calibrate show --store $tmp/n.db | grep all_reduce | grep -vq null"
if [ -x "${B:-build/rel}/foretoken-probe" ]; then
	ok "a plug-in is no path" sh -c "! ${B:-build/rel}/foretoken-probe -b ../../x 2>$tmp/e; grep -q 'is not a backend' $tmp/e"
else
	skip "a plug-in is no path" "no foretoken-probe"
fi
if command -v readelf >/dev/null && ! nm -D "$f" | grep -q __asan_init; then
	ok "the program is hardened" sh -c "readelf -d $f | grep -q BIND_NOW && readelf -lW $f | grep -q GNU_RELRO && nm -D $f | grep -q __stack_chk_fail && nm -D $f | grep -q __snprintf_chk"
else
	skip "the program is hardened" "no readelf, or a sanitized build"
fi
ok "a damaged store is told" sh -c "head -c 5000 $tmp/s.db >$tmp/cut.db; $one $f calibrate export --gpu h200 --store $tmp/cut.db >$tmp/o 2>$tmp/e && test -s $tmp/e && test ! -s $tmp/o"
finish
