# tests/tap.sh - TAP for shell tests: ok "name" command..., skip, plan at the end
n=0
bad=0
ok() {
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/out" 2>"$tmp/err"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$tmp/err" | head -20
		bad=1
	fi
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
finish() {
	echo "1..$n"
	exit $bad
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$(dirname "$0")/.."
f=${FORETOKEN:-build/foretoken}
case $f in /*) ;; *) f=$PWD/$f ;; esac
