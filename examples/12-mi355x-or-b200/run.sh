# MI355X or B200 for Llama 3.1 405B: the verdict under every book that knows both
cd "$(dirname "$0")"
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
for book in hyperscaler-2025-08 hyperscaler-2026-07 neocloud-2026-07 neocloud-2026-09 enterprise-2026 rent-2026; do
	$f compare b200.yaml mi355x.yaml --set cost.prices=$book | sed -n "1s/^/$book: /p"
done
echo
$f compare b200.yaml mi355x.yaml --set cost.prices=neocloud-2026-07 |
	sed -n '/^tokens.s per GPU/p; /^fits/p; /costs another amount/,$p'
