# calibrate/probes/probes.mk - foretoken-probe and its plug-ins; `make probes` builds what this
# machine has the headers and compilers for, and says what it leaves out
CUDA     ?= /usr/local/cuda
ROCM     ?= /opt/rocm
NVCC     ?= $(firstword $(wildcard $(CUDA)/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
HIPCC    ?= $(firstword $(wildcard $(ROCM)/bin/hipcc) $(shell command -v hipcc 2>/dev/null))
CUDA_ARCH ?= native
# PROBE_CUDA_FLAGS, PROBE_CUDA_LIBS: for CUDA from elsewhere, e.g. Python wheels
PROBE_CUDA_FLAGS ?= -isystem $(CUDA)/include
PROBE_CUDA_LIBS  ?= -L$(CUDA)/lib64 -Wl,-rpath,$(CUDA)/lib64 -lcudart -lcublasLt -lcudnn -lnccl

PROBE_CFLAGS = -std=c11 -D_GNU_SOURCE -fPIC -I. $(WARN) $(CFLAGS)
PROBE_DIR := calibrate/probes
PROBE_SRC := $(wildcard $(PROBE_DIR)/*.c $(PROBE_DIR)/cpu/*.c)
PROBE_SRC := $(filter-out %/reference.c,$(PROBE_SRC))
PROBE_GPU_SRC := $(wildcard $(PROBE_DIR)/gpu/*.c) $(PROBE_DIR)/reference.c $(PROBE_DIR)/stats.c
PROBE_CUDNN_SRC := $(filter-out %/check.c,$(wildcard $(PROBE_DIR)/cudnn/*.c))
PROBE_HEADERS := $(wildcard $(PROBE_DIR)/*.h $(PROBE_DIR)/*/*.h $(PROBE_DIR)/*/*.inc)
PROBE_ALL := $(wildcard $(PROBE_DIR)/*.[ch] $(PROBE_DIR)/*/*.[ch])
OPENBLAS := $(shell pkg-config --exists openblas 2>/dev/null && echo yes)
ifneq ($(OPENBLAS),)
PROBE_BLAS_FLAGS := -DPROBE_OPENBLAS $(shell pkg-config --cflags openblas)
PROBE_BLAS_LIBS  := $(shell pkg-config --libs openblas)
endif

PROBES := $B/foretoken-probe # what `make check` needs; the plug-ins it does not

.PHONY: probes probe-cuda probe-hip attention-shim
probes: $(PROBES)
ifneq ($(and $(NVCC),$(wildcard $(CUDA)/include/cudnn.h)),)
probes: $B/libft_cuda.so
endif
ifneq ($(HIPCC),)
probes: $B/libft_hip.so
endif
probe-cuda: $B/libft_cuda.so
probe-hip: $B/libft_hip.so

$B/foretoken-probe: $(PROBE_SRC) $(PROBE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(PROBE_CFLAGS) $(PROBE_BLAS_FLAGS) $(LDFLAGS) -o $@ $(PROBE_SRC) $(PROBE_BLAS_LIBS) -lm -ldl -pthread

$B/probe/kernels.cu.o: calibrate/probes/gpu/kernels.cu $(PROBE_HEADERS)
	@mkdir -p $(@D)
	$(NVCC) -I. -O2 -arch=$(CUDA_ARCH) -Xcompiler -fPIC -c -o $@ $<
$B/libft_cuda.so: $(PROBE_GPU_SRC) $(PROBE_CUDNN_SRC) $B/probe/kernels.cu.o $(PROBE_HEADERS)
	$(CC) $(PROBE_CFLAGS) $(PROBE_CUDA_FLAGS) -shared -o $@ $(PROBE_GPU_SRC) $(PROBE_CUDNN_SRC) $B/probe/kernels.cu.o $(PROBE_CUDA_LIBS) -lstdc++ -lm -ldl

$B/probe/kernels.hip.o: calibrate/probes/gpu/kernels.hip $(PROBE_HEADERS)
	@mkdir -p $(@D)
	$(HIPCC) -I. --offload-arch=native -O2 -fPIC -c -o $@ $<
$B/libft_hip.so: $(PROBE_GPU_SRC) $B/probe/kernels.hip.o $(PROBE_HEADERS)
	$(CC) $(PROBE_CFLAGS) -DPROBE_HIP -isystem $(ROCM)/include -shared -o $@ $(PROBE_GPU_SRC) $B/probe/kernels.hip.o -L$(ROCM)/lib -Wl,-rpath,$(ROCM)/lib -lamdhip64 -lhipblaslt -lrccl -lstdc++ -lm -ldl

# A fused attention library lent to the HIP probe: a C or C++ file of yours that fills in
# calibrate/probes/attention_shim.h (docs/calibrate.md says how)
SHIM_SRC   ?=
SHIM_FLAGS ?= -I$(ROCM)/include
SHIM_LIBS  ?=
attention-shim: $B/libft_attention_shim.so
$B/libft_attention_shim.so: $(SHIM_SRC) calibrate/probes/attention_shim.h
	@[ -n "$(SHIM_SRC)" ] || { echo "attention-shim needs: SHIM_SRC=FILE that defines ft_attention_shim() of calibrate/probes/attention_shim.h," \
		"SHIM_LIBS of the library it calls (AITER's libmha_fwd and libmha_bwd, or CK's fmha), and ROCm's hipcc"; exit 1; }
	@mkdir -p $(@D)
	$(or $(HIPCC),$(CXX)) -O2 -fPIC -shared -I. $(SHIM_FLAGS) -o $@ $(SHIM_SRC) $(SHIM_LIBS)
