#!/usr/bin/env python3
"""calibrate/probes/torch/transformers_steps.py - training steps of Hugging Face Transformers' own
models, one JSON line a case.  Optional: needs torch, transformers and GPUs; loads no weights.

  torchrun --nproc-per-node N calibrate/probes/torch/transformers_steps.py CASES.json OUT.jsonl

CASES.json is a list of maps: `name`; `model`, keys of a config.json with its model_type; `seq`;
`mbs`, sequences a micro-batch and rank; and, where they differ from the default, `ga` (1)
micro-batches a step; `shard` (true) FSDP2 around each layer, weights in fp32 and computation in
bf16, or all of one rank in bf16; `fsdp1` (false) FullyShardedDataParallel around each layer instead, by its defaults, with `reduce`
("float32") the format of its reductions and `original` (true) its use_orig_params; `ddp` (false) instead, weights in fp32 under
autocast; `reshard` (true); `host` (false) either FSDP keeps weights, gradients and the optimizer's state in host memory, where the update runs on
`threads` (those that PyTorch takes) of the processor; `sync_each` (true) FSDP2 reduces gradients in each micro-batch, else in the last alone, and without `reshard` keeps
weights gathered until then; `attention` (the library's choice; `sinks_outside`: see below); `optimizer` ("fused"), or "foreach" or "loop"; `clip` (false) gradients to a norm of 1;
`compile` (false) each layer, or "whole" the model at once, by PyTorch's `mode` ("default"; "reduce-overhead" takes CUDA graphs); `on_host` (false) what passes keep for their
backward waits in host memory (saved_on_host.py); `recompute` (false) each layer; `lora`, a map of `rank`, `targets` (names
of modules) and `wide` (false: adapters in bf16; true: in fp32, as PEFT has them), with `shard` false;
`autocast` (false) to bf16; `collect` (true) Python collects its garbage; `trace` (false).

A step is forward and backward of all micro-batches, the loss by the library, and a fused AdamW.
`step_s` is the mean of steps one behind the other, `alone_s` the median of steps after a wait,
`peak_bytes` what the allocator held at most, first steps included (DDP then lays its buckets anew), `reserved_bytes` what it had taken from
the GPU by then, `threads` PyTorch's on the processor, `held_bytes` what cases before had not freed, `retries` how often in the timed steps it gave all back to find room, and `collections` how often in those one behind the other Python's
garbage collector ran, by generation, and for how many seconds a step. With `trace` and TRACES in the environment rank 0
writes TRACES/NAME.rank0.kineto.json.gz of one more step.
"""
import contextlib
import datetime
import gc
import importlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import transformers
from saved_on_host import saved_on_host
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy,
                                    fully_shard)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

WARM, STEPS = 4, 8
THREADS = torch.get_num_threads()


class Collector:
    """Counts Python's collections of garbage, and their time, while it is entered."""

    def __enter__(self):
        self.runs, self.seconds = [0, 0, 0], 0.0
        gc.callbacks.append(self)
        return self

    def __exit__(self, *_):
        gc.callbacks.remove(self)

    def __call__(self, phase, info):
        if phase == "start":
            self.begun = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self.begun
            self.runs[info["generation"]] += 1


def layers_of(model):
    """Its decoder layers: the longest list of modules."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=lambda m: sum(p.numel() for p in m.parameters()))


def sinks_outside():
    """Attention of gpt-oss by FlexAttention, whose output is scaled for the sinks by operations. For `attention`."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from transformers import AttentionInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    made, masks = torch.compile(flex_attention, dynamic=False), {}

    def attend(module, q, k, v, _mask, scaling=None, s_aux=None, **_):
        window, length = getattr(module, "sliding_window", None) or 0, q.shape[2]
        if (window, length) not in masks:
            def seen(_b, _h, at, of):
                return (at >= of) & (at - of < window) if window else at >= of
            masks[window, length] = create_block_mask(seen, None, None, length, length, device=q.device)
        out, lse = made(q, k, v, block_mask=masks[window, length], scale=scaling, enable_gqa=True, return_lse=True)
        out = (out * torch.sigmoid(lse - s_aux.view(1, -1, 1)).unsqueeze(-1)).to(q.dtype)
        return out.transpose(1, 2).contiguous(), None
    AttentionInterface.register("sinks_outside", attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register("sinks_outside", lambda *a, **k: None)


def maker(config):
    """What makes a model of a configuration: the auto class, or that of a type which it does not list (mistral4)."""
    if type(config) in transformers.AutoModelForCausalLM._model_mapping:
        return transformers.AutoModelForCausalLM.from_config
    module = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    return getattr(module, type(config).__name__.replace("Config", "ForCausalLM"))._from_config


def build(case, device):
    if case.get("attention") == "sinks_outside":
        sinks_outside()
    keys = dict(case["model"])
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    config.use_cache = False
    ddp = case.get("ddp", False)
    flat = case.get("fsdp1", False)
    shard = case.get("shard", True) and not ddp and not flat
    with torch.device(device):
        model = maker(config)(
            config, dtype=torch.float32 if shard or ddp or flat else torch.bfloat16,
            **({"attn_implementation": case["attention"]} if "attention" in case else {}))
    model.train()
    if case.get("recompute"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
    layers = layers_of(model)
    if "lora" in case:
        import peft
        adapters = peft.LoraConfig(r=case["lora"]["rank"], lora_alpha=2 * case["lora"]["rank"],
                                   target_modules=case["lora"]["targets"], task_type="CAUSAL_LM")
        model.enable_input_require_grads()
        model = peft.get_peft_model(model, adapters,
                                    autocast_adapter_dtype=case["lora"].get("wide", False))
    if case.get("compile"):
        for layer in [model] if case["compile"] == "whole" else layers:
            layer.compile(mode=case.get("mode", "default"))
    if shard:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        more = {"mesh": init_device_mesh("cuda", (dist.get_world_size(),)), "mp_policy": policy,
                "reshard_after_forward": case.get("reshard", True)}
        if case.get("host"):
            more["offload_policy"] = CPUOffloadPolicy()
            model.to("cpu")
        for layer in layers:
            fully_shard(layer, **more)
        fully_shard(model, **more)
    if flat:
        model = FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({type(layers[0])}), device_id=device,
            use_orig_params=case.get("original", True), cpu_offload=CPUOffload(offload_params=case.get("host", False)),
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16,
                                           reduce_dtype=getattr(torch, case.get("reduce", "float32"))))
    if ddp:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index],
                                                          gradient_as_bucket_view=True)
    return model, len(layers), config


def measured(case, device):
    held = torch.cuda.memory_allocated()
    torch.manual_seed(1)
    torch.set_num_threads(case.get("threads", THREADS))
    (gc.enable if case.get("collect", True) else gc.disable)()
    model, layers, config = build(case, device)
    parameters = sum(p.numel() for p in model.parameters())
    trained = [p for p in model.parameters() if p.requires_grad]
    kind = case.get("optimizer", "fused")
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=kind == "fused", foreach=kind == "foreach")
    context = torch.autocast("cuda", torch.bfloat16, enabled=case.get("autocast", case.get("ddp", False)))
    kept = saved_on_host(model) if case.get("on_host") else contextlib.nullcontext()
    shape = (case["mbs"], case["seq"])
    x = torch.randint(0, config.vocab_size, shape, device=device)

    def step():
        for i in range(case.get("ga", 1)):
            last = i == case.get("ga", 1) - 1
            if case.get("ddp"):
                model.require_backward_grad_sync = last
            if not case.get("sync_each", True):
                model.set_requires_gradient_sync(last)
                model.set_reshard_after_backward(last or case.get("reshard", True))
            with context, kept:
                loss = model(input_ids=x, labels=x).loss
            loss.backward()
        if case.get("clip"):
            if case.get("fsdp1"):
                model.clip_grad_norm_(1.0)
            else:
                torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM):
        step()
    alone = []
    tried = torch.cuda.memory_stats()["num_alloc_retries"]
    for _ in range(STEPS):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        step()
        torch.cuda.synchronize()
        alone.append(time.perf_counter() - begun)
    with Collector() as collector:
        begun = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        behind = (time.perf_counter() - begun) / STEPS
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()
    retries = torch.cuda.memory_stats()["num_alloc_retries"] - tried
    if case.get("trace") and "TRACES" in os.environ:
        record(case, step)
    slowest = torch.tensor([sorted(alone)[STEPS // 2], behind, peak, reserved, retries], dtype=torch.float64, device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    alone_s, step_s, peak, reserved, retries = slowest.tolist()
    return {"parameters": parameters, "trained": sum(p.numel() for p in trained), "layers": layers, "step_s": step_s, "alone_s": alone_s,
            "threads": torch.get_num_threads(), "held_bytes": held, "peak_bytes": int(peak), "reserved_bytes": int(reserved), "retries": int(retries),
            "collections": collector.runs + [collector.seconds / STEPS], "attention_of": config._attn_implementation}


def record(case, step):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    if dist.get_rank() == 0:
        profiler.export_chrome_trace("%s/%s.rank0.kineto.json.gz" % (os.environ["TRACES"], case["name"]))


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device, timeout=datetime.timedelta(seconds=60))
    until = time.time() + float(os.environ.get("BUDGET_S", "500"))
    for case in json.load(open(sys.argv[1])):
        late = torch.tensor([float(time.time() > until)], device=device)
        dist.all_reduce(late)
        if late.item():
            break
        begun = time.time()
        try:
            found = measured(case, device)
        except Exception as e:  # told in its row: a model that the library has not, no memory left
            found = {"error": "%s: %s" % (type(e).__name__, str(e)[:300])}
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        if dist.get_rank() == 0:
            row = dict(case, **found, gpus=dist.get_world_size(), gpu=torch.cuda.get_device_name(),
                       torch=torch.__version__, transformers=transformers.__version__,
                       wall_s=round(time.time() - begun, 1))
            with open(sys.argv[2], "a") as out:
                out.write(json.dumps(row) + "\n")
            print(row["name"], row.get("step_s"), row.get("peak_bytes"), row.get("attention_of"),
                  row["wall_s"], row.get("error", ""), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
