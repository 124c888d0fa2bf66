#!/usr/bin/env python3
"""scripts/search_kriging.py BUILD [ROUNDS [STEP]] - the search that chose the constants of the
covariances in sim/gemm.c and sim/attention.c, from where they stand now.

Coordinate by coordinate each constant is multiplied and divided by STEP (1.5; less in every
round), and what lowers the held-out error is kept: that of whole weight shapes (products), of a
fifth of the rows (attention), means over the published grids that tests/test_kernel_held_out.c
prints.  The sources are not changed: what was found is printed, to be entered by hand.  The error
is of the same grids the constants are chosen on; `make validate` has files that no fit saw.
CC, CFLAGS and LDLIBS come from `make search`; a round takes some minutes."""
import os
import re
import subprocess
import sys

FILES = {
    # file: (its block of constants, the line of the test that says its error)
    "sim/gemm.c": (r"terms\[TERMS\] = \{.*?\n\};", r"mean of the large published grids ([\d.]+)"),
    "sim/attention.c": (r"static const float variance_all.*?static float between",
                        r"mean of the large published tables ([\d.]+)"),
}
NUMBER = re.compile(r"\d+\.\d+(?=f\b)")


def run(words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def error(build, path, text, said):
    """Percent, with this text of the file in place of its own."""
    trial = os.path.join(build, "search")
    os.makedirs(trial, exist_ok=True)
    source = os.path.join(trial, os.path.basename(path))
    with open(source, "w") as f:
        f.write(text)
    made = source[:-2]
    for words in (
        [os.environ["CC"], *os.environ["CFLAGS"].split(), "-c", "-o", made + ".o", source],
        [os.environ["CC"], "-o", made, build + "/tests/test_kernel_held_out.o", made + ".o",
         build + "/libforetoken.a", *os.environ["LDLIBS"].split()],
    ):
        result = run(words)
        if result.returncode:
            sys.exit(result.stderr)
    found = re.search(said, run([made]).stdout)
    return float(found[1]) if found else float("inf")


def search(build, path, rounds, step):
    text = open(path).read()
    block, said = FILES[path]
    begin, end = re.search(block, text, re.S).span()

    def with_values(values):
        left = iter(values)
        return text[:begin] + NUMBER.sub(lambda _: "%#.4g" % next(left), text[begin:end]) + text[end:]

    values = [float(v) for v in NUMBER.findall(text[begin:end])]
    best = error(build, path, text, said)
    print("%s: %d constants, held out %.2f %%" % (path, len(values), best), flush=True)
    for _ in range(rounds):
        for i in range(len(values)):
            for factor in (step, 1 / step):
                tried = values[:i] + [values[i] * factor] + values[i + 1:]
                now = error(build, path, with_values(tried), said)
                if now < best - 0.005:
                    best, values = now, tried
                    print("  constant %d: %.4g, held out %.2f %%" % (i + 1, values[i], best), flush=True)
                    break
        step = step ** 0.5
    print("  " + " ".join("%.4g" % v for v in values))


build = sys.argv[1]
for name in FILES:
    search(build, name, int(sys.argv[2]) if len(sys.argv) > 2 else 1,
           float(sys.argv[3]) if len(sys.argv) > 3 else 1.5)
