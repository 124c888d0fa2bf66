# One job on three networks: first a collective alone, then the step.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
for net in ib roce spectrum-x; do
	echo "all-gather of 256 and of 1,024 ranks, $net"
	$f collective $net.yaml --op all_gather --gpus 256,1024 --bytes 16MiB,256MiB,1GiB || exit
	echo
done
$f compare ib.yaml roce.yaml spectrum-x.yaml
echo
echo "the same step, its nodes scattered over the leaves"
for net in ib roce spectrum-x; do
	printf '%-12s' $net
	$f simulate $net.yaml --set cluster.imperfections.placement=scattered | grep '^step' | head -1 || exit
done
