# tests/tap.sh - TAP for shell tests: ok "name" command..., skip, plan at the end. With
# TAP_ENDS_AT_FIRST in the environment the first that fails is the last (scripts/mutants.py).
tap_n=0
tap_bad=0
limit= # of the commands of told and fails, as "timeout 20"
sanitized() { # is this the program under ASan? It is slow: such runs take fewer cases
	case $f in */san/*) return 0 ;; esac
	return 1
}
asked_of=0
asked() { # N: is this case asked? Under sanitizers one in N is, else all
	sanitized || return 0
	asked_of=$((asked_of + 1))
	[ $((asked_of % $1)) = 1 ]
}
ok() {
	name=$1
	shift
	tap_n=$((tap_n + 1))
	if "$@" >"$tmp/out" 2>"$tmp/err"; then
		echo "ok $tap_n - $name"
	else
		echo "not ok $tap_n - $name"
		# on stderr, since prove shows only that of a failing test
		echo "# $0: $name; its stderr ends:" >&2
		tail -20 "$tmp/err" | sed 's/^/#   /' >&2
		tap_bad=1
		[ -z "$TAP_ENDS_AT_FIRST" ] || finish
	fi
}
skip() { # told in the file $FORETOKEN_SKIPPED, too: .ci/run counts them
	tap_n=$((tap_n + 1))
	[ -z "$FORETOKEN_SKIPPED" ] || echo "$0: $1: $2" >>"$FORETOKEN_SKIPPED"
	echo "ok $tap_n - $1 # SKIP $2"
}
told() { # STATUS PATTERN command...: exits so, and says so on stderr
	want=$1 says=$2
	shift 2
	$limit "$@" >"$tmp/o" 2>"$tmp/e"
	got=$?
	cat "$tmp/e" >&2
	[ $got = "$want" ] || { echo "exit $got, wanted $want" >&2; return 1; }
	grep -q -- "$says" "$tmp/e"
}
fails() { # the same, and prints no answer
	told "$@" || return 1
	[ ! -s "$tmp/o" ] || { echo "printed an answer" >&2; return 1; }
}
refused() { # PATTERN command...
	fails 1 "$@"
}
wrong() { # PATTERN command...: wrong usage
	fails 64 "$@"
}
finish() {
	echo "1..$tap_n"
	exit $tap_bad
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$(dirname "$0")/.."
f=${FORETOKEN:-build/foretoken}
case $f in /*) ;; *) f=$PWD/$f ;; esac
# a program of its own, for `sh -c`: the command behind it exits 1, neither 0 nor by a signal
one=$tmp/fails-with-1
printf '#!/bin/sh\n"$@"\n[ $? -eq 1 ]\n' >"$one"
chmod +x "$one"
# `jq -e` of nothing: 1.6 calls that true, so that a program that fails would pass
if jq=$(command -v jq); then
	mkdir "$tmp/strict"
	cat >"$tmp/strict/jq" <<-END
	#!/bin/sh
	for a; do
		case \$a in
		--*) ;;
		-*e*)
			out=\$($jq "\$@") && [ -n "\$out" ] && printf '%s\n' "\$out"
			exit
			;;
		esac
	done
	exec $jq "\$@"
	END
	chmod +x "$tmp/strict/jq"
	PATH=$tmp/strict:$PATH
fi
