"""tests/serve_api.py - what `foretoken serve` answers; tests/test_serve.sh and test_serve_clients.sh call it

    serve_api.py NAME ADDRESS FORETOKEN    one check by its name; exits 1 with a sentence

Each check holds the API to the commands: the same bytes, the same refusals.
"""
import http.client, json, os, signal, socket, subprocess, sys, tempfile, threading, time

name, address, program = sys.argv[1:4]
host, port = address.split("//")[1].split("/")[0].rsplit(":", 1)
port = int(port)
a, b = "examples/01-first-answer/h100.yaml", "examples/01-first-answer/mi300x.yaml"
HEAVY = ("{model: {name: llama3-8b, num_hidden_layers: 96}, cluster: {gpu: h100-sxm, gpus: 8}, training: "
         "{sequence_length: 128, global_batch_size: 1024, micro_batch_size: 1, parallel: {pp: 8}}}")


def ask(method, path, body=None, headers=None, timeout=60):
    """Status, headers and bytes."""
    c = http.client.HTTPConnection(host, port, timeout=timeout)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    out = r.status, dict(r.getheaders()), r.read()
    c.close()
    return out


def titled(path):
    """The text under a title, since a text that is no file has no name."""
    return "title: %s\n" % os.path.basename(path) + open(path).read()


def command(*words, stdin=None):
    return subprocess.run([program, *words], input=stdin, capture_output=True, check=False)


def same(got, want, what):
    assert got == want, "%s: %d bytes, not the %d of the command" % (what, len(got), len(want))


def bytes_of_simulate():
    for path in (a, b, "examples/08-mixture-of-experts/mixtral.yaml"):
        text = titled(path)
        status, _, got = ask("POST", "/api/simulate", text)
        assert status == 200, (status, got)
        same(got, command("simulate", "-", "--json", stdin=text.encode()).stdout, path)


def bytes_where_a_plan_is_found():
    """Whose `run` asks and whose plan is left open: the command searches for it, and so does the API."""
    text = ("title: open\nmodel: llama3-8b\ncluster: {gpu: %s, gpus: 16}\nstack: nemo-24.11\n"
            "training: {sequence_length: 8192, global_batch_size: 64}\nrun: {tokens: 1T, days: 60}\n")
    first = text % "h100-sxm"
    status, _, got = ask("POST", "/api/simulate", first)
    assert status == 200 and json.loads(got)["fits"], (status, got)
    same(got, command("simulate", "-", "--json", stdin=first.encode()).stdout, "an open plan")
    both = json.loads(ask("POST", "/api/compare", json.dumps({"scenarios": [first, text % "h200"]}))[2])
    assert all(s["fits"] for s in both["scenarios"]), both


def bytes_of_json():
    """JSON is read as the YAML it is: the scenario of an answer gives the answer again."""
    first = json.loads(ask("POST", "/api/simulate", titled(a))[2])
    again = json.loads(ask("POST", "/api/simulate", json.dumps(first["scenario"]))[2])
    assert first["step_s"] == again["step_s"] and first["cost"] == again["cost"]


def bytes_of_compare():
    texts = [titled(a), titled(b)]
    status, _, got = ask("POST", "/api/compare", json.dumps({"scenarios": texts}))
    assert status == 200, (status, got)
    with tempfile.TemporaryDirectory() as d:
        files = []
        for i, t in enumerate(texts):
            files.append(os.path.join(d, "%d.yaml" % i))
            open(files[-1], "w").write(t)
        want = json.loads(command("compare", *files, "--json").stdout)
        money = json.loads(command("compare", *files, "--json", "--at", "money", "--draws", "100").stdout)
    got = json.loads(got)
    assert got.pop("command") == "POST /api/compare" and want.pop("command")
    assert got == want, "another comparison than the command's"
    body = json.dumps({"scenarios": texts, "at": "money", "draws": 100})
    got = json.loads(ask("POST", "/api/compare", body)[2])
    assert got["verdict"] == money["verdict"], "another comparison at equal money"


SMALL = ("title: s.yaml\nmodel: {name: llama3-8b, num_hidden_layers: 4}\ncluster: {gpu: h200, gpus: 8}\n"
         "training: {sequence_length: 4096, global_batch_size: 16, sharding: zero1, recompute: none}\n")
# few plans, found at once; a slow card leaves each a step of many classes to be run
LONG = ("{model: gpt3-175b, cluster: {gpu: h100-sxm, gpus: 1024, imperfections: {placement: scattered, slow_gpus: "
        "[{gpu: 5, speed_frac: 0.9}]}}, stack: nemo-24, training: {sequence_length: 2048, global_batch_size: 1536, sharding: zero1, "
        "recompute: none}}")


def events(reply):
    """Name and data of each event."""
    for block in reply.decode().split("\n\n")[:-1]:
        head, *lines = block.split("\n")
        assert head.startswith("event: ") and all(l.startswith("data: ") for l in lines), block
        yield head[7:], "\n".join(l[6:] for l in lines)


def plans():
    """The last event is what the command prints; those before say how far it is."""
    status, head, got = ask("POST", "/api/plan", json.dumps({"scenario": SMALL, "rank_by": "usd", "top": 3}))
    assert status == 200 and head["Content-Type"] == "text/event-stream", (status, head)
    *progress, last = events(got)
    assert progress and all(name == "progress" for name, _ in progress) and last[0] == "plans"
    how = json.loads(progress[-1][1])
    assert how["considered"] > 10 and how["phase"] in ("bounds", "steps") and 0 <= how["at_most_left_s"] <= 60, how
    want = json.loads(command("plan", "-", "--json", "--rank-by", "usd", "--top", "3", stdin=SMALL.encode()).stdout)
    mine = json.loads(last[1])
    for d in (want, mine):
        for key in ("wall_s", "simulated"):
            d.pop(key)
    assert mine == want, "other plans than the command's"
    free = {"scenario": SMALL.replace("recompute: none", "parallel: {tp: 8}"), "free": ["parallel.tp"], "top": 1}
    *_, last = events(ask("POST", "/api/plan", json.dumps(free))[2])
    assert json.loads(last[1])["best"][0]["training"]["parallel"]["tp"] != 8, last
    for body, words in (({}, "lacks the key 'scenario'"), ({"scenario": "x: 1"}, "lacks the key"), ({"scenario": SMALL, "free": "tp"}, "list of keys"),
                        ({"scenario": SMALL, "free": ["color"]}, "that key cannot be searched"), ({"scenario": SMALL, "top": 1000}, "top"),
                        ({"scenario": SMALL.replace("gpus: 8", "gpus: 7")}, "no parallel plan"), ([1], "should be {")):
        status, head, got = ask("POST", "/api/plan", json.dumps(body))
        assert status == 422 and head["Content-Type"] == "application/json" and words in json.loads(got)["error"]["text"], (body, status, got)


def plans_of_sizes():
    """cluster.gpus may be a list: the sizes beside each other, as the command has them."""
    sizes = SMALL.replace("gpus: 8", "gpus: [8, 16]")
    status, _, got = ask("POST", "/api/plan", json.dumps({"scenario": sizes, "top": 2}))
    *_, last = events(got)
    assert status == 200 and last[0] == "plans", (status, last)
    want = json.loads(command("plan", "-", "--json", "--top", "2", stdin=sizes.encode()).stdout)

    def timeless(value):
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if k not in ("wall_s", "simulated", "command")}
        return [timeless(v) for v in value] if isinstance(value, list) else value
    assert timeless(json.loads(last[1])) == timeless(want), "other plans than the command's"


def late():
    """A size of the list that cannot be, behind one that can: an error behind the events of the first."""
    sizes = SMALL.replace("gpus: 8", "gpus: [8, 7]")
    status, _, got = ask("POST", "/api/plan", json.dumps({"scenario": sizes, "top": 1}))
    *before, last = events(got)
    said = command("plan", "-", "--json", "--top", "1", stdin=sizes.encode()).stderr.decode()
    assert status == 200 and before and all(name == "progress" for name, _ in before) and last[0] == "error", (status, last)
    assert json.loads(last[1])["error"]["text"] in said, (last, said)


def free_keys():
    """Keys to be searched: a list of words, at most 64."""
    def asked(free):
        return ask("POST", "/api/plan", json.dumps({"scenario": SMALL, "top": 1, "free": free}))
    assert asked([])[0] == 200 and asked(["recompute"] * 64)[0] == 200
    for free in (["recompute"] * 65, [["recompute"]], [{"a": 1}], {"a": 1}):
        status, _, got = asked(free)
        assert status == 422 and "should be a list of keys" in json.loads(got)["error"]["text"], (free, status, got)


def bodies():
    """A body of as many bytes as there may be, and of one more: told before, or as it comes."""
    limit = 262144
    full = titled(a)
    full += "#" * (limit - len(full))

    def chunks(text):
        for i in range(0, len(text), 65536):
            yield text[i:i + 65536].encode()
    # by its head alone: nothing of it has come
    head = "POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    for more, there in ((1, True), (900000 - limit, True), (0, False)):
        assert (b" 413 " in raw((head % (limit + more)).encode(), 2)[:20]) == there, more
    for send in (str.encode, chunks):
        assert ask("POST", "/api/simulate", send(full))[0] == 200
        assert ask("POST", "/api/simulate", send(full + "#"))[0] == 413


def mistakes():
    """What cannot be: as the command says it, for each call."""
    stuck = ("{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 32}, stack: nemo-24, training: {sequence_length: 2048, "
             "global_batch_size: 12, micro_batch_size: 1, parallel: {tp: 4, pp: 8, vpp: 4}}}")
    # read without a mistake; what does not go is found as it runs
    torn = ("{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 1024, fabric: roce-400-rail, imperfections: {failed_uplinks_frac: 0.9}}, "
            "stack: nemo-24, training: {sequence_length: 2048, global_batch_size: 1024, micro_batch_size: 1}}")
    for text in (stuck, torn):
        said = command("simulate", "-", "--json", stdin=text.encode()).stderr.decode()
        for call in ("simulate", "timeline"):
            status, _, got = ask("POST", "/api/" + call, text)
            assert status == 422 and json.loads(got)["error"]["text"] in said, (call, status, got)
    same(ask("POST", "/api/bom", torn)[2], command("bom", "-", "--json", stdin=torn.encode()).stdout, "the bill of what does not run")
    for sides in ([stuck, titled(a)], [titled(a), stuck], [torn, titled(a)], [titled(a), torn], [titled(a), "x: 1"], [titled(a)], [titled(a)] * 17, [titled(a), 3], "x", {}):
        status, _, got = ask("POST", "/api/compare", json.dumps({"scenarios": sides}))
        assert status == 422 and json.loads(got)["error"]["text"], (sides, status, got)
    for body in ({"scenario": SMALL, "free": [["tp"]]}, {"scenario": SMALL, "free": {"tp": 1}},
                 {"scenario": SMALL, "free": ["parallel.tp"] * 100}, {"scenario": SMALL, "top": 0}, {"scenario": SMALL, "rank_by": "luck"},
                 {"scenario": SMALL, "colour": 1}, {"scenario": ["x"]}, {"scenario": stuck.replace("{tp: 4, pp: 8, vpp: 4}", "{tp: 7}")}):
        status, _, got = ask("POST", "/api/plan", json.dumps(body))
        assert status == 422 and json.loads(got)["error"]["text"], (body, status, got)


def plans_left():
    """Two searches at once; a third is told so; those whose clients leave end, and make room."""
    body = json.dumps({"scenario": LONG})

    def begin():
        s = socket.create_connection((host, port))
        s.sendall(("POST /api/plan HTTP/1.1\r\nHost: %s:%d\r\nContent-Length: %d\r\n\r\n%s" % (host, port, len(body), body)).encode())
        assert b"200 OK" in s.recv(4096)
        return s
    running = [begin(), begin()]
    status, head, got = ask("POST", "/api/plan", body)
    assert status == 503 and "searches are running" in got.decode(), (status, got)
    assert ask("POST", "/api/simulate", titled(a))[0] == 200, "others are answered meanwhile"
    for s in running:
        s.close()
    end = time.time() + 20
    while ask("POST", "/api/plan", json.dumps({"scenario": SMALL, "top": 1}))[0] != 200:
        assert time.time() < end, "searches go on without their clients"
        time.sleep(0.1)


def bytes_of_bom():
    text = titled(a)
    for text in (text, "{cluster: {gpu: h200, gpus: 512}}", "{cluster: {gpu: mi300x, gpus: 64}, cost: {prices: hyperscaler-2025-08}}"):
        same(ask("POST", "/api/bom", text)[2], command("bom", "-", "--json", stdin=text.encode()).stdout, "bom")


def bytes_of_timeline():
    with tempfile.TemporaryDirectory() as d:
        f = os.path.join(d, "t.json")
        command("simulate", a, "--timeline", f)
        status, head, got = ask("POST", "/api/timeline", open(a).read())
        assert status == 200 and "attachment" in head["Content-Disposition"], head
        same(got, open(f, "rb").read(), "timeline")


def lists():
    names = json.loads(ask("GET", "/api/names")[2])
    for kind, list_ in names.items():
        assert list_ == json.loads(command("list", kind, "--json").stdout), kind
    assert len(names) == 8, list(names)
    keys = json.loads(ask("GET", "/api/keys")[2])
    plain = [{"name": k["name"], "title": k["title"]} for k in keys]
    assert plain == json.loads(command("list", "keys", "--json").stdout)
    by = {k["name"]: k for k in keys}
    assert by["training.parallel.tp"]["default"] == "1" and by["cluster.gpu"]["names"] == "gpus"
    assert by["training.sharding"]["choices"] == ["none", "ddp", "zero1", "zero2", "fsdp", "hsdp"]
    assert sorted(k["names"] for k in keys if "names" in k) == sorted(names), "a list of names is of one key each"
    for k in keys:  # whose presets it takes: one of them, and no other word
        for word, status in ((names[k["names"]][0]["name"], 0), ("no-such-name", 1)) if "names" in k else ():
            asked = command("simulate", a, "--set", "%s=%s" % (k["name"], word))
            assert ("unknown name" in asked.stderr.decode()) == status, (k["name"], word, asked.stderr)
    for k in keys: # each choice is one that a scenario may have
        for word in k.get("choices", []):
            text = command("simulate", a, "--set", "%s=%s" % (k["name"], word)).stderr.decode()
            assert "should be one of" not in text and "is not one of" not in text, (k["name"], word, text)


def openapi():
    """Each path of the document is there, asked for in its way."""
    doc = json.loads(ask("GET", "/api/openapi.json")[2])
    for path, ways in doc["paths"].items():
        for way in ways:
            status = ask(way.upper(), path, "{}" if way == "post" else None)[0]
            assert status in ((200, 422) if way == "post" else (200,)), (path, way, status)
    assert len(doc["paths"]) == 9


def error(answer):
    e = json.loads(answer[2])["error"]
    assert set(e) == {"file", "line", "column", "text", "hint"} and e["text"] and e["hint"], e
    return answer[0], e


def refusals():
    """Status and place of each mistake; the text is the command's."""
    text = open(a).read()
    line_of = {k: 1 + text[:text.index(k)].count("\n") for k in ("model:", "tp: 4", "gpus: 1024")}
    for bad, line, words in (
            (text.replace("llama3-70b", "lama3-70b"), line_of["model:"], "did you mean"),
            (text.replace("tp: 4", "tp: 3"), line_of["tp: 4"], ""),
            (text + "cots: {pue: 1.2}\n", 1 + text.count("\n"), "cots"),
            (text.replace("gpus: 1024", "gpus: 1 024 x"), line_of["gpus: 1024"], ""),
            ("model: [", 2, ""), ("", 1, ""), ("a", 1, "map"), ("[]", 1, "map"), ("{\"model\": \"llama3-70b\"", 2, ""),
            ("\x00\xff\x01", None, ""), ("[" * 100, 1, "nested"), ("&a [*a, *a]", None, "")):
        status, e = error(ask("POST", "/api/simulate", bad.encode("latin-1")))
        assert status == 422 and words in e["text"], (status, e)
        assert line is None or e["line"] == line, (line, e)
        want = command("simulate", "-", stdin=bad.encode("latin-1")).stderr.decode("utf-8", "replace")
        assert e["text"] in want, "the command says otherwise: %s / %s" % (e["text"], want)
    for body in ("{}", "[]", '{"scenarios": []}', '{"scenarios": ["a"]}', '{"scenarios": {"a": 1}}',
                 '{"scenarios": ["a", "b"], "more": 1}', '{"scenarios": ["a", "b"], "draws": 1}',
                 '{"scenarios": ["a", "b"], "at": "night"}', '{"scenarios": [%s]}' % ",".join(['"a"'] * 17), "{"):
        assert error(ask("POST", "/api/compare", body))[0] == 422, body
    status, e = error(ask("POST", "/api/compare", json.dumps({"scenarios": [text, text.replace("tp: 4", "tp: 3")]})))
    assert (status, e["file"], e["line"]) == (422, "B", line_of["tp: 4"]), e


def paths():
    """What names a file is refused, in the same words whether the file is there or not."""
    with tempfile.TemporaryDirectory() as d:
        there = {}
        for kind, folder in (("gpu", "hw/gpus/h100-sxm"), ("node", "hw/nodes/hgx-h100"), ("fabric", "hw/fabrics/ib-ndr-rail"),
                             ("site", "hw/sites/standard"), ("stack", "stacks/generic"), ("ccl", "stacks/ccl/nccl-2.20"),
                             ("prices", "cost/prices/hyperscaler-2025-08"), ("model", "models/llama3-70b")):
            there[kind] = os.path.join(d, kind + ".yaml")
            open(there[kind], "w").write(open(folder + ".yaml").read())
        base = json.loads(json.dumps({"model": "llama3-8b", "cluster": {"gpu": "h100-sxm", "gpus": 8},
                                      "training": {"sequence_length": 2048, "global_batch_size": 8}}))
        assert ask("POST", "/api/simulate", json.dumps(base))[0] == 200

        def refused(where, value):
            s = json.loads(json.dumps(base))
            at = s
            for k in where[:-1]:
                at = at.setdefault(k, {})
            at[where[-1]] = value
            status, e = error(ask("POST", "/api/simulate", json.dumps(s)))
            assert status == 422 and e["file"] == "scenario", (where, value, status, e)
            return e["text"]

        for kind, where in (("gpu", ["cluster", "gpu"]), ("node", ["cluster", "node"]), ("fabric", ["cluster", "fabric"]),
                            ("site", ["cluster", "site"]), ("stack", ["stack"]), ("ccl", ["ccl"]),
                            ("prices", ["cost", "prices"]), ("model", ["model"])):
            file = there[kind]
            for f in (file, "/etc/passwd", "../../etc/passwd", "./x.yaml", "x.yaml"):
                assert "files are not read here" in refused(where, f), (kind, f)
            gone = os.path.join(os.path.dirname(file), "g" + os.path.basename(file)[1:])
            assert refused(where, file).replace(file, "") == refused(where, gone).replace(gone, "")
        for kind in ("gpu", "node", "fabric", "site"):
            assert "files are not read here" in refused(["cluster", kind], {"extends": there[kind]}), kind
        for f in (there["model"], "/etc/hostname"):
            refused(["model"], {"name": f, "num_hidden_layers": 2})
            refused(["model"], {"name": f, "model_type": "llama"})
        for block in ("gemm", "attention", "collectives"):
            for f in ("/etc/passwd", "h100-sxm.gemm.csv"):
                assert "files are not read here" in refused(["cluster", "gpu"], {"extends": "h100-sxm", block: {"rows": f}}), block
            refused(["cluster", "gpu"], {"extends": "h100-sxm", block: {"rows_of": there["gpu"]}})


def other_pages():
    """Names and origins that are not ours."""
    text = open(a).read()
    for h in ("evil.example", "evil.example:%d" % port, "127.0.0.1.evil.example", "", "[::1", "127.0.0.1:80:80", "localhost.", "a" * 300):
        assert ask("GET", "/", headers={"Host": h})[0] in (400, 403), h
        assert ask("POST", "/api/simulate", text, {"Host": h})[0] in (400, 403), h
    for h in ("127.0.0.1", "localhost", "LOCALHOST:%d" % port, "[::1]:%d" % port, "localhost:9000"):
        assert ask("GET", "/", headers={"Host": h})[0] == 200, h
    ours = "%s:%d" % (host, port)
    for o in ("http://evil.example", "null", "https://" + ours, "http://127.0.0.1:1", "http://%s.evil.example" % ours, ours):
        for method, path in (("POST", "/api/simulate"), ("GET", "/api/names")):
            assert ask(method, path, text if method == "POST" else None, {"Origin": o})[0] == 403, o
    assert ask("POST", "/api/simulate", text, {"Origin": "http://" + ours, "Sec-Fetch-Site": "same-origin"})[0] == 200
    assert ask("POST", "/api/simulate", text, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert ask("GET", "/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200, "a link from elsewhere may be followed"
    assert ask("OPTIONS", "/api/simulate", headers={"Origin": "http://evil.example"})[0] in (403, 405)
    head = ask("GET", "/")[1]
    assert "default-src 'none'" in head["Content-Security-Policy"] and "Access-Control-Allow-Origin" not in head
    assert head["X-Content-Type-Options"] == "nosniff" and head["Cache-Control"] == "no-store"


def raw(data, wait=5):
    """Bytes as they are; what comes back until the end, or for so many seconds."""
    s = socket.create_connection((host, port), timeout=wait)
    got = b""
    try:
        s.sendall(data)
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError:
        pass
    s.close()
    return got


def malformed():
    """No bytes end it; each gets a refusal or an end."""
    long = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"a" * 100000 + b"\r\n\r\n"
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", long,
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                 b"POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                 b"POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                 b"GET /%00/..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                 b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                 b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"):
        got = raw(data, 1.5)
        assert not got or b" 4" in got[:14] or b" 5" in got[:14], (data[:60], got[:60])
        assert b"root:" not in got
    for path, status in (("/nothing", 404), ("/api/", 404), ("/api/simulate/", 404), ("/page.js/", 404), ("//", 404)):
        assert error(ask("GET", path))[0] == status, path
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        assert error(ask(method, "/api/simulate"))[0] == 405, method
    assert error(ask("POST", "/api/names", "x"))[0] == 405
    assert ask("HEAD", "/")[0] == 200


def huge():
    began = time.time()
    head = b"POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
    assert b" 413 " in raw(head, 3)[:20] and time.time() - began < 8

    def chunks():
        for _ in range(40):
            yield b"#" * 65536
    assert ask("POST", "/api/simulate", chunks())[0] == 413
    full = "title: a\n" + "# %s\n" % ("a" * 1000) * 250 + open(a).read()
    assert 250000 < len(full) < 262144 and ask("POST", "/api/simulate", full)[0] == 200


def answers():
    return ask("POST", "/api/simulate", open(a).read())[0] == 200


def many():
    """More connections than it holds, silent: they are ended, and all is well again."""
    held = []
    for _ in range(150):
        s = socket.socket()
        s.settimeout(2)
        try:
            s.connect((host, port))
            held.append(s)
        except OSError:
            break
    began = time.time()
    assert len(held) > 64 and answers(), len(held)
    assert time.time() - began < 4, "after %.0f s" % (time.time() - began)
    for s in held:
        s.close()


def half():
    """As many that have begun to ask, with half a head or half a body, keep nobody waiting either, and no answer ends
    for them that is being computed or waited for."""
    out = []
    thread = threading.Thread(target=lambda: out.append(ask("POST", "/api/simulate", HEAVY, timeout=120)[0]))
    thread.start()
    time.sleep(0.5)
    for begun in (b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
                  b"POST /api/simulate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"):
        held = []
        for _ in range(200):
            s = socket.create_connection((host, port), 2)
            s.sendall(begun)
            held.append(s)
        for _ in range(3):
            began = time.time()
            assert answers() and time.time() - began < 4, "after %.0f s" % (time.time() - began)
        for s in held:
            s.close()
    thread.join()
    assert out == [200] or out == [422], out


def together():
    """As many connections as it holds, all too late at once: it listens again."""
    p = subprocess.Popen([program, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        at = int(p.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1])
        held = [socket.create_connection((host, at)) for _ in range(64)]
        time.sleep(0.5)
        p.send_signal(signal.SIGSTOP)  # a machine with other work
        time.sleep(7)
        p.send_signal(signal.SIGCONT)
        time.sleep(1)
        c = http.client.HTTPConnection(host, at, timeout=30)
        c.request("GET", "/")
        assert c.getresponse().status == 200
        for s in held:
            s.close()
    finally:
        p.kill()
        p.wait()


def workers_of(pid):
    """The processes that a server has started."""
    found = []
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and int(open("/proc/%s/stat" % p).read().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(p))
        except OSError:  # it ended meanwhile
            pass
    return found


def ended_by(server, how):
    """A worker that works, ended as the system ends one that is beyond a bound."""
    until = time.time() + 30
    while not (found := workers_of(server)):
        assert time.time() < until, "no worker"
        time.sleep(0.01)
    assert len(found) == 1, found
    os.kill(found[0], how)


def broken():
    """A worker that ends otherwise than it should: a search tells so behind its events, another answer instead
    of one; and as often as there are places, so that each must have become free."""
    global host, port
    p = subprocess.Popen([program, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(p.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1])
        host = "127.0.0.1"
        for how, status, words in ((signal.SIGKILL, 500, "which is a mistake of foretoken"), (signal.SIGXCPU, 422, "takes longer than serve computes"),
                                   (signal.SIGXFSZ, 422, "the answer is larger than serve gives")):
            c = http.client.HTTPConnection(host, port, timeout=60)
            c.request("POST", "/api/plan", json.dumps({"scenario": LONG}))
            r = c.getresponse()
            begun = r.read(20)
            assert r.status == 200 and begun.startswith(b"event: progress\n"), begun
            ended_by(p.pid, how)
            *before, last = events(begun + r.read())
            assert before and all(name == "progress" for name, _ in before) and last[0] == "error", last
            assert words in json.loads(last[1])["error"]["text"], (how, last)
            out = []
            asker = threading.Thread(target=lambda: out.append(error(ask("POST", "/api/simulate", HEAVY))))
            asker.start()
            ended_by(p.pid, how)
            asker.join()
            assert out[0][0] == status and words in out[0][1]["text"], (how, out)
    finally:
        p.terminate()
        p.wait()


def dripped(s):
    """Seconds until a client that drips is ended; None: it is not."""
    s.sendall(b"POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
    began = time.time()
    while time.time() - began < 50:
        try:
            s.sendall(b"#")
            s.settimeout(2)
            if s.recv(1) == b"":
                return time.time() - began
        except socket.timeout:
            assert answers()
        except OSError:
            return time.time() - began
    return None


def slow():
    """A client that drips is ended after half a minute, at its first question or its second; others
    are answered meanwhile."""
    second = http.client.HTTPConnection(host, port, timeout=60)
    second.request("POST", "/api/simulate", titled(a))
    answer = second.getresponse()
    assert answer.status == 200 and answer.read()
    ended = {}
    drip = lambda name, s: ended.update({name: dripped(s)})
    threads = [threading.Thread(target=drip, args=("first", socket.create_connection((host, port)))),
               threading.Thread(target=drip, args=("second", second.sock))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(ended.get(name) and 20 < ended[name] < 45 for name in ("first", "second")), ended


def busy():
    """Heavy questions fill the workers: the next is told so, and light pages still come."""
    out = []
    threads = [threading.Thread(target=lambda: out.append(ask("POST", "/api/simulate", HEAVY, timeout=120)[0])) for _ in range(10)]
    for t in threads:
        t.start()
    time.sleep(0.5)
    began = time.time()
    assert ask("GET", "/")[0] == 200 and time.time() - began < 2
    for t in threads:
        t.join()
    assert set(out) <= {200, 503, 422} and 503 in out, out
    assert answers()


def vanishing():
    """Clients that go while their answer is computed."""
    for _ in range(6):
        s = socket.create_connection((host, port))
        body = HEAVY.encode()
        s.sendall(b"POST /api/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        s.close()
    time.sleep(0.2)
    for _ in range(60):
        if ask("POST", "/api/simulate", open(a).read())[0] == 200:
            return
        time.sleep(0.5)
    raise AssertionError("it does not answer again")


def token():
    """Beyond loopback; ADDRESS holds the token."""
    t = address.split("token=")[1].strip()
    text = open(a).read()
    assert len(t) == 32
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer " + t[:-1]}, {"Authorization": "Bearer " + t + "0"},
                    {"Authorization": t}, {"Cookie": "foretoken=" + t[:-1] + "g"}, {"Cookie": "other=" + t}):
        status, head, _ = ask("POST", "/api/simulate", text, headers)
        assert status == 401 and head["WWW-Authenticate"] == "Bearer", headers
        assert ask("GET", "/", headers=headers)[0] == 401
    assert ask("GET", "/?token=" + "0" * 32)[0] == 401 and ask("GET", "/?token=")[0] == 401
    assert ask("GET", "/page.js?token=" + t)[0] == 401 and ask("POST", "/?token=" + t[1:], "x")[0] == 401
    status, head, _ = ask("GET", "/?token=" + t)
    assert status == 303 and head["Location"] == "/" and "HttpOnly" in head["Set-Cookie"] and "SameSite=Strict" in head["Set-Cookie"]
    cookie = head["Set-Cookie"].split(";")[0]
    assert ask("POST", "/api/simulate", text, {"Cookie": "x=y; " + cookie})[0] == 200
    assert ask("POST", "/api/simulate", text, {"Authorization": "Bearer " + t})[0] == 200
    assert ask("GET", "/", headers={"Cookie": cookie, "Host": "evil.example"})[0] == 403


def page_size():
    total = 0
    for path in ("/", "/report.css", "/page.css", "/page.js", "/form.js", "/answer.js", "/draw.js"):
        status, head, text = ask("GET", path)
        assert status == 200 and int(head["Content-Length"]) == len(text), path
        total += len(text)
        assert b"http://" not in text.replace(b"http://www.w3.org/2000/svg", b"") and b"https://" not in text, path
    total += len(ask("GET", "/api/keys")[2]) + len(ask("GET", "/api/names")[2])
    assert total < 300000, total


globals()[name]()
