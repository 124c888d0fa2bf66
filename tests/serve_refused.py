"""tests/serve_refused.py - what `foretoken serve` says while the system refuses it calls; tests/test_serve_refused.sh calls it

    serve_refused.py NAME ADDRESS PID FILE    one check by its name; the calls whose names stand in FILE fail
"""
import http.client, json, os, signal, sys, threading, time

name, address, pid, file = sys.argv[1:5]
host, port = address.split("//")[1].split("/")[0].rsplit(":", 1)
text = open("examples/01-first-answer/h100.yaml").read()
# few plans, found at once; a slow card leaves each a step of many classes to be run
LONG = ("{model: gpt3-175b, cluster: {gpu: h100-sxm, gpus: 1024, imperfections: {placement: scattered, slow_gpus: "
        "[{gpu: 5, speed_frac: 0.9}]}}, stack: nemo-24, training: {sequence_length: 2048, global_batch_size: 1536, sharding: zero1, "
        "recompute: none}}")
HEAVY = ("{model: {name: llama3-8b, num_hidden_layers: 96}, cluster: {gpu: h100-sxm, gpus: 8}, training: "
         "{sequence_length: 128, global_batch_size: 1024, micro_batch_size: 1, parallel: {pp: 8}}}")
SMALL = "{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h200, gpus: 8}, training: {sequence_length: 4096, " \
    "global_batch_size: 16, sharding: zero1, recompute: none, parallel: {cp: 1}}}"


def refuse(*calls):
    open(file, "w").write(" ".join(calls))


def begin(path, body, headers=None):
    c = http.client.HTTPConnection(host, int(port), timeout=60)
    c.request("POST" if body else "GET", path, body, headers or {})
    return c, c.getresponse()


def ask(path="/api/simulate", body=text, headers=None):
    """Status and error's text; None: it ends without an answer."""
    try:
        c, r = begin(path, body, headers)
        got = r.read()
    except (OSError, http.client.HTTPException):
        return None
    c.close()
    return r.status, json.loads(got)["error"]["text"] if r.status >= 400 else got


def files():
    return len(os.listdir("/proc/%s/fd" % pid))


def answers():
    refuse()
    assert ask()[0] == 200


def settled(before):
    """It holds as many files as before, once those who asked are gone."""
    answers()
    until = time.time() + 10
    while files() > before:
        assert time.time() < until, "%d files, %d before" % (files(), before)
        time.sleep(0.05)


def again_and_again(calls, status, words):
    """More often than there are places for workers, and nothing is lost."""
    answers()
    before = files()
    for call in calls:
        refuse(call)
        for path, body in (("/api/simulate", text),) * 9 + (("/api/plan", json.dumps({"scenario": SMALL, "top": 1})),):
            got = ask(path, body)
            if path == "/api/plan" and got and got[0] == 200:  # behind what it has told already
                assert call in ("fclose", "malloc") and words.encode() in got[1].split(b"\n\nevent: ")[-1], (call, got[1][-300:])
            else:
                assert got and got[0] == status and words in got[1], (call, path, got)
        answers()
    settled(before)


def files_are_out():
    again_and_again(("memfd_create", "pipe2"), 503, "no more files: Too many open files")


def processes_are_out():
    again_and_again(("fork",), 503, "no more processes: Resource temporarily unavailable")


def a_worker_is_broken():
    again_and_again(("fcntl", "dup2", "fdopen", "fclose"), 500, "which is a mistake of foretoken; please report it")


def answers_are_lost():
    """What was computed cannot be read: the connection ends, and others are answered."""
    answers()
    before = files()
    for _ in range(10):
        refuse("fstat")
        assert ask() is None
    refuse("pread")
    for _ in range(3):
        assert ask("/api/plan", json.dumps({"scenario": SMALL, "top": 1})) is None
    settled(before)


def worker_of():
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and open("/proc/%s/stat" % p).read().rsplit(")", 1)[1].split()[1] == pid:
                return int(p)
        except OSError:  # it ended meanwhile
            pass
    return None


def a_search_ends_untold():
    """Its worker is killed, and there is no room to say so: the events end, as such."""
    answers()
    before = files()
    for call in ("dup", "fdopen"):
        c, r = begin("/api/plan", json.dumps({"scenario": LONG}))
        assert r.status == 200 and r.read(16) == b"event: progress\n"
        refuse(call)
        os.kill(worker_of(), signal.SIGKILL)
        rest = r.read()
        assert b"event: error" not in rest and rest.endswith(b"\n\n"), (call, rest[-200:])
        c.close()
        answers()
    settled(before)


def memory_is_out():
    """Of a worker alone: the server has its own."""
    again_and_again(("malloc",), 422, "this takes more memory than serve gives")


def time_is_over():
    """The clock of an answer that is being computed, and of a search that has told something, runs out."""
    answers()
    before = files()
    for path, body in (("/api/simulate", HEAVY), ("/api/plan", json.dumps({"scenario": LONG}))):
        got = []
        asker = threading.Thread(target=lambda: got.append(ask(path, body)))
        asker.start()
        until = time.time() + 20
        while not worker_of():
            assert time.time() < until, "no worker"
            time.sleep(0.01)
        if path == "/api/plan":
            time.sleep(0.5)
        refuse("now")
        ask("/", None)  # at the latest now it looks at its clock
        asker.join()
        refuse()
        status, said = got[0]
        if path == "/api/plan":
            assert status == 200 and said.split(b"\n\n")[-2].startswith(b"event: error"), said[-300:]
            said = said.split(b"\n\n")[-2].decode()
        assert "this takes longer than serve computes" in said, (path, status, said)
    settled(before)


def nobody_knows_the_name():
    """Of this machine: addresses and localhost are answered, its name is not."""
    refuse()
    assert ask("/", None)[0] == 200 and ask("/", None, {"Host": os.uname().nodename})[0] == 403


def the_name_is_known():
    assert ask("/", None, {"Host": os.uname().nodename})[0] == 200
    assert ask("/", None, {"Host": os.uname().nodename.upper()})[0] == 200
    assert ask("/", None, {"Host": "x" + os.uname().nodename})[0] == 403


globals()[name]()
