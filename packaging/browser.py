"""Headless Chromium over its DevTools protocol: screenshots of pages at a given width and colour scheme, and results of scripts.
For the documentation's images and for tests; the product needs no browser.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0"),
)
_PATIENCE_S = 120.0


class BrowserError(Exception):
    """The browser failed or refused a command; the message has its error."""


class Page:
    """One tab. Times out with TimeoutError."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command of the protocol, and return its result. Raises BrowserError."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            reply = await self._socket.receive_json(timeout=_PATIENCE_S)
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise BrowserError(f"{method}: {reply['error']['message']}")
                return dict(reply["result"])

    async def look_as(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the window's size (CSS pixels), and light or dark colours."""
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def open(self, url: str) -> None:
        """Open a URL, and wait until it is loaded."""
        await self.call("Page.enable")
        answer = await self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise BrowserError(f"{url}: {answer['errorText']}")
        loaded = "new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', () => done(1)))"
        await self.evaluate(loaded)

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression, or of its promise. Raises BrowserError."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key, as `Tab`."""
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)

    async def picture(self, *, whole: bool = True) -> bytes:
        """Return the page as PNG; `whole`: including the part below the window."""
        answer = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Open a tab in a Chromium that ends with the block. Raises BrowserError if none is installed or it does not start."""
    if CHROMIUM is None:
        raise BrowserError("Chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="trawl-browser-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            *(CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort", process)
            async with aiohttp.ClientSession(trust_env=False) as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tab = next(one for one in await answer.json() if one["type"] == "page")
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Page(socket)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _port(written: Path, process: asyncio.subprocess.Process) -> int:
    """Return the port that the browser listens on, from the file that it writes."""
    for _ in range(int(_PATIENCE_S / 0.1)):
        if port := _read(written):
            return int(port[0])
        if process.returncode is not None:
            break
        await asyncio.sleep(0.1)
    raise BrowserError("Chromium did not start")


def _read(written: Path) -> list[str]:
    return written.read_text("ascii").split() if written.exists() else []
