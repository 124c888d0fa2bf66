#!/usr/bin/env python3
"""calibrate/probes/torch/transformers_counts.py - parameters of every decoder that Hugging Face
Transformers builds, one JSON line a configuration.  Optional: needs torch and transformers; no GPU, no weights.

  python3 calibrate/probes/torch/transformers_counts.py [--part I --of N] >COUNTS.jsonl

Of each model_type: the configuration that its class has by itself, and three small ones whose
sizes are drawn from the type's name. `parameters` is what a checkpoint holds: weights, tied ones
once, and the buffers that are saved with them. A line without it says in `error` why the library
did not build it. With N processes beside each other it takes a minute.
"""
import argparse
import json
import os
import random
import signal
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES  # noqa: E402

SECONDS = 12  # for one configuration
MULTIPLES = {"intermediate_size": 96, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 64,
             "intermediate_size_mlp": 128, "ffn_dim": 96, "n_inner": 96, "ffn_hidden_size": 96}


def drawn(config, draw):
    """Sizes for those of the usual keys that the class has."""
    width, heads = draw.choice([32, 64]), draw.choice([4, 8])
    wish = {k: width * heads for k in ("hidden_size", "n_embd", "d_model")}
    wish.update((k, heads) for k in ("num_attention_heads", "n_head", "n_heads", "num_heads"))
    kv_heads = draw.choice([1, 2, 4])
    wish.update((k, kv_heads) for k in ("num_key_value_heads", "num_kv_heads"))
    wish["head_dim"] = draw.choice([width, 2 * width])
    layers = draw.choice([4, 6, 8])
    wish.update((k, layers) for k in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"))
    wish.update((k, v * draw.choice([2, 3, 4])) for k, v in MULTIPLES.items())
    wish["vocab_size"] = draw.choice([1000, 1024])
    experts = draw.choice([8, 16])
    wish.update((k, experts) for k in ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"))
    each = draw.choice([2, 4])
    wish.update((k, each) for k in ("num_experts_per_tok", "experts_per_token", "moe_k"))
    wish.update(q_lora_rank=96, kv_lora_rank=64, max_position_embeddings=2048, n_positions=2048,
                pad_token_id=1, bos_token_id=1, eos_token_id=1)
    return {k: v for k, v in wish.items() if isinstance(getattr(config, k, None), (int, float))}


def parameters(config):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    saved = set(model.state_dict())
    return sum(p.numel() for p in model.parameters()) + \
        sum(b.numel() for k, b in model.named_buffers() if k in saved)


def late(*_):
    raise TimeoutError("not built within %d s" % SECONDS)


def rows(kind):
    try:
        of_class = transformers.CONFIG_MAPPING[kind]
        plain = of_class()
    except Exception as e:  # told in its row: a class that cannot be built without arguments
        yield {"type": kind, "case": "default", "error": str(e)[:300]}
        return
    draw = random.Random(kind)
    for case in ["default", "drawn0", "drawn1", "drawn2"]:
        row = {"type": kind, "case": case}
        signal.alarm(SECONDS)
        try:
            config = plain if case == "default" else of_class(**drawn(plain, draw))
            row["config"] = json.loads(config.to_json_string(use_diff=False))
            row["parameters"] = parameters(config)
        except Exception as e:  # told in its row: sizes that do not go together
            row["error"] = "%s: %s" % (type(e).__name__, str(e)[:300])
        signal.alarm(0)
        yield row


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--part", type=int, default=0)
    a.add_argument("--of", type=int, default=1)
    a = a.parse_args()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, late)
    for kind in list(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)[a.part::a.of]:
        for row in rows(kind):
            row["transformers"] = transformers.__version__
            sys.stdout.write(json.dumps(row) + "\n")


main()
