#!/usr/bin/env python3
"""calibrate/probes/jax/steps.py - training steps of Llama-shaped models and mixtures in JAX, one JSON line a case.
Optional: needs jax, optax and GPUs.

  python3 calibrate/probes/jax/steps.py CASES.json OUT.jsonl

CASES.json is a list of maps: `name`; `model`, keys of a Llama's config.json, and of a Qwen 3's (`qk_norm`: true), a
Mistral's (`sliding_window`), a Gemma's (`hidden_act`, `tie_word_embeddings`) or a mixture's (`num_experts`,
`num_experts_per_tok`, `moe_intermediate_size`); `seq`; `mbs`, sequences a replica; and, where they differ from the default,
`remat` ("none", "full", "products": what products with weights give is kept), `ga` (1) micro-batches a step, `unrolled`
(false) instead of the scan, `tp` (1) GPUs that split each product, `optimizer` ("adamw", or "adafactor", "sgd", "sgd-momentum"), `capacity` of experts (none: no token is dropped),
`trace` (false).

Written as MaxText is: weights in fp32 laid over all GPUs (fsdp; with `tp` heads, the MLP's width and the words are split,
and between layers each token's features) and cast to bf16 where they are used, one
scan over the layers, cuDNN's attention, tokens to experts by a sort and ragged products or, under a capacity, by products
with masks of tokens and slots, the loss in fp32, AdamW with moments in fp32, all in one program that XLA compiles.
`step_s` is the mean of steps one behind the other, `alone_s` the median of steps after a wait,
`peak_bytes` what XLA plans for: its arguments, results and temporaries. With `trace` and TRACES in the environment a profile of one more step is
written to TRACES/NAME, and the compiled program, which says what each of its kernels reads and writes, to TRACES/NAME.hlo.
"""
import functools
import gc
import json
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.94")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_latency_hiding_scheduler=true")
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

WARM, STEPS = 3, 8
KEPT = {"none": jax.checkpoint_policies.everything_saveable, "full": jax.checkpoint_policies.nothing_saveable,
        "products": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}

OPTIMIZERS = {"adamw": optax.adamw, "adafactor": optax.adafactor, "sgd": optax.sgd,
              "sgd-momentum": functools.partial(optax.sgd, momentum=0.9)}


def shapes(m):
    h, f, heads, kv = m["hidden_size"], m.get("intermediate_size"), m["num_attention_heads"], m["num_key_value_heads"]
    d, n, experts = m.get("head_dim", h // heads), m["num_hidden_layers"], m.get("num_experts")
    layers = {"q": (n, h, heads * d), "k": (n, h, kv * d), "v": (n, h, kv * d), "o": (n, heads * d, h), "norm1": (n, h), "norm2": (n, h)}
    if experts:
        f = m["moe_intermediate_size"]
        layers.update(router=(n, h, experts), gate=(n, experts, h, f), up=(n, experts, h, f), down=(n, experts, f, h))
    else:
        layers.update(gate=(n, h, f), up=(n, h, f), down=(n, f, h))
    if m.get("qk_norm"):
        layers.update(norm_q=(n, d), norm_k=(n, d))
    head = {} if m.get("tie_word_embeddings") else {"head": (h, m["vocab_size"])}
    return {"embed": (m["vocab_size"], h), **head, "norm": (h,), "layers": layers}


def norm(x, weight):
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5)
    return (wide * weight).astype(jnp.bfloat16)


def rotary(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 5e5 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


def gated(m, y, w, product):
    act = jax.nn.gelu if m.get("hidden_act", "silu").startswith("gelu") else jax.nn.silu
    return product(act(product(y, w["gate"])) * product(y, w["up"]), w["down"])


def routed(m, y, w):
    """Each token's experts and their weights: in fp32, of the largest alone."""
    best, which = jax.lax.top_k(jnp.dot(y, w["router"]).astype(jnp.float32), m["num_experts_per_tok"])
    return jax.nn.softmax(best, -1).astype(y.dtype), which


def sorted_experts(m, y, w):
    """Rows by expert, products of groups of rows, and back."""
    b, s, h = y.shape
    share, which = routed(m, y, w)
    per = which.shape[-1]
    order = jnp.argsort(which.reshape(-1))
    rows = jnp.take(y.reshape(-1, h), order // per, axis=0)
    sizes = jnp.bincount(which.reshape(-1), length=m["num_experts"]).astype(jnp.int32)
    out = gated(m, rows, w, lambda x, wx: jax.lax.ragged_dot(x, wx, sizes))
    back = jnp.take(out, jnp.argsort(order), axis=0).reshape(b, s, per, h)
    return jnp.einsum("bskh,bsk->bsh", back, share)


def masked_experts(m, capacity, y, w):
    """Slots for the tokens of a sequence, filled and emptied by products with a mask."""
    experts = m["num_experts"]
    share, which = routed(m, y, w)
    b, s, per = which.shape
    slots = int(-(-s * per // experts) * capacity)
    chosen = jax.nn.one_hot(which, experts, dtype=jnp.int32)
    place = jnp.cumsum(chosen.reshape(b, s * per, experts), 1).reshape(chosen.shape) * chosen
    share = jnp.sum(jnp.where(place <= slots, chosen, 0) * share[..., None], 2).astype(y.dtype)
    fill = share[..., None] * jax.nn.one_hot(jnp.sum(place, 2), slots + 1, dtype=y.dtype)[..., 1:]
    taken = fill.astype(bool).astype(y.dtype)
    x = jnp.einsum("bsh,bsec->ebch", y, taken)
    out = gated(m, x, w, lambda x, wx: jnp.einsum("ebcm,emn->ebcn", x, wx))
    return jnp.einsum("ebch,bsec->bsh", out, fill)


def layer(m, capacity, x, w):
    b, s, h = x.shape
    heads, kv, window = m["num_attention_heads"], m["num_key_value_heads"], m.get("sliding_window")
    w = {k: v if k.startswith("norm") else v.astype(jnp.bfloat16) for k, v in w.items()}
    y = norm(x, w["norm1"])
    q, k, v = (jnp.dot(y, w[n]).reshape(b, s, c, -1) for n, c in (("q", heads), ("k", kv), ("v", kv)))
    if m.get("qk_norm"):
        q, k = norm(q, w["norm_q"]), norm(k, w["norm_k"])
    a = jax.nn.dot_product_attention(rotary(q), rotary(k), v, is_causal=True, implementation="cudnn",
                                     local_window_size=(window - 1, 0) if window else None)
    x = x + jnp.dot(a.reshape(b, s, -1), w["o"])
    y = norm(x, w["norm2"])
    if not m.get("num_experts"):
        return x + gated(m, y, w, jnp.dot)
    return x + (masked_experts(m, capacity, y, w) if capacity else sorted_experts(m, y, w))


def loss(m, case, batch, weights, tokens):
    def body(x, w):
        return jax.lax.with_sharding_constraint(layer(m, case.get("capacity"), x, w), batch), None

    remat = case.get("remat", "none")
    if remat != "none":
        body = jax.checkpoint(body, policy=KEPT[remat], prevent_cse=bool(case.get("unrolled")))
    x = jax.lax.with_sharding_constraint(weights["embed"].astype(jnp.bfloat16)[tokens], batch)
    x, _ = jax.lax.scan(body, x, weights["layers"], unroll=m["num_hidden_layers"] if case.get("unrolled") else 1)
    head = weights["head"] if "head" in weights else weights["embed"].T
    logits = jnp.dot(norm(x, weights["norm"]), head.astype(jnp.bfloat16)).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(tokens, -1, 1)).mean()


def gradients_of(m, case, batch, weights, tokens):
    """Of one micro-batch, or their mean in fp32, one behind the other."""
    micro, of_one = case.get("ga", 1), jax.value_and_grad(functools.partial(loss, m, case, batch))
    if micro == 1:
        return of_one(weights, tokens)

    def add(sum_, part):
        return jax.tree.map(jnp.add, sum_, of_one(weights, part)), None

    parts = tokens.reshape(-1, micro, tokens.shape[1]).swapaxes(0, 1)
    zero = (jnp.float32(0), jax.tree.map(jnp.zeros_like, weights))
    sum_, _ = jax.lax.scan(add, zero, parts)
    return jax.tree.map(lambda x: x / micro, sum_)


COLUMNS, ROWS = {"q", "k", "v", "gate", "up"}, {"o", "down"}


def split_layout(mesh, tree):
    """Products by columns, then by rows; words of embedding and head."""
    layers = {n: P(None, "fsdp", "tp") if n in COLUMNS else P(None, "tp", "fsdp") if n in ROWS else P() for n in tree["layers"]}
    spec = {"embed": P("tp", "fsdp"), "norm": P(), "layers": layers}
    if "head" in tree:
        spec["head"] = P("fsdp", "tp")
    return jax.tree.map(lambda s: NamedSharding(mesh, s), spec, is_leaf=lambda x: isinstance(x, P))


def measured(case):
    m, gpus, tp = case["model"], len(jax.devices()), case.get("tp", 1)
    mesh = jax.make_mesh((gpus // tp, tp), ("fsdp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def laid(shape):  # the longest side that is no layer's is what the GPUs share
        sides = shape[1:] if len(shape) > 2 else shape
        at = len(shape) - len(sides) + sides.index(max(sides))
        return NamedSharding(mesh, P() if len(shape) < 2 or len(sides) < 2 else P(*[None] * at, "fsdp"))

    tree = shapes(m)
    is_shape = lambda x: isinstance(x, tuple)
    layout = jax.tree.map(lambda s: NamedSharding(mesh, P()) if len(s) == 1 or len(s) == 2 and s[0] == m["num_hidden_layers"]
                          else laid(s), tree, is_leaf=is_shape)
    if tp > 1:
        layout = split_layout(mesh, tree)
    create = lambda: jax.tree.map(lambda s: jnp.ones(s) if len(s) == 1 or s[0] == m["num_hidden_layers"] and len(s) == 2
                                  else 0.02 * jax.random.normal(jax.random.key(sum(s)), s), tree, is_leaf=is_shape)
    weights = jax.jit(create, out_shardings=layout)()
    optimizer = OPTIMIZERS[case.get("optimizer", "adamw")](1e-5)
    state = jax.jit(optimizer.init)(weights)
    if tp > 1:
        whole = NamedSharding(mesh, P())
        state = optax.tree_map_params(optimizer, jax.device_put, state, layout, transform_non_params=lambda x: jax.device_put(x, whole))
    batch = NamedSharding(mesh, P("fsdp", None, "tp") if tp > 1 else P("fsdp"))
    tokens = jax.device_put(jax.random.randint(jax.random.key(1), (case["mbs"] * case.get("ga", 1) * gpus // tp, case["seq"]), 0, m["vocab_size"]),
                            NamedSharding(mesh, P("fsdp")))

    # with tp XLA would lay small ones anew, and its program could not be called again
    kept = {"out_shardings": (*jax.tree.map(lambda x: x.sharding, (weights, state)), None)} if tp > 1 else {}

    @functools.partial(jax.jit, donate_argnums=(0, 1), **kept)
    def step(weights, state, tokens):
        value, gradients = gradients_of(m, case, batch, weights, tokens)
        changes, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, changes), state, value

    begun = time.time()
    step = step.lower(weights, state, tokens).compile()
    compiled = time.time() - begun
    planned = step.memory_analysis()
    for _ in range(WARM):
        weights, state, value = step(weights, state, tokens)
    jax.block_until_ready(value)
    alone = []
    for _ in range(STEPS):
        begun = time.perf_counter()
        weights, state, value = step(weights, state, tokens)
        jax.block_until_ready((weights, value))
        alone.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    for _ in range(STEPS):
        weights, state, value = step(weights, state, tokens)
    jax.block_until_ready((weights, value))
    behind = (time.perf_counter() - begun) / STEPS
    if case.get("trace") and "TRACES" in os.environ:
        os.makedirs(os.environ["TRACES"], exist_ok=True)
        with open(os.environ["TRACES"] + "/" + case["name"] + ".hlo", "w") as text:
            text.write(step.as_text())
        with jax.profiler.trace(os.environ["TRACES"] + "/" + case["name"], create_perfetto_trace=True):
            weights, state, value = step(weights, state, tokens)
            jax.block_until_ready((weights, value))
    return {"parameters": sum(x.size for x in jax.tree.leaves(weights)), "step_s": behind,
            "alone_s": sorted(alone)[STEPS // 2], "loss": float(value), "compile_s": round(compiled, 1),
            "temporary_bytes": planned.temp_size_in_bytes, "argument_bytes": planned.argument_size_in_bytes,
            "peak_bytes": planned.temp_size_in_bytes + planned.argument_size_in_bytes
            + planned.output_size_in_bytes - planned.alias_size_in_bytes}


def main():
    until = time.time() + float(os.environ.get("BUDGET_S", "500"))
    for case in json.load(open(sys.argv[1])):
        if time.time() > until:
            break
        begun = time.time()
        try:
            found = measured(case)
        except Exception as e:  # told in its row
            found = {"error": "%s: %s" % (type(e).__name__, str(e)[:300])}
        gc.collect()
        jax.clear_caches()
        row = dict(case, **found, gpus=len(jax.devices()), gpu=jax.devices()[0].device_kind, jax=jax.__version__,
                   flags=os.environ["XLA_FLAGS"], wall_s=round(time.time() - begun, 1))
        with open(sys.argv[2], "a") as out:
            out.write(json.dumps(row) + "\n")
        print(row["name"], row.get("step_s"), row.get("alone_s"), row.get("peak_bytes"), row.get("temporary_bytes"), row["wall_s"],
              row.get("error", ""), flush=True)


main()
