#!/bin/sh
# tests/test_serve_clients.sh - `foretoken serve` and clients that are many, slow, gone or heavy; killed while it computes
. "$(dirname "$0")/tap.sh"
. "$PWD/tests/serving.sh"
ok "it says where it is" up here
trap 'kill "$(cat "$tmp/here.pid")" 2>/dev/null; rm -rf "$tmp"' EXIT
for t in busy:"more work than workers is told" vanishing:"clients may go" many:"hundreds of silent connections" half:"hundreds of half requests" \
	together:"connections that end at once" slow:"a client that drips is ended"; do
	ok "${t#*:}" api "${t%%:*}"
done

# killed while it computes: no worker stays
heavy='{"scenario": "{model: llama3-70b, cluster: {gpu: h200, gpus: 512}, stack: megatron-bridge-26, training: {sequence_length: 8192, global_batch_size: 1024}}"}'
busy() { [ -n "$(ps -o pid= --ppid "$1")" ]; }
gone() { # or ended, and nobody has asked how
	case $(ps -o stat= -p "$1") in "" | Z*) ;; *) return 1 ;; esac
}
within() { # SECONDS command...: it succeeds before that
	tries=$(($1 * 10))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}
killed() { # SIGNAL
	up victim || return 1
	pid=$(cat "$tmp/victim.pid")
	python3 - "$(cat "$tmp/victim")" "$heavy" <<'P' &
import http.client, sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1] + "api/plan", sys.argv[2].encode()).read()
except (OSError, http.client.HTTPException):
    pass
P
	asker=$!
	within 20 busy "$pid" || { echo "no worker" >&2; return 1; }
	worker=$(ps -o pid= --ppid "$pid" | head -1)
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null
	wait "$asker"
	within 20 gone "$worker" || { ps -fp "$worker" >&2; return 1; }
}
ok "SIGTERM while it computes leaves no worker" killed TERM
ok "SIGKILL while it computes leaves no worker" killed KILL
ok "it ends when told, with nothing on stderr" down here
finish
