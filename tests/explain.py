"""tests/explain.py - `foretoken explain` of each key, against the list of keys, the answer's scenario and the sources

explain.py PROGRAM
"""
import json
import os
import re
import subprocess
import sys

program = sys.argv[1]
GIVEN = dict.fromkeys(["model", "cluster.gpu", "cluster.gpus", "training.sequence_length", "training.global_batch_size"],
                      "none: it must be given")
IN_WORDS = {  # defaults that no answer states
    **GIVEN, "training.pipeline_flushes": "1", "training.recompute_layers": "all, under full recomputation", "training.lora.targets": "attention",
    "training.lora.dropout": "false", "training.lora.fp32_adapters": "false", "cost.take_or_pay": "true",
    "cluster.imperfections.seed": "1", "cluster.imperfections.placement": "packed",
    "cluster.imperfections.failed_uplinks_frac": "0", "cluster.imperfections.failed_spines": "0",
    "cluster.imperfections.slow_nics_frac": "0", "cluster.imperfections.slow_nic_rate_frac": "0.5",
    "cluster.imperfections.gpu_speed_spread_frac": "the node's", "cost.goodput.recovery": "hot",
    "cost.goodput.failures_per_1000_node_days": "from the parts' rates", "cost.goodput.checkpoint": "the price book's",
    "cost.goodput.restart": "the price book's", "cost.goodput.repair": "the price book's",
    "cost.goodput.failover": "the price book's", "cost.goodput.flap": "the price book's", "cost.goodput.interval": "the best", "cost.goodput.spares": "true",
    "cost.goodput.flaps_per_1000_node_days": "0", "cost.goodput.straggler_frac": "0"}
USUAL = {  # scenarios whose defaults are told: the first that has a use for the key
    "Llama 3 8B on 8 H100": "{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, "
                            "training: {sequence_length: 8192, global_batch_size: 16}}",
    "Mixtral 8x7B in fp8 on 8 H100": "{model: mixtral-8x7b, cluster: {gpu: h100-sxm, gpus: 8}, "
                                     "training: {sequence_length: 8192, global_batch_size: 16, precision: fp8}}",
    "DeepSeek-V3.2 on 256 H200": "{model: deepseek-v3.2, cluster: {gpu: h200, gpus: 256}, "
                                 "training: {sequence_length: 4096, global_batch_size: 2048, parallel: {pp: 8, ep: 32}}}",
}


def said(*words, **more):
    out = subprocess.run([program, *words], capture_output=True, text=True, check=True, **more).stdout
    if words[0] != "explain":
        return out
    assert all(len(line) <= 80 for line in out.split("\n")), out
    return out.replace("\n" + 12 * " ", " ")  # what goes on in the next line


IN_TABLE = re.compile(r'\n  more      docs/[a-z-]*\.md, under "[^"]*"$')  # what the documents say besides


def blocks(word):
    found = {}
    for block in said("explain", word).strip().split("\n\n"):
        if IN_TABLE.search(block):
            continue
        path, *lines, default, reader, more = block.split("\n")
        assert more == "  more      man foretoken-scenario", block
        assert lines and all(line.startswith("  ") for line in lines), block
        about = " ".join(line.strip() for line in lines)
        value = re.fullmatch(r"  default   (.*?)(?: \(([^();]*); a stack, GPU or node may say another\))?", default)
        assert value[2] or value[1] == IN_WORDS.get(path, "none"), default
        found[path] = about.strip(), (value[1], value[2]), re.fullmatch(r"  read by   (.*)", reader)[1]
    return found


about = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in said("list", "keys").strip().split("\n")[1:])
resolved = {name: json.loads(said("simulate", "-", "--json", input=text))["scenario"] for name, text in USUAL.items()}


def value_at(path):
    for name, at in resolved.items():
        for part in path.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        if at is not None:
            return at, name
    return None, None


assert len(about) > 80, about
words = {w for key in about for w in [key, *key.split("."), key.partition(".")[2] or key]}
for word in sorted(words):
    meant = {k for k in about if ".%s." % word in ".%s." % k}
    got = blocks(word)
    assert set(got) == meant, (word, set(got) ^ meant)
    for path, (what, default, reader) in got.items():
        assert what == about[path], path
        value, of = value_at(path)
        if path in IN_WORDS:
            value, of = IN_WORDS[path], None
        assert default[1] == of, (path, default, of)
        default = default[0]
        if not isinstance(value, (dict, list)):
            shown = "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            assert default == shown or float(default) == float(shown), (path, default, shown)
        # the sources that are named hold the key, in quotes
        files = re.match(r"[^:]+", reader)[0].split(", ")
        folder = os.path.dirname(files[0])
        sources = [folder + "/" + n for n in os.listdir(folder)] if files[0].endswith("/") else [
            os.path.join(folder, os.path.basename(f)) for f in files]
        assert all(os.path.exists(f) for f in sources), reader
        if path in ("model", "stack", "ccl", "cluster.gpu"):
            continue
        # a part of a map is read beside its fellows
        whole = [folder + "/" + n for n in os.listdir(folder) if n.endswith((".c", ".h"))]
        text = "".join(open(f).read() for f in whole)
        assert '"%s"' % path.split(".")[-1] in text, (folder, path)
for path, default in (("training.moe_dispatcher", "alltoall"), ("training.grouped_experts", "true"), ("training.fp8_recipe", "delayed")):
    assert blocks(path)[path][1][0] == default, path  # no use for these in a dense model in 16 bit

# Keys of other files: each that a file of the tree holds is told, from the manual page of its kind.
FILES = {"stack": "stacks", "gpu": "hw/gpus", "node": "hw/nodes", "fabric": "hw/fabrics", "site": "hw/sites", "ccl": "stacks/ccl",
         "prices": "cost/prices"}
told = 0
for kind, folder in FILES.items():
    keys = set()
    for name in os.listdir(folder):
        top = None
        for line in open(os.path.join(folder, name)) if name.endswith(".yaml") else ():
            if found := re.match(r"([A-Za-z_0-9]+):", line):
                top = found[1]
                keys.add(top)
            elif (found := re.match(r"  ([A-Za-z_0-9]+):", line)) and kind == "stack" and top in ("layout", "rates"):
                keys.add(top + "." + found[1])
    assert keys, kind
    for key in sorted(keys):
        for block in said("explain", kind + "." + key).strip().split("\n\n"):
            lines = block.split("\n")
            if IN_TABLE.search(block):
                continue
            assert lines[-1] == "  more      man foretoken-" + kind and len(lines) > 2, (kind, key, block)
            assert all("\\" not in line for line in lines), block
        told += 1
for word, path, default in (("fusion", "layout.fusion, of a stack", "kernels"), ("fused_gate_up", "layout.fused_gate_up, of a stack", "true"),
                            ("context_parallel_lora", "layout.context_parallel_lora, of a stack", "as context_parallel"),
                            ("gemm.spread", "gemm.spread, of a GPU", None), ("rings_ranks", "rings_ranks, of a fabric", "128"),
                            ("radix", "switch, of a fabric", None), ("colocation", "facility, of a price book", None)):
    block = next(b for b in said("explain", word).strip().split("\n\n") if not IN_TABLE.search(b)).split("\n")
    assert block[0] == path, (word, block)
    assert ("  default   %s" % default in block) == (default is not None), block
assert "a number of an answer: MFU" in said("explain", "mfu")
for row, key in (("MFU", "mfu"), ("pipeline bubble", "breakdown_s.bubble"), ("USD per GPU-hour", "cost.usd_per_gpu_hour"),
                 ("at quoted prices", "cost.quoted_frac"), ("Energy per token", "cost.joules_per_token")):
    assert said("explain", row).split("\n")[0] == key, (row, said("explain", row))
assert said("explain", "hidden_size").startswith("model.hidden_size\n")

# Tables of the documents: each name of each row is told with all that its row says.
rows = 0
for page in ("docs/reading-the-output.md", "docs/glossary.md"):
    section, head = "", None
    for line in open(page):
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if line.startswith("#"):
            section = line.strip("# \n")
        if not cells:
            head = None
        elif head is None:
            head = cells
        elif len(cells) > 1 and set(cells[0]) != {"-"}:
            bare = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", c).replace("`", "") for c in cells]
            json_at = next((i for i, h in enumerate(head) if i and h.startswith("JSON")), 0)
            about = ": ".join(c for i, c in enumerate(bare) if i and i != json_at and c)
            for name in [bare[0], *re.findall("`([^`]*)`", cells[json_at])]:
                told_so = [b for b in said("explain", name).strip().split("\n\n") if " ".join(about.split()) in " ".join(b.split())]
                assert any(b.endswith('\n  more      %s, under "%s"' % (page, section)) for b in told_so), (page, name, about)
            rows += 1
assert rows > 400, rows
assert said("explain", "expert_up (wgrad)") == said("explain", "EXPERT_UP"), "the pass and the case of letters do not count"
assert said("explain", "attention counted whole").startswith("mfu_full\n"), "parts of a name, where no name is the word"
assert "gpu.power" not in said("explain", "MoE") and said("explain", "MoE").startswith("mixture of experts (MoE)\n")
assert said("explain", "  of which network ") == said("explain", "of which network"), "as copied out of a table"
assert said("explain", "MFU, attention counted whole, %") == said("explain", "MFU, attention counted whole"), "a comparison's row and its unit"
assert said("explain", "price of a server").startswith("one of: price of a server,"), "what stands behind a colon"
for heading in ("largest items", "roofline", "note", "distance", "there"):
    assert "docs/reading-the-output.md" in said("explain", heading), heading
for nothing in (".", ",", "-", "()", ", ms", "  "):
    assert subprocess.run([program, "explain", nothing], capture_output=True).returncode in (1, 64), nothing
wrong = subprocess.run([program, "explain", "cp_exchang"], capture_output=True, text=True)
assert wrong.returncode == 1 and wrong.stderr.strip().endswith("; did you mean 'cp_exchange'?"), wrong
wrong = subprocess.run([program, "explain", "maskd_attention"], capture_output=True, text=True)
assert wrong.returncode == 1 and wrong.stderr.strip().endswith("; did you mean 'masked_attention'?"), wrong
wrong = subprocess.run([program, "explain", "capex"], capture_output=True, text=True)
assert wrong.returncode == 1 and wrong.stderr.strip().endswith("; did you mean 'capex_usd'?"), wrong
seen = set()
# Every number of an answer, by its whole path or by its last word.
explained = 0
for line in open("tests/contract.txt"):
    command, path = line.split()[:2]
    if command.split("-")[0] in ("simulate", "compare", "bom", "plan", "validate") and path not in seen:
        seen.add(path)
        out = [subprocess.run([program, "explain", w], capture_output=True, text=True) for w in (path, path.split(".")[-1])]
        assert any(o.returncode == 0 and o.stdout.strip() for o in out), line
        explained += 1
assert explained > 300, explained
print(explained, "numbers of answers,", len(words), "words,", told, "keys of other files,", rows, "rows of tables")
