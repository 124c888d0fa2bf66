# MI300X or H100 at the end of 2024? The public stable software first, then the vendor's image of the day.
cd "$(dirname "$0")"
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
decide() {
	$f compare h100.yaml mi300x.yaml --set cost.prices=neocloud-2024-10 "$@" |
		sed -n '1,2p; /^USD per million/p; /^tokens.s per GPU/p; /costs another amount/,/^all/p; /is as cheap as/,$p'
}
echo "Public stable release:"
decide
echo
echo "The vendor's own image:"
sed 's/mi300x-public-stable/mi300x-vendor/' mi300x.yaml >vendor.tmp.yaml
trap 'rm -f vendor.tmp.yaml' EXIT
$f compare h100.yaml vendor.tmp.yaml | sed -n '1p; /^USD per million/p'
