#!/bin/sh
# tests/test_serve_refused.sh - `foretoken serve` where the system gives no more files, processes, memory, time or random bytes: it says
# so, goes on, and loses nothing
. "$(dirname "$0")/tap.sh"
. "$PWD/tests/serving.sh"
if sanitized; then
	echo "1..0 # SKIP sanitizers want to be loaded first"
	exit 0
fi
if ! ${CC:-cc} -shared -fPIC -O1 -o "$tmp/refuse.so" tests/faults/refuse.c -ldl 2>"$tmp/e"; then
	echo "1..0 # SKIP the shim does not build: $(head -1 "$tmp/e")"
	exit 0
fi
: >"$tmp/refused"
printf '#!/bin/sh\nLD_PRELOAD=%s REFUSED=%s exec %s "$@"\n' "$tmp/refuse.so" "$tmp/refused" "$f" >"$tmp/served"
chmod +x "$tmp/served"
case $f in */cov/*) counts=1 ;; *) counts= ;; esac
f=$tmp/served
while_refused() { # CALL... -- command...
	: >"$tmp/refused"
	while [ "$1" != -- ]; do
		printf '%s ' "$1" >>"$tmp/refused"
		shift
	done
	shift
	"$@"
}
check() { python3 tests/serve_refused.py "$1" "$(cat "$tmp/$2")" "$(cat "$tmp/$2.pid")" "$tmp/refused"; }

limit="timeout 20"
ok "without a file for signals it does not begin" while_refused signalfd -- refused 'no more files: Too many open files' "$f" serve --port 0
ok "nor without random bytes for a token" while_refused getrandom -- refused 'gives no random bytes for a token' "$f" serve --port 0 --listen 0.0.0.0
ok "of loopback it wants none" while_refused getrandom gethostname -- up nameless
trap 'kill "$(cat "$tmp/nameless.pid")" "$(cat "$tmp/here.pid")" 2>/dev/null; rm -rf "$tmp"' EXIT
ok "a machine that has no name is known by its addresses" check nobody_knows_the_name nameless
ok "it ends when told" down nameless
: >"$tmp/refused"
ok "it begins" up here
ok "a machine's own name is known" check the_name_is_known here
for t in files_are_out:"no more files" processes_are_out:"no more processes" a_worker_is_broken:"a worker that cannot begin, or not write" \
	memory_is_out:"no more memory for an answer" time_is_over:"no more time" answers_are_lost:"answers that cannot be read" a_search_ends_untold:"a search that ends where that cannot be told"; do
	if [ "$counts" ] && [ "${t%%:*}" = memory_is_out ]; then
		skip "${t#*:}" "libgcov wants memory of its own as a worker ends"
	else
		ok "${t#*:}" check "${t%%:*}" here
	fi
done
: >"$tmp/refused"
quietly() { # but for workers without memory, and for libgcov, whose own files are refused, too
	kill "$(cat "$tmp/here.pid")" && wait "$(cat "$tmp/here.pid")" && ! grep -vE 'out of memory|profiling' "$tmp/here.err" >&2
}
ok "it ends when told, with nothing more on stderr" quietly
finish
