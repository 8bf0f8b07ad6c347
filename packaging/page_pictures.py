"""docs/images/page-*.png: the status page of a real fleet in three states (fine, in trouble, dead), and flower.png: Flower's
tasks while all is well; made by `make pictures`.

A separate fleet reads the demo's forum: while all is well; then the forum shows a login form instead of its pages, and a
crawler is killed; then the fleet is stopped, and only the exporter is left. Needs Chromium.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from browser import CHROMIUM, browser

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
WIDTH, HEIGHT = 1100, 900
FLOWER_SIZE = (1300, 520)
PATIENCE_S = 240.0
STATES = ("fine", "trouble", "dead")
LOGIN = f"trawl:{secrets.token_urlsafe(9)}"  # of Flower, for one run


def main() -> int:
    """Make the four pictures; 0, or 1 where no browser is installed."""
    if CHROMIUM is None:
        sys.stderr.write("Chromium is not installed (apt-get install chromium): the pictures of the page stay as they are\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="trawl-pictures-") as folder:
        PictureFleet(Path(folder)).take_pictures()
    for name in (*(f"page-{state}" for state in STATES), "flower"):
        picture = IMAGES / f"{name}.png"
        sys.stdout.write(f"{picture.relative_to(ROOT)}: {picture.stat().st_size:,} bytes\n")
    return 0


class PictureFleet:
    """The fleet, the forum and the exporter, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._forum, self._page, self._flower = (f"http://127.0.0.1:{_free_port()}" for _ in range(3))
        self._environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAWL_")} | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TRAWL_DEMO_URL": self._forum,
            "TRAWL_DATA_DIR": str(folder / "data"),
            "TRAWL_ENV_FILE": "",
            "TRAWL_FLOWER_AUTH": LOGIN,
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def take_pictures(self) -> None:
        """Every state, one after the other."""
        (self._folder / "sites").mkdir()
        (self._folder / "sites/demo.toml").write_text((ROOT / "demo/sites/demo.toml").read_text("utf-8"))
        forum, page, flower = (url.rpartition(":")[2] for url in (self._forum, self._page, self._flower))
        try:
            self._start("forum", sys.executable, "-m", "demo.forum", "--port", forum, "--rate", "3", "--pace", "60")
            self._start("exporter", sys.executable, "-m", "monitoring.exporter", "--port", page)
            self._start("up", "trawl", "up", "--port-flower", flower, "--port-exporter", "0")
            self._until(lambda seen: seen["services"] and _pages(seen) > 100 and not seen["problems"])
            time.sleep(100)  # so that the charts have something to show: a sample is taken each minute
            self._picture("fine")
            self._forum_shows("login")
            os.kill(next(one["pid"] for one in self._seen()["crawlers"] if one["spider"] == "forum_detail"), signal.SIGKILL)
            self._until(lambda seen: any("not crawled" in one["what"] for one in seen["problems"]))
            self._picture("trouble")
            self._stop("up")
            self._until(lambda seen: any("no crawler is alive" in one["what"] for one in seen["problems"]))
            self._picture("dead")
        finally:
            for name in list(self._processes)[::-1]:
                self._stop(name)

    def _start(self, name: str, *command: str) -> None:
        to = subprocess.DEVNULL
        self._processes[name] = subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=to, stderr=to)

    def _stop(self, name: str) -> None:
        process = self._processes.pop(name)
        process.send_signal(signal.SIGINT if name == "up" else signal.SIGTERM)
        process.wait(120)

    def _seen(self) -> dict[str, Any]:
        command = ["trawl", "status", "--json"]
        done = subprocess.run(command, env=self._environment, cwd=self._folder, capture_output=True, text=True, check=False)
        return {"services": [], "crawlers": [], "problems": []} | json.loads(done.stdout or "{}")

    def _until(self, reached: Any) -> None:
        until = time.monotonic() + PATIENCE_S
        while not reached(seen := self._seen()):
            if time.monotonic() > until:
                raise SystemExit(f"the fleet did not come into that state within {PATIENCE_S:.0f} s: {seen['problems']}")
            time.sleep(1)

    def _forum_shows(self, wall: str) -> None:
        request = urllib.request.Request(f"{self._forum}/control", json.dumps({"wall": wall}).encode(), method="POST")  # noqa: S310
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - the demo's forum, on this machine

    def _picture(self, state: str) -> None:
        time.sleep(3)  # the page is made at most every two seconds
        (IMAGES / f"page-{state}.png").write_bytes(asyncio.run(_taken(f"{self._page}/", dark=state == "trouble")))
        if state == "fine":
            (IMAGES / "flower.png").write_bytes(asyncio.run(_flower(f"{self._flower}/tasks")))


async def _taken(url: str, *, dark: bool) -> bytes:
    async with browser() as page:
        await page.look_as(WIDTH, HEIGHT, dark=dark)
        await page.open(url)
        return await page.picture(whole=False)


async def _flower(url: str) -> bytes:
    login = base64.b64encode(LOGIN.encode()).decode()
    async with browser() as page:
        await page.look_as(*FLOWER_SIZE)
        await page.call("Network.enable")
        await page.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Basic {login}"})
        await page.open(url)
        await asyncio.sleep(3)  # its table is filled by a script
        return await page.picture(whole=False)


def _pages(seen: dict[str, Any]) -> int:
    return sum(one["pages"] for one in seen["services"])


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
