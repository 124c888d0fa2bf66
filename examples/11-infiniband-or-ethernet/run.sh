# 16k H200 on InfiniBand or 16k MI300X on Ethernet: how much of the saving is the network's?
# It depends on whose optics: NVIDIA's own modules cost two to three times generic ones.
cd "$(dirname "$0")"
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
for book in hyperscaler-2025-08 neocloud-2024-10; do
	for a in h200.yaml h200-nvidia-optics.yaml; do
		$f compare $a mi300x.yaml --json --set cost.prices=$book | jq -r --arg book $book '
			(.scenarios | map(.cost)) as [$a, $b]
			| ($a.capex_usd - $b.capex_usd) as $saved
			| ($a.capex_network_usd - $b.capex_network_usd) as $network
			| "\($book), \(.scenarios[0].name): \($saved / 1e6 | round) million USD saved, \(100 * $network / $saved | round) % of it by the network"'
	done
done
echo
$f compare h200-nvidia-optics.yaml mi300x.yaml |
	sed -n '1p; /^capital/p; /of which network/p; /costs another amount/,/^all/p; /is as cheap as/,$p'
