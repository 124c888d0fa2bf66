# scripts/embed.sh - embed.sh NAME FILE...: files as one C source of constants, NAME_SUFFIX each
set -eu
name=$1
shift
echo "/* made by scripts/embed.sh from reports/page/ */"
echo '#include "reports/page.h"'
for f; do
	echo "const char ${name}_${f##*.}[] = {"
	od -An -v -tx1 "$f" | sed 's/\([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo "0 };"
done
