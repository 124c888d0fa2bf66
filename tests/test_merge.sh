#!/bin/sh
# tests/test_merge.sh - files of sweeps with rows and columns at random put into one, against a dictionary of rows
. "$(dirname "$0")/tap.sh"
$f sweep examples/01-first-answer/h100.yaml --vary training.parallel.tp=2 --db "$tmp/made.db" >"$tmp/o" 2>&1
cat >"$tmp/merge.py" <<'P'
import os, random, re, shutil, sqlite3, subprocess, sys
program, folder, seed = sys.argv[1:4]
draw = random.Random(int(seed))


def rows_of(path):
    """{key: {column: value}}, what is NULL left out; the columns."""
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    rows = {r["key"]: {k: r[k] for k in r.keys() if r[k] is not None} for r in db.execute("SELECT * FROM runs")}
    columns = {r[1] for r in db.execute("PRAGMA table_info(runs)")}
    db.close()
    return rows, columns


def part(path):
    """A sweep with rows under some of twenty keys; in each some columns say nothing."""
    shutil.copy(folder + "/made.db", path)
    db = sqlite3.connect(path)
    (whole,) = db.execute("SELECT * FROM runs").fetchall()
    kinds = {"REAL": [None, draw.random()], "INTEGER": [None, 0, 1], "TEXT": [None, "words"], "ANY": [None, 7, 0.5, "a word"]}
    values = {r[1]: kinds[r[2]] for r in db.execute("PRAGMA table_info(runs)") if not r[3]}
    names = [r[1] for r in db.execute("PRAGMA table_info(runs)")]
    for more in draw.sample(["training.parallel.pp", "cluster.gpus", 'a "quoted" key'], draw.randrange(3)):
        db.execute('ALTER TABLE runs ADD COLUMN "%s" ANY' % more.replace('"', '""'))
        names.append(more)
        values[more] = kinds["ANY"]
        whole += (1,)
    db.execute("DELETE FROM runs")
    for key in draw.sample(range(20), draw.randrange(1, 15)):
        row = ["key %d" % key if n == "key" else draw.choice(values.get(n, [v])) for n, v in zip(names, whole)]
        db.execute("INSERT INTO runs (%s) VALUES (%s)" % (", ".join('"%s"' % n.replace('"', '""') for n in names),
                                                         ", ".join("?" * len(row))), row)
    db.commit()
    db.close()
    return path


into = folder + "/into.db"
if os.path.exists(into):
    os.remove(into)
want, columns = (rows_of(part(into)) if draw.random() < 0.5 else ({}, set()))
parts = [part("%s/part%d.db" % (folder, k)) for k in range(draw.randrange(1, 5))]
taken = there = 0
for path in parts:
    rows, more = rows_of(path)
    columns |= more
    for key, row in rows.items():
        taken, there = taken + (key not in want), there + (key in want)
        have = want.setdefault(key, {})
        want[key] = {**row, **have}  # what was there stays
before = [open(p, "rb").read() for p in parts]
said = subprocess.run([program, "merge", into] + parts, capture_output=True, text=True, check=True).stdout
assert [open(p, "rb").read() for p in parts] == before
got, have = rows_of(into)
assert have == columns, have ^ columns
assert got == want, [(k, got.get(k), want.get(k)) for k in got.keys() | want.keys() if got.get(k) != want.get(k)][:2]
assert re.match(r"%d files?: %d runs taken, %d were there" % (len(parts), taken, there), said), (said, taken, there)
P
for seed in 1 2 3 4 5 6 7 8; do
	ok "rows and columns at random, $seed" python3 "$tmp/merge.py" "$f" "$tmp" $seed
done
vain() { # a file that cannot be read: nothing is made
	! "$f" merge "$tmp/vain.db" "$tmp/none.db" 2>/dev/null && [ ! -e "$tmp/vain.db" ]
}
ok "nothing to merge makes no file" vain
finish
