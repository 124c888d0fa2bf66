#!/bin/sh
# tests/test_packages.sh - the package is built, unpacked, used; the Python module
. "$(dirname "$0")/tap.sh"
if sanitized; then echo "1..0 # SKIP packages are built without sanitizers"; exit 0; fi
a=$PWD/examples/01-first-answer/h100.yaml
if command -v dpkg-deb >/dev/null && git rev-parse HEAD >/dev/null 2>&1; then
	ok "make deb" sh -c "make -s deb >$tmp/debs"
	deb=$(grep '^build/foretoken_' "$tmp/debs") probes=$(grep '^build/foretoken-probes_' "$tmp/debs")
	ok "there are two" test -s "$deb" -a -s "$probes"
	ok "it unpacks" dpkg-deb -x "$deb" "$tmp/root"
	ok "its program answers as this one does" sh -c "env -i PATH=$PATH FORETOKEN_DATA=$tmp/root/usr/share/foretoken $tmp/root/usr/bin/foretoken simulate $a --json >$tmp/1 && $f simulate $a --json | cmp - $tmp/1"
	ok "it depends on the libraries it needs" sh -c "dpkg-deb -f $deb Depends | grep -q 'libgsl.*libjansson4.*libyaml-0-2'"
	in_container() { # what it depends on is in the image, too
		for p in $(dpkg-deb -f "$deb" Depends | tr -d ,) $(dpkg-deb -f "$deb" Recommends | grep -o 'libmicrohttpd[0-9]*'); do
			[ "$p" = libc6 ] || grep -q "[ 	]$p[ ]" Containerfile || { echo "$p" >&2; return 1; }
		done
	}
	ok "and recommends what serve loads" sh -c "dpkg-deb -f $deb Recommends | grep -q libmicrohttpd || $f doctor | grep -q '^serve .*built without'"
	ok "the container's image has all of them" in_container
	ok "it does without MPI, and says where MPI is" sh -c "dpkg-deb -f $deb Depends | grep -v mpi && { ! command -v mpicc >/dev/null || { dpkg-deb -f $deb Suggests | grep -q openmpi-bin && test -s $tmp/root/usr/lib/foretoken/foretoken-mpi.so; }; }"
	ok "the probes are in the other" sh -c "dpkg-deb -c $probes | grep -q '/probes/.*\\.c'"
	md5sum "$deb" "$probes" >"$tmp/sums"
	ok "the same commit gives the same bytes" sh -c "make -s deb >/dev/null && md5sum -c --quiet $tmp/sums"
	if command -v lintian >/dev/null; then
		ok "lintian finds no error" sh -c "lintian --fail-on error --suppress-tags dir-or-file-in-home $deb >&2"
	else
		skip "lintian finds no error" "no lintian"
	fi
	library=$tmp/root/usr/lib/libforetoken.so
	data=$tmp/root/usr/share/foretoken
	python=$tmp/root/usr/lib/python3/dist-packages
else
	skip "make deb" "no dpkg-deb"
	make -s install DESTDIR="$tmp/root" PREFIX=/usr >/dev/null
	library=$tmp/root/usr/lib/libforetoken.so data=$tmp/root/usr/share/foretoken
	python=$tmp/root/usr/lib/python3/dist-packages
fi
py() { FORETOKEN_LIBRARY=$library FORETOKEN_DATA=$data PYTHONPATH=$python python3 "$@"; }
cat >"$tmp/t.py" <<'P'
import json, sys
import foretoken

answer = foretoken.simulate(open(sys.argv[1]).read())
want = json.load(open(sys.argv[2]))
assert answer["tokens_per_s"] == want["tokens_per_s"] and answer["cost"] == want["cost"]
again = foretoken.simulate(answer["scenario"])
assert again["step_s"] == answer["step_s"], "a resolved scenario answers the same"
both = foretoken.compare([answer["scenario"], dict(answer["scenario"], title="another")])
assert both["verdict"]["tie"] in (True, False) and len(both["scenarios"]) == 2
text = open(sys.argv[1]).read()
import concurrent.futures, types
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    rates = list(pool.map(lambda n: foretoken.simulate({**answer["scenario"], "title": "t%d" % n})["tokens_per_s"], range(40)))
assert rates == [answer["tokens_per_s"]] * 40, "threads take turns"
face = foretoken.simulate(types.MappingProxyType(dict(answer["scenario"], name="\U0001f600")))
assert face["name"] == "\U0001f600" and face["tokens_per_s"] == answer["tokens_per_s"]
assert len(foretoken.compare(s for s in (answer["scenario"], face["scenario"]))["scenarios"]) == 2
for bad in ({**answer["scenario"], "stack": "\u65e5" * 40}, "", "[", "{}", text + "\0 [", {"model": "llama3-8"}, {"model": "llama3-8b", "cluster": {"gpu": "x", "gpus": 8}, "training": {}}):
    try:
        foretoken.simulate(bad)
    except foretoken.Error as e:
        assert "error: " in str(e), e
    else:
        raise SystemExit("%r was taken" % (bad,))
try:
    foretoken.compare([answer["scenario"]])
except foretoken.Error as e:
    assert "two to 16" in str(e)
with foretoken.Session() as session:
    assert session.simulate(answer["scenario"])["step_s"] == answer["step_s"]
for closed in (lambda: session.simulate(text), lambda: session.compare([text, text]), lambda: foretoken.compare(text)):
    try:
        closed()
    except foretoken.Error as e:
        assert "closed" in str(e) or "not one" in str(e)
    else:
        raise SystemExit("a closed session, or one scenario, was taken")
P
$f simulate "$a" --json >"$tmp/want.json"
ok "Python gets the same answers, and errors in words" py "$tmp/t.py" "$a" "$tmp/want.json"
ok "the notebook's cells run" py python/run_notebook.py examples/16-python/sizing.ipynb
finish
