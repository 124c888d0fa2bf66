#!/usr/bin/env python3
"""scripts/mutants.py - small defects put into the code, one at a time: which does no test see?

    scripts/mutants.py [--seed N] [--count N] [--minutes N] [--folders "sim traces ..."]
                       [--jobs N] [--budget SECONDS] [--slowest SECONDS]
                       [--sanitized] [--bounds] [--again] [--at FILE:LINE]

Each mutant changes one place (an operator, a constant, a condition, a statement) in a copy
of the tree; the file is compiled, one shared library linked, and unit and shell tests run
until one fails. Only the tests that run the line (build/cov/covered.json, which `make
coverage` writes) are started, first those that are fast and run little but the line's file
(WHOLE: those that look at all of an answer, a third as far); a line that none runs is a survivor. The
examples' golden output is left out: it sees everything and says nothing. So are the tests
that build the tree anew. Tests that hold figures and words of the tree against the program
(DERIVED) are something between, so they run last and are counted apart.

A mutant that does not compile, or makes the same object code (of survivors: at -O2, too), is no
mutant. Not drawn, because they cannot change an answer:
  asserts               taken away or changed they see less, and no answer of a right program
  char NAME[N];         sizes of buffers of text: snprintf cuts, whoever is longest is far off
  T NAME[N + 1]         room for one more than fits is never seen; one less is drawn
  ALLOC(..., n + 2)     the same of what is allocated
  h ^ h >> 28           what a hash mixes by; any other mixes as well
  ? -2 : 1, ? -1 : 2     a comparison's sign counts, not its size; -0 is drawn
 A test that
takes five times as long as without the mutant, or 4 GiB, has seen it. Tests that take longer
than --slowest are started only for lines that no other test runs. After --budget seconds of tests a mutant counts as a survivor,
and is printed with what was left.

--sanitized: a survivor is built under ASan and UBSan as well, as `make SAN=1 check-only` does,
and its tests run again there: memory that is lost, and steps beyond an array. A test counts
there only if it passes without the mutant.

--bounds: the mutant's file ends the program at a step beyond an array whose size it knows, as it
does under `make SAN=1 check-only`. It costs a fraction of a second a mutant, no tree of its own.

The tests run without a mutant first, for their times, and those that fail are left out. The
copies of the tree and the times are kept in build/mutants, for later runs.

Results are kept in build/mutants/results.jsonl as they come. A later run with the same
arguments goes on where the last one ended; --again tries the survivors of that file once
more (after tests were written), --at all mutants of one line. Takes an hour or two.
"""
import argparse
import bisect
import concurrent.futures
import hashlib
import json
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

SWAPS = [("<=", "<"), (">=", ">"), ("==", "!="), ("!=", "=="), ("&&", "||"), ("||", "&&"),
         (" < ", " <= "), (" > ", " >= "), (" + ", " - "), (" - ", " + "), (" * ", " / "),
         (" / ", " * "), ("fmin(", "fmax("), ("fmax(", "fmin("), (" += ", " -= ")]
NOT_RUN = {"test_examples.sh", "test_valgrind.sh", "test_tutorial.sh", "test_install.sh",
           "test_packages.sh", "test_probe_gpu.sh", "test_probe_shim.sh", "test_probe.sh",
           "test_simgrid.sh"}
# their words are the tree's derived files: told apart, and run last
DERIVED = {"test_derived.sh", "test_profiles.sh", "test_key_ranges"}
# hold each number and word of whole answers against another form of them: asked sooner than others
WHOLE = {"test_said.sh", "test_told.sh", "test_contract.sh", "test_steps.sh", "test_written.sh", "test_page.sh",
         "test_outcome", "test_document_json", "test_warnings.sh", "test_figures.sh", "test_timeline.sh",
         "test_timeline_svg.sh"}
FOLDERS = "base hw models stacks traces sim recorded cost study calibrate reports serve cli"
CFLAGS = "-O1 -DTESTS_FEW"  # it compiles faster
BOUNDS = ["-fsanitize=bounds", "-fsanitize-undefined-trap-on-error"]
KEPT = "build/mutants/results.jsonl"
TIMES = "build/mutants/times.json"
SAID = threading.Lock()


# ---- mutants -------------------------------------------------------------------------------

def code_lines(path):
    """(number, text, code) of lines within functions, without comments and asserts. Sizes of
    buffers of text are left out: larger by one is never seen, and smaller hardly."""
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
        if re.match(r"^\t+(static )?char .*\[\d+\].*;$", bare) or \
                re.search(r"\b(\w+) \^=? ?(\1 )?>> \d+;", bare):
            continue
        if inside and bare.strip() and "assert" not in bare and not bare.startswith("#"):
            yield number, line.rstrip("\n"), bare.split("/*")[0]


def mutations(line, bare):
    for a, b in SWAPS:
        for m in re.finditer(re.escape(a), bare):
            yield line[:m.start()] + b + line[m.end():]
    array = re.match(r"^\t+(static )?(const )?(struct |enum |unsigned )?\w+ .*\w\[(\d+)\]( = .*)?;$", bare)
    allocates = re.search(r"\b(ARENA_ARRAY|arena_alloc|malloc|calloc|realloc)\(", bare)
    for m in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", bare):
        room = (array and m.span() == array.span(4)) or allocates
        before, behind = bare[:m.start()], bare[m.end():]
        sign = m.group() == "1" and (before.endswith(("? -", "? 1 : -", "? -1 : ")) or
                                     before.endswith("? ") and behind.startswith(" : -1"))
        if not room and not sign:
            yield line[:m.start()] + str(int(m.group()) + 1) + line[m.end():]
        if int(m.group()) > 0:
            yield line[:m.start()] + str(int(m.group()) - 1) + line[m.end():]
    m = re.match(r"^(\s*(?:else )?if \()(.*)\)( \{)?$", bare)
    if m and bare.count("(") == bare.count(")"):
        a, b = m.span(2)
        yield line[:a] + "!(" + line[a:b] + ")" + line[b:]
    if re.match(r"^\t+[\w\[\]\.\->\*]+ [-+*/]?= .*;$|^\t+\w+\(.*\);$", bare):
        yield re.match(r"\t+", line).group() + ";"


def places(folders):
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".c"):
                path = folder + "/" + name
                for number, line, bare in code_lines(path):
                    for new in mutations(line, bare):
                        yield path, number, line, new


# ---- commands ------------------------------------------------------------------------------

def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, seconds, bound=None, given=subprocess.DEVNULL, **more):
    """Its status; 124 when it takes longer. What it started ends with it."""
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         stdin=given, start_new_session=True,
                         preexec_fn=bound, **more)
    try:
        status = p.wait(seconds)
    except subprocess.TimeoutExpired:
        status = 124
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.wait()
    return status


class Tree:
    """A copy of the tree in which a mutant lives, built with one shared library."""

    def __init__(self, number, model=None, sanitized=False):
        self.at = os.path.abspath("build/mutants/%d%s" % (number, "s" if sanitized else ""))
        self.sanitized = sanitized
        self.bounds = []  # to compile a mutant with, once it is known to be one
        self.b = "build/san" if sanitized else "build/rel"
        self.passes = {}  # tests without a mutant, when they were asked for
        if model:
            shutil.rmtree(self.at, ignore_errors=True)
            subprocess.check_call(["cp", "-a", model.at, self.at])
            self.compile, self.library, self.program = (model.compile, model.library,
                                                        model.program)
        else:
            self.make()
        self.temporary = self.at + ".tmp"
        os.makedirs(self.temporary, exist_ok=True)
        self.env = dict(os.environ, FORETOKEN=self.at + "/" + self.b + "/foretoken",
                        B=self.at + "/" + self.b, CMOCKA_MESSAGE_OUTPUT="TAP",
                        TAP_ENDS_AT_FIRST="1",
                        TMPDIR=self.temporary,  # a program that a test copies finds its library:
                        LD_LIBRARY_PATH=self.at + "/" + self.b)
        if sanitized:  # shadow memory counts as data
            self.env["ASAN_OPTIONS"] = "hard_rss_limit_mb=4096"

    def copy(self):
        """What differs from an earlier run's copy, so that only that is built."""
        names = subprocess.check_output(["git", "ls-files", "-zco", "--exclude-standard"],
                                        text=True).split("\0")
        names = {n for n in names if os.path.exists(n) and n}
        for folder, _, files in os.walk(self.at):
            if not os.path.relpath(folder, self.at).startswith("build"):
                for n in files:
                    path = os.path.join(folder, n)
                    if os.path.relpath(path, self.at) not in names:
                        os.remove(path)
        for n in names:
            text = open(n, "rb").read() if not os.path.islink(n) else b""
            if n == "Makefile":  # no digest of the sources: only one file is built anew
                text = re.sub(rb"(?m)^\$B/base/version.o: .*", b"$B/base/version.o: "
                              b"base/version.c", text)
            to = os.path.join(self.at, n)
            if os.path.lexists(to) and not os.path.islink(n) and open(to, "rb").read() == text:
                continue
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if os.path.lexists(to):
                os.remove(to)
            shutil.copy(n, to, follow_symlinks=False)
            if n == "Makefile":
                open(to, "wb").write(text)

    def make(self):
        self.copy()
        env = dict(os.environ, CFLAGS=CFLAGS)
        tests = [self.b + "/tests/" + n[:-2] for n in sorted(os.listdir("tests"))
                 if re.match(r"test_.*\.c$", n)]
        goals = [self.b + n for n in ("/foretoken", "/tests/mutate", "/foretoken-probe")] + tests
        goals += ["SAN=1"] if self.sanitized else []
        subprocess.check_call(["make", "-s", "-j%d" % os.cpu_count()] + goals, cwd=self.at,
                              env=env, stdout=subprocess.DEVNULL)
        said = subprocess.check_output(["make", "-n", "-B", "V=1"] + goals, cwd=self.at, env=env,
                                       text=True)
        self.compile, links, objects = {}, {}, []
        for command in said.splitlines():
            m = re.search(r" -c -o \S+\.o (\S+)\.c$", command)
            if m:
                self.compile[m.group(1) + ".c"] = command.split()
            m = re.match(r"\S+ rcs \S+libforetoken\.a (.*)", command)
            if m:
                objects = m.group(1).split()
            m = re.match(r".* -o (\S+) (?:\S+\.o )+\S+libforetoken\.a ", command)
            if m:
                links[m.group(1)] = command
        cc = links[self.b + "/foretoken"].split()[0]
        libraries = links[self.b + "/foretoken"].split("libforetoken.a ")[1]
        if self.sanitized:
            cc += " -fsanitize=address,undefined"
        self.library = "%s -shared -Wl,-soname,libforetoken.so -o %s/libforetoken.so %s %s" % (
            cc, self.b, " ".join(objects), libraries)
        for goal in links:
            above = "/.." if goal.startswith(self.b + "/tests/") else ""
            links[goal] = links[goal].replace(
                self.b + "/libforetoken.a",
                self.b + "/libforetoken.so -Wl,-rpath,'$ORIGIN%s'" % above)
        self.program = links[self.b + "/foretoken"]
        for command in [self.library] + list(links.values()):
            subprocess.check_call(command, shell=True, cwd=self.at)

    def link(self, path):
        command = self.program if path.startswith("cli/") else self.library
        return run(command, 120, shell=True, cwd=self.at) == 0

    def test(self, name, seconds):
        command = (["sh", "tests/" + name] if name.endswith(".sh")
                   else [self.b + "/tests/" + name])
        status = run(command, seconds, bound=None if self.sanitized else bounded, cwd=self.at,
                     env=self.env)
        for left in os.listdir(self.temporary):
            shutil.rmtree(self.temporary + "/" + left, ignore_errors=True)
        return status

    def mutant(self, path, number, line, new):
        """Makes it; false when it is none."""
        o = "%s/%s/%s.o" % (self.at, self.b, path[:-2])
        source = self.at + "/" + path
        shutil.copyfile(o, o + ".kept")
        shutil.copyfile(source, source + ".kept")
        text = open(source).read().split("\n")
        if text[number - 1] != line:
            return False
        text[number - 1] = new
        open(source, "w").write("\n".join(text))
        command = [x for x in self.compile[path] if x not in ("-MMD", "-MP")]
        return run(command, 120, cwd=self.at) == 0 and \
            open(o, "rb").read() != open(o + ".kept", "rb").read() and \
            (not self.bounds or run(command + self.bounds, 120, cwd=self.at) == 0) and self.link(path)

    def same_optimised(self, path):
        """Its -O2 is that of the code as it was: an equivalent mutant."""
        out = []
        for source in (path, path + ".kept"):
            command = [x for x in self.compile[path] if x not in ("-MMD", "-MP", "-g")]
            o = "%s/%s.o2" % (self.at, self.b)
            command[command.index("-o") + 1] = o
            command[-1:] = ["-O2", "-g0", "-x", "c", "-"]
            with open(self.at + "/" + source) as text:
                if run(command, 120, cwd=self.at, given=text):
                    return False
            out.append(open(o, "rb").read())
        return out[0] == out[1]

    def restore(self, path):
        o = "%s/%s/%s.o" % (self.at, self.b, path[:-2])
        os.replace(self.at + "/" + path + ".kept", self.at + "/" + path)
        os.replace(o + ".kept", o)
        if path.startswith("cli/"):
            self.link(path)  # the next mutant may be the library's


# ---- which tests, and how long they take -----------------------------------------------------

def source_of(name):
    return "tests/" + name + ("" if name.endswith(".sh") else ".c")


class Covered:
    """Which tests run a line, by `make coverage`."""

    def __init__(self, told):
        self.lines = told["lines"]
        self.ran = {n: {p: set(l) for p, l in t["ran"].items()}
                    for n, t in told["tests"].items() if n not in NOT_RUN}

    def tests(self, path, number):
        """A line of a table or a statement's second has no code: the next ones are asked."""
        lines = self.lines.get(path, [])
        at = bisect.bisect_left(lines, number)
        near = lines[at:at + 1] if lines[at:at + 1] == [number] else lines[max(at - 1, 0):at + 1]
        return {n for n, ran in self.ran.items() if ran.get(path, set()).intersection(near)}


    def far(self, path, name):
        """How many lines a test runs for each line that it runs of a file."""
        ran = self.ran[name]
        return sum(map(len, ran.values())) / max(1, len(ran.get(path, ())))


def durations(trees, names):
    """Seconds of each test without a mutant; those that fail are told and left out. Kept for
    later runs, while a test is as it was."""
    was = json.load(open(TIMES)) if os.path.exists(TIMES) else {}
    digest = {n: hashlib.md5(open(source_of(n), "rb").read()).hexdigest() for n in names}
    spent = {n: was[n][1] for n in names if n in was and was[n][0] == digest[n]}

    def one(tree, left):
        while left:
            name = left.pop()
            begun = time.time()
            status = tree.test(name, 300)
            if status:
                print("left out, since it fails without a mutant: " + name, flush=True)
            else:
                spent[name] = time.time() - begun

    left = [n for n in names if n not in spent]
    threads = [threading.Thread(target=one, args=(t, left)) for t in trees]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    was.update({n: (digest[n], s) for n, s in spent.items()})
    json.dump(was, open(TIMES, "w"))
    return spent


def tried(tree, mutant, tests, budget):
    """What became of one mutant: None when it is none."""
    path, number, line, new = mutant
    found = {"path": path, "line": number, "old": line, "new": new, "by": "", "left": 0,
             "tests": len(tests)}
    at = time.time()
    made = tree.mutant(*mutant)
    found["made_s"] = round(time.time() - at, 2)
    try:
        if not made:
            return None
        for name, seconds in tests:
            if budget <= 0 and name not in DERIVED:
                found["left"] += 1
                continue
            begun = time.time()
            if tree.test(name, 5 + 5 * seconds):
                found["by"] = name
                break
            budget -= time.time() - begun
        if not found["by"] and tree.same_optimised(path):
            return None
    finally:
        tree.restore(path)
        found["s"] = round(time.time() - at, 2)
    return found


def tried_sanitized(tree, mutant, tests, budget, found):
    """A survivor once more; found is told what became of it. Those that take longer, or fail
    without the mutant, say nothing."""
    seen = []
    try:
        if not tree.mutant(*mutant):
            return
        for name, seconds in tests:
            if budget <= 0 or len(seen) == 3:
                break
            begun = time.time()
            if tree.passes.get(name, True) and tree.test(name, 60 + 20 * seconds) not in (0, 124):
                seen.append(name)
            budget -= time.time() - begun
    finally:
        tree.restore(mutant[0])
    if seen:
        tree.link(mutant[0])
    for name in seen:
        if name not in tree.passes:
            tree.passes[name] = tree.test(name, 600) == 0
        if tree.passes[name]:
            found["by"] = name + " (sanitized)"
            return


def tell(found, numbers):
    with SAID:
        says = "killed by %s:" % found["by"] if found["by"] else "SURVIVES"
        left = ", %d tests not run" % found["left"] if found["left"] else ""
        print("%s %s:%d (of %d tests%s)\n  - %s\n  + %s" % (
            says, found["path"], found["line"], found["tests"], left, found["old"].strip(),
            found["new"].strip()), flush=True)
        numbers.append(found)
        with open(KEPT, "a") as f:
            f.write(json.dumps(found) + "\n")


def summary(results, seed):
    by = {}
    for r in results:
        killed, n = by.get(r["path"].split("/")[0], (0, 0))
        by[r["path"].split("/")[0]] = (killed + bool(r["by"]), n + 1)
    for folder, (killed, n) in sorted(by.items()):
        print("%-10s %3d of %3d killed  %3.0f %%" % (folder, killed, n, 100 * killed / n))
    killed, n = sum(k for k, _ in by.values()), len(results)
    derived = sum(r["by"].split(" ")[0] in DERIVED for r in results)
    print("%d of %d mutants killed (%.0f %%), seed %d; %d of them only by derived files (%.0f %% without)"
          % (killed, n, 100 * killed / max(1, n), seed, derived, 100 * (killed - derived) / max(1, n)))


def key(r):
    return r["path"], r["line"], r["old"], r["new"]


def kept():
    """Results of earlier runs, the last word on each mutant."""
    if not os.path.exists(KEPT):
        return {}
    return {key(r): r for r in map(json.loads, open(KEPT))}


def moved(all_places, keys):
    """Where mutants of an earlier tree are now: {mutant: what it was}."""
    where = {}
    for m in all_places:
        where.setdefault((m[0], m[2], m[3]), []).append(m)
    found = {}
    for k in keys:
        same = where.get((k[0], k[2], k[3]))
        if same:
            found[min(same, key=lambda m: abs(m[1] - k[1]))] = k
        else:
            print("is there no more: %s:%d %s" % (k[0], k[1], k[2].strip()), flush=True)
    return found


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--minutes", type=float, default=120)
    p.add_argument("--folders", default=FOLDERS)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--budget", type=float, default=120)
    p.add_argument("--slowest", type=float, default=45)
    p.add_argument("--sanitized", action="store_true")
    p.add_argument("--bounds", action="store_true")
    p.add_argument("--again", action="store_true")
    p.add_argument("--at")
    return p.parse_args()


def main():
    a = arguments()
    try:
        covered = json.load(open("build/cov/covered.json"))
    except OSError:
        sys.exit("build/cov/covered.json is not there: run `make coverage` first")
    covered = Covered(covered)
    all_places = list(places(a.folders.split()))
    random.Random(a.seed).shuffle(all_places)
    done = kept()
    began_as = {}
    if a.again:
        began_as = moved(all_places, [k for k, r in done.items() if not r["by"]])
        drawn = list(began_as)
    elif a.at:
        drawn = [m for m in all_places if "%s:%d" % m[:2] == a.at]
    else:
        drawn = all_places
    drawn = drawn[:a.count * 3]  # some do not compile, or change nothing
    trees = [Tree(0)]
    trees += [Tree(j, trees[0]) for j in range(1, a.jobs)]
    for t in trees:
        t.bounds = BOUNDS if a.bounds else []
    if a.sanitized:
        trees[0].beside = Tree(0, sanitized=True)
        for j in range(1, a.jobs):
            trees[j].beside = Tree(j, trees[0].beside, sanitized=True)
    needed = {n for path, number, *_ in drawn for n in covered.tests(path, number)}
    spent = durations(trees, sorted(needed))

    def tests_of(mutant):
        tests = sorted(((n, spent[n]) for n in covered.tests(*mutant[:2]) if n in spent),
                       key=lambda t: (t[0] in DERIVED, t[1] * covered.far(mutant[0], t[0]) /
                                      (3 if t[0] in WHOLE else 1)))
        return [t for t in tests if t[1] <= a.slowest] or tests

    free = queue.Queue()
    for t in trees:
        free.put(t)
    numbers = []
    ends = time.time() + 60 * a.minutes

    def one(mutant):
        if time.time() > ends or (not a.again and len(numbers) >= a.count):
            return
        if mutant in done and not a.again and not a.at:
            with SAID:
                numbers.append(done[mutant])
            return
        tree = free.get()
        try:
            found = tried(tree, mutant, tests_of(mutant), a.budget)
            if found and not found["by"] and a.sanitized:
                tried_sanitized(tree.beside, mutant, tests_of(mutant), a.budget, found)
        finally:
            free.put(tree)
        if found:
            found["line"] = began_as.get(mutant, mutant)[1]
            tell(found, numbers)

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for f in [pool.submit(one, m) for m in drawn]:
            f.result()
    summary(list(kept().values()) if a.again else numbers, a.seed)


if __name__ == "__main__":
    main()
