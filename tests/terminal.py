"""tests/terminal.py - what a command prints on a terminal of 80 columns; tests/test_terminal.sh calls it

    terminal.py columns FORETOKEN ARGUMENT...   exits 1 when a row of a table is wider than that
    terminal.py print FORETOKEN ARGUMENT...     prints what it prints there, stderr with it
    terminal.py bar COMMAND...                  a long command shows how far it is, and how long it will take
"""
import fcntl, os, pty, re, select, struct, subprocess, sys, termios

WIDTH = 80


def on_a_terminal(command):
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    running = subprocess.Popen(command, stdout=child, stderr=child, stdin=subprocess.DEVNULL, close_fds=True)
    out = b""
    while True:  # until it has ended and all is read: of a terminal that is closed the last lines can be lost
        ended = running.poll() is not None
        if select.select([parent], [], [], 0.05)[0]:
            out += os.read(parent, 65536)
        elif ended:
            break
    os.close(child)
    os.close(parent)
    return out.decode().replace("\r\n", "\n")


what, *command = sys.argv[1:]
text = on_a_terminal(command)
if what == "print":
    sys.stdout.write(text)
    sys.exit()
if what == "bar":
    shown = re.findall("\r\\[([#.]*)\\] [a-z]+ (\\d+) of (\\d+)(, (?:\\d+ s|[\\d:]+) left)?\033\\[K", text)
    assert len(shown) == text.count("\r[") > 2, text[:300]
    for bar, done, whole, left in shown:
        assert len(bar) == 30 and bar == ("#" * (30 * int(done) // int(whole))).ljust(30, "."), bar
    assert any(left for *_, left in shown), shown
    for time in (left[2:-5] for *_, left in shown if left):
        seconds, *more = [int(x) for x in time.removesuffix(" s").split(":")[::-1]]
        assert seconds < 60 and (not more or more[0] < 60), time
        assert re.fullmatch(r"\d+ s|\d+:\d\d|\d+:\d\d:\d\d", time), time
    for total in {whole for _, _, whole, _ in shown}:  # bounds, then steps
        done = [int(n) for _, n, whole, _ in shown if whole == total]
        assert done == sorted(done), shown
    sys.exit()
plain = re.sub("\033\\[[0-9;]*[mK]", "", text)
# a row has cells two blanks or more apart; what is prose is for the terminal to wrap
wide = [l for l in plain.split("\n") if len(l.rstrip()) > WIDTH and len(re.findall(r"\S  +\S", l)) > 1]
assert plain.strip(), "nothing is printed"
assert not wide, wide[:3]
piped = subprocess.run(command, capture_output=True).stdout.decode()
# nothing is left out; only words too long for a column are cut
kept = set(plain.split())
missing = [w for w in piped.split() if len(w) < 20 and w not in kept]
assert not missing, missing[:5]
