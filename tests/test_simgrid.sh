#!/bin/sh
# tests/test_simgrid.sh - a second opinion on max-min shares: SimGrid's, where it is there
. "$(dirname "$0")/tap.sh"
if ! command -v g++ >/dev/null || ! pkg-config --exists simgrid; then
	skip "SimGrid finds the same shares" "no g++ or no libsimgrid-dev"
	finish
fi
build() {
	cc -O1 -D_GNU_SOURCE -I. -Iinclude -c sim/share.c -o "$tmp/share.o" &&
		cc -O1 -D_GNU_SOURCE -I. -Iinclude -c base/arena.c -o "$tmp/arena.o" &&
		g++ -std=c++17 -O1 -I. -Iinclude $(pkg-config --cflags simgrid) tests/simgrid/opinion.cpp \
			"$tmp/share.o" "$tmp/arena.o" $(pkg-config --libs simgrid) -o "$tmp/opinion"
}
ok "the comparison is built" build
for seed in 1 2 3 4 5 6 7 8; do
	ok "SimGrid finds the same shares, seed $seed" "$tmp/opinion" $seed
done
finish
