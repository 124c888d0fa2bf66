#!/bin/sh
# tests/test_probe_gpu.sh - the GPU source compiled for HIP and run on the CPU
# (tests/hip_on_cpu): unfused attention, the shim and collectives give what the checks
# want, and what is spoiled on purpose is found wrong
. "$(dirname "$0")/tap.sh"
cc=${CC:-cc}
w="-std=c11 -D_GNU_SOURCE -O2 -I. -Wall -Wextra -DPROBE_HIP -DPROBE_NO_ROCM -rdynamic"
here=tests/hip_on_cpu
mkdir "$tmp/o" "$tmp/bare" "$tmp/fused"
built() {
	for s in calibrate/probes/gpu/*.c calibrate/probes/reference.c calibrate/probes/stats.c \
		$here/main.c $here/runtime.c $here/blas.c $here/kernels.c; do
		$cc $w -c "$s" -o "$tmp/o/$(basename "$s" .c).o" || return 1
	done
	link bare/run
	cp "$tmp/bare/run" "$tmp/fused/run"
}
link() { # PROGRAM flags...
	to=$1
	shift
	$cc $w "$@" $here/rccl.c "$tmp"/o/*.o -o "$tmp/$to" -lm -ldl -pthread
}
shim() { # N: spoiled at N
	$cc $w -fPIC -shared -DBREAK_AT="$1" $here/shim.c -o "$tmp/fused/libft_attention_shim.so"
}
run() { # FOLDER STATUS PATTERN arguments...
	d=$1 want=$2 says=$3
	shift 3
	"$tmp/$d/run" "$@" >"$tmp/said"
	got=$?
	cat "$tmp/said" >&2
	[ $got = "$want" ] && grep -q -- "$says" "$tmp/said"
}
ok "the GPU source runs on the CPU" built
for shape in "1 4 4 64 16 full" "3 6 2 96 24 causal" "2 4 1 128 32 full" "1 4 2 330 16 causal"; do
	ok "unfused attention is right, forward, $shape" run bare 0 '^ok' attention unfused forward $shape
	ok "unfused attention is right, backward, $shape" run bare 0 '^ok [1-9]' attention unfused backward $shape
done
own() { # the kernels themselves
	${CXX:-c++} -std=c++17 -O2 -I. -c $here/fibers.cc -o "$tmp/fibers" &&
		mkdir "$tmp/own" && $cc $w $here/rccl.c $(ls "$tmp"/o/*.o | grep -v /kernels.o) "$tmp/fibers" \
		-o "$tmp/own/run" -lstdc++ -lm -ldl -pthread
}
ok "the kernels run on the CPU" own
for shape in "1 4 2 34 8 causal" "1 2 1 20 16 full" "1 1 1 514 8 causal"; do
	ok "unfused attention with its own kernels, $shape" run own 0 '^ok [1-9]' attention unfused backward $shape
done
ok "a collective with the probes' own fill and search" run own 0 '^ok 0.00e+00' collective all_to_all 3 2048
ok "an attention that is not there is unsupported" run bare 1 "^unsupported.*no attention called 'aiter'.*nothing fused" attention aiter forward 1 4 4 64 16 causal
for op in all_reduce all_gather reduce_scatter all_to_all broadcast sendrecv; do
	for n in 2 3 4; do
		ok "$op among $n delivers what it should" run bare 0 '^ok' collective $op $n 65536
	done
done
shape="2 8 2 128 16 causal"
shim 0
ok "a shim's attention is used under its name" run fused 0 '^ok.*by aiter (AITER 0)' attention aiter forward $shape
ok "and its backward pass is right" run fused 0 '^ok [1-9]' attention aiter backward $shape
ok "what it has no kernel for is unsupported" run fused 1 '^unsupported.*AITER 0 has no kernel' attention aiter forward 1 4 4 64 20 causal
shim 1
ok "a head that is left out of a group's dV is found" run fused 1 '^wrong.*dV differs' attention aiter backward $shape
shim 2
ok "a hole in dK is found" run fused 1 '^wrong.*dK differs.*nan' attention aiter backward $shape
shim 3
ok "a forgotten mask is found" run fused 1 '^wrong.*O differs' attention aiter forward $shape
shim 4
ok "a shim that fails is told" run fused 1 '^failed.*AITER 0 answers 7' attention aiter forward $shape
shim 5
ok "dQ of the wrong batch is found" run fused 1 '^wrong.*dQ differs' attention aiter backward $shape
shim 6
ok "one row of dK in the place of another is found" run fused 1 '^wrong.*dK differs.*worst row' attention aiter backward 1 2 1 2048 16 causal
for op in all_reduce all_gather reduce_scatter broadcast send; do
	ok "one element of $op that is off is found" sh -c "$(cat <<EOF
$cc $w '-DBREAK_OP="$op"' $here/rccl.c $tmp/o/*.o -o $tmp/bare/spoiled -lm -ldl -pthread || exit 1
for c in $op sendrecv all_to_all; do
	case $op:\$c in send:send | [!s]*:sendrecv | [!s]*:all_to_all) continue ;; esac
	$tmp/bare/spoiled collective \$c 3 65536 | tee /dev/stderr | grep -q '^wrong' || exit 1
done
EOF
)"
done
finish
