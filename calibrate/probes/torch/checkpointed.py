#!/usr/bin/env python3
"""calibrate/probes/torch/checkpointed.py - does a layer stay compiled that is recomputed, when something in it
breaks the compiler's graph?  Optional: needs torch, transformers and one GPU.

  python3 calibrate/probes/torch/checkpointed.py OUT.jsonl [SEQUENCE]

Eight layers of Qwen3-0.6B's sizes by Transformers, attention by PyTorch's FlashAttention. Cases: eager, each layer compiled,
the whole model compiled; each layer in a checkpoint or not; attention that is traced (`whole_mine`) or has a
graph break in front of it (`broken_mine`). One JSON line a case: the median of six passes forward and backward, kernels
of one pass and how many of them a compiler made.
"""
import json
import sys
import time

import torch
import transformers
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

LAYERS = 8
SIZES = dict(num_hidden_layers=LAYERS, hidden_size=1024, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
             intermediate_size=3072, vocab_size=32000, tie_word_embeddings=True, max_position_embeddings=65536)


def whole(_module, q, k, v, _mask, scaling=None, **_):
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True, False, scale=scaling)[0]
    return out.transpose(1, 2).contiguous(), None


def broken(*given, **named):
    torch._dynamo.graph_break()
    return whole(*given, **named)


for name, way in (("whole_mine", whole), ("broken_mine", broken)):
    AttentionInterface.register(name, way)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, lambda *a, **k: None)


def build(attention, checkpointed, compiled):
    torch._dynamo.reset()
    config = transformers.AutoConfig.for_model("qwen3", **SIZES)
    config.use_cache = False
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16,
                                                              attn_implementation=attention)
    layers = model.train().model.layers
    if checkpointed:
        for i, layer in list(layers.named_children()):
            layers.register_module(i, checkpoint_wrapper(layer, preserve_rng_state=False))
    if compiled == "layers":
        for layer in layers:
            layer.compile()
    return torch.compile(model) if compiled == "model" else model


def timed(model, sequence):
    tokens = torch.randint(32000, (1, sequence), device="cuda")
    positions = torch.arange(sequence, device="cuda")[None]

    def once():
        model(input_ids=tokens, position_ids=positions).logits.float().mean().backward()
        for p in model.parameters():
            p.grad = None
    for _ in range(4):
        once()
    taken = []
    for _ in range(6):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        once()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        once()
        torch.cuda.synchronize()
    kernels = [e.name for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return round(sorted(taken)[3], 5), len(kernels), sum("triton" in n for n in kernels)


def main():
    sequence = int(sys.argv[2]) if len(sys.argv) > 2 else 16384
    with open(sys.argv[1], "w") as out:
        for compiled in (None, "layers", "model"):
            for checkpointed in (False, True):
                for attention in ("whole_mine", "broken_mine")[:2 if compiled else 1]:
                    torch.cuda.empty_cache()
                    step, kernels, triton = timed(build(attention, checkpointed, compiled), sequence)
                    row = dict(attention=attention, checkpointed=checkpointed, compiled=compiled, seq=sequence,
                               layers=LAYERS, step_s=step, kernels=kernels, triton=triton)
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
