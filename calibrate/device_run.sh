S=$(python3 -c 'import sysconfig;print(sysconfig.get_paths()["purelib"])')
I="-isystem /usr/local/cuda/include"; L="-L/usr/local/cuda/lib64 -Wl,-rpath,/usr/local/cuda/lib64"
for d in cu13 cudnn nccl; do [ -d $S/nvidia/$d/include ] && I="$I -isystem $S/nvidia/$d/include"; [ -d $S/nvidia/$d/lib ] && L="$L -L$S/nvidia/$d/lib -Wl,-rpath,$S/nvidia/$d/lib"; done
printf 'CC=gcc\nCFLAGS=-O2\nB=/tmp/b\nall: probes\ninclude calibrate/probes.mk\n' > /tmp/mk
time make -f /tmp/mk /tmp/b/foretoken-probe /tmp/b/libft_cuda.so CUDA_ARCH=sm_90 PROBE_CUDA_FLAGS="$I" PROBE_CUDA_LIBS="$L -l:libcudart.so.13 -l:libcublasLt.so.13 -l:libcudnn.so.9 -l:libnccl.so.2" 2>&1 | grep -v '^gcc\|^/usr/local/cuda/bin/nvcc'
ls -la /tmp/b; nproc; nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,power.limit,temperature.gpu --format=csv
