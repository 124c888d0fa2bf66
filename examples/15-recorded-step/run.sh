# A recorded step: where it went, and what if it ran elsewhere, in dollars.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
traces=../../measurements/traces
zero=$traces/h200-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz
one=$traces/h200-8b4L-fsdp2-s4096-b1-eager.rank1.kineto.json.gz
echo "where the step of two ranks went, and who waited for whom:"
$f trace show "$zero" "$one" | sed -n '/^where/,/^step/p; /^rank /,/^Others/p' || exit
echo
echo "the same step on MI300X, 64 of them, over RoCE (each rank's 4096 tokens):"
$f trace replay "$zero" "$one" --gpu mi300x --fabric roce-400-rail --scale dp=64 --tokens-per-step 8192 || exit
echo
echo "or only with attention that is twice as fast:"
$f trace replay "$zero" "$one" --speedup attention=2 | head -1
echo
echo "and what a scenario predicts of it:"
$f trace compare "$zero" scenario.yaml
