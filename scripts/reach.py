#!/usr/bin/env python3
"""scripts/reach.py [BUILD] - which shell tests reach lines that nothing else does: tests/sanitized.txt

Reads BUILD/covered.json (build/cov; `make coverage` writes it). The C tests all run under
sanitizers, and so do the fuzzers of all readers; of the shell tests these few do: taken one
after another, each the one that adds most lines per second, until the next would add less than
two. The list goes to standard output, and what is not reached to standard error.
"""
import json
import os
import sys

FIRST = """\
# tests/sanitized.txt - the shell tests that run under sanitizers too
#
# `make SAN=1 check-only` runs these and all C tests. Which tests, says scripts/reach.py: those that
# reach at least two lines per second that no other test here reaches. Tests that are not here
# run without sanitizers.
"""
LEAST = 2  # lines per second
NOT_SANITIZED = ("test_packages.sh", "test_valgrind.sh", "test_faults.sh", "test_tutorial.sh", "test_install.sh")


def lines(test):
    return {(path, n) for path, ran in test["ran"].items() if not path.startswith("tests/") for n in ran}


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build/cov"
    tests = json.load(open(os.path.join(build, "covered.json")))["tests"]
    reached, open_tests = set(), {}
    for name, test in sorted(tests.items()):
        if name.endswith(".sh"):
            if name not in NOT_SANITIZED:
                open_tests[name] = (lines(test), test["seconds"] or 1.0)
        else:
            reached |= lines(test)
    taken = []
    while open_tests:
        name = max(open_tests, key=lambda n: (len(open_tests[n][0] - reached) / open_tests[n][1], n))
        ran, seconds = open_tests.pop(name)
        added = len(ran - reached)
        if added < LEAST * seconds:
            open_tests[name] = ran, seconds
            break
        reached |= ran
        taken.append((name, added, seconds))
        open_tests = {n: v for n, v in open_tests.items() if v[0] - reached}
    sys.stdout.write(FIRST)
    for name, added, seconds in sorted(taken):
        print("%-28s # %4d lines, %5.1f s" % (name[:-3], added, seconds))
    left = set().union(*[ran for ran, _ in open_tests.values()]) - reached if open_tests else set()
    print("%d tests, %.0f s; %d of %d lines are reached without sanitizers alone" % (
        len(taken), sum(t[2] for t in taken), len(left), len(reached | left)), file=sys.stderr)


if __name__ == "__main__":
    main()
