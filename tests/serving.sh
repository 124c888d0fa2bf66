# tests/serving.sh - servers for shell tests; none: the test is skipped. Sourced behind tests/tap.sh
if timeout 10 $f serve --listen nowhere 2>&1 | grep -q 'built without'; then
	skip "serve" "no libmicrohttpd when it was built"
	finish
fi
up() { # NAME ARGUMENT...: a server; its address in $tmp/NAME, its process in $tmp/NAME.pid
	who=$1
	shift
	: >"$tmp/$who" # what one of that name said before
	"$f" serve --port 0 "$@" >"$tmp/$who" 2>"$tmp/$who.err" &
	echo $! >"$tmp/$who.pid"
	for _ in $(seq 100); do
		grep -q http "$tmp/$who" && return 0
		sleep 0.1
	done
	cat "$tmp/$who.err" >&2
	return 1
}
down() { # NAME: ends with 0, and says nothing on stderr
	kill "$(cat "$tmp/$1.pid")" && wait "$(cat "$tmp/$1.pid")" && [ ! -s "$tmp/$1.err" ]
}
api() { python3 tests/serve_api.py "$1" "$(cat "$tmp/here")" "$f"; }
