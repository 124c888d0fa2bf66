#!/usr/bin/env python3
"""calibrate/probes/torch/blockwise.py - products in FP8 with a scale for each 128 values, as
DeepSeek-V3 was trained, beside products with one scale a tensor, and the casts of the former.
Optional: needs torch of 2.10 or later, its Triton, and one Hopper GPU.

  python3 calibrate/probes/torch/blockwise.py --out blockwise.jsonl [--seconds 240]

JSON lines as kernels.py writes them. dtype: fp8-block128, or fp8 with `accumulate` fast or
split (cuBLAS' two modes; `calibrate import` does not tell them apart). Inputs and gradients have a scale for each 128 values along the
inner dimension, weights one for each 128 x 128. A first line says how far each product is
from the same one in fp32. kind cast: one kernel that writes rows, and columns turned.

BlockLinear is a layer of such products for a training step.
"""
import argparse
import datetime
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

from kernels import DEV, Probe, normal

E4 = torch.float8_e4m3fn
ROWS, BLOCKS = F.ScalingType.BlockWise1x128, F.ScalingType.BlockWise128x128


@triton.jit
def cast_tile(x, rows, row_scale, cols, col_scale, m, k, scale_pitch, scale_pitch_turned, SQUARE: tl.constexpr):
    """A tile of 128 x 128: in rows, and turned; scales by row and by column, or one for all."""
    at_m, at_k = tl.program_id(0), tl.program_id(1)
    i, j = at_m * 128 + tl.arange(0, 128), at_k * 128 + tl.arange(0, 128)
    v = tl.load(x + i[:, None].to(tl.int64) * k + j[None, :]).to(tl.float32)
    if SQUARE:
        s = tl.maximum(tl.max(tl.max(tl.abs(v), 1), 0), 1e-12) / 448
        q = (v / s).to(tl.float8e4nv)
        tl.store(rows + i[:, None].to(tl.int64) * k + j[None, :], q)
        tl.store(cols + j[:, None].to(tl.int64) * m + i[None, :], tl.trans(q))
        tl.store(row_scale + at_m * scale_pitch + at_k, s)
        tl.store(col_scale + at_k * scale_pitch_turned + at_m, s)
    else:
        s = tl.maximum(tl.max(tl.abs(v), 1), 1e-12) / 448
        tl.store(rows + i[:, None].to(tl.int64) * k + j[None, :], (v / s[:, None]).to(tl.float8e4nv))
        tl.store(row_scale + at_k.to(tl.int64) * m + i, s)
        t = tl.maximum(tl.max(tl.abs(v), 0), 1e-12) / 448
        tl.store(cols + j[:, None].to(tl.int64) * m + i[None, :], tl.trans((v / t[None, :]).to(tl.float8e4nv)))
        tl.store(col_scale + at_m.to(tl.int64) * k + j, t)


def padded(n):
    return (n // 128 + 3) // 4 * 4


@torch.library.custom_op("foretoken::cast_rows", mutates_args=())
def cast_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (m, k) with scales (m, k / 128), and turned (k, m) with scales (k, m / 128); both the
    scales' first dimension is the dense one."""
    m, k = x.shape
    q, t = x.new_empty(m, k, dtype=E4), x.new_empty(k, m, dtype=E4)
    s, u = x.new_empty(k // 128, m, dtype=torch.float32), x.new_empty(m // 128, k, dtype=torch.float32)
    cast_tile[(m // 128, k // 128)](x, q, s, t, u, m, k, 0, 0, SQUARE=False, num_warps=8)
    return q, s, t, u


@cast_rows.register_fake
def _(x):
    m, k = x.shape
    return (x.new_empty(m, k, dtype=E4), x.new_empty(k // 128, m, dtype=torch.float32),
            x.new_empty(k, m, dtype=E4), x.new_empty(m // 128, k, dtype=torch.float32))


@torch.library.custom_op("foretoken::cast_blocks", mutates_args=())
def cast_blocks(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """w (n, k) with scales (n / 128, k / 128, padded to four), and turned."""
    n, k = w.shape
    q, t = w.new_empty(n, k, dtype=E4), w.new_empty(k, n, dtype=E4)
    s = w.new_zeros(n // 128, padded(k), dtype=torch.float32)
    u = w.new_zeros(k // 128, padded(n), dtype=torch.float32)
    cast_tile[(n // 128, k // 128)](w, q, s, t, u, n, k, padded(k), padded(n), SQUARE=True, num_warps=8)
    return q, s, t, u


@cast_blocks.register_fake
def _(w):
    n, k = w.shape
    return (w.new_empty(n, k, dtype=E4), w.new_empty(n // 128, padded(k), dtype=torch.float32),
            w.new_empty(k, n, dtype=E4), w.new_empty(k // 128, padded(n), dtype=torch.float32))


@torch.library.custom_op("foretoken::by_blocks", mutates_args=())
def by_blocks(x: torch.Tensor, s: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """x (m, k) times w (n, k) turned; w scaled by blocks."""
    return F.scaled_mm(x, w.t(), s.t(), ROWS, u.t(), BLOCKS, output_dtype=torch.bfloat16)


@by_blocks.register_fake
def _(x, s, w, u):
    return x.new_empty(x.shape[0], w.shape[0], dtype=torch.bfloat16)


@torch.library.custom_op("foretoken::by_rows", mutates_args=())
def by_rows(x: torch.Tensor, s: torch.Tensor, y: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """x (m, k) times y (n, k) turned; both scaled by rows."""
    return F.scaled_mm(x, y.t(), s.t(), ROWS, u.t(), ROWS, output_dtype=torch.bfloat16)


@by_rows.register_fake
def _(x, s, y, u):
    return x.new_empty(x.shape[0], y.shape[0], dtype=torch.bfloat16)


class BlockProduct(torch.autograd.Function):
    """y = x w'. What the backward pass wants is kept in FP8, as Transformer Engine does."""
    @staticmethod
    def forward(ctx, x, w):
        xq, xs, xt, xu = cast_rows(x)
        wq, ws, wt, wu = cast_blocks(w)
        ctx.save_for_backward(xt, xu, wt, wu)
        return by_blocks(xq, xs, wq, ws)

    @staticmethod
    def backward(ctx, g):
        xt, xu, wt, wu = ctx.saved_tensors
        gq, gs, gt, gu = cast_rows(g.contiguous())
        return by_blocks(gq, gs, wt, wu), by_rows(gt, gu, xt, xu)


class BlockLinear(nn.Linear):
    def forward(self, x):
        y = BlockProduct.apply(x.reshape(-1, x.shape[-1]), self.weight)
        return y.view(*x.shape[:-1], -1)


def products(layout, m, n, k):
    """The call alone, and the same in fp32, of 16-bit operands of the layer's sizes."""
    if layout == "forward":
        x, w = normal(m, k), normal(n, k)
        q, s, _, _ = cast_rows(x)
        p, u, _, _ = cast_blocks(w)
        return (lambda: by_blocks(q, s, p, u)), (lambda: x.float() @ w.float().t())
    if layout == "dgrad":
        y, w = normal(m, n), normal(n, k)
        q, s, _, _ = cast_rows(y)
        _, _, p, u = cast_blocks(w)
        return (lambda: by_blocks(q, s, p, u)), (lambda: y.float() @ w.float())
    y, x = normal(m, n), normal(m, k)
    _, _, q, s = cast_rows(y)
    _, _, p, u = cast_rows(x)
    return (lambda: by_rows(q, s, p, u)), (lambda: y.float().t() @ x.float())


def check(out):
    for layout in ("forward", "dgrad", "wgrad"):
        call, reference = products(layout, 1024, 1536, 2048)
        want = reference()
        far = ((call().float() - want).norm() / want.norm()).item()
        out.write(json.dumps(dict(record="check", layout=layout, error=round(far, 4))) + "\n")
        print(layout, far, flush=True)
        assert far < 0.06, layout


def operands(layout, m, n, k):
    """Rows, columns and the inner dimension of a pass of the layer."""
    return {"forward": (m, n, k), "dgrad": (m, k, n), "wgrad": (n, k, m)}[layout]


def run(p, layout, m, n, k):
    cell = dict(kind="gemm", impl="torch", layout=layout, m=m, n=n, k=k)
    p.time(dict(cell, dtype="fp8-block128"), products(layout, m, n, k)[0])
    a, b, c = operands(layout, m, n, k)
    x, w = normal(a, c, dtype=E4), normal(b, c, dtype=E4)
    one = torch.ones((), device=DEV)
    for fast in (True, False):
        p.time(dict(cell, dtype="fp8", accumulate="fast" if fast else "split"),
               lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                        use_fast_accum=fast))
    if layout != "forward":  # a gradient has fewer digits and a wider range
        y = normal(a, c).to(torch.float8_e5m2)
        p.time(dict(cell, dtype="fp8", accumulate="split", gradient="e5m2"),
               lambda: torch._scaled_mm(y, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                        use_fast_accum=False))


def long_runs(out, seconds):
    """Each product back to back until its card is as warm as in a step: microseconds of the last half."""
    for layout, m, n, k in (("forward", 8192, 8192, 8192), ("forward", 8192, 14336, 4096), ("wgrad", 8192, 8192, 8192),
                            ("forward", 8192, 5120, 13824), ("wgrad", 8192, 5120, 13824), ("forward", 16384, 7168, 2048)):
        a, b, c = operands(layout, m, n, k)
        x, w = torch.randn(a, c, device=DEV).to(E4), torch.randn(b, c, device=DEV).to(E4)
        one = torch.ones((), device=DEV)
        calls = {"fp8-block128": products(layout, m, n, k)[0]}
        for fast in (True, False):
            calls["fp8 fast" if fast else "fp8 split"] = lambda fast=fast: torch._scaled_mm(
                x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)
        for name, call in calls.items():
            time.sleep(1)
            call()
            torch.cuda.synchronize()
            times, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                p, q = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                p.record()
                for _ in range(50):
                    call()
                q.record()
                torch.cuda.synchronize()
                times.append(p.elapsed_time(q) * 20)
            half = sorted(times[len(times) // 2:])
            out.write(json.dumps(dict(record="long", kind="gemm", format=name, layout=layout, m=m, n=n, k=k,
                                      first_us=round(times[0], 2), time_us=round(half[len(half) // 2], 2))) + "\n")
            out.flush()


def cells(first, last):
    widths = ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (10240, 8192), (7168, 8192),
              (57344, 8192), (8192, 28672), (1536, 7168), (24576, 1536), (7168, 16384), (32768, 512), (4096, 7168),
              (7168, 2048), (36864, 7168), (7168, 18432), (2048, 2048), (5120, 5120), (13824, 5120), (5120, 13824))
    for m in (4096, 8192, 1024, 2048, 16384, 512):
        for n, k in widths[first:last]:
            if m * n * k <= 2 ** 43:
                for layout in ("forward", "dgrad", "wgrad"):
                    yield layout, m, n, k


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--out", required=True)
    a.add_argument("--seconds", type=float, default=240)
    a.add_argument("--widths", default="0,99", help="from which of the widths to which")
    a.add_argument("--long", type=float, default=0, help="seconds a product, back to back, instead of cells")
    a.add_argument("--date", default=datetime.date.today().isoformat())
    a = a.parse_args()
    end = time.monotonic() + a.seconds
    with open(a.out, "w") as out:
        out.write(json.dumps(dict(record="session", date=a.date, device=torch.cuda.get_device_name(),
                                  torch=torch.__version__, cublas=torch.backends.cuda.preferred_blas_library().name)) + "\n")
        check(out)
        if a.long:
            long_runs(out, a.long)
            return
        p = Probe(out, 0.015, 0.3)
        for m, k in ((4096, 4096), (8192, 4096), (8192, 14336), (16384, 8192), (4096, 7168)):
            x = normal(m, k)
            p.time(dict(kind="cast", impl="torch", dtype="fp8-block128", scales="rows", m=m, k=k), lambda: cast_rows(x))
            p.time(dict(kind="cast", impl="torch", dtype="fp8-block128", scales="blocks", m=m, k=k), lambda: cast_blocks(x))
        for cell in cells(*map(int, a.widths.split(","))):
            if time.monotonic() > end:
                break
            run(p, *cell)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
