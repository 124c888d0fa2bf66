"""tests/manual.py - `foretoken explain` of keys of files, and each --help, against the manual as groff sets it

manual.py PROGRAM: each name of an entry of foretoken-KIND(5) is explained by that entry's whole text, and a default
that stands behind names in the page is the one told; the words of each --help are those of its page, in order. Prints
how many entries and pages were held against the program.
"""
import re
import subprocess
import sys

program = sys.argv[1]
checked = 0


def explained(kind, key):
    """Path, default (or None) and text of each entry of that name."""
    out = subprocess.run([program, "explain", kind + "." + key], capture_output=True, text=True, check=True).stdout
    for block in out.strip().split("\n\n"):
        head, *lines, more = block.split("\n")
        assert more == "  more      man foretoken-" + kind and all(line.startswith("  ") for line in lines), block
        default = [line[len("  default   "):] for line in lines if line.startswith("  default   ")]
        text = " ".join(line.strip() for line in lines if not line.startswith("  default   "))
        yield head, default[0] if default else None, re.sub(r"\s+", " ", text)


def paragraphs(page):
    """One a line: groff breaks none of less than 2,000 letters."""
    out = subprocess.run(["groff", "-man", "-Tascii", "-P-c", "-rLL=2000n", "-rHY=0"], input=page, capture_output=True, text=True).stdout
    return [re.sub(r"\s+", " ", line).strip() for line in re.sub(".\x08", "", out).split("\n")]


def entries(page):
    """The line of names behind each .TP, as it is printed."""
    lines = page.split("\n")
    for tag, names in zip(lines, lines[1:]):
        if tag == ".TP":
            tight = re.match(r"\.[BIR]{2} ", names)
            text = re.sub(r"^\.[BIR]+ ", "", names)
            words = re.findall(r'"[^"]*"|[^ "]+', text)
            yield "".join(w.strip('"') for w in words) if tight else text


def helped(command):
    """The words of --help are those of the page of section 1; foretoken(1) says more between them."""
    said = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True).stdout
    words = re.sub(r"(?m)^Usage:|^  or:|^Examples:", "", said).split()
    page = " ".join(paragraphs(open("man/%s.1" % "-".join(["foretoken", *command])).read()))
    text = re.search(r" SYNOPSIS (.*) SEE ALSO ", page)[1]
    found = re.sub(r"\b(DESCRIPTION |EXAMPLES |or: (?=foretoken ))", "", text).split()
    if command:
        assert words == found, next((w, f) for w, f in zip(words + [""], found + [""]) if w != f)
    else:
        left = iter(found)
        assert all(word in left for word in words), words


commands = re.findall(r"(?m)^  ([a-z]+)  ", subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout)
assert len(commands) > 15, commands
for command in [[]] + [[c] for c in commands]:
    helped(command)

for kind in ("stack", "gpu", "node", "fabric", "site", "ccl", "prices"):
    page = open("man/foretoken-%s.5" % kind).read()
    lines = paragraphs(page)
    for heading in entries(page):
        # where the entry stands: its heading on a line of its own, or, a short one, before its text
        plain = re.sub(r"\\[&]|\\f.", "", heading).replace("\\-", "-")
        at = [i for i, line in enumerate(lines) if line == plain or line.startswith(plain + " ")]
        assert at, (kind, heading)
        names = re.findall(r"(\w+)|(\([^)]*\))", plain)
        told = []
        for i, (name, _) in enumerate(names):
            if name:
                behind = [text[1:-1] for _, text in names[i:] if text]
                told.append((name, behind[0] if behind else None))
        for name, default in told:
            found = []
            for path, usual, text in explained(kind, name):
                assert re.fullmatch(r"(?:\w+\.)*" + name + ", of an? .*", path), (kind, name, path)
                for i in at:
                    rest = [lines[i][len(plain):].strip()] + lines[i + 1:]
                    whole = " ".join(r for r in rest if r)
                    if whole.startswith(text):  # and it ends where a paragraph does
                        ends = {len(" ".join(r for r in rest[:n] if r)) for n in range(len(rest))}
                        assert len(text) in ends, (kind, name, text)
                        found.append(usual)
            assert default in found, (kind, name, default, found)
            checked += 1
print(checked, "entries and", len(commands) + 1, "pages of the manual")
