#!/usr/bin/env python3
"""calibrate/probes/torch/indexed_experts.py - how PyTorch's operations take tokens to experts and back, as torchtitan writes them: kernels of each part

  python3 calibrate/probes/torch/indexed_experts.py OUT.jsonl

One JSON line a case: `tokens`, `width`, `experts`, `copies` of each token, and `parts`, each as torch/streams.py tells it (`us` forward and backward, `kernels`,
`kept`). `copy` copies the tokens' copies once, by which the others can be told. Rows are in the order of experts, of which each token draws `copies` at random;
`pad` and `unpad` bring them to whole tiles of 16 rows and back, `combine` is `weigh` and `scatter_add`, and again as torch.compile makes it, as are `COMPILED`. `order` makes that order out of the router's outputs, of which `scores` and `top_k` are a part each; `convolution` is not of experts: a causal
convolution of four taps by PyTorch alone, as in front of a delta rule. Optional: needs torch and a GPU.
"""
import json
import sys

import torch
import torch.nn.functional as F

from streams import measured

# tokens, numbers of a token, experts, copies
SHAPES = [(16384, 2048, 128, 8), (32768, 2048, 128, 8), (32768, 1024, 256, 8), (65536, 1024, 256, 8), (32768, 2048, 64, 6), (16384, 4096, 8, 2),
          (8192, 7168, 256, 8)]
TILE = 16
COMPILED = ("order", "index", "unpad", "combine")


def order(logits, copies, experts):
    scores, chosen = torch.topk(torch.softmax(logits.float(), dim=1), copies, dim=1)
    torch.histc(chosen.view(-1).float(), bins=experts, min=0, max=experts)
    places = torch.argsort(chosen.view(-1), stable=True)
    return scores.view(-1)[places]


def padded(rows, places):
    return torch.vstack((rows, rows.new_zeros((1, rows.shape[1]))))[places]


def unpadded(rows, places, n):
    whole = rows.new_empty((n + 1, rows.shape[1]))
    whole[places] = rows
    return whole[:-1]


def put_back(rows, scores, places, copies):
    whole = torch.zeros_like(rows)
    whole[places] = rows
    whole = whole.view(-1, copies, rows.shape[1])
    return torch.bmm(scores.view(-1, 1, copies), whole.float()).to(rows.dtype).squeeze(1)


def places_of(tokens, experts, copies):
    """The order of experts, and each row's place among rows padded to whole tiles."""
    chosen = torch.rand(tokens, experts, device="cuda").topk(copies, dim=1).indices.view(-1)
    sort = torch.argsort(chosen, stable=True)
    counts = torch.bincount(chosen, minlength=experts)
    ends = ((counts + TILE - 1) // TILE * TILE).cumsum(0)
    into = torch.full((int(ends[-1]),), tokens * copies, device="cuda")
    starts, first = ends - (counts + TILE - 1) // TILE * TILE, counts.cumsum(0) - counts
    expert = chosen[sort]
    into[starts[expert] + torch.arange(tokens * copies, device="cuda") - first[expert]] = torch.arange(tokens * copies, device="cuda")
    return sort, into


def parts(tokens, width, experts, copies):
    """Of each part the function and its inputs, all of which have gradients."""
    def some(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)
    rows, wide = tokens * copies, torch.float32
    sort, into = places_of(tokens, experts, copies)
    token = sort // copies
    across = token.view(-1, 1).expand(-1, width)
    yield "copy", torch.clone, (some(rows, width),)
    yield "order", lambda x: order(x, copies, experts), (some(tokens, experts),)
    yield "scores", lambda x: torch.softmax(x.float(), dim=1), (some(tokens, experts),)
    yield "top_k", lambda x: torch.topk(x, copies, dim=1).values, (some(tokens, experts, dtype=wide),)
    yield "gather", lambda x: torch.gather(x, 0, across), (some(tokens, width),)
    yield "index", lambda x: x[token], (some(tokens, width),)
    yield "select", lambda x: torch.index_select(x, 0, token), (some(tokens, width),)
    yield "pad", lambda x: padded(x, into), (some(rows, width),)
    yield "unpad", lambda x: unpadded(x, into, rows), (some(len(into), width),)
    yield "weigh", lambda x, s: (x.float() * s.view(-1, 1)).to(x.dtype), (some(rows, width), some(rows, dtype=wide))
    yield "scatter_add", lambda x: x.new_zeros((tokens, width)).scatter_add(0, across, x), (some(rows, width),)
    yield "index_add", lambda x: x.new_zeros((tokens, width)).index_add(0, token, x), (some(rows, width),)
    yield "combine", lambda x, s: x.new_zeros((tokens, width)).scatter_add(0, across, (x.float() * s.view(-1, 1)).to(x.dtype)), \
        (some(rows, width), some(rows, dtype=wide))
    yield "put_back", lambda x, s: put_back(x, s, sort, copies), (some(rows, width), some(rows, dtype=wide))
    length = min(tokens, 8192)
    yield "convolution", lambda x, w: F.silu(F.conv1d(x, w, padding=3, groups=4 * width)[..., :length]), \
        (some(tokens // length, 4 * width, length), some(4 * width, 1, 4))


def main():
    flush = torch.empty(1 << 26, device="cuda")
    with open(sys.argv[1], "w") as out:
        for shape in SHAPES:
            row = dict(zip(("tokens", "width", "experts", "copies"), shape), gpu=torch.cuda.get_device_name(), torch=torch.__version__)
            row["parts"] = {}
            for name, function, values in parts(*shape):
                row["parts"][name] = measured(function, values, flush)
                if name in COMPILED:
                    torch._dynamo.reset()
                    row["parts"][name + "_compiled"] = measured(torch.compile(function, dynamic=False), values, flush)
                del function, values
            print(json.dumps(row), file=out, flush=True)


if __name__ == "__main__":
    main()
