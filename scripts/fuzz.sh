# scripts/fuzz.sh FUZZER... - 30 s of each, from the seeds in the tree
set -eu
cd "$(dirname "$0")/.."
for p; do
	name=$(basename "$p")
	mkdir -p "build/fuzz/corpus-$name"
	echo "fuzzing $name"
	"$p" -max_total_time="${FUZZ_S:-30}" -print_final_stats=0 -verbosity=0 -artifact_prefix="build/fuzz/" \
		"build/fuzz/corpus-$name" models examples/01-first-answer measurements/steps tests/data >"build/fuzz/$name.log" 2>&1 ||
		{ tail -40 "build/fuzz/$name.log"; exit 1; }
done
