# The best plan of a model on a cluster; one thread, so that the count of simulations is the same
cd "$(dirname "$0")"
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
echo "Llama 3 70B on 512 H200 and on 512 MI355X, each at its best, by dollars:"
$f plan h200.yaml mi355x.yaml --rank-by usd --top 2 --threads 1
echo
echo "DeepSeek-V3 on 2,048 H100:"
$f plan deepseek.yaml --top 3 --threads 1
echo
echo "The same as Megatron's arguments:"
$f plan deepseek.yaml --top 1 --threads 1 --emit megatron
echo
echo "Adapters for an 8B on one node:"
$f plan lora.yaml --top 3 --threads 1
echo
echo "H100 or MI300X of the first example, with the same overlap, each at its best:"
$f compare --each-at-best ../01-first-answer/h100.yaml ../01-first-answer/mi300x.yaml \
	--set 'training.parallel={}' --set training.overlap.tp=false | sed -n '1,8p'
