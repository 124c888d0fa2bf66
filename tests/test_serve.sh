#!/bin/sh
# tests/test_serve.sh - `foretoken serve`: the API is the commands, refusals, the page in a browser; clients: test_serve_clients.sh
. "$(dirname "$0")/tap.sh"
. "$PWD/tests/serving.sh"
ok "no other command waits for its library" sh -c "! ldd $f | grep -E 'microhttpd|gnutls'"
mkdir "$tmp/broken" && : >"$tmp/broken/libmicrohttpd.so.12"
without() { env LD_LIBRARY_PATH="$tmp/broken${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"; }
missed() {
	! without timeout 10 "$f" serve --port 0 2>"$tmp/e" && grep -q 'cannot load libmicrohttpd.*too short; install libmicrohttpd12' "$tmp/e"
}
ok "where the library cannot be loaded, it says what to install" missed
ok "and so does doctor" sh -c "LD_LIBRARY_PATH=$tmp/broken:${LD_LIBRARY_PATH:-} $f doctor | grep -q '^serve  *cannot load libmicrohttpd'"
ok "and the others answer" without "$f" --version
ok "it says where it is" up here
trap 'kill "$(cat "$tmp/here.pid")" 2>/dev/null; rm -rf "$tmp"' EXIT
for t in bytes_of_simulate:"the API simulates as the command" bytes_where_a_plan_is_found:"and where the plan is left open" bytes_of_json:"an answer's scenario gives the answer again" \
	bytes_of_compare:"it compares as the command" bytes_of_bom:"its bill is the command's" \
	plans:"it searches as the command, with events" plans_of_sizes:"sizes of a cluster beside each other, too" mistakes:"mistakes are the command's" \
	broken:"workers that end otherwise than they should, of searches and answers" late:"what goes wrong in a search is told behind its events" free_keys:"keys to be searched are a list" bodies:"a body has a bound, to the byte" \
	plans_left:"searches are few, and end with their clients" \
	bytes_of_timeline:"its timeline is the command's" lists:"names and keys are those of list" \
	openapi:"every path of the OpenAPI document is there" refusals:"mistakes have line, column, the command's words and a hint" \
	paths:"what names a file is refused, there or not" other_pages:"other hosts and origins are kept out" \
	malformed:"malformed requests are refused" huge:"bodies are bounded" \
	page_size:"the page is under 300 KB and names no other host"; do
	ok "${t#*:}" api "${t%%:*}"
done
ok "a second on the same port is refused" sh -c "$one timeout 10 $f serve --port $(sed 's/.*:\([0-9]*\)\/.*/\1/' "$tmp/here") 2>$tmp/e && grep -q 'try another --port' $tmp/e"
ok "an address that is none is refused" sh -c "$one timeout 10 $f serve --listen example.org 2>$tmp/e && grep -q 'no IP address' $tmp/e"
for a in "--port 70000" "--port x" "scenario.yaml"; do
	ok "serve $a is wrong usage" sh -c "timeout 10 $f serve $a 2>/dev/null; [ \$? -eq 64 ]"
done
interrupted() { # Ctrl-C ends it as SIGTERM does; a shell's own background jobs ignore it
	python3 -c 'import signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
assert b"http" in p.stdout.readline()
p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=20)
assert p.returncode == 0 and not err, (p.returncode, err)' "$f"
}
ok "an interrupt ends it" interrupted
if grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null; then
	ok "it listens to IPv6" up six --listen ::1
	ok "as a page's address has it" grep -q '^http://\[::1\]:[0-9]*/' "$tmp/six"
	six() { python3 -c 'import sys, urllib.request
at = sys.argv[1]
page = urllib.request.urlopen(at).read()
body = open("examples/01-first-answer/h100.yaml", "rb").read()
assert b"<title>" in page and b"step_s" in urllib.request.urlopen(at + "api/simulate", body).read()' "$(cat "$tmp/six")"; }
	ok "and answers there" six
	ok "it ends when told" down six
else
	skip "it listens to IPv6" "no IPv6 here"
fi
up local --listen localhost
ok "it listens to localhost by that name" grep -q '^http://localhost:[0-9]*/$' "$tmp/local"
ok "and answers there" python3 -c 'import sys, urllib.request
assert b"<title>" in urllib.request.urlopen(sys.argv[1]).read()' "$(cat "$tmp/local")"
ok "it ends when told, too" down local
up second --listen 127.0.0.2
ok "all of 127/8 is this machine: no token" grep -q '^http://127.0.0.2:[0-9]*/$' "$tmp/second"
down second
up open --listen 0.0.0.0
ok "beyond loopback it wants a token" python3 tests/serve_api.py token "$(cat "$tmp/open")" "$f"
ok "the open one ends when told" down open

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
for t in form:"form, YAML, link and answer are one" mistake:"a mistake is shown at its place" search:"the best plan is searched, and put into the scenario" two:"two scenarios with the verdict of compare" \
	drawn:"sliders, network, timeline; 1280 and 390 px" readable:"every key has a field with a label" fast:"keystroke to answer under 100 ms"; do
	if [ -z "$browser" ]; then
		skip "${t#*:}" "no chromium"
	elif sanitized; then
		skip "${t#*:}" "built with sanitizers: the API's tests ask the same"
	else
		ok "${t#*:}" timeout 120 python3 tests/serve_page.py "${t%%:*}" "$(cat "$tmp/here")" "$browser" "$f"
		grep keystroke "$tmp/out" | sed 's/^/# /'
	fi
done

# axe-core is in no package of Debian: npm pack axe-core, unpack it, and AXE=.../axe.min.js make check
axe() {
	$f compare examples/01-first-answer/h100.yaml examples/01-first-answer/mi300x.yaml --report "$tmp/axe" >/dev/null 2>&1 &&
		timeout 300 python3 tests/axe.py "$browser" "$AXE" "file://$tmp/axe/index.html" "$(cat "$tmp/here")"
}
if [ -z "$browser" ] || [ ! -r "${AXE:-/none}" ]; then
	skip "axe-core finds nothing serious in page and report" "no chromium, or no AXE=axe.min.js"
elif sanitized; then
	skip "axe-core finds nothing serious in page and report" "built with sanitizers: it is the same page"
else
	ok "axe-core finds nothing serious in page and report" axe
fi

ok "it ends when told, with nothing on stderr" down here
finish
