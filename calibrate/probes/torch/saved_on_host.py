"""calibrate/probes/torch/saved_on_host.py - what a forward pass keeps for its backward, in host memory.  For programs beside it.

As torchtune and TRL do it (their `OffloadActivations`, read 2026-11-30): a copy stream moves each tensor that autograd saves to
pinned memory, but for weights and small ones, and the GPU's main stream waits for the copy of the one AHEAD before it; backward
each comes back when its operation asks for it. The last AHEAD tensors are used as they are, once their copies have left. What the
head saves stays; what the loss behind it saves does not.
"""
import torch
from torch.autograd.graph import saved_tensors_hooks

AHEAD, LEAST_BYTES = 5, 1024


class Saved:
    """A tensor's copy on the host, the event behind it, and the tensor itself until that has passed."""

    def __init__(self, tensor, copies):
        self.here, self.there = tensor.detach(), torch.empty_like(tensor, device="cpu", pin_memory=True)
        copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(copies):
            self.there.copy_(self.here, non_blocking=True)
        self.left = copies.record_event()

    def forget(self):
        torch.cuda.current_stream().wait_event(self.left)
        self.here = None


class OnHost(saved_tensors_hooks):
    def __init__(self, model):
        whole = [p for p in model.parameters() if not hasattr(p, "to_local")]  # what FSDP2 gathers is nobody's parameter
        self.weights = {p.untyped_storage().data_ptr() for p in whole}
        self.copies, self.leaving, self.bytes = torch.cuda.Stream(), [], 0
        super().__init__(self.pack, self.unpack)

    def pack(self, tensor):
        size = tensor.numel() * tensor.element_size()
        if tensor.device.type != "cuda" or size < LEAST_BYTES or tensor.untyped_storage().data_ptr() in self.weights:
            return tensor
        for saved in self.leaving:  # an operation's input that another saved just now
            if saved.here.data_ptr() == tensor.data_ptr() and saved.here.dtype == tensor.dtype and saved.here.shape == tensor.shape \
                    and saved.here.stride() == tensor.stride():
                return saved
        while len(self.leaving) >= AHEAD:
            self.leaving.pop(0).forget()
        self.leaving.append(Saved(tensor, self.copies))
        self.bytes += size
        return self.leaving[-1]

    def unpack(self, saved):
        if not isinstance(saved, Saved):
            return saved
        tensor, main = saved.here, torch.cuda.current_stream()
        while self.leaving:
            self.leaving.pop(0).forget()
        if tensor is None:
            with torch.cuda.stream(self.copies):
                tensor = saved.there.to("cuda", non_blocking=True)
            main.wait_stream(self.copies)
            tensor.record_stream(main)
        return tensor


def saved_on_host(model):
    """A context for a model's forward pass."""
    def same(tensor):
        return tensor

    for name, head in model.named_modules():
        if name.endswith("lm_head") and not hasattr(head, "keeps"):
            head.keeps, forward = True, head.forward

            def kept(*args, forward=forward, **more):
                with saved_tensors_hooks(same, same):
                    return forward(*args, **more)
            head.forward = kept
    return OnHost(model)
