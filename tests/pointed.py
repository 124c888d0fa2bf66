"""tests/pointed.py - the line that an error shows, with its mark, for mistakes put at drawn places; a command as a shell reads it

pointed.py PART PROGRAM FOLDER
"""
import json
import os
import random
import shlex
import subprocess
import sys

part, program, folder = sys.argv[1:]
draw = random.Random(5)
SHOWN = 160  # columns of a line that are shown; of a mistake behind them, what is about it


def mistake():
    """A scenario with an unknown key, its line and its column, both from 1."""
    lines = ["#" * draw.choice((0, 1, 80, 510, 511, 512, 513, 1021, 1022, 1023, 1024, 3000)) for _ in range(draw.randrange(6))]
    lines.append("model: llama3-8b")
    lines += ["# " + "tab\tand more " * draw.randrange(3) for _ in range(draw.randrange(3))]
    front = "cluster: {gpu: h100-sxm," + draw.choice((" ", "\t", " \t ", " " * 100, "\t" * 160, " " * 600)) + "gpus: 8, "
    lines.append(front + "zqx: 1" + draw.choice(("", " " * 90)) + "}")
    at = len(lines)
    lines.append("training: {global_batch_size: 8, sequence_length: 1024}")
    return "\n".join(lines) + draw.choice(("", "\n")), at, len(front) + 1


def pointed():
    path = os.path.join(folder, "pointed.yaml")
    for _ in range(120):
        text, line, column = mistake()
        open(path, "w").write(text)
        p = subprocess.run([program, "simulate", path], capture_output=True, text=True)
        assert p.returncode == 1 and not p.stdout, p
        said, shown, mark = p.stderr.split("\n")[:3]
        assert said.startswith("%s:%d:%d: error: unknown key 'zqx'" % (path, line, column)), (said, line, column)
        whole = text.split("\n")[line - 1]
        if column <= SHOWN:
            assert shown == "  " + whole[:SHOWN], (shown, whole)
            blanks = "".join("\t" if c == "\t" else " " for c in whole[:column - 1])
            assert mark == "  " + blanks + "^", (mark, column)
        else: # the mark is below the word, and what is shown is of the line
            assert shown.startswith("  ...") and shown[len(mark) - 1:].startswith("zqx"), (shown, mark)
            assert shown.strip().strip(".").strip() in whole and len(shown) <= SHOWN, shown
            assert mark == "".join("\t" if c == "\t" else " " for c in shown[:len(mark) - 1]) + "^", (shown, mark)
        assert p.stderr.count("\n") == 3, p.stderr


def quoted():
    """What a shell makes of it is what was given, word for word; what it leaves alone has no quotes."""
    signs = "abcXYZ019 _-+=,./:@%'\"\\$`!*?[]{}()<>|&;#~^"
    example = "examples/01-first-answer/h100.yaml"
    for i in range(30):
        title = "t" + "".join(draw.choice(signs[:19] if i < 8 else signs) for _ in range(draw.randrange(1, 20)))
        given = ["compare", example, example, "--draws", "16", "--json", "--set", "title=" + json.dumps(title)]
        said = json.loads(subprocess.run([program, *given], capture_output=True, text=True, check=True).stdout)
        assert shlex.split(said["command"])[1:] == given, said["command"]
        assert said["command"].startswith("foretoken compare %s %s --draws 16 --json --set 'title=" % (example, example))
        assert said["scenarios"][0]["name"].startswith(title), said["scenarios"][0]["name"]


{"pointed": pointed, "quoted": quoted}[part]()
