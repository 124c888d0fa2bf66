#!/usr/bin/env python3
"""calibrate/probes/torch/kernels.py - the same JSON lines as foretoken-probe, for kernels as
PyTorch runs them (its own elementwise and norm kernels, its choice of attention and
of matrix library).  Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/kernels.py --out torch.jsonl [--seconds 240]
                         [--only memory,rows,short,unfused,attention,masked,wide,flex,gemm,grouped,batched,long,optimizer]
                         [--plan PLAN]   PLAN: lines of `foretoken-probe --plan`, whose
                                         matrix products are then timed as well

Method: normal random inputs, L2 flushed by filling a 256 MB buffer, events around the
operation alone, all repetitions queued before the first is waited for, median.
"""
import argparse
import datetime
import json
import random
import re
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F

DEV = "cuda"


class Probe:
    def __init__(self, out, cell_s, rest):
        self.out, self.cell_s, self.rest = out, cell_s, rest
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device=DEV)
        self.events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                       for _ in range(40)]

    def repeat(self, fn, reps, cold, before=None):
        torch.cuda._sleep(int(0.3e6 * (reps + 4)))  # lets the host queue everything first
        for a, b in self.events[:reps]:
            if cold:
                self.flush.zero_()
            if before:
                before()
            a.record()
            fn()
            b.record()
        torch.cuda.synchronize()
        return sorted(a.elapsed_time(b) * 1e3 for a, b in self.events[:reps])

    def time(self, cell, fn, cold=True, before=None):
        start = time.monotonic()
        row = {"record": "measurement"}
        try:
            for _ in range(3):
                fn()
            one = self.repeat(fn, 2, cold, before)[0]
            reps = max(5, min(25, int(self.cell_s * 1e6 / (one + 70))))
            t = self.repeat(fn, reps, cold, before)
            row.update(cell, status="ok", time_us=round(statistics.median(t), 4),
                       p10_us=round(t[len(t) // 10], 4), p90_us=round(t[len(t) * 9 // 10], 4), reps=reps)
        except (RuntimeError, torch.OutOfMemoryError) as e:
            torch.cuda.empty_cache()
            row.update(cell, status="no-memory" if "memory" in str(e) else "unsupported", why=str(e)[:160])
        row["cell"] = " ".join(f"{k}={v}" for k, v in cell.items())
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()
        time.sleep(min(0.2, self.rest * (time.monotonic() - start)))


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=DEV, dtype=dtype) if dtype != torch.float8_e4m3fn else \
        torch.randn(*shape, device=DEV).to(dtype)


def memory_operation(kernel, m, n):
    """The operation, its data format and the bytes of its source buffer."""
    if kernel in ("adamw", "adamw_bf16"):  # weights, gradients and moments, all of one format
        dtype = torch.bfloat16 if kernel == "adamw_bf16" else torch.float32
        p = normal(m, n, dtype=dtype).requires_grad_()
        p.grad = normal(m, n, dtype=dtype)
        opt = torch.optim.AdamW([p], lr=1e-4, fused=True)
        return opt.step, "bf16" if kernel == "adamw_bf16" else "fp32", m * n * p.element_size()
    if kernel == "cast":
        x = normal(m, n, dtype=torch.float32)
        y = torch.empty(m, n, device=DEV, dtype=torch.bfloat16)
        return lambda: y.copy_(x), "fp32", m * n * 4
    x = normal(m, n)
    size = m * n * 2
    if kernel == "copy":
        y = torch.empty_like(x)
        return lambda: y.copy_(x), "bf16", size
    if kernel == "add":
        b = normal(m, n)
        return lambda: torch.add(x, b), "bf16", size
    if kernel == "rmsnorm":
        w = normal(n)
        return lambda: F.rms_norm(x, (n,), w, 1e-5), "bf16", size
    if kernel == "layernorm":
        w, b = normal(n), normal(n)
        return lambda: F.layer_norm(x, (n,), w, b), "bf16", size
    if kernel == "swiglu":
        b = normal(m, n)
        return lambda: F.silu(x) * b, "bf16", size
    if kernel == "silu":
        return lambda: F.silu(x), "bf16", size
    if kernel == "mul":
        b = normal(m, n)
        return lambda: torch.mul(x, b), "bf16", size
    if kernel == "gelu":
        return lambda: F.gelu(x), "bf16", size
    if kernel == "softmax":
        return lambda: torch.softmax(x, -1), "bf16", size
    if kernel == "dropout":  # writes its mask, a byte each, too
        return lambda: torch.ops.aten.native_dropout(x, 0.1, True), "bf16", size
    if kernel == "cross_entropy":
        t = torch.randint(0, n, (m,), device=DEV)
        return lambda: F.cross_entropy(x, t), "bf16", size
    if kernel == "concat":
        b = normal(m, n)
        return lambda: torch.cat([x, b]), "bf16", 2 * size  # both sources
    if kernel == "rope":
        c, s = normal(m, n), normal(m, n)
        return lambda: x * c + torch.cat([-x[:, n // 2:], x[:, :n // 2]], 1) * s, "bf16", size
    raise KeyError(kernel)


OPTIMIZERS = ("adamw", "adamw_bf16")


def memory_cells(kernels=("copy", "add", "rmsnorm", "layernorm", "swiglu", "silu", "mul", "gelu", "softmax",
                          "cross_entropy", "concat", "cast", "rope") + OPTIMIZERS):
    cells = []
    for kernel in kernels:
        widths = (32000, 128256, 50304, 8192) if kernel == "cross_entropy" else (4096, 8192, 2048, 14336, 1600, 12288)
        i = 0
        for power in range(17, 31):
            for half in (1, 1.5):
                n = widths[i % len(widths)]
                i += 1
                m = max(1, int(2 ** power * half) // n)
                if kernel in OPTIMIZERS and m * n > 2 ** 29:
                    continue
                cells.append(("memory", kernel, m, n))
    return cells


def row_cells():
    """Kernels that take rows whole: each row length at many sizes, cold and warm."""
    cells = []
    for kernel in ("rmsnorm", "layernorm", "softmax", "cross_entropy"):
        widths = (8192, 32000, 50304, 128256) if kernel == "cross_entropy" else \
            (1600, 2048, 4096, 8192, 12288, 14336)
        for n in widths:
            for power in range(34, 47):  # half octaves, 2^17 to 2^23 elements
                cells.append(("memory", kernel, max(1, int(2 ** (power / 2)) // n), n))
    return cells


def short_cells():
    """Norms of short rows: of narrow models, and of each head's queries and keys."""
    return [("memory", kernel, 2 ** power // n, n) for kernel in ("rmsnorm", "layernorm")
            for n in (64, 128, 256, 512, 768, 1024, 1280) for power in range(19, 29)]


def unfused_cells():
    """What attention without a fused kernel has beside its products: short rows, and dropout."""
    short = [("memory", "softmax", max(1, int(2 ** (power / 2)) // n), n)
             for n in (512, 1024) for power in range(34, 56)]
    return short + [c for c in memory_cells(("dropout",)) if c[2] * c[3] >= 2 ** 18]


def run_memory(p, kernel, m, n):
    try:
        fn, dtype, size = memory_operation(kernel, m, n)
    except torch.OutOfMemoryError:
        return
    cell = dict(kind="memory", kernel=kernel, impl="torch", dtype=dtype, m=m, n=n, bytes=size)
    p.time(cell, fn)
    if m * n <= 1 << 23 and kernel not in OPTIMIZERS:
        p.time(dict(cell, warm=True), fn, cold=False, before=fn)


def attention_cells():
    cells = []
    for h, kv, d in ((32, 8, 128), (32, 32, 128), (64, 8, 128), (8, 1, 128), (16, 16, 64), (25, 25, 64), (12, 12, 128),
                     (40, 40, 128), (96, 96, 128), (4, 4, 128), (16, 2, 128), (16, 16, 128), (32, 32, 64)):
        for s in (512, 1024, 2048, 4096, 8192, 16384, 32768):
            for b in (1, 2, 4, 8, 16):
                for causal in (True, False):
                    if b * s > 32768 or b * h * s * s > 2 ** 36.6 or (not causal and b not in (1, 4)):
                        continue
                    if (b * 7 + h + s // 512 + causal) % 2 and b > 1:
                        continue
                    cells.append(("attention", b, h, kv, s, d, causal))
    return cells


def run_attention(p, b, h, kv, s, d, causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def tensor(heads):  # as a projection leaves it: batch, sequence, heads, head_dim
        return normal(b, s, heads, d).transpose(1, 2).requires_grad_()
    q, k, v = tensor(h), tensor(kv), tensor(kv)
    backends = [("torch", None)]
    if b == 1:
        backends += [("cudnn", SDPBackend.CUDNN_ATTENTION)]
    if b == 1 or causal:
        backends += [("fa2", SDPBackend.FLASH_ATTENTION)]
    for impl, backend in backends:
        def forward():
            if backend is None:
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=h != kv)
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=h != kv)
        cell = dict(kind="attention", dtype="bf16", impl=impl, batch=b, heads=h, kv_heads=kv,
                    sequence_length=s, head_dim=d, causal=causal)
        with torch.no_grad():
            p.time(dict(cell, **{"pass": "forward"}), forward)
        try:
            o = forward()
        except RuntimeError:
            continue
        g = torch.randn_like(o)
        p.time(dict(cell, **{"pass": "backward"}),
               lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True))


def masked_cells():
    """Attention that is given its mask as a tensor, as a sliding window is where no kernel knows it."""
    return [("masked", b, h, s, d) for h, d in ((32, 64), (32, 96), (32, 128), (16, 128), (16, 192), (64, 192), (16, 256),
                                                         (64, 256))
            for s in (1024, 2048, 4096, 8192, 16384) for b in (1, 2, 4)
            if b * s <= 16384 and b * h * s * s <= 2 ** 33.1]


def wide_cells():
    """Heads wider than those of cuDNN's and FlashAttention's kernels, for which PyTorch takes its own of CUTLASS."""
    return [("wide", b, h, s, d, causal) for d in (320, 512) for h in (8, 16, 32)
            for s in (512, 1024, 2048, 4096, 8192, 16384) for b in (1, 4) for causal in (True, False)
            if b * s <= 16384 and b * h * s * s <= 2 ** 31.1 and (causal or (b == 1 and h == 16))]


def run_wide(p, b, h, s, d, causal):
    q, k, v = (normal(b, s, h, d).transpose(1, 2).requires_grad_() for _ in range(3))

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    cell = dict(kind="attention", dtype="bf16", impl="cutlass", batch=b, heads=h, kv_heads=h,
                sequence_length=s, head_dim=d, causal=causal)
    with torch.no_grad():
        p.time(dict(cell, **{"pass": "forward"}), forward)
    o = forward()
    g = torch.randn_like(o)
    p.time(dict(cell, **{"pass": "backward"}),
           lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True))


def flex_cells():
    """FlexAttention: kernels that a compiler makes for a mask. By its own choice of tiles, and for some shapes
    by the best of those that it tried, as frameworks ask for; whole, and with what follows for sinks."""
    cells = []
    for h, kv, d, window, shapes in (
            (64, 8, 64, 0, ((4, 1024), (4, 2048), (1, 4096), (2, 4096), (1, 8192), (1, 16384))),
            (64, 8, 64, 128, ((2, 4096), (1, 8192), (1, 16384))),
            (32, 32, 64, 0, ((4, 2048), (2, 4096), (1, 8192))),
            (32, 8, 128, 0, ((4, 1024), (4, 2048), (1, 4096), (2, 4096), (1, 8192), (1, 16384), (1, 32768))),
            (32, 8, 128, 1024, ((1, 8192), (1, 16384))),
            (32, 8, 128, 4096, ((1, 8192), (1, 16384))),
            (16, 16, 128, 0, ((2, 4096), (1, 8192))),
            (64, 8, 128, 0, ((1, 4096), (1, 8192)))):
        cells += [("flex", b, h, kv, s, d, window, False) for b, s in shapes]
    cells += [("flex", b, h, kv, s, d, window, True) for b, h, kv, s, d, window in (
        (2, 64, 8, 4096, 64, 0), (2, 64, 8, 4096, 64, 128), (1, 64, 8, 8192, 64, 0), (1, 32, 8, 4096, 128, 0),
        (1, 32, 8, 8192, 128, 0))]
    return cells


def run_flex(p, b, h, kv, s, d, window, tuned):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def seen(_b, _h, at, of):
        return (at >= of) & (at - of < window) if window else at >= of
    torch._dynamo.reset()
    mask = create_block_mask(seen, None, None, s, s, device=DEV)
    made = torch.compile(flex_attention, dynamic=False, mode="max-autotune-no-cudagraphs" if tuned else None)
    q, k, v = (normal(b, s, n, d).transpose(1, 2).requires_grad_() for n in (h, kv, kv))
    sinks = torch.randn(h, device=DEV, requires_grad=True)

    def forward():
        return made(q, k, v, block_mask=mask, enable_gqa=h != kv, return_lse=True)

    def with_sinks():
        o, lse = forward()
        return (o * torch.sigmoid(lse - sinks.view(1, -1, 1)).unsqueeze(-1)).to(q.dtype)
    cell = dict(kind="attention", dtype="bf16", impl="flex-tuned" if tuned else "flex", batch=b, heads=h,
                kv_heads=kv, sequence_length=s, head_dim=d, causal=True)
    if window:
        cell["window"] = window
    with torch.no_grad():
        p.time(dict(cell, **{"pass": "forward"}), forward)
    o, lse = forward()
    g = torch.randn_like(o)
    p.time(dict(cell, **{"pass": "backward"}),
           lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True))
    if h == 64 and d == 64:
        cell["impl"] += "-sinks"
        p.time(dict(cell, **{"pass": "forward"}), with_sinks)
        o = with_sinks()
        p.time(dict(cell, **{"pass": "backward"}),
               lambda: torch.autograd.grad(o, (q, k, v, sinks), g, retain_graph=True))


def run_masked(p, b, h, s, d):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (normal(b, s, h, d).transpose(1, 2).requires_grad_() for _ in range(3))
    at = torch.arange(s, device=DEV)
    near = (at[:, None] >= at) & (at[:, None] - at < s // 2)
    mask = torch.where(near, 0.0, float("-inf")).to(torch.bfloat16)[None, None].expand(b, 1, s, s)
    for impl, given in (("cudnn-masked", mask), ("cudnn", None)):
        def forward():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=given)
        cell = dict(kind="attention", dtype="bf16", impl=impl, batch=b, heads=h, kv_heads=h,
                    sequence_length=s, head_dim=d, causal=False)
        with torch.no_grad():
            p.time(dict(cell, **{"pass": "forward"}), forward)
        try:
            o = forward()
        except RuntimeError:
            continue
        g = torch.randn_like(o)
        p.time(dict(cell, **{"pass": "backward"}),
               lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True))


def run_gemm(p, dtype, layout, m, n, k):
    cell = dict(kind="gemm", impl="torch", dtype=dtype, layout=layout, m=m, n=n, k=k)
    if dtype == "fp8":
        if layout != "forward":
            return
        x, w = normal(m, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn)
        one = torch.ones((), device=DEV)
        p.time(cell, lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                              use_fast_accum=True))
        return
    t = torch.float16 if dtype == "fp16" else torch.bfloat16
    if layout == "forward":
        x, w = normal(m, k, dtype=t), normal(n, k, dtype=t)
        p.time(cell, lambda: F.linear(x, w))
    elif layout == "dgrad":
        y, w = normal(m, n, dtype=t), normal(n, k, dtype=t)
        p.time(cell, lambda: y @ w)
    else:
        y, x = normal(m, n, dtype=t), normal(m, k, dtype=t)
        p.time(cell, lambda: y.t() @ x)


def grouped_cells():
    """One product for many experts: tokens of an expert, experts, widths of known mixtures."""
    cells = []
    for n, k in ((768, 2048), (1536, 2048), (2048, 768), (14336, 4096), (4096, 14336), (2048, 7168), (7168, 2048),
                 (5760, 2880), (2880, 2880)):
        for groups in (1, 2, 4, 8, 16, 32, 64, 128):
            for tokens in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
                m = groups * tokens
                if 2048 <= m <= 65536 and 2 * groups * n * k <= 8 << 30 and m * n * k <= 2 ** 42:
                    cells += [("grouped", layout, m, n, k, groups) for layout in ("forward", "dgrad", "wgrad")]
    return cells


def product(dtype, layout, m, n, k, groups=1):
    """The call alone."""
    x, y = normal(m, k), normal(m, n)
    if groups > 1:
        w = normal(groups, k, n)
        ends = (torch.arange(1, groups + 1, device=DEV) * (m // groups)).to(torch.int32)
        return {"forward": lambda: torch._grouped_mm(x, w, offs=ends),
                "dgrad": lambda: torch._grouped_mm(y, w.transpose(-2, -1), offs=ends),
                "wgrad": lambda: torch._grouped_mm(x.t(), y, offs=ends)}[layout]
    if dtype == "fp8":
        x8, w8 = normal(m, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn)
        one = torch.ones((), device=DEV)
        return lambda: torch._scaled_mm(x8, w8.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                        use_fast_accum=True)
    w = normal(n, k)
    return {"forward": lambda: F.linear(x, w), "dgrad": lambda: y @ w, "wgrad": lambda: y.t() @ x}[layout]


def run_grouped(p, layout, m, n, k, groups):
    cell = dict(kind="gemm", impl="torch", dtype="bf16", layout=layout, m=m, n=n, k=k)
    if groups > 1:
        cell["groups"] = groups
    p.time(cell, product("bf16", layout, m, n, k, groups))


def batched_cells():
    """Experts of the same number of tokens each as one batched product, beside the grouped one."""
    return [("batched", layout, groups * tokens, n, k, groups) for n, k in ((16384, 5120), (5120, 8192), (4096, 2048))
            for groups in (4, 16) for tokens in (256, 1024, 4096)
            for layout in ("forward", "dgrad", "wgrad")]


def run_batched(p, layout, m, n, k, groups):
    x, y, w = normal(groups, m // groups, k), normal(groups, m // groups, n), normal(groups, k, n)
    cell = dict(kind="gemm", dtype="bf16", layout=layout, m=m, n=n, k=k, groups=groups)
    p.time(dict(cell, impl="torch-bmm"), {
        "forward": lambda: torch.bmm(x, w), "dgrad": lambda: torch.bmm(y, w.transpose(1, 2)),
        "wgrad": lambda: torch.bmm(x.transpose(1, 2), y)}[layout])
    del x, y, w
    p.time(dict(cell, impl="torch"), product("bf16", layout, m, n, k, groups))


def long_cells():
    """Products back to back for 0.1 s and for seconds, alone and with copies between them:
    how far the clock falls, by the share of the time that is products."""
    shapes = ((15872, 12288, 4096), (15872, 4096, 16384), (8192, 8192, 8192))
    cells = [("long", dtype, *shape, 1, share, seconds) for shape in shapes for dtype in ("bf16", "fp8")
             for share, seconds in ((1, 0.1), (1, 3))]
    cells += [("long", "bf16", 8192, 8192, 8192, 1, share, 3) for share in (0.9, 0.75, 0.6, 0.45, 0.3, 0.15)]
    cells += [("long", "bf16", *shape, groups, share, seconds) for shape, groups in
              (((8192, 14336, 4096), 4), ((32768, 768, 2048), 32)) for share, seconds in ((1, 0.1), (1, 3), (0.5, 3))]
    return cells


def run_long(p, dtype, m, n, k, groups, share, seconds):
    fn = product(dtype, "forward", m, n, k, groups)
    a, b = normal(16384, 16384), normal(16384, 16384)
    cell = dict(kind="gemm", impl="torch", dtype=dtype, layout="forward", m=m, n=n, k=k)
    if groups > 1:
        cell["groups"] = groups
    p.time(cell, fn)

    def once(call, n=1):
        torch.cuda.synchronize()
        x, y = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        x.record()
        for _ in range(n):
            call()
        y.record()
        torch.cuda.synchronize()
        return x.elapsed_time(y) * 1e-3 / n
    time.sleep(2)
    t, c = once(fn, 5), once(lambda: b.copy_(a), 5)
    batch = max(1, round(2e-3 / t))  # some ms of products, then copies for the rest
    copies = round(batch * t * (1 - share) / share / c)
    marks, start = [], time.monotonic()
    time.sleep(1)
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        for _ in range(5):
            x, y = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            x.record()
            for _ in range(batch):
                fn()
            y.record()
            for _ in range(copies):
                b.copy_(a)
            marks.append((x, y))
        marks[-5][1].synchronize()
    smi = subprocess.run(["nvidia-smi", "--query-gpu=power.draw,clocks.sm", "--format=csv,noheader,nounits"],
                         capture_output=True, text=True).stdout.split("\n")[0]
    torch.cuda.synchronize()
    t = [x.elapsed_time(y) * 1e3 / batch for x, y in marks]
    t = sorted(t[len(t) // 2:]) if seconds > 1 else sorted(t[1:])
    row = dict(cell, clock="sustained" if share == 1 and seconds > 1 else f"share {share} for {seconds} s",
               record="measurement", status="ok", time_us=round(statistics.median(t), 4), reps=len(t), smi=smi)
    row["cell"] = " ".join(f"{k}={v}" for k, v in row.items() if k in (*cell, "clock"))
    p.out.write(json.dumps(row) + "\n")
    p.out.flush()


def gemm_cells(plan):
    cells = []
    for line in open(plan):
        w = re.match(r"gemm (\w+) (\w+) m(\d+) n(\d+) k(\d+)$", line.strip())
        if w:
            cells.append(("gemm", w[1], w[2], int(w[3]), int(w[4]), int(w[5])))
    return cells


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--out", required=True)
    a.add_argument("--plan")
    a.add_argument("--seconds", type=float, default=240)
    a.add_argument("--cell", type=float, default=0.015)
    a.add_argument("--rest", type=float, default=0.3)
    a.add_argument("--date", default=datetime.date.today().isoformat())
    a.add_argument("--only", default="memory,rows,attention,gemm")
    a = a.parse_args()
    start = time.monotonic()
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True).stdout.split("\n")[0]
    with open(a.out, "a") as out:
        out.write(json.dumps(dict(record="run", format=1, backend="torch", date=a.date,
                                  device=torch.cuda.get_device_name(), devices=1,
                                  compute_units=torch.cuda.get_device_properties(0).multi_processor_count,
                                  driver=driver, runtime="torch " + torch.__version__,
                                  attention_library=f"cuDNN {torch.backends.cudnn.version()}")) + "\n")
        kinds = a.only.split(",")
        cells = []
        if "memory" in kinds:
            cells += memory_cells()
        elif "optimizer" in kinds:
            cells += memory_cells(OPTIMIZERS)
        if "unfused" in kinds:
            cells += unfused_cells()
        if "rows" in kinds:
            cells += row_cells()
        if "short" in kinds:
            cells += short_cells()
        if "attention" in kinds:
            cells += attention_cells()
        if "wide" in kinds:
            cells += wide_cells()
        if "flex" in kinds:
            cells += flex_cells()
        if "masked" in kinds:
            cells += masked_cells()
        if "gemm" in kinds and a.plan:
            cells += gemm_cells(a.plan)
        if "grouped" in kinds:
            cells += grouped_cells()
        if "batched" in kinds:
            cells += batched_cells()
        if "long" in kinds:
            cells += long_cells()
        random.Random(1).shuffle(cells)
        p = Probe(out, a.cell, a.rest)
        run = dict(memory=run_memory, attention=run_attention, masked=run_masked, wide=run_wide, flex=run_flex, gemm=run_gemm,
                   grouped=run_grouped, batched=run_batched, long=run_long)
        for i, (kind, *shape) in enumerate(cells):
            if time.monotonic() - start > a.seconds:
                print(f"stopped after {i} of {len(cells)} cells")
                break
            try:
                run[kind](p, *shape)
            except (RuntimeError, torch.OutOfMemoryError) as e:
                print(kind, shape, str(e)[:120])
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
