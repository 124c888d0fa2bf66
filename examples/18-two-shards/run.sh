# How is a study spread over machines? Two halves of a grid, a file each, merged.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for k in 1 2; do # on two machines at once; in a Slurm array: --shard $SLURM_ARRAY_TASK_ID/2
	$f sweep scenario.yaml --vary cluster.gpus=128,256,512 --vary training.parallel.tp=1,2,4,8 \
		--vary training.micro_batch_size=1,2 --shard $k/2 --db "$tmp/$k.db" || exit
done
$f merge "$tmp/all.db" "$tmp/1.db" "$tmp/2.db" || exit
sqlite3 -header -column "$tmp/all.db" "
select \"cluster.gpus\" as gpus, \"training.parallel.tp\" as tp, \"training.micro_batch_size\" as micro,
       printf('%.0f', tokens_per_s_per_gpu) as tokens_per_s_per_gpu,
       printf('%.4f', usd_per_million_tokens) as usd_per_million_tokens
from runs where fits order by runs.usd_per_million_tokens limit 6"
