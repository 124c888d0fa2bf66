#!/bin/sh
# tests/test_bounds.sh - time and memory are bounded, and what is out of bounds is told
. "$(dirname "$0")/tap.sh"
a=examples/01-first-answer/h100.yaml e=examples/07-edit-a-step/scenario.yaml
case $B in *san) memory=unlimited ;; *) memory=524288 ;; esac # KiB

# bounded STATUS PATTERN command...: within 10 s and 512 MB, with these words on stderr
bounded() {
	want=$1 says=$2
	shift 2
	(ulimit -v $memory; timeout 10 "$@") >"$tmp/o" 2>"$tmp/e"
	got=$?
	cut -c1-300 "$tmp/e" >&2
	[ $got = "$want" ] || { echo "exit $got, wanted $want" >&2; return 1; }
	[ "$want" = 0 ] || [ ! -s "$tmp/o" ] || { echo "printed an answer" >&2; return 1; }
	grep -q -- "$says" "$tmp/e"
}

# ---- models and plans -----------------------------------------------------------
ok "a hidden size beyond any model's" bounded 1 ":1:25: error: hidden_size: 100000000 is not between 1 and 1048576" $f simulate $a --set model.hidden_size=100000000
ok "a sequence beyond any" bounded 1 "not between 1 and 16777216" $f simulate $a --set training.sequence_length=100000000
ok "the longest sequence" bounded 1 "longer than 10 days" $f simulate $a --set training.sequence_length=16777216
ok "a head dimension beyond any" bounded 1 "head_dim: 1000000000 is not between 1 and 65536" $f simulate $a --set model.head_dim=1000000000
ok "a number of experts beyond any" bounded 1 "num_local_experts: 1000000000 is not between 1 and 65536" $f simulate $a --set model=mixtral-8x7b --set model.num_local_experts=1000000000
ok "a batch of 2^30" bounded 1 "too much to simulate" $f simulate $e --set training.global_batch_size=1073741824
ok "a batch of 2^24" bounded 1 "too much to simulate" $f simulate $e --set training.global_batch_size=16777216
ok "a timeline of 65,536 sequences" bounded 1 "too much to draw" $f simulate $e --set training.global_batch_size=65536 --timeline "$tmp/t.json"
ok "of which nothing is left" sh -c "! ls $tmp | grep -q t.json"

# ---- profiles, fabrics ----------------------------------------------------------
profile() { # SED: a profile with one line replaced
	cp hw/gpus/h100-sxm.*.csv "$tmp/"
	sed "$1" hw/gpus/h100-sxm.yaml >"$tmp/g.yaml"
	! cmp -s hw/gpus/h100-sxm.yaml "$tmp/g.yaml" || { echo "nothing changed" >&2; return 1; }
}
spoilt() { # PATTERN SED
	profile "$2" && bounded 1 "$1" $f simulate $a --set cluster.gpu="$tmp/g.yaml"
}
sed '/^latency:/{n;s/value: .*/value: 1e29 s/}' hw/fabrics/ib-ndr-rail.yaml >"$tmp/f.yaml"
ok "a latency of ages" bounded 1 "f.yaml:.*latency: " $f simulate $a --set cluster.fabric="$tmp/f.yaml"
ok "a wave loss of 1e9" spoilt "g.yaml:.*wave_loss" 's/wave_loss: .*/wave_loss: 1e9/'
ok "an efficiency of attention of 0" spoilt "g.yaml:.*forward" 's/forward: 0\.[0-9]*/forward: 0/'
ok "a peak of next to nothing" spoilt "g.yaml:" 's/^\( *bf16: \)[0-9.]* TFLOP.*/\11e-30 FLOP\/s/'

# ---- documents and tables -------------------------------------------------------
python3 - "$tmp" <<'P'
import sys
d = sys.argv[1] + "/"
with open(d + "wide.yaml", "w") as f: f.write("".join("key%06d: 1\n" % i for i in range(100000)))
with open(d + "cluster.yaml", "w") as f: f.write("cluster: {" + ", ".join("k%06d: 1" % i for i in range(100000)) + "}\n")
with open(d + "deep.yaml", "w") as f: f.write("a: " + "[" * 100000)
with open(d + "maps.yaml", "w") as f: f.write("a: " + "{a: " * 100000)
with open(d + "alias.yaml", "w") as f:
    f.write("a0: &a0 [1, 1]\n" + "".join("a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40)))
with open(d + "self.yaml", "w") as f: f.write("a: &a [*a]\n")
with open(d + "wide.csv", "w") as f: f.write(",".join("c%d" % i for i in range(1024)) + "\n" * 9000000)
with open(d + "wide2.csv", "w") as f: f.write(",".join("c%d" % i for i in range(1024)) + "\n" + "x\n" * 4000000)
with open(d + "cells.csv", "w") as f: f.write(",".join("c%d" % i for i in range(1000)) + "\n" + ("1" + "," * 999 + "\n") * 9000)
P
ok "a map of 100,000 keys" bounded 1 "unknown key\|lacks" $f simulate "$tmp/wide.yaml"
ok "a cluster of 100,000 keys" bounded 1 "error:" $f simulate "$tmp/cluster.yaml"
ok "lists within lists" bounded 1 "deep.yaml:1:[0-9]*: error: is nested too deeply" $f simulate "$tmp/deep.yaml"
ok "maps within maps" bounded 1 "is nested too deeply" $f simulate "$tmp/maps.yaml"
ok "aliases that multiply" bounded 1 "too many values" $f simulate "$tmp/alias.yaml"
ok "an alias of itself" bounded 1 "undefined alias" $f simulate "$tmp/self.yaml"
ok "many columns and nine million empty lines" bounded 1 "error:" $f validate "$tmp/wide.csv"
ok "many columns and four million short lines" bounded 1 "this row has 1 cells" $f validate "$tmp/wide2.csv"
ok "nine million cells" bounded 1 "too many cells" $f validate "$tmp/cells.csv"
ok "a device that never ends, as a scenario" bounded 1 "too large" $f simulate /dev/zero
ok "as probe's lines" bounded 1 "too large" $f calibrate import --store "$tmp/s.db" --format probe /dev/zero
ok "as a table" bounded 1 "too large" $f calibrate import --store "$tmp/s.db" --format csv /dev/zero
ok "as a recorded trace" bounded 1 "is not a regular file" $f calibrate import --store "$tmp/s.db" --format kineto /dev/zero
ok "as a log" bounded 1 "too large" $f calibrate import --store "$tmp/s.db" --format nccl-tests /dev/zero
mkfifo "$tmp/pipe"
(echo 'bad: [' >"$tmp/pipe") &
ok "a mistake in a pipe" bounded 1 "pipe:2:1: error:" $f simulate "$tmp/pipe"

# ---- step graphs -----------------------------------------------------------------
$f trace show $e >"$tmp/g"
graph() { # STATUS PATTERN SED
	sed "$3" "$tmp/g" >"$tmp/h"
	! cmp -s "$tmp/g" "$tmp/h" || { echo "nothing changed" >&2; return 1; }
	bounded "$1" "$2" $f trace replay $e --graph "$tmp/h"
}
ok "a graph for more GPUs than there are" bounded 1 "ranks, but the cluster has" $f trace replay $a --graph "$tmp/g"
ok "a class of 7 ranks" graph 1 "h:[0-9]*:1: error: the classes together have 7 ranks" 's/ranks=[0-9]*/ranks=7/'
ok "a class of no ranks" graph 1 "h:[0-9]*:[0-9]*: error:" 's/ranks=[0-9]*/ranks=0/'
ok "no tokens" graph 1 "h:[0-9]*:8: error:" 's/^tokens .*/tokens 0/'
ok "tokens below 0" graph 1 "not between" 's/^tokens .*/tokens -1/'
ok "bytes below 0" graph 1 "not between" 's/bytes=[0-9.e+]*/bytes=-1e12/'
ok "bytes beyond any" graph 1 "not between" 's/bytes=[0-9.e+]*/bytes=1e308/'
ok "no calls" graph 1 "calls nothing" '/^ *call/d'
ok "a thousand million calls" graph 1 "too much to simulate" 's/^\( *call 0\) .*/\1 x1000000000/'
ok "a group larger than the cluster" graph 1 "not between" 's/size=[0-9]*/size=9223372036854775807/'
ok "a group wider than the cluster" graph 1 "not between" 's/stride=[0-9]*/stride=9223372036854775807/'
ok "a host that gives time back" graph 1 "not between" 's/^\( *host [a-z_]*\) [0-9.].*/\1 -1e9/'
finish
