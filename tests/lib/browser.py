"""Headless Chromium over --remote-debugging-pipe: no driver, no packages, no ports."""
import base64, json, os, select, shutil, signal, subprocess, tempfile, time

class NoBrowser(Exception):
    pass

class Browser:
    """b("Page.navigate", url=...) sends a command; b.js("...") evaluates; events pile up in b.events."""

    def __init__(self, patience=60):
        binary = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
                       if p), None)
        if not binary:
            raise NoBrowser("chromium is not installed")
        self.patience, self.buffer, self.last_id, self.events = patience, b"", 0, []
        self.session = None
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()

        def descriptors():  # Chromium reads commands from 3 and answers on 4.
            a, b = os.dup(to_read), os.dup(back_write)
            a, b = (os.dup(x) if x in (3, 4) else x for x in (a, b))
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [binary, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=descriptors, close_fds=False, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
        os.close(to_read)
        os.close(back_write)
        try:
            target = self("Target.createTarget", url="about:blank")["targetId"]
            self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self(domain + ".enable")
        except (EOFError, OSError, TimeoutError) as e:
            self.close()
            raise NoBrowser(f"{binary} does not start ({type(e).__name__})")

    def _message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], self.patience)[0]:
                raise TimeoutError("no answer from the browser")
            data = os.read(self.back, 1 << 16)
            if not data:
                raise EOFError("the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def __call__(self, method, **params):
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            m = self._message()
            if m.get("id") == self.last_id:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def js(self, expression):
        r = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(f"{expression}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def until(self, expression):
        end = time.monotonic() + self.patience
        while not self.js(expression):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def open(self, path, width=1400, height=900, scheme="light"):
        self.events.clear()
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
             mobile=False)
        self.scheme(scheme)
        self("Page.navigate", url="file://" + path)
        return self.until("location.protocol === 'file:' && document.readyState === 'complete'")

    def scheme(self, scheme):
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def place(self, selector):
        """Centre of an element, scrolled into view."""
        return self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                       "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
                       "return [r.left + r.width / 2, r.top + r.height / 2]; })()")

    def hover(self, selector):
        x, y = self.place(selector)
        self("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key, code, text=None):
        down = {"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
        if text:
            down["text"] = text
        self("Input.dispatchKeyEvent", **down)
        self("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path=None):
        data = base64.b64decode(self("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        if path:
            with open(path, "wb") as f:
                f.write(data)
        return data

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)
