#!/usr/bin/env python3
"""calibrate/probes/torch/transformers_runs.py - what transformers_steps.py, trainer_steps.py or lightning_steps.py timed, as a RUNS.csv
for `foretoken validate`.  Needs neither torch nor a GPU.

  python3 calibrate/probes/torch/transformers_runs.py --gpu h100-sxm OUT.jsonl >RUNS.csv

A row a case that ran; its model by the keys of its config.json; no memory where cases before held more than 1 % of it. Left out, and told on standard
error: cases that failed, adapters whose products are in fp32 (`wide` without `autocast`), state on a host of whose
threads nothing is said, and updates of a loop that are not fused or clip gradients and models that a loop compiles as a whole, which no stack here has.
"""
import argparse
import csv
import json
import sys

# What a config.json says of embeddings' dropout, of rotary embeddings, of GPT-Neo's masks and of the scale of Gemma's scores is not counted.
NOT_OF_THE_MODEL = {"embd_pdrop", "embed_dropout", "embedding_dropout", "rotary_dim", "rotary_pct", "partial_rotary_factor",
                    "attention_types", "do_layer_norm_before", "pad_token_id", "query_pre_attn_scalar"}

# What a class of 5.17 does where a case says nothing. A config.json of these says it; PhiMoE's router takes two experts always.
OF_THE_CLASS = {"gpt2": {"attn_pdrop": 0.1, "resid_pdrop": 0.1}, "gpt_bigcode": {"attn_pdrop": 0.1, "resid_pdrop": 0.1},
                "opt": {"dropout": 0.1}, "seed_oss": {"attention_dropout": 0.1, "residual_dropout": 0.1}}
ALWAYS = {"phimoe": {"num_experts_per_tok": 2}}


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[%s]" % ", ".join(text(v) for v in value)
    return "" if value is None else str(value)


def of_trainer(case):
    return "optimizer_of" in case


def layers_of(model):
    return model.get("num_hidden_layers", model.get("n_layer"))


def trainer_run(case, gpu):
    """Of one GPU without a wrapper, of several under DDP or FSDP2, whose weights accelerate keeps in fp32."""
    lora, shard, alone = case.get("lora"), case.get("fsdp", False), case["gpus"] == 1
    wide = case.get("dtype") == "float32" or shard
    stack = "trainer" if case.get("bf16", True) else "eager"
    row = {"id": case["name"], "cluster.gpu": gpu, "cluster.gpus": case["gpus"],
           "stack": "transformers-5-%s%s" % (stack, "-compile" if case.get("compile") else ""),
           "training.sequence_length": case["seq"], "training.micro_batch_size": case["mbs"],
           "training.global_batch_size": case["mbs"] * case.get("ga", 1) * case["gpus"],
           "training.precision": "bf16", "training.sharding": "fsdp" if shard else "none" if alone else "ddp",
           "training.recompute": "full" if case.get("recompute") else "none",
           "training.gradient_dtype": "fp32" if wide and not shard else "bf16", "training.master_weights": wide}
    if shard:
        row["training.reshard_after_forward"] = case.get("reshard", True)
        if case.get("ga", 1) > 1:  # Trainer reduces in the last micro-batch alone, as a recorded step shows
            row["training.sync_each_micro_batch"] = False
    if lora:
        row.update({"training.lora.rank": lora["rank"], "training.lora.targets": lora["targets"],
                    "training.lora.fp32_adapters": lora.get("wide", True)})
    return row


def lightning_run(case, gpu):
    """Of one GPU without a wrapper, of several under DDP or FSDP1, which gathers and reduces in 16 bit also where precision is mixed."""
    alone, shard = case["gpus"] == 1, case["gpus"] > 1 and case.get("strategy") == "fsdp"
    wide = case.get("precision", "bf16-mixed").endswith("-mixed")
    return {"id": case["name"], "cluster.gpu": gpu, "cluster.gpus": case["gpus"],
            "stack": "lightning-2" + ("-fsdp1" if shard else "") + ("-compile" if case.get("compile") else ""),
            "training.sequence_length": case["seq"], "training.micro_batch_size": case["mbs"],
            "training.global_batch_size": case["mbs"] * case.get("ga", 1) * case["gpus"],
            "training.precision": "bf16", "training.sharding": "fsdp" if shard else "none" if alone else "ddp",
            "training.recompute": "full" if case.get("recompute") else "none",
            "training.gradient_dtype": "fp32" if wide and not shard else "bf16", "training.master_weights": wide}


def loop_run(case, gpu):
    lora, ddp = case.get("lora"), case.get("ddp", False)
    flat = case.get("fsdp1", False)
    shard = (case.get("shard", True) or flat) and not ddp
    narrow = not shard and not ddp or flat and case.get("reduce") == "bfloat16"
    if flat and not case.get("original", True):
        stack = "fsdp1-flat"  # compiled or not: graphs end at each weight, and products run eagerly
    elif flat:
        stack = "fsdp1-compile" if case.get("compile") else "fsdp1"
    else:
        stack = "compile" if case.get("compile") else "eager"
    row = {"id": case["name"], "cluster.gpu": gpu, "cluster.gpus": case["gpus"], "stack": "transformers-5-" + stack,
           "training.sequence_length": case["seq"], "training.micro_batch_size": case["mbs"],
           "training.global_batch_size": case["mbs"] * case.get("ga", 1) * case["gpus"],
           "training.precision": "bf16", "training.sharding": "fsdp" if shard else "ddp" if ddp or case["gpus"] > 1 else "none",
           "training.recompute": "full" if case.get("recompute") else "none",
           "training.gradient_dtype": "bf16" if narrow else "fp32",
           "training.master_weights": shard or ddp,
           "training.reshard_after_forward": case.get("reshard", True)}
    if "sync_each" in case:
        row["training.sync_each_micro_batch"] = case["sync_each"]
    if case.get("host"):
        row.update({"training.offload_state": "all", "training.offload_threads": case["threads"]})
    if lora:
        row.update({"training.lora.rank": lora["rank"], "training.lora.targets": lora["targets"],
                    "training.lora.fp32_adapters": lora.get("wide", False)})
    return row


def run(case, gpu):
    row = (lightning_run if "lightning" in case else trainer_run if of_trainer(case) else loop_run)(case, gpu)
    kind = case["model"]["model_type"]
    model = {**OF_THE_CLASS.get(kind, {}), **case["model"], **ALWAYS.get(kind, {})}
    row.update(("model." + k, v) for k, v in model.items() if k not in NOT_OF_THE_MODEL)
    if case.get("on_host"):
        row["training.offload_layers"] = layers_of(case["model"])
    if case.get("compile") and case.get("mode") in ("reduce-overhead", "max-autotune"):
        row["training.cuda_graphs"] = "full"
    left = case.get("held_bytes", 0) > 0.01 * case.get("peak_bytes", 0)  # of cases before
    row.update({"measured.step_s": case["step_s"],
                "measured.memory_bytes_per_gpu.total": None if left else case.get("peak_bytes"),
                "source": "%s, transformers %s, torch %s" % (case["gpu"], case["transformers"], case["torch"])})
    return row


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--gpu", required=True, help="a GPU of `foretoken list gpus`")
    a.add_argument("file", help="what transformers_steps.py, trainer_steps.py or lightning_steps.py wrote")
    a = a.parse_args()
    rows = []
    for case in map(json.loads, open(a.file)):
        if "step_s" not in case:
            print("%s: left out: %s" % (case["name"], case.get("error")), file=sys.stderr)
        elif case.get("on_host") and not layers_of(case["model"]):
            print("%s: left out: activations on a host of layers of which nothing is said" % case["name"], file=sys.stderr)
        elif case.get("compile") == "whole":
            print("%s: left out: a loop's model compiled as a whole" % case["name"], file=sys.stderr)
        elif "lightning" in case and case.get("clip"):
            print("%s: left out: gradients are clipped" % case["name"], file=sys.stderr)
        elif of_trainer(case) or "lightning" in case:
            rows.append(run(case, a.gpu))
        elif case.get("lora", {}).get("wide") and not case.get("autocast"):
            print("%s: left out: adapters whose products are in fp32" % case["name"], file=sys.stderr)
        elif case.get("host") and "threads" not in case:
            print("%s: left out: state on a host of whose threads nothing is said" % case["name"], file=sys.stderr)
        elif case.get("optimizer", "fused") != "fused" or case.get("clip"):
            print("%s: left out: an update that is not fused, or clips gradients" % case["name"], file=sys.stderr)
        else:
            rows.append(run(case, a.gpu))
    columns = list(dict.fromkeys(k for row in rows for k in row if not k.startswith(("measured", "source"))))
    columns += ["measured.step_s", "measured.memory_bytes_per_gpu.total", "source"]
    out = csv.DictWriter(sys.stdout, columns, restval="", lineterminator="\n")
    out.writeheader()
    out.writerows({k: text(v) for k, v in row.items()} for row in rows)


main()
