#!/usr/bin/env python3
"""calibrate/probes/torch/transformers_runs.py - what transformers_steps.py timed, as a RUNS.csv for
`foretoken validate`.  Needs neither torch nor a GPU.

  python3 calibrate/probes/torch/transformers_runs.py --gpu h100-sxm OUT.jsonl >RUNS.csv

A row a case that ran; its model by the keys of its config.json. Left out, and told on standard
error: cases that failed, adapters whose products are in fp32 (`wide` without `autocast`), and updates that
are not fused or clip gradients, which no stack here has.
"""
import argparse
import csv
import json
import sys

# What a config.json says of training, of rotary embeddings and of GPT-Neo's masks changes no shape.
NOT_OF_THE_MODEL = {"dropout", "attention_dropout", "hidden_dropout", "embd_pdrop", "attn_pdrop", "resid_pdrop",
                    "embed_dropout", "resid_dropout", "rotary_dim", "rotary_pct", "partial_rotary_factor", "attention_types"}


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[%s]" % ", ".join(text(v) for v in value)
    return "" if value is None else str(value)


def run(case, gpu):
    lora, ddp = case.get("lora"), case.get("ddp", False)
    flat = case.get("fsdp1", False)
    shard = (case.get("shard", True) or flat) and not ddp
    narrow = not shard and not ddp or flat and case.get("reduce") == "bfloat16"
    row = {"id": case["name"], "cluster.gpu": gpu, "cluster.gpus": case["gpus"],
           "stack": "transformers-5-" + ("fsdp1-compile" if flat and case.get("compile") else "fsdp1" if flat else
                                        "compile" if case.get("compile") else "eager"),
           "training.sequence_length": case["seq"], "training.micro_batch_size": case["mbs"],
           "training.global_batch_size": case["mbs"] * case.get("ga", 1) * case["gpus"],
           "training.precision": "bf16", "training.sharding": "fsdp" if shard else "ddp",
           "training.recompute": "full" if case.get("recompute") else "none",
           "training.gradient_dtype": "bf16" if narrow else "fp32",
           "training.master_weights": shard or ddp,
           "training.reshard_after_forward": case.get("reshard", True)}
    if "sync_each" in case:
        row["training.sync_each_micro_batch"] = case["sync_each"]
    row.update(("model." + k, v) for k, v in case["model"].items() if k not in NOT_OF_THE_MODEL)
    if lora:
        row.update({"training.lora.rank": lora["rank"], "training.lora.targets": lora["targets"],
                    "training.lora.fp32_adapters": lora.get("wide", False)})
    row.update({"measured.step_s": case["step_s"],
                "measured.memory_bytes_per_gpu.total": case["peak_bytes"],
                "source": "%s, transformers %s, torch %s" % (case["gpu"], case["transformers"], case["torch"])})
    return row


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--gpu", required=True, help="a GPU of `foretoken list gpus`")
    a.add_argument("file", help="what transformers_steps.py wrote")
    a = a.parse_args()
    rows = []
    for case in map(json.loads, open(a.file)):
        if "step_s" not in case:
            print("%s: left out: %s" % (case["name"], case.get("error")), file=sys.stderr)
        elif case.get("lora", {}).get("wide") and not case.get("autocast"):
            print("%s: left out: adapters whose products are in fp32" % case["name"], file=sys.stderr)
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
