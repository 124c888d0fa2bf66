#!/bin/sh
# tests/test_warnings.sh - what `compare` warns of, said of drawn scenarios in the obvious way
. "$(dirname "$0")/tap.sh"
cat >"$tmp/warned.py" <<'END'
import itertools, json, random, subprocess, sys

program, folder = sys.argv[1:]
draw = random.Random(3)
# of each: the model, the stack that the file names, whether 8 GPUs have room for it, and the GPU
kinds = [(m, s, fits, g) for m in ("llama3-8b", "llama2-7b") for s in ("", "nemo-24", "torch-2.11-eager")
         for fits in (True, False) for g in ("h100-sxm", "h200")]


def scenario(name, kind):
    model, stack, fits, gpu = kind
    text = "model: {name: %s, num_hidden_layers: 4}\ncluster: {gpu: %s, gpus: 8}\n" % (model, gpu)
    text += "stack: %s\n" % stack if stack else ""
    text += "training: {sequence_length: 4096, global_batch_size: %d, micro_batch_size: %d, sharding: zero1}\n" % (
        (32, 1) if fits else (2048, 256))
    open("%s/%s.yaml" % (folder, name), "w").write(text)
    return "%s/%s.yaml" % (folder, name)


def warning(names, of):
    said = []
    small = [n for n, k in zip(names, of) if not k[2]]
    if small:
        said.append(", ".join(small) + ": the plan does not fit in memory and cannot run; its "
                    "dollars count in no verdict.")
    others = [k[0] for k in of if k[0] != of[0][0]]
    if others:
        said.append("The models differ (%s, %s): a token of one is not worth a token of the other." % (
            of[0][0], others[0]))
    runs = [k[1] or "generic" for k in of]
    other = [r for r in runs if r != runs[0]]
    absent = sum(not k[1] for k in of)
    if other:
        said.append("The stacks differ (%s, %s): part of the difference is software." % (runs[0], other[0]))
    elif absent:
        said.append("%s no stack: all run under %s here, %s" % (
            "The scenarios name" if absent == len(of) else "Some scenarios name", runs[0],
            "whose range holds what people run. Name the stack for a narrower one."
            if len({k[3] for k in of}) == 1 else
            "though different GPUs are run with different software. Name each one's stack."))
    return " ".join(said) or None


seen = set()
named = tuple(("llama3-8b", s, True, "h100-sxm") for s in ("generic", ""))  # the stack that goes without saying
for of in [(kinds[0],) * 2, kinds[:2], (kinds[4],) * 3, named, named[::-1], named + (named[1],)] + [
        [draw.choice(kinds) for _ in range(draw.randint(2, 4))] for _ in range(12)]:
    names = ["s%d" % i for i in range(len(of))]
    out = json.loads(subprocess.check_output([program, "compare", "--json"] + [
        scenario(n, k) for n, k in zip(names, of)]))
    want = warning(names, of)
    assert out.get("warning") == want, (of, out.get("warning"), want)
    words = "fit", "models", "The stacks", "The scenarios", "Some", "range", "different GPUs"
    seen |= {w for w in words if w in (want or "none")} or {"none"}
assert len(seen) == 8, seen
END
ok "warnings are of the scenarios that they are about" python3 "$tmp/warned.py" "$f" "$tmp"
finish
