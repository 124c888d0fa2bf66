"""tests/contract.py - the keys of JSON answers, one a line: WHAT path

contract.py WHAT <ANSWER.json: a list's members share a path; maps whose keys are data (prices by item,
what a scenario says) are told without what is in them, those of results by name with what each member has.
"""
import json
import sys

DATA = {"scenario", "prices", "provenance", "assumed", "differs", "settings", "keys", "set", "given", "by"}
NAMED = {"groups", "by_key", "classes"}


def paths(value, at):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield at + key
            for member in inner.values() if key in NAMED else [inner]:
                if key not in DATA:
                    yield from paths(member, at + key + ".")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, at)


for path in sorted(set(paths(json.load(sys.stdin), ""))):
    print(sys.argv[1], path)
