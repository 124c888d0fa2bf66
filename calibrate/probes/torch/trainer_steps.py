#!/usr/bin/env python3
"""calibrate/probes/torch/trainer_steps.py - training steps as Hugging Face's Trainer runs them, with adapters as PEFT makes
them, one JSON line a case.  Optional: needs torch, transformers (peft for adapters) and GPUs; loads no weights.

  torchrun --nproc-per-node N calibrate/probes/torch/trainer_steps.py CASES.json OUT.jsonl

CASES.json is a list of maps: `name`; `model`, keys of a config.json with its model_type; `seq`; `mbs`, sequences a
micro-batch and rank; and, where they differ from the default, `ga` (1) micro-batches a step; `dtype` ("bfloat16", in which
most checkpoints come) of the weights; `bf16` (true) autocast; `recompute` (false), Trainer's gradient_checkpointing;
`compile` (false), its torch_compile, by its torch_compile_mode `mode` ("default"; "reduce-overhead" and "max-autotune" take CUDA graphs); `on_host` (false)
what passes keep for their backward waits in host memory (saved_on_host.py); `optimizer` ("adamw_torch_fused"); `clip` (1.0), its max_grad_norm; `looks` (true) at each
loss for a number that is none (logging_nan_inf_filter); `attention` (the library's choice); `fsdp` (false) shards by Trainer's FSDP2,
where several ranks else run DDP, with `reshard` (true) its reshard_after_forward and its own activation_checkpointing; `lora`, a map of `rank`, `targets` and
`wide` (true: adapters in fp32, PEFT's default); `trace` (false).

`step_s` is the mean of steps one behind the other, `peak_bytes` what the allocator held at most. With `trace` and TRACES in
the environment rank 0 writes TRACES/NAME.rank0.kineto.json.gz of one more step.
"""
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback

import torch
import transformers
from saved_on_host import saved_on_host
from torch.profiler import ProfilerActivity, profile

WARM, STEPS = 4, 8


class Tokens(torch.utils.data.Dataset):
    """Random tokens, drawn once."""

    def __init__(self, case, vocabulary):
        drawn = torch.Generator().manual_seed(1)
        self.rows = torch.randint(0, vocabulary, (64, case["seq"]), generator=drawn)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        row = self.rows[i % len(self.rows)]
        return {"input_ids": row, "labels": row}


class Clock:
    """When steps WARM and WARM + STEPS ended; the peak until then; a recording, if `trace` names its file, of the step behind them."""

    def __init__(self, trace):
        self.at, self.peak, self.trace, self.profiler = [], 0, trace, None

    def begin(self):
        torch.cuda.reset_peak_memory_stats()

    def step_ends(self, step, first_rank):
        if step in (WARM, WARM + STEPS):
            torch.cuda.synchronize()
            self.at.append(time.perf_counter())
        if step == WARM + STEPS:
            self.peak = torch.cuda.max_memory_allocated()
            if self.trace:
                self.profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
                self.profiler.start()
        elif self.profiler and step == WARM + STEPS + 1:
            torch.cuda.synchronize()
            self.profiler.stop()
            if first_rank:
                self.profiler.export_chrome_trace(self.trace)
            self.profiler = None

    def found(self):
        return {"step_s": (self.at[1] - self.at[0]) / STEPS, "peak_bytes": self.peak}


def clock_of(case):
    """The clock of a case, which records if it says `trace` and TRACES is in the environment; and how many steps it looks at."""
    traced = case.get("trace") and "TRACES" in os.environ
    trace = "%s/%s.rank0.kineto.json.gz" % (os.environ["TRACES"], case["name"]) if traced else None
    return Clock(trace), WARM + STEPS + (1 if traced else 0)


class Offloading(transformers.Trainer):
    """Trainer whose passes keep what their backward needs in host memory."""

    def compute_loss(self, *args, **more):
        with saved_on_host(self.model):
            return super().compute_loss(*args, **more)


class Watched(transformers.TrainerCallback):
    def __init__(self, clock):
        self.clock = clock

    def on_train_begin(self, *_args, **_):
        self.clock.begin()

    def on_step_end(self, args, state, control, **_):
        self.clock.step_ends(state.global_step, state.is_world_process_zero)


def build(case):
    keys = dict(case["model"])
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    config.use_cache = False
    with torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, case.get("dtype", "bfloat16")),
            **({"attn_implementation": case["attention"]} if "attention" in case else {}))
    if "lora" in case:
        import peft
        if case.get("recompute"):
            model.enable_input_require_grads()
        rank = case["lora"]["rank"]
        model = peft.get_peft_model(
            model, peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=case["lora"]["targets"], task_type="CAUSAL_LM"),
            autocast_adapter_dtype=case["lora"].get("wide", True))
    return model, config


def measured(case, folder):
    torch.manual_seed(1)
    model, config = build(case)
    clock, steps = clock_of(case)
    sharded, again = {}, case.get("recompute", False)
    if case.get("fsdp"):
        sharded = {"fsdp": True, "fsdp_config": {"version": 2, "reshard_after_forward": case.get("reshard", True), "activation_checkpointing": again}}
        again = False
    args = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=case["mbs"], gradient_accumulation_steps=case.get("ga", 1),
        max_steps=steps, bf16=case.get("bf16", True),
        gradient_checkpointing=again, gradient_checkpointing_kwargs={"use_reentrant": False},
        torch_compile=case.get("compile", False), torch_compile_mode=case.get("mode"), optim=case.get("optimizer", "adamw_torch_fused"),
        max_grad_norm=case.get("clip", 1.0), logging_nan_inf_filter=case.get("looks", True),
        save_strategy="no", report_to="none", disable_tqdm=True, **sharded)
    kind = Offloading if case.get("on_host") else transformers.Trainer
    trainer = kind(model=model, args=args, train_dataset=Tokens(case, config.vocab_size), callbacks=[Watched(clock)])
    trainer.train()
    return {"wrapper": type(trainer.model_wrapped).__name__, "parameters": sum(p.numel() for p in model.parameters()),
            "trained": sum(p.numel() for p in model.parameters() if p.requires_grad),
            **clock.found(), "attention_of": config._attn_implementation, "optimizer_of": str(args.optim)}


def told(case, measured=measured):
    """Measures a case and tells its row: in a process of its own, as accelerate keeps how it sharded, PyTorch its choice of TF32,
    and wrappers their memory."""
    begun = time.time()
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(case, folder)
    except Exception as e:  # told in its row: a model that the library has not, no memory left
        traceback.print_exc()
        found = {"error": "%s: %s" % (type(e).__name__, str(e)[:300])}
    if int(os.environ.get("RANK", "0")) == 0:
        row = dict(case, **found, gpus=int(os.environ.get("WORLD_SIZE", "1")), gpu=torch.cuda.get_device_name(),
                   torch=torch.__version__, transformers=transformers.__version__, wall_s=round(time.time() - begun, 1))
        with open(sys.argv[2], "a") as out:
            out.write(json.dumps(row) + "\n")
        print(row["name"], row.get("step_s"), row.get("peak_bytes"), row.get("attention_of"), row["wall_s"],
              row.get("error", ""), flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def main(measured=measured):
    _ = transformers.Trainer, transformers.AutoModelForCausalLM, transformers.TrainingArguments  # loaded once, in front of all cases
    until = time.time() + float(os.environ.get("BUDGET_S", "500"))
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"  # each case's ranks meet anew, at a port of their own
    for i, case in enumerate(json.load(open(sys.argv[1]))):
        if time.time() > until:
            break
        if "MASTER_PORT" in os.environ:
            os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
        child = multiprocessing.get_context("fork").Process(target=told, args=(case, measured))
        child.start()
        child.join(120)
        if child.is_alive():
            child.kill()
            child.join()


if __name__ == "__main__":
    main()
