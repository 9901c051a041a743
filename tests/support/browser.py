"""A headless Chromium, driven over its own debugging pipe: nothing to install beside Debian's ``chromium``.

with Browser() as browser:
    page = browser.open(path)
    assert page.errors == [] and page.requests == []
    page.value("document.title")
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import pytest

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
DEADLINE_S: Final = 60.0
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
#: The browser reads its debugging pipe from descriptor 3 and writes to 4.
_EXEC: Final = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_chromium() -> str | None:
    """The browser's path: ``CHROMIUM`` of the environment, else the first known name; None where there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser process with its own empty profile; skips the test where no browser is installed."""

    def __init__(self) -> None:
        program = find_chromium()
        if program is None:
            pytest.skip("no browser: install Debian's chromium, or name one in CHROMIUM")
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        theirs_in, self._out = map(_high, os.pipe())
        self._in, theirs_out = map(_high, os.pipe())
        command = [
            sys.executable,
            "-c",
            _EXEC,
            str(theirs_in),
            str(theirs_out),
            program,
            *_FLAGS,
            f"--user-data-dir={self._profile}",
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The answer to one command; ``RuntimeError`` with the browser's own words where it refuses."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + DEADLINE_S
        while True:
            answer = self._read(end, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append(answer)

    def open(self, path: Path, width: int = 1400, height: int = 900, *, dark: bool = False, fragment: str = "") -> Page:
        """The page at that path, loaded; its script has run."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        page = Page(self, session)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            session,
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[scheme])
        self.call("Page.navigate", session, url=path.resolve().as_uri() + fragment)
        page.wait_for("document.readyState === 'complete'")
        return page

    def saves_to(self, folder: Path) -> None:
        """What pages save from now on lies in that folder."""
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def _read(self, end: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the browser gave no answer to {method} within {DEADLINE_S:.0f} s")
            block = os.read(self._in, 1 << 20)
            if not block:
                raise RuntimeError(f"the browser ended during {method} (exit code {self._process.poll()})")
            self._buffer += block
        text, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(text))


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._browser.call(
            "Runtime.evaluate", self._session, expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Return once the expression is true; ``TimeoutError`` where it never is."""
        end = time.monotonic() + DEADLINE_S
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never true within {DEADLINE_S:.0f} s: {expression}")
            time.sleep(0.05)

    def settle(self) -> None:
        """Wait until two frames were drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def saved(self, button: str, path: Path) -> str:
        """The text of the file that a press on the button saves, which is taken away."""
        self.value(f"document.querySelector({json.dumps(button)}).click()")
        end = time.monotonic() + DEADLINE_S
        while not path.exists():
            if time.monotonic() > end:
                raise TimeoutError(f"{path.name} was not saved within {DEADLINE_S:.0f} s")
            time.sleep(0.05)
        text = path.read_text(encoding="utf-8")
        path.unlink()
        return text

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self._browser.call("Input.dispatchKeyEvent", self._session, type=kind, key=key)

    def point(self, x: float, y: float) -> None:
        self._browser.call("Input.dispatchMouseEvent", self._session, type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is on the screen, or the whole page, as PNG."""
        answer = self._browser.call("Page.captureScreenshot", self._session, format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: Path) -> None:
        """Print the page."""
        answer = self._browser.call("Page.printToPDF", self._session, printBackground=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    @property
    def errors(self) -> list[str]:
        """What the console holds: uncaught errors, console messages, refusals of the security policy."""
        return [
            json.dumps(event["params"])
            for event in self._mine("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        ]

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for beside itself."""
        asked = [event["params"]["request"]["url"] for event in self._mine("Network.requestWillBeSent")]
        return [url for url in asked[1:] if not url.startswith("data:")]

    def _mine(self, *methods: str) -> list[dict[str, Any]]:
        self.value("1")
        return [e for e in self._browser.events if e.get("sessionId") == self._session and e.get("method") in methods]


def _high(descriptor: int) -> int:
    """The descriptor under a number above 9, so that 3 and 4 are free for the browser."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
