# scripts/deb.sh VERSION - build/foretoken_VERSION_ARCH.deb and build/foretoken-probes_VERSION_all.deb
#
# The first is what `make install` puts under /usr; the second the probes' sources, to be built on a
# machine with a GPU. The same commit gives the same bytes.
set -eu
version=$1
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1793491200)}
export SOURCE_DATE_EPOCH
arch=$(dpkg --print-architecture)
rm -rf build/deb
root=build/deb/foretoken probes=build/deb/foretoken-probes
make -s install DESTDIR="$PWD/$root" PREFIX=/usr PYTHON_DIR=/usr/lib/python3/dist-packages
# the plug-in for MPI wants OpenMPI; the program does without
strip --strip-unneeded "$root/usr/bin/foretoken" "$root"/usr/lib/libforetoken.so.*.* $(find "$root/usr/lib/foretoken" -name '*.so' 2>/dev/null)
strip --strip-debug "$root/usr/lib/libforetoken.a"
find "$root/usr/share/man" -type f -exec gzip -9n {} +

# what its libraries' packages are called here
package() { # LIBRARY
	file=$(ldconfig -p | sed -n "s/.*$1 (.*=> //p" | head -1)
	found=$(dpkg -S "$(realpath "$file")" 2>/dev/null || dpkg -S "$file" 2>/dev/null || dpkg -S "*/$1" 2>/dev/null | head -1)
	echo "${found%%:*}"
}
depends=
for lib in $(readelf -d "$root/usr/bin/foretoken" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
	depends="$depends $(package "$lib")"
done
# loaded by `foretoken serve` alone
http=$(package "$(sed -n 's/^#define MHD_LIBRARY "\(.*\)"/\1/p' serve/mhd.h)")
depends=$(printf '%s\n' $depends | sort -u | paste -sd, - | sed 's/,/, /g')

control() { # FOLDER PACKAGE ARCH DEPENDS DESCRIPTION
	mkdir -p "$1/DEBIAN" "$1/usr/share/doc/$2"
	{
		echo "Package: $2"
		echo "Version: $version"
		echo "Architecture: $3"
		echo "Maintainer: foretoken <founders@foretoken.example>"
		echo "Section: science"
		echo "Priority: optional"
		[ -z "$4" ] || echo "Depends: $4"
		[ "$2" != foretoken ] || echo "Recommends: ${http:+$http, }gnuplot-nox | gnuplot, python3"
		[ "$2" != foretoken ] || echo "Suggests: openmpi-bin"
		[ "$2" != foretoken-probes ] || echo "Recommends: foretoken, g++"
		echo "Installed-Size: $(du -sk "$1/usr" | cut -f1)"
		printf 'Description: %s\n' "$5"
	} >"$1/DEBIAN/control"
	{
		echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
		echo "Upstream-Name: foretoken"
		echo
		echo "Files: *"
		echo "Copyright: 2026 the founders of foretoken"
		echo "License: GPL-3+"
		echo " On Debian systems, the text of the GNU General Public License is in"
		echo " /usr/share/common-licenses/GPL-3."
	} >"$1/usr/share/doc/$2/copyright"
	printf 'foretoken (%s) unstable; urgency=low\n\n  * See CHANGELOG.md.\n\n -- foretoken <founders@foretoken.example>  %s\n' \
		"$version" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$1/usr/share/doc/$2/changelog.gz"
	(cd "$1" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k2 >DEBIAN/md5sums)
	find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	find "$1" -type d -exec chmod 755 {} +
	find "$1" -type f ! -path '*/bin/*' -exec chmod 644 {} +
	dpkg-deb --root-owner-group --build "$1" "build/$2_${version}_$3.deb" >/dev/null
	echo "build/$2_${version}_$3.deb"
}
cp CHANGELOG.md "$root/usr/share/doc/foretoken/"
major=${version%%.*}
mkdir -p "$root/DEBIAN"
echo "libforetoken $major foretoken (>= $version)" >"$root/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
control "$root" foretoken "$arch" "$depends" "simulator of training clusters and their cost
 foretoken predicts how fast a transformer trains on a cluster of AMD or NVIDIA
 GPUs that need not exist yet, says what limits it, and computes what a million
 tokens cost, each with a range."
mkdir -p "$probes/usr/share/foretoken/probes"
git ls-files calibrate/probes 2>/dev/null | while read -r f; do
	install -D -m 644 "$f" "$probes/usr/share/foretoken/probes/${f#calibrate/probes/}"
done
control "$probes" foretoken-probes all "" "microbenchmarks that measure GPUs for foretoken
 Sources of the probes, to be built with CUDA or HIP on a machine with a GPU; what
 they write is read by foretoken calibrate."
