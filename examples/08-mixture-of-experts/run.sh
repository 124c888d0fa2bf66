# Where the experts lie: all on each rank, or one on each of eight.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
$f simulate mixtral.yaml | sed -n 1,35p || exit
echo
db=$(mktemp -d)/sweep.db
trap 'rm -rf "${db%/*}"' EXIT
$f sweep mixtral.yaml --vary training.parallel.ep=1,2,4,8 --db "$db" || exit
sqlite3 -header -column "$db" '
select "training.parallel.ep" as ep,
       printf("%.3f", step_s) as step_s,
       printf("%.0f", tokens_per_s_per_gpu) as tokens_per_s_per_gpu,
       printf("%.1f", memory_bytes_per_gpu_total / 1e9) as memory_gb,
       case fits when 1 then "yes" else "no" end as fits
from runs order by ep'
