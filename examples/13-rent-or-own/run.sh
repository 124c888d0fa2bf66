# Rent or own? At 70 % of the hours used, and where it turns.
cd "$(dirname "$0")"
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
$f compare own.yaml rent.yaml | sed -n '1p; /^USD per GPU-hour/,/P90/p; /costs another amount/,/^all/p; /is as cheap as/,$p'
echo
$f simulate own.yaml --finance | sed -n '/^an hour of a GPU/,$p'
echo
echo "Hours used, and who is cheaper:"
for u in 0.3 0.5 0.7 0.9; do
	$f compare own.yaml rent.yaml --set cost.utilization_frac=$u | sed -n "1s/^/$u: /p" | cut -d. -f1-3
done
