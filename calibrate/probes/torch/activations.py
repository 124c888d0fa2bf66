#!/usr/bin/env python3
"""calibrate/probes/torch/activations.py - what the numbers of an MLP do to the clock: its six products under load,
of the numbers that an activation makes. Zeros draw less power.  Optional: needs torch and one GPU.

  python3 calibrate/probes/torch/activations.py OUT.jsonl

The rows are those of watts.py. A case is an activation and a format: the products of one MLP's pass forward and
backward in turn, weights as at the start of a training (normal, 0.0134), `zeros` the share of zeros in what the
activation gives. `normal` has normal numbers in place of what the activation makes, so is the clock that a
profile is fitted on.
"""
import json
import sys

import torch
import watts

TOKENS, WIDTH, WIDE, START = 8192, 6144, 24576, 0.0134
SECONDS = 6


def relu2(x):
    return torch.relu(x).square()


def swiglu(x):
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


ACTIVATIONS = {"normal": None, "relu2": relu2, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "swiglu": swiglu}


def operands(activation):
    """name -> (left, right) of m x k and n x k, all of one MLP."""
    gated = activation is swiglu
    wide = WIDE * 2 // 3 if gated else WIDE
    x, dy = torch.randn(TOKENS, WIDTH, device="cuda"), 1e-3 * torch.randn(TOKENS, WIDTH, device="cuda")
    up = START * torch.randn(wide * (2 if gated else 1), WIDTH, device="cuda")
    down = START * torch.randn(WIDTH, wide, device="cuda")
    before = (x @ up.t()).requires_grad_()
    if activation:
        after = activation(before)
        dbefore, = torch.autograd.grad(after, before, dy @ down)
        after = after.detach()
    else:
        after, dbefore = torch.randn_like(before), torch.randn_like(before)
    zeros = (after == 0).float().mean().item()
    pairs = {"up": (x, up), "down": (after, down), "down dgrad": (dy, down.t()), "down wgrad": (dy.t(), after.t()),
             "up dgrad": (dbefore, up.t()), "up wgrad": (dbefore.t(), x.t())}
    return {n: (a.detach().contiguous(), b.detach().contiguous()) for n, (a, b) in pairs.items()}, zeros


def bf16(a, b):
    a, b = a.bfloat16(), b.bfloat16().t()
    c = torch.empty(a.shape[0], b.shape[1], device="cuda", dtype=torch.bfloat16)
    return lambda: torch.mm(a, b, out=c)


def fp8(a, b):
    """A tensor's largest value becomes the format's, as tensorwise scaling has it."""
    scale = [t.abs().max() / 448 for t in (a, b)]
    a, b = ((t / s).to(torch.float8_e4m3fn) for t, s in zip((a, b), scale))
    return lambda: torch._scaled_mm(a, b.t(), scale[0], scale[1], out_dtype=torch.bfloat16, use_fast_accum=True)


def main():
    torch.manual_seed(0)
    card = watts.Card()
    with open(sys.argv[1], "w") as out:
        for name, make in (("bf16", bf16), ("fp8", fp8)):
            for activation, of in ACTIVATIONS.items():
                pairs, zeros = operands(of)
                parts = [(n, make(*pair), 1) for n, pair in pairs.items()]
                del pairs
                torch.cuda.empty_cache()
                row = watts.case(card, "%s %s" % (activation, name), parts, SECONDS)
                row.update(zeros=round(zeros, 4), gpu=torch.cuda.get_device_name(), torch=torch.__version__)
                out.write(json.dumps(row) + "\n")
                out.flush()
                took = [sum(p[k] for p in row["parts"].values()) for k in ("burst_ms", "sustained_ms")]
                print("%s: %.0f W, %.0f MHz, burst %.3f ms, speed %.3f, zeros %.2f" % (
                    row["case"], row["power_w"], row["mhz"], took[0], took[0] / took[1], zeros), flush=True)


if __name__ == "__main__":
    main()
