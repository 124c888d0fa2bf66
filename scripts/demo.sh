# scripts/demo.sh - the question foretoken was made for, answered
set -eu
cd "$(dirname "$0")/.."
a=examples/01-first-answer/h100.yaml b=examples/01-first-answer/mi300x.yaml
echo
echo "Llama 3 70B: 1,024 H100 on NDR InfiniBand against 1,024 MI300X on 400G RoCE"
echo
build/foretoken compare $a $b
mkdir -p out
build/foretoken compare $a $b --json >out/first-answer.json
build/foretoken compare $a $b --report out/first-answer >/dev/null
echo
echo "The same as JSON: out/first-answer.json; with plots: out/first-answer/index.html"
