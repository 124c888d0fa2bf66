#!/usr/bin/env python3
"""calibrate/probes/torch/lightning_steps.py - training steps of Transformers' models as Lightning's Trainer runs them, one JSON
line a case.  Optional: needs torch, transformers, lightning and GPUs; loads no weights.

  torchrun --nproc-per-node N calibrate/probes/torch/lightning_steps.py CASES.json OUT.jsonl

CASES.json is a list of maps: `name`; `model`, keys of a config.json with its model_type; `seq`; `mbs`, sequences a
micro-batch and rank; and, where they differ from the default, `ga` (1) its accumulate_grad_batches; `precision`
("bf16-mixed"), or "bf16-true"; `strategy` ("ddp" of several ranks), or "fsdp", its FSDPStrategy around each layer; `recompute` (false)
each layer, by the strategy where it is FSDP; `compile` (false) each layer; `clip` (0), its gradient_clip_val; `trace` (false).

The optimizer is a fused AdamW. `step_s` is the mean of steps one behind the other, `peak_bytes` what the allocator held at most. With
`trace` and TRACES in the environment rank 0 writes TRACES/NAME.rank0.kineto.json.gz of one more step.
"""
import os

import lightning.pytorch as lightning
import torch
import transformers
from lightning.pytorch.strategies import FSDPStrategy

from trainer_steps import Tokens, clock_of, main
from transformers_steps import layers_of


def made(case):
    """The model of a case and its config; in training mode, as Lightning leaves modes alone."""
    keys = dict(case["model"])
    config = transformers.AutoConfig.for_model(keys.pop("model_type"), **keys)
    config.use_cache = False
    true = case.get("precision", "bf16-mixed").endswith("-true")
    with torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if true else torch.float32)
    model.train()
    return model, config


class Trained(lightning.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def training_step(self, batch, _index):
        return self.model(**batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-5, fused=True)


class Watched(lightning.Callback):
    def __init__(self, clock, micro_batches):
        self.clock, self.micro_batches = clock, micro_batches

    def on_train_start(self, *_):
        self.clock.begin()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if (batch_idx + 1) % self.micro_batches == 0:
            self.clock.step_ends((batch_idx + 1) // self.micro_batches, trainer.is_global_zero)


def measured(case, folder):
    torch.manual_seed(1)
    model, config = made(case)
    layers = layers_of(model)
    clock, steps = clock_of(case)
    ranks, again, kind = int(os.environ.get("WORLD_SIZE", "1")), case.get("recompute", False), type(layers[0])
    strategy = case.get("strategy", "ddp") if ranks > 1 else "auto"
    if strategy == "fsdp":
        strategy = FSDPStrategy(auto_wrap_policy={kind}, **({"activation_checkpointing_policy": {kind}} if again else {}))
    elif again:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if case.get("compile"):
        for layer in layers:
            layer.compile()
    trainer = lightning.Trainer(
        accelerator="gpu", devices=ranks, strategy=strategy, precision=case.get("precision", "bf16-mixed"),
        accumulate_grad_batches=case.get("ga", 1), gradient_clip_val=case.get("clip", 0) or None,
        max_steps=steps, max_epochs=1, callbacks=[Watched(clock, case.get("ga", 1))], default_root_dir=folder, logger=False,
        enable_checkpointing=False, enable_model_summary=False)
    parameters = sum(p.numel() for p in model.parameters())
    trainer.fit(Trained(model), torch.utils.data.DataLoader(Tokens(case, config.vocab_size), batch_size=case["mbs"]))
    return {"wrapper": type(trainer.strategy.model).__name__, "parameters": parameters, "trained": parameters,
            **clock.found(), "attention_of": config._attn_implementation, "lightning": lightning.__version__}


if __name__ == "__main__":
    main(measured)
