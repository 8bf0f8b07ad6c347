"""Pages in a headless Chromium, driven by its DevTools protocol, and what they cost."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

PAGE_BYTES = 86_000
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def pages_of(chromium: str, pages: int) -> tuple[float, float]:
    """CPU time of a page in ms, and memory of the browser while one is open in MiB."""
    with tempfile.TemporaryDirectory() as name, _browser(chromium, Path(name)) as (process, address):
        file = Path(name) / "page.html"
        sentence = "The weather was fine, and there was nothing to add. " * 20
        row = f"<div class=post><b>ada</b><time>2026-01-02 03:04</time><p>{sentence}</p></div>"
        file.write_text(f"<title>A thread</title>{row * (PAGE_BYTES // len(row))}", "utf-8")
        return asyncio.run(_measure(process.pid, address, file.as_uri(), pages))


async def _measure(pid: int, address: str, url: str, pages: int) -> tuple[float, float]:
    async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
        browser = _DevTools(socket)
        await browser.read(url, pid)  # what is done once
        before, used = _cpu(pid), 0.0
        memory = [await browser.read(url, pid) for _ in range(pages)]
        used = _cpu(pid) - before
    return 1000 * used / pages, max(memory)


class _DevTools:
    """One connection to a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def read(self, url: str, pid: int) -> float:
        """Open the page in a new context, take its document, close both; the browser's memory with the page open, MiB."""
        context = (await self._call("Target.createBrowserContext"))["browserContextId"]
        target = (await self._call("Target.createTarget", url="about:blank", browserContextId=context))["targetId"]
        page = (await self._call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        await self._call("Page.enable", page)
        await self._call("Page.navigate", page, until="Page.loadEventFired", url=url)
        document = await self._call("Runtime.evaluate", page, expression="document.documentElement.outerHTML")
        assert len(document["result"]["value"]) > PAGE_BYTES / 2
        memory = _memory_mib(pid)
        await self._call("Target.disposeBrowserContext", browserContextId=context)
        return memory

    async def _call(self, method: str, session: str | None = None, *, until: str = "", **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        await self._socket.send_json(asked)
        found: dict[str, Any] = {}
        waits = {number, until} if until else {number}
        while waits:
            message = await self._socket.receive_json()
            if message.get("id") == number:
                found = message["result"]
            waits -= {message.get("id"), message.get("method")}
        return found


@contextmanager
def _browser(chromium: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--remote-debugging-port=0",
    )
    words = (chromium, *flags, f"--user-data-dir={folder}/profile", "about:blank")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            port = folder / "profile/DevToolsActivePort"
            while not (port.exists() and len(lines := port.read_text().splitlines()) > 1):
                if process.poll() is not None:
                    raise RuntimeError(f"{chromium} ended with exit code {process.returncode}")
                time.sleep(0.05)
            yield process, f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        finally:
            process.terminate()


def _processes(session: int) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int((path / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                found.append(path)
        except OSError:
            continue
    return found


def _cpu(session: int) -> float:
    """CPU time of the session's processes and of their children that have ended, s."""
    total = 0
    for path in _processes(session):
        try:
            total += sum(map(int, (path / "stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return total * TICK_S


def _memory_mib(session: int) -> float:
    total = 0
    for path in _processes(session):
        try:
            total += sum(int(line.split()[1]) for line in (path / "smaps_rollup").read_text().splitlines() if line[:4] == "Pss:")
        except OSError:
            continue
    return total / 1024
