# The same model on the same GPUs under four builds of the software.
cd "$(dirname "$0")" || exit
db=$(mktemp -d)/sweep.db
trap 'rm -rf "${db%/*}"' EXIT
${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)} sweep mi300x.yaml --db "$db" --vary \
	stack=mi300x-public-stable,mi300x-nightly,mi300x-vendor,mi300x-dev || exit
sqlite3 -header -column "$db" "
select substr(settings, instr(settings, '=') + 1) as stack,
       printf('%.2f', step_s) as step_s,
       printf('%.0f', tokens_per_s_per_gpu) as tokens_per_s_per_gpu,
       printf('%.1f', 100 * mfu) as mfu_percent,
       printf('%.4f', usd_per_million_tokens) as usd_per_million_tokens
from runs order by tokens_per_s_per_gpu"
# And the same all-reduce under two communication libraries.
for ccl in rccl-6 rccl-7; do
	echo "ccl: $ccl"
	${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)} collective mi300x.yaml --set ccl=$ccl --set cluster.gpus=32 \
		--bytes 256KiB,4MiB,64MiB,256MiB || exit
done
