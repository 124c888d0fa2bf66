# What is bought for 127 nodes, then switches and cables by size.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
$f bom superpod.yaml || exit
echo
echo "the same for other sizes, without ports for the fabric manager:"
for gpus in 64 512 1024 2048 4096 16384 65536; do
	$f bom superpod.yaml --set cluster.gpus=$gpus --set cluster.ufm_ports=0 | head -1
done
