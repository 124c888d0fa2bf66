# A step as text: shown, changed with sed, run again.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
$f trace show scenario.yaml >"$dir/step.graph" || exit
echo "the products of the step:"
grep '^work .* gemm .*forward' "$dir/step.graph"
echo
echo "as it is:"
$f trace replay scenario.yaml --graph "$dir/step.graph" | head -8
# What if the loss were fused, so that its two passes over the logits cost nothing?
sed '/^work .*cross_entropy/s/bytes=[0-9]*/bytes=1/' "$dir/step.graph" >"$dir/fused.graph"
echo
echo "with a loss that costs nothing:"
$f trace replay scenario.yaml --graph "$dir/fused.graph" | head -8
