# scripts/embed.sh - embed.sh HEADER PREFIX FILE...: files as one C source of constants that HEADER
# declares, report.html as PREFIX_report_html
set -eu
header=$1 prefix=$2
shift 2
echo "/* made by scripts/embed.sh */"
echo "#include \"$header\""
for f; do
	echo "const char ${prefix}_$(basename "$f" | tr .- __)[] = {"
	od -An -v -tx1 "$f" | sed 's/\([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo "0 };"
done
