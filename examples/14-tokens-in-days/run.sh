# 15 T tokens of Llama 3 70B in 60 days: how many GPUs, how many dollars, at P50 and at P90?
cd "$(dirname "$0")"
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
$f simulate h100.yaml --tokens 15T --days 60 | sed -n '/^fleet/,/^$/p'
echo "For 5 million dollars within 60 days:"
$f simulate h100.yaml --budget 5M --days 60 | sed -n '/^fleet/,/^$/p'
echo "Within 5 MW for 60 days:"
$f simulate h100.yaml --megawatts 5 --days 60 | sed -n '/^fleet/,/^$/p'
