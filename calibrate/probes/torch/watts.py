#!/usr/bin/env python3
"""calibrate/probes/torch/watts.py - what products, attention and copies draw, and how far the card's clock
falls under each for seconds, alone and in turn.  Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/watts.py OUT.jsonl [moved]

With `moved` only kernels that are bound by memory. A row a case: `parts`, each with its kernel's `burst_ms`, behind a rest of two seconds, its
`sustained_ms`, `in_turn` of it one behind the other, and `share` of the time; `power_w` by the
card's energy counter and `mhz`, the mean clock, both over the second half.
"""
import ctypes
import json
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

IMPLS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "fa2": SDPBackend.FLASH_ATTENTION}
TURN_MS = 4  # what one part runs before the next


class Card:
    def __init__(self):
        self.nvml, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle))

    def joules(self):
        mj = ctypes.c_ulonglong()
        self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(mj))
        return mj.value * 1e-3

    def mhz(self):
        mhz = ctypes.c_uint()
        self.nvml.nvmlDeviceGetClockInfo(self.handle, 1, ctypes.byref(mhz))
        return mhz.value


def mark():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def product(m, n, k):
    a, b, c = normal(m, k), normal(k, n), normal(m, n)
    return lambda: torch.mm(a, b, out=c)


def product_fp8(m, n, k):
    a, b = normal(m, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)


def attention(impl, seq, heads, kv, dim, backward, causal=True):
    q, k, v = (normal(max(1, 8192 // seq), h, seq, dim).requires_grad_() for h in (heads, kv, kv))

    def forward():
        with sdpa_kernel(IMPLS[impl]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv != heads)

    if not backward:
        return forward
    out = forward()
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def copy(megabytes):
    a = normal(megabytes << 19)
    b = torch.empty_like(a)
    return lambda: b.copy_(a)


def moved():
    """Kernels bound by memory, as eager steps have them: (name, run)."""
    tokens, width = 16384, 8192
    x, y, g = (normal(tokens, width) for _ in range(3))
    weight, wide = normal(width), torch.randn(tokens, width, device="cuda")
    out, logits = torch.empty_like(x), normal(4096, 128256)
    scores, target = logits.float(), torch.randint(0, 128256, (4096,), device="cuda")
    functional, rows = torch.nn.functional, torch.randint(0, tokens, (tokens,), device="cuda")
    state = [torch.nn.Parameter(torch.randn(1 << 28, device="cuda"))]
    state[0].grad = torch.randn_like(state[0])
    adam = torch.optim.AdamW(state, lr=1e-6, fused=True)
    a = x.detach().requires_grad_()
    w = weight.detach().requires_grad_()
    normed = functional.rms_norm(a, (width,), w)
    gated = functional.silu(a)
    summed = functional.cross_entropy(scores.requires_grad_(), target)
    gelued, leveled = functional.gelu(a), functional.layer_norm(a, (width,), w, w)
    swiglu = torch.compile(lambda u, v: functional.silu(u) * v)
    swished = swiglu(a, w.expand_as(a).contiguous().detach().requires_grad_())
    rotate = torch.compile(lambda u, c: u * c + torch.cat((-u[..., 64:], u[..., :64]), -1) * c)
    heads, angles = x.view(tokens, 64, 128), normal(1, 1, 128)
    return [("add", lambda: torch.add(x, y, out=out)), ("mul", lambda: torch.mul(x, y, out=out)),
            ("cast to bf16", lambda: out.copy_(wide)), ("cast to fp32", lambda: wide.copy_(x)),
            ("transpose", lambda: out.view(width, tokens).copy_(x.t())),
            ("silu", lambda: functional.silu(x)), ("silu backward", lambda: torch.autograd.grad(gated, a, g, retain_graph=True)),
            ("rms_norm", lambda: functional.rms_norm(x, (width,), weight)),
            ("rms_norm backward", lambda: torch.autograd.grad(normed, (a, w), g, retain_graph=True)),
            ("softmax", lambda: torch.softmax(scores.detach(), -1)),
            ("cross entropy", lambda: functional.cross_entropy(scores.detach(), target)),
            ("cross entropy backward", lambda: torch.autograd.grad(summed, scores, retain_graph=True)),
            ("gelu", lambda: functional.gelu(x)), ("gelu backward", lambda: torch.autograd.grad(gelued, a, g, retain_graph=True)),
            ("layer_norm", lambda: functional.layer_norm(x, (width,), weight, weight)),
            ("layer_norm backward", lambda: torch.autograd.grad(leveled, (a, w), g, retain_graph=True)),
            ("swiglu compiled", lambda: swiglu(x, y)), ("swiglu compiled backward", lambda: torch.autograd.grad(swished, a, g, retain_graph=True)),
            ("rope compiled", lambda: rotate(heads, angles)), ("dropout", lambda: functional.dropout(x, 0.1)),
            ("concat", lambda: torch.cat((x, y))), ("embedding", lambda: functional.embedding(rows, x)),
            ("adamw", adam.step), ("fill", lambda: wide.zero_())]


def burst_ms(run):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    time.sleep(2)
    marks = [mark()]
    while len(marks) < 4 or marks[0].elapsed_time(marks[-1]) < 12:
        run()
        marks.append(mark())
        marks[-1].synchronize()
    return sorted(x.elapsed_time(y) for x, y in zip(marks, marks[1:]))[(len(marks) - 1) // 2]


def loop(card, parts, turns, seconds):
    """Runs the parts in turn, for so many seconds, three rounds ahead of the host: what each took, how often, clocks."""
    spent, ran, clocks, pending = {n: 0.0 for n, _, _ in parts}, {n: 0 for n, _, _ in parts}, [], []
    begun = time.time()
    while pending or time.time() - begun < seconds:
        if time.time() - begun < seconds:
            for n, run, _ in parts:
                first = mark()
                for _ in range(turns[n]):
                    run()
                pending.append((n, first, mark()))
            if len(pending) <= 3 * len(parts):
                continue
        n, first, last = pending.pop(0)
        last.synchronize()
        spent[n] += first.elapsed_time(last)
        ran[n] += turns[n]
        clocks.append(card.mhz())
    return spent, ran, sum(clocks) / len(clocks)


def case(card, name, parts, seconds):
    """parts: (name, run, share of the time at the full clock)."""
    burst = {n: burst_ms(run) for n, run, _ in parts}
    least = min(s for _, _, s in parts)
    turns = {n: max(1, round(s / least * TURN_MS / burst[n])) for n, _, s in parts}
    loop(card, parts, turns, seconds / 2)
    begun, joules = time.time(), card.joules()
    spent, ran, mhz = loop(card, parts, turns, seconds / 2)
    took, joules = time.time() - begun, card.joules() - joules
    every = sum(spent.values())
    torch.cuda.empty_cache()
    return {"case": name, "power_w": round(joules / took, 1), "mhz": round(mhz, 1), "busy": round(every / took / 1e3, 4),
            "parts": {n: {"burst_ms": burst[n], "sustained_ms": spent[n] / ran[n], "in_turn": turns[n],
                          "share": round(spent[n] / every, 4)} for n in burst}}


def main():
    torch.manual_seed(0)
    card = Card()
    if sys.argv[2:] == ["moved"]:
        return tell(card, [(n, [(n, run, 1)]) for n, run in [("copy", copy(512))] + moved()])
    big, square = product(8192, 8192, 8192), product(4096, 4096, 4096)
    forward = {s: attention("cudnn", s, 32, 8, 128, False) for s in (4096, 16384)}
    backward = {s: attention("cudnn", s, 32, 8, 128, True) for s in (4096, 16384)}
    fa2 = {b: attention("fa2", 16384, 32, 32, 128, b) for b in (False, True)}
    whole = {b: attention("cudnn", 16384, 32, 32, 128, b, causal=False) for b in (False, True)}
    narrow = {b: attention("cudnn", 16384, 32, 32, 64, b) for b in (False, True)}
    copies = copy(512)
    alone = [("product 8192", big), ("product 4096", square), ("product 16384x4096x14336", product(16384, 4096, 14336)),
             ("product fp8 8192", product_fp8(8192, 8192, 8192)),
             ("cudnn forward 16384", forward[16384]), ("cudnn backward 16384", backward[16384]),
             ("cudnn forward 4096", forward[4096]), ("cudnn backward 4096", backward[4096]),
             ("cudnn whole forward", whole[False]), ("cudnn whole backward", whole[True]),
             ("cudnn forward of 64", narrow[False]), ("cudnn backward of 64", narrow[True]),
             ("fa2 forward 16384", fa2[False]), ("fa2 backward 16384", fa2[True]), ("copy", copies)]
    cases = [(n, [(n, run, 1)]) for n, run in alone]
    for share in (0.75, 0.5, 0.25):
        for n, run in (("cudnn forward 16384", forward[16384]), ("cudnn backward 16384", backward[16384])):
            cases.append(("%s, product %g" % (n, 1 - share), [(n, run, share), ("product 8192", big, 1 - share)]))
    for n, run in (("cudnn forward 16384", forward[16384]), ("cudnn backward 16384", backward[16384]), ("product 8192", big)):
        cases.append(("%s, copy 0.25" % n, [(n, run, 0.75), ("copy", copies, 0.25)]))
    tell(card, cases)


def tell(card, cases):
    with open(sys.argv[1], "w") as out:
        for name, parts in cases:
            row = case(card, name, parts, 4 if len(parts) == 1 else 5)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print("%s: %.0f W, %.0f MHz, speed %s" % (name, row["power_w"], row["mhz"], ", ".join(
                "%.3f" % (p["burst_ms"] / p["sustained_ms"]) for p in row["parts"].values())), flush=True)


if __name__ == "__main__":
    main()
