"""tests/printed.py - what tables print, first cells of rows and heads of columns, has an entry in `foretoken explain`

printed.py PROGRAM: the tables of the examples' expected output, and of some commands more
"""
import glob
import re
import subprocess
import sys

program = sys.argv[1]
EXAMPLE = "examples/01-first-answer/%s.yaml"
COMMANDS = [["simulate", EXAMPLE % "h100"], ["compare", EXAMPLE % "h100", EXAMPLE % "mi300x"], ["bom", EXAMPLE % "h100"],
            ["collective", EXAMPLE % "h100"], ["validate", "measurements/steps/h200-steps.csv", "--rows"]]
# labels of scenarios and runs, columns that an example's SQL names, units, names of what a table lists
NAMES = re.compile(r"(h100|mi300x(-.*)?|ib|roce|spectrum-x|inline|hugging-face|mfu_percent|memory_gb|USD|ms|%|(fsdp|ddp|tp|pp)-compile|fsdp-eager)$")


def cells(text):
    for block in re.split(r"\n\s*\n", text):
        lines = [re.split(r"  +", line.strip()) for line in block.split("\n")]
        table = [line for line in lines if len(line) > 1]
        if len(table) > 1:
            yield from table[0]
            yield from (line[0] for line in table[1:])


printed = {}
for path in sorted(glob.glob("examples/*/expected.txt")):
    printed.update((cell, path) for cell in cells(open(path).read()))
for command in COMMANDS:
    out = subprocess.run([program, *command], capture_output=True, text=True, check=True).stdout
    printed.update((cell, " ".join(command)) for cell in cells(out))
asked = 0
for cell, where in sorted(printed.items()):
    word = re.sub(r" at \d+ %$", "", cell)
    if not re.search("[A-Za-z]", word) or re.match(r"[\d.]+ ", word) or re.search(r"-.*\d", word) or NAMES.match(word) or word.endswith("."):
        continue
    said = subprocess.run([program, "explain", word], capture_output=True, text=True)
    assert not said.returncode, "'%s' of %s: %s" % (word, where, said.stderr)
    asked += 1
assert asked > 150, asked
print(asked, "cells")
