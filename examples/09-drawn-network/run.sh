# A network drawn by hand: what it is made of, what placement and neighbours do on it.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
$f bom packed.yaml | head -6 || exit
echo
for s in packed scattered; do
	echo "all-gather of 128 ranks, $s"
	$f collective $s.yaml --op all_gather --bytes 16MiB,1GiB || exit
	echo
done
for s in packed scattered; do
	$f simulate $s.yaml --beside $s.yaml | grep '^Beside' || exit
done
echo
echo "one GPU of 128 at 0.8 of its speed"
$f simulate packed.yaml --set 'cluster.imperfections.slow_gpus=[{gpu: 17, speed_frac: 0.8}]' | grep -E '^(step|exposed)'
