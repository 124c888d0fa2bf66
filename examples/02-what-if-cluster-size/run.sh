# A fixed batch on 128 to 4,096 GPUs: a sweep into SQLite, then one query.
cd "$(dirname "$0")" || exit
db=$(mktemp -d)/sweep.db
trap 'rm -rf "${db%/*}"' EXIT
${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)} sweep scenario.yaml \
	--vary cluster.gpus=128,256,512,1024,2048,4096 --db "$db" || exit
sqlite3 -header -column "$db" "
select cast(substr(settings, instr(settings, '=') + 1) as integer) as gpus,
       printf('%.2f', step_s) as step_s,
       printf('%.0f', tokens_per_s) as tokens_per_s,
       printf('%.1f', 100 * mfu) as mfu_percent,
       printf('%.3f', usd_per_million_tokens) as usd_per_million_tokens
from runs order by gpus"
