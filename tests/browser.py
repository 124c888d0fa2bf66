"""tests/browser.py - headless Chromium over DevTools' pipe"""
import json, os, subprocess, tempfile, time


class Browser:
    """Messages are JSON that ends in a NUL, to the browser's file 3 and from its file 4."""

    def __init__(self, chromium, address):
        self.address = address
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to, self.to = os.pipe()
        self.of, of = os.pipe()

        def files():
            os.dup2(to, 13)
            os.dup2(of, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)
        self.child = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder.name],
            preexec_fn=files, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to)
        os.close(of)
        self.n, self.rest, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.of, 1 << 20)
                assert more, "the browser has ended"
                self.rest += more
            one, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(one)
            if answer.get("id") == self.n:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of a script, awaited."""
        r = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in r, r["exceptionDetails"]
        return r["result"].get("value")

    def until(self, script, seconds=40):
        end = time.time() + seconds
        while time.time() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError("never: %s; %s" % (script, self.run("document.body.innerText.slice(0, 500)")))

    def open(self, fragment="", width=1280):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url=self.address + fragment)
        self.until("document.body && document.body.dataset.ready")

    def end(self):
        self.call("Browser.close")
        self.child.wait(20)
        self.folder.cleanup()
