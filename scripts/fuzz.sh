# scripts/fuzz.sh MUTATE FUZZER... - FUZZ_S seconds of libFuzzer on each reader, two at a time
#
# They begin with the files of the tree and of tests/fuzz/corpus, which `MUTATE -w` lays out,
# and with what earlier runs found (build/fuzz/corpus-NAME). An input that takes 5 s or
# 512 MB is a failure like a crash; it is kept in build/fuzz/.
set -eu
cd "$(dirname "$0")/.."
mutate=$1
shift
"$mutate" -w build/fuzz/seeds
one() { # FUZZER
	name=$(basename "$1")
	mkdir -p "build/fuzz/corpus-$name"
	"$1" -max_total_time="${FUZZ_S:-12}" -timeout=5 -rss_limit_mb=512 -max_len=65536 -print_final_stats=1 \
		-verbosity=1 -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus-$name" "build/fuzz/seeds/${name#fuzz_}" \
		>"build/fuzz/$name.log" 2>&1 || { tail -40 "build/fuzz/$name.log"; echo "$name FAILED"; return 1; }
	sed -n "s/^stat::number_of_executed_units: */$name: /p" "build/fuzz/$name.log"
}
bad=0
while [ $# -gt 0 ]; do
	one "$1" & first=$!
	if [ $# -gt 1 ]; then
		one "$2" & second=$!
		wait $second || bad=1
		shift
	fi
	wait $first || bad=1
	shift
done
exit $bad
