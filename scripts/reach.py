#!/usr/bin/env python3
"""scripts/reach.py [BUILD] - which tests reach lines that nothing else does: tests/sanitized.txt

Reads BUILD/covered.json (build/cov; `make coverage` writes it). The fuzzers of all readers run under
sanitizers, and so do the C tests of less than a second and those in ALWAYS; of the others, and of the shell tests,
these do: taken one after another, each the one that adds most lines per second, until the next would
add less than LEAST. The list goes to standard output, and what is not reached to standard error.
"""
import json
import os
import sys

LEAST = 6  # lines per second
FIRST = """\
# tests/sanitized.txt - the tests that run under sanitizers too
#
# `make SAN=1 check-only` runs these shell tests, and all C tests but those that are named as such. Which,
# says scripts/reach.py: of those that take a second and more the ones that reach %d lines a second
# that no other test here reaches. All tests run without sanitizers.
""" % LEAST
ALWAYS = ("test_lost", "test_lost_fits", "test_lost_rest", "test_lost_work")  # allocations that fail: the same lines, cut short
NOT_SANITIZED = ("test_packages.sh", "test_valgrind.sh", "test_faults.sh", "test_tutorial.sh", "test_install.sh")


def lines(test):
    return {(path, n) for path, ran in test["ran"].items() if not path.startswith("tests/") for n in ran}


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build/cov"
    tests = json.load(open(os.path.join(build, "covered.json")))["tests"]
    reached, open_tests = set(), {}
    for name, test in sorted(tests.items()):
        seconds = test["seconds"] or 1.0
        if not name.endswith(".sh") and (seconds < 1 or name in ALWAYS):
            reached |= lines(test)
        elif name not in NOT_SANITIZED:
            open_tests[name] = lines(test), seconds
    taken = []
    while open_tests:
        name = max(open_tests, key=lambda n: (len(open_tests[n][0] - reached) / open_tests[n][1], n))
        ran, seconds = open_tests[name]
        added = len(ran - reached)
        if added < LEAST * seconds:
            break
        del open_tests[name]
        reached |= ran
        taken.append((name, added, seconds))
    sys.stdout.write(FIRST)
    for name, added, seconds in sorted(taken):
        if name.endswith(".sh"):
            print("%-28s # %4d lines, %5.1f s" % (name[:-3], added, seconds))
    for name, (ran, seconds) in sorted(open_tests.items()):
        if not name.endswith(".sh"):
            print("but %-24s # %4d lines, %5.1f s" % (name, len(ran - reached), seconds))
    left = set().union(*[ran for ran, _ in open_tests.values()]) - reached if open_tests else set()
    print("%d tests, %.0f s; %d of %d lines are reached without sanitizers alone" % (
        len(taken), sum(t[2] for t in taken), len(left), len(reached | left)), file=sys.stderr)


if __name__ == "__main__":
    main()
