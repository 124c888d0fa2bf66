#!/usr/bin/env python3
"""scripts/mutants.py - small defects put into the code, one at a time: which does no test see?

    scripts/mutants.py [--seed N] [--count N] [--minutes N] [--unit] [--folders "sim traces ..."]

Each mutant changes one place (an operator, a constant, a condition, a statement), in a copy
of the tree of its own; what depends on it is compiled, and the unit and shell tests run, the
fastest first, until one fails. The examples' golden output is left out: it sees everything
and says nothing. Survivors are printed with their place and the change. A mutant that does
not compile, or makes the same object code, is no mutant. Takes minutes.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time

SWAPS = [("<=", "<"), (">=", ">"), ("==", "!="), ("!=", "=="), ("&&", "||"), ("||", "&&"),
         (" < ", " <= "), (" > ", " >= "), (" + ", " - "), (" - ", " + "), (" * ", " / "),
         (" / ", " * "), ("fmin(", "fmax("), ("fmax(", "fmin("), (" += ", " -= ")]
NOT_RUN = {"test_examples.sh", "test_valgrind.sh", "test_tutorial.sh", "test_install.sh",
           "test_probe_gpu.sh", "test_calibrate.sh", "test_simgrid.sh"}
SLOW = ["test_keys", "test_metamorphic"]  # last


def code_lines(path):
    """(number, text) of lines within functions, without comments and asserts."""
    comment = False
    inside = False
    for number, line in enumerate(open(path), 1):
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        bare = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + "_" * (len(m.group()) - 2) + '"',
                      line.rstrip("\n"))
        if comment or bare.strip().startswith("/*"):
            comment = "*/" not in bare
            continue
        if inside and bare.strip() and "assert" not in bare and not bare.startswith("#"):
            yield number, line.rstrip("\n"), bare.split("/*")[0]


def mutations(line, bare):
    for a, b in SWAPS:
        for m in re.finditer(re.escape(a), bare):
            if a in ("<", ">") or (len(a) == 1):
                continue
            yield line[:m.start()] + b + line[m.end():]
    for m in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", bare):
        yield line[:m.start()] + str(int(m.group()) + 1) + line[m.end():]
        if int(m.group()) > 0:
            yield line[:m.start()] + str(int(m.group()) - 1) + line[m.end():]
    m = re.match(r"^(\s*(?:else )?if \()(.*)\)( \{)?$", bare)
    if m and bare.count("(") == bare.count(")"):
        a, b = m.span(2)
        yield line[:a] + "!(" + line[a:b] + ")" + line[b:]
    if re.match(r"^\t+[\w\[\]\.\->\*]+ [-+*/]?= .*;$|^\t+\w+\(.*\);$", bare):
        yield re.match(r"\t+", line).group() + ";"


def draw(folders, count, seed):
    places = []
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".c"):
                continue
            path = folder + "/" + name
            for number, line, bare in code_lines(path):
                for new in mutations(line, bare):
                    places.append((path, number, line, new))
    random.Random(seed).shuffle(places)
    return places[:count * 2]  # some do not compile, or change nothing


def run(command, seconds, **more):
    try:
        return subprocess.run(command, timeout=seconds, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True,
                              **more).returncode
    except subprocess.TimeoutExpired:
        return 124  # it hangs: seen


def tests_of(tree, unit_only):
    """Commands with the seconds that each takes, fastest first."""
    env = dict(os.environ, FORETOKEN=tree + "/build/rel/foretoken", B=tree + "/build/rel",
               CMOCKA_MESSAGE_OUTPUT="TAP")
    rows = []
    names = [n[:-2] for n in os.listdir("tests") if re.match(r"test_.*\.c$", n)]
    commands = [(n, ["build/rel/tests/" + n]) for n in names]
    commands += [(n, ["sh", "tests/" + n]) for n in os.listdir("tests")
                 if not unit_only and re.match(r"test_.*\.sh$", n) and n not in NOT_RUN]
    for name, command in commands:
        begun = time.time()
        if run(command, 300, cwd=tree, env=env) != 0:
            sys.exit(name + " fails without a mutant")
        spent = time.time() - begun
        rows.append((name in SLOW, spent, name, command))
    rows.sort()
    return [(name, command, 20 + 10 * spent) for _, spent, name, command in rows], env


def build(tree, targets):
    return run(["make", "-s"] + targets, 300, cwd=tree) == 0


def object_of(tree, path):
    data = open("%s/build/rel/%s.o" % (tree, path[:-2]), "rb").read()
    return data


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=60)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--folders", default="sim traces hw study cost models base stacks")
    p.add_argument("--unit", action="store_true", help="leave the shell tests out")
    p.add_argument("--tree", default="build/mutants")
    a = p.parse_args()
    tree = os.path.abspath(a.tree)
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree)
    subprocess.check_call("git ls-files -z | xargs -0 tar -cf - | tar -C %s -xf -" % tree,
                          shell=True)
    # no optimiser: it compiles faster; no digest of the sources: only one file is built anew
    os.environ["CFLAGS"] = "-O1 -DTESTS_FEW"
    subprocess.check_call(["sed", "-i", "s,^$B/base/version.o: .*,$B/base/version.o: base/version.c,",
                           tree + "/Makefile"])
    targets = ["CFLAGS=-O1 -DTESTS_FEW", "build/foretoken"] + [
        "build/rel/tests/" + n[:-2] for n in os.listdir("tests")
        if re.match(r"test_.*\.c$", n)]
    if not build(tree, ["-j4"] + targets):
        sys.exit("the tree does not build")
    tests, env = tests_of(tree, a.unit)
    killed, survivors, ends = 0, [], time.time() + 60 * a.minutes
    for path, number, line, new in draw(a.folders.split(), a.count, a.seed):
        if killed + len(survivors) >= a.count or time.time() > ends:
            break
        text = open(path).read().split("\n")
        before = object_of(tree, path)
        text[number - 1] = new
        open(tree + "/" + path, "w").write("\n".join(text))
        by = None
        if build(tree, ["CFLAGS=-O1 -DTESTS_FEW", "build/rel/" + path[:-2] + ".o"]) and \
                object_of(tree, path) != before and build(tree, ["-j2"] + targets):
            by = next((n for n, c, s in tests if run(c, s, cwd=tree, env=env) != 0), "")
        shutil.copyfile(path, tree + "/" + path)
        if by is None:
            continue
        if by:
            killed += 1
        else:
            survivors.append((path, number))
        print("%s %s:%d\n  - %s\n  + %s" % ("killed by %s:" % by if by else "SURVIVES", path,
              number, line.strip(), new.strip()), flush=True)
    n = killed + len(survivors)
    print("%d of %d mutants killed (%.0f %%), seed %d" % (killed, n, 100 * killed / max(1, n),
                                                         a.seed))


if __name__ == "__main__":
    main()
