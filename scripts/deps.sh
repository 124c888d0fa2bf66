# scripts/deps.sh - install what is missing of Debian's packages, and say so
set -eu
need="gcc make pkg-config libyaml-dev libjansson-dev libgsl-dev libsqlite3-dev
libsmartcols-dev libmicrohttpd-dev libcmocka-dev zlib1g-dev libzstd-dev libprotobuf-c-dev protobuf-c-compiler libyajl-dev libopenblas-dev gnuplot-nox perl sqlite3 python3 jq libopenmpi-dev openmpi-bin"
[ -z "${CI:-}" ] || need="$need clang libclang-rt-14-dev clang-19 lld-19 chromium valgrind pmccabe clang-format-14 locales g++ libsimgrid-dev lintian groff-base"
missing=
for p in $need; do
	dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "foretoken needs these Debian packages, which are missing:$missing"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
if ! command -v apt-get >/dev/null; then
	echo "this is no Debian; install them by your system's means" >&2
	exit 1
fi
echo "installing them with: $sudo apt-get install --no-install-recommends$missing"
$sudo apt-get update -qq
for p in $missing; do
	case $p in
	# what only some tests want may be missing; they say that they are skipped
	# and without MPI there are no ranks, but all else
	clang-19|lld-19|libopenmpi-dev|openmpi-bin|chromium|valgrind|pmccabe|clang-format-14|locales|libclang-rt-14-dev|g++|libsimgrid-dev|lintian|groff-base)
		DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$p" >/dev/null ||
			echo "no $p here: what wants it is left out, and its tests are skipped" ;;
	*)
		DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$p" >/dev/null ;;
	esac
done
