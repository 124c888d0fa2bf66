#!/bin/sh
# tests/test_prices.sh - the history of prices: books of the tree, an SQLite file, a plot
. "$(dirname "$0")/tap.sh"
db=$tmp/p.db
ok "an item's price in every book that has it" sh -c "$f prices show hgx-h100-server >$tmp/o && grep -q '^2024-10-03  *256400  *270000  *310000  *quoted  *neocloud-2024-10 ' $tmp/o && grep -q '^2025-08-20  *180000  *190000  *210000  *quoted  *hyperscaler-2025-08 ' $tmp/o && ! grep -q mixnet $tmp/o"
ok "a price's source is whole, in a bill, too" sh -c "grep -q 'rates of July 2026$' $tmp/o && $f bom examples/01-first-answer/h100.yaml --set cost.prices=hyperscaler-2026-07 | grep -q 'rates of July 2026$'"
ok "a list's is cut where that is marked" sh -c "$f list stacks >$tmp/l && awk '{ sub(/^.*  /, \"\") } length > 70 { exit 1 } /\\.\\.\\.$/ { n++ } END { exit !n }' $tmp/l"
ok "by date" sh -c "$f prices show switch-ndr-64 | awk 'NR > 3 { print \$1 }' >$tmp/d && sort -c $tmp/d"
ok "a rent is by the hour" sh -c "$f prices show b200 | grep -q '^b200, a GPU and hour' && $f prices show b200 --json | jq -e '.per_hour and .prices[0].usd == 6'"
ok "an item that nobody has" refused "no book has a price of 'hgx-h10-server'; did you mean 'hgx-h100-server'" $f prices show hgx-h10-server
ok "books go into a file" sh -c "$f prices import neocloud-2024-10 hyperscaler-2025-08 --db $db | grep -q '^neocloud-2024-10: 7 prices'"
ok "and come out of it as from the tree" sh -c "$f prices import neocloud-2026-09 mixnet-2025 enterprise-2026 hyperscaler-2026-07 neocloud-2026-07 --db $db >/dev/null && $f prices show switch-ndr-64 --json >$tmp/a && $f prices show switch-ndr-64 --db $db --json | cmp - $tmp/a"
ok "twice is once" sh -c "$f prices import neocloud-2024-10 --db $db >/dev/null && $f prices show switch-ndr-64 --db $db --json | cmp - $tmp/a"
sed 's/^date: 2024-10/date: 2024-11/; s/value: 50000 USD/value: 49000 USD/' cost/prices/neocloud-2024-10.yaml >"$tmp/next.yaml"
ok "the same book of another date is kept beside it" sh -c "$f prices import $tmp/next.yaml --db $db >/dev/null && $f prices show switch-ndr-64 --db $db | grep -c neocloud-2024-10 | grep -qx 2"
kinds() { # numbers of kinds in the file; what is none of them was guessed
	for kind in -1:guessed 0:quoted 1:derived 2:guessed 3:given 4:guessed 99:guessed; do
		cp "$db" "$tmp/k.db"
		sqlite3 "$tmp/k.db" "UPDATE prices SET kind = ${kind%:*}" &&
			$f prices show switch-ndr-64 --db "$tmp/k.db" --json >"$tmp/k.json" &&
			jq -e "[.prices[].kind] | length > 3 and all(. == \"${kind#*:}\")" "$tmp/k.json" || return 1
	done
}
ok "kinds of prices, and one that is none" kinds
ok "a plot over time" sh -c "$f prices show switch-ndr-64 --plot $tmp/s.svg >/dev/null && grep -q '</svg>' $tmp/s.svg && grep -q '^2024.* 50000 ' $tmp/s.dat && test -s $tmp/s.gp"
ok "a plot that is no SVG" refused "should be the name of an SVG file" $f prices show switch-ndr-64 --plot "$tmp/s.png"
ok "a plot of a name that scripts would have to quote" refused "has a name with other than" $f prices show switch-ndr-64 --plot "$tmp/s'; x.svg"
ok "a name that is no item, but SQL" refused "no book has a price of" $f prices show "x'; DROP TABLE prices; --" --db "$db"
ok "another program's file" sh -c "$f sweep examples/01-first-answer/h100.yaml --vary cluster.gpus=1024 --db $tmp/w.db >/dev/null 2>&1; $f prices import mixnet-2025 --db $tmp/w.db 2>$tmp/e; grep -q 'is no history of prices' $tmp/e"
head -c 3000 /dev/urandom >"$tmp/r.db"
ok "a file that is no database" refused "SQLite: file is not a database" $f prices show fiber --db "$tmp/r.db"
ok "a file that is not there" refused "SQLite: unable to open" $f prices show fiber --db "$tmp/none.db"
ok "a book that is not there" refused "unknown name 'neocloud-2027'" $f prices import neocloud-2027 --db "$db"
ok "neither import nor show" wrong "'list' is neither import nor show" $f prices list
ok "import without a file" wrong "--db FILE is missing" $f prices import mixnet-2025
ok "show without an item" wrong "ITEM is missing" $f prices show
finish
