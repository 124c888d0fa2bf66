"""tests/defaults.py - a default that the manual states is the one that counts

defaults.py PROGRAM SCENARIO: each key of foretoken-scenario(5) whose text says "Default X." is set to X, and the answer
is that of the scenario without it.
"""
import json
import re
import subprocess
import sys

program, scenario = sys.argv[1:]
page = open("man/foretoken-scenario.5").read()
said = {}
for key, text in re.findall(r"^\.B (?:\\-\\-)?([a-z_]+(?:\.[a-z_]+)+)\n(.*?)(?=^\.(?:TP|PP|SH|SS))", page, re.S | re.M):
    # a word or a number, without a condition behind it
    m = re.search(r"Default:? ((?:-?[\d.]+(?: (?:y|s|h|USD/kWh))?)|[a-z][a-z0-9_-]*)\.(?:\s|$)", text)
    if m:
        said[key] = m[1]


def answer(*sets):
    out = subprocess.run([program, "simulate", scenario, "--json"] + [a for s in sets for a in ("--set", s)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode:
        return out.stderr.split("error: ")[-1]
    told = json.loads(out.stdout)
    resolved = told.pop("scenario")
    for key in ("assumed", "command"):
        told.pop(key, None)
    return told, resolved


def value_at(resolved, key):
    for part in key.split("."):
        resolved = resolved.get(part) if isinstance(resolved, dict) else None
    return resolved


without = answer()
assert isinstance(without, tuple), without
same = 0
for key, value in sorted(said.items()):
    if re.search(r"\b%s:" % key.rsplit(".", 1)[1], open(scenario).read()):
        continue
    given = answer("%s=%s" % (key, value))
    if isinstance(given, str):
        continue  # a key that has no effect here is refused
    assert given[0] == without[0], (key, value)
    was = value_at(without[1], key)
    assert was is None or was == value_at(given[1], key), (key, was, value)
    same += 1
    print(key, value)
print(same, "of", len(said))
assert same > 20, same
