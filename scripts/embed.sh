# scripts/embed.sh - embed.sh HEADER NAME FILE...: files as one C source of constants; a/b-c.css is NAME_b_c_css
set -eu
header=$1 name=$2
shift 2
echo "/* made by scripts/embed.sh */"
echo "#include \"$header\""
for f; do
	leaf=$(basename "$f" | tr -c 'a-zA-Z0-9\n' _)
	echo "const char ${name}_$leaf[] = {"
	od -An -v -tx1 "$f" | sed 's/\([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo "0 };"
done
