"""A real Chromium, told what to do by its own protocol over a pipe: no driver is needed."""

import base64
import itertools
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"),
    "--enable-unsafe-swiftshader",  # WebGL without a graphics card
)


class Browser:
    """One page in Chromium.

    Args:
        folder: Where its profile goes.

    Attributes:
        events: Names and parameters of what the page told by itself.
    """

    def __init__(self, folder: Path) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        words = ["chromium", *ARGUMENTS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        with (folder / "chromium.log").open("wb") as log:
            self._child = subprocess.Popen(
                ["bash", "-c", command, "bash", *words],
                pass_fds=(theirs_in, theirs_out),
                stdout=log,
                stderr=log,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self._ids, self._session = itertools.count(1), ""
        self.events = list[tuple[str, dict[str, Any]]]()
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self.tell(f"{domain}.enable")

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer to a command of its protocol."""
        number = next(self._ids)
        said = {"id": number, "method": method, "params": parameters}
        said |= {"sessionId": self._session} if self._session else {}
        self._out.write(json.dumps(said).encode() + b"\0")
        self._out.flush()
        while (heard := self._heard()).get("id") != number:
            self.events.append((heard.get("method", ""), heard.get("params", {})))
        assert "error" not in heard, (method, heard)
        found: dict[str, Any] = heard["result"]
        return found

    def visit(self, url: str, *, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Open *url* in a window of that size. [px]"""
        self.resize(width, height)
        self.colours(dark=dark)
        self.tell("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        """Make the window so large. [px]"""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.tell("Emulation.setDeviceMetricsOverride", **size)

    def colours(self, *, dark: bool) -> None:
        """Say whether the system's colours are dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is waited for."""
        found = self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until *condition*, in JavaScript, holds."""
        look = f"() => ({condition}) ? done() : setTimeout(look, 20)"
        self.evaluate(f"new Promise(done => {{ const look = {look}; look(); }})")

    def press(self, key: str) -> None:
        """Press a key, such as ``Tab``."""
        for kind in ("rawKeyDown", "keyUp"):
            self.tell("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=9)

    def shot(self, to: Path) -> None:
        """Write a picture of the whole page, as PNG."""
        found = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        to.write_bytes(base64.b64decode(found["data"]))

    def _heard(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser is gone"
            text += byte
        found: dict[str, Any] = json.loads(text)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = ""
        try:
            self.tell("Browser.close")
            self._child.wait(30)
        finally:
            self._child.kill()
            self._child.wait()
            self._out.close()
            self._in.close()
