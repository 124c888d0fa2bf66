"""tests/trace_options.py FORETOKEN FOLDER - each option of `foretoken trace` with each verb, of a recording and of a scenario

The table says which verbs take it, as the manual has it. All others must refuse it as wrong usage, print no answer,
write no file, and name it (of a key or a price that changes nothing it is the scenario that is wrong); those that take
it must answer.
"""
import os
import shutil
import subprocess
import sys

program, folder = sys.argv[1:]
recording = "measurements/traces/h100-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz"
scenario = "examples/15-recorded-step/scenario.yaml"
graph = os.path.join(folder, "step.graph")
open(graph, "w").write(subprocess.run([program, "trace", "show", scenario], capture_output=True, text=True, check=True).stdout)


def of(file):
    return {"show": ["show", file], "replay": ["replay", file], "compare": ["compare", file, scenario], "export": ["export", file, "--goal", "OUT"]}


RECORDED, PLANNED = of(recording), {k: v for k, v in of(scenario).items() if k != "compare"}
PLANNED["replay"] += ["--graph", graph]
FIT = ["--fit-stack", os.path.join(folder, "fitted")]
# option: its words; verbs that take it, of a recording and of a scenario
OPTIONS = (
    (["--gpu", "h200"], "replay", ""), (["--fabric", "ib-ndr-rail"], "replay", ""), (["--scale", "dp=4"], "replay", ""),
    (["--speedup", "gemm=2"], "replay", ""), (["--without", "all_gather"], "replay", ""),
    (["--without", "waiting"], "replay", ""), (["--tokens-per-step", "8192"], "replay", ""),
    (["--step", "all"], "show replay compare", ""), (["--timeline", "OUT"], "show replay compare", ""),
    (["--from", "h100-sxm"], "compare", ""), (["--from", "h100-sxm", "--gpu", "h200"], "replay", ""),
    (["--graph", graph], "", "replay"), (["--chakra", "OUT"], "", ""), (["--plot", "OUT"], "compare", ""), (FIT, "compare", ""),
    (["--pace", "0.5"], "", ""), (["--date", "2026-11-22"], "", ""), (FIT + ["--pace", "0.5", "--date", "2026-11-22"], "compare", ""),
    (FIT + ["--step", "all"], "compare", ""), (FIT + ["--date", "yesterday"], "", ""), (FIT + ["--plot", "OUT"], "", ""),
    (FIT + ["--timeline", "OUT"], "", ""), (FIT + ["--from", "h100-sxm"], "", ""),
    (["--set", "cost.pue=1.3"], "compare", "show replay export"), (["--set", "cost.pue=1.3", "--tokens-per-step", "8192"], "replay", ""),
    (["--price", "hgx-h100-server=1000", "--tokens-per-step", "8192"], "replay", ""), (["--price", "hgx-h200-server=1000"], "compare", "show replay export"), (["--quiet"], "show replay compare export", "show replay export"),
    (["--json"], "show replay compare", "replay"))
if not shutil.which("gnuplot"):
    OPTIONS = tuple(o for o in OPTIONS if "--plot" not in o[0])
OUTS = [os.path.join(folder, n) for n in ("out.svg", "fitted.yaml")]
bad = []
for verbs, column in ((RECORDED, 1), (PLANNED, 2)):
    for verb, words in verbs.items():
        for option in OPTIONS:
            if option[0][0] in words:
                continue
            p = subprocess.run([program, "trace"] + [OUTS[0] if w == "OUT" else w for w in words + option[0]],
                               capture_output=True, text=True, check=False)
            wrote = [os.remove(o) or o for o in OUTS if os.path.exists(o)]
            if verb in option[column].split():
                good = p.returncode == 0 and p.stdout
            else:
                named = [w for w in option[0] if w.startswith("--") and w in p.stderr]
                good = p.returncode in ((1, 64) if option[0][0] in ("--set", "--price") else (64,)) and not p.stdout and not wrote and (named or option[0] == ["--json"])
            if not good:
                bad.append("%s: exit %d, %s" % (" ".join(words + option[0]), p.returncode, p.stderr.strip()[:200]))
assert not bad, "\n".join(bad)
