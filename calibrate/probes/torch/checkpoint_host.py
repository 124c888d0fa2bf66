#!/usr/bin/env python3
"""calibrate/probes/torch/checkpoint_host.py - what a recomputed layer costs the host that launches it.
Optional: needs torch (and transformers for its own layers) and one GPU.

  python3 calibrate/probes/torch/checkpoint_host.py OUT.jsonl

Twelve layers, so small that the GPU always waits: a step is what the host takes. Layers of Llama (llama.py here), of GPT with
biases, and of Transformers' Llama; eager and compiled; weights in bf16, or in fp32 under autocast; without a checkpoint, all of a
layer in one (`full`), or torchtitan's choice of operations (`ops`: every second product runs again). One JSON line a case:
microseconds a layer, forward and backward each, the median of rounds; cases run in turns, so that a host which
slows down slows down all of them. Operations of host.py run in between, for the host's own speed.
"""
import functools
import json
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import host
import llama

LAYERS, TOKENS, ROUNDS, TURNS = 12, 64, 8, 3
SIZES = dict(hidden=256, heads=4, kv=4, ffn=512)


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, self.a = c["hidden"], c["heads"]
        self.norm1, self.norm2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(h, h) for _ in range(4))
        self.w1, self.w2 = nn.Linear(h, c["ffn"]), nn.Linear(c["ffn"], h)

    def forward(self, x, _cos, _sin):
        B, S, h = x.shape
        y = self.norm1(x)
        q, k, v = (w(y).view(B, S, self.a, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(o.transpose(1, 2).reshape(B, S, h))
        return x + self.w2(F.gelu(self.w1(self.norm2(x))))


def transformers_layers():
    import transformers
    c = transformers.LlamaConfig(hidden_size=SIZES["hidden"], num_attention_heads=4, num_key_value_heads=4,
                                 intermediate_size=SIZES["ffn"], num_hidden_layers=LAYERS, vocab_size=256)
    return list(transformers.LlamaForCausalLM(c).model.layers)


def saved_operations():
    kept = [torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_cudnn_attention.default,
            torch.ops.aten._scaled_dot_product_flash_attention.default]
    met = {}

    def policy(ctx, op, *_args, **_named):
        phase = "again" if ctx.is_recompute else "first"
        if op == kept[0]:
            met[phase] = met.get(phase, 0) + 1
            return CheckpointPolicy.PREFER_RECOMPUTE if met[phase] % 2 == 0 else CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


class Case:
    def __init__(self, kind, compiled, precision, again):
        self.row = dict(kind=kind, compiled=compiled, precision=precision, again=again, layers=LAYERS)
        if kind == "transformers":
            layers = transformers_layers()
        else:
            layers = [(llama.Block if kind == "llama" else Gpt)(SIZES) for _ in range(LAYERS)]
        self.autocast = precision == "autocast"
        self.layers = [b.to("cuda", torch.float32 if self.autocast else torch.bfloat16) for b in layers]
        for b in self.layers if compiled else []:
            b.compile()
        self.x = torch.randn(1, TOKENS, SIZES["hidden"], device="cuda",
                             dtype=torch.float32 if self.autocast else torch.bfloat16)
        d = SIZES["hidden"] // SIZES["heads"] // (1 if kind == "transformers" else 2)
        self.cos, self.sin = (torch.ones(*((1,) if kind == "transformers" else ()), TOKENS, d, device="cuda", dtype=torch.bfloat16)
                              for _ in range(2))
        self.times = {"forward_us": [], "backward_us": []}

    def call(self, b, x):
        if self.row["kind"] == "transformers":
            return b(x, position_embeddings=(self.cos, self.sin))
        return b(x, self.cos, self.sin)

    def step(self):
        torch.cuda.synchronize()
        start = time.perf_counter()
        x = self.x
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            for b in self.layers:
                f = functools.partial(self.call, b)
                if self.row["again"] == "none":
                    x = f(x)
                elif self.row["again"] == "full":
                    x = checkpoint(f, x, use_reentrant=False)
                else:
                    x = checkpoint(f, x, use_reentrant=False, context_fn=saved_operations)
        middle = time.perf_counter()
        x.sum().backward()
        end = time.perf_counter()
        torch.cuda.synchronize()
        for b in self.layers:
            for p in b.parameters():
                p.grad = None
        return middle - start, end - middle

    def round(self):
        for _ in range(ROUNDS):
            for told, s in zip(self.times.values(), self.step()):
                told.append(1e6 * s / LAYERS)

    def told(self):
        return dict(self.row, **{k: round(statistics.median(v), 1) for k, v in self.times.items()},
                    **{"least_" + k: round(min(v), 1) for k, v in self.times.items()})


def main():
    ways = [(k, False, p, a) for k in ("llama", "gpt") for p in ("bf16", "autocast") for a in ("none", "full", "ops")]
    ways += [("transformers", False, "bf16", a) for a in ("none", "full")]
    ways += [(k, True, "bf16", a) for k in ("llama", "gpt") for a in ("none", "full", "ops")]
    cases = []
    for w in ways:
        try:
            cases.append(Case(*w))
            cases[-1].step(), cases[-1].step(), cases[-1].step()
        except Exception as e:  # a way that this PyTorch does not have
            cases = [c for c in cases if c.row != dict(kind=w[0], compiled=w[1], precision=w[2], again=w[3], layers=LAYERS)]
            print(w, repr(e)[:200], file=sys.stderr)
    common = dict(gpu=torch.cuda.get_device_name(), cpu=host.cpu(), torch=torch.__version__)
    with open(sys.argv[1], "a") as out:
        x, y = (torch.ones(256, device="cuda") for _ in range(2))
        for _ in range(TURNS):
            for c in cases:
                c.round()
            for name, call in (("launch", lambda: x.add_(y)), ("operation", lambda: x + y)):
                out.write(json.dumps(dict(case=name, **host.timed(call, 500), **common)) + "\n")
        for c in cases:
            out.write(json.dumps(dict(case="layer", **c.told(), **common)) + "\n")


if __name__ == "__main__":
    main()
