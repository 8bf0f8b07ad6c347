"""Pictures of every page, to look at: `python packaging/every_page.py FOLDER` (`make looks`), in about six minutes.

A real fleet reads the demo's forum: while all is well (`fine`), and while the site shows a login form and a crawler was killed
(`trouble`). Each page is taken at 390 and 1280 px, light and dark; the commands that a user sees first on a terminal of 80 by 24.
Reports what is wider than its window, and what is no page; exit code 1 then. Needs Chromium.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from io import StringIO
from pathlib import Path

from browser import CHROMIUM, Page, browser
from page_pictures import PictureFleet
from pictures import output_of
from rich.console import Console
from rich.text import Text

PAGES = {
    "overview": "/",
    "sites": "/sites",
    "site": "/site/demo",
    "thread": "",  # the first of the overview
    "search": "/search?q=the",
    "nothing": "/search?q=unheard-of",
    "events": "/events",
    "history": "/history",
    "dead": "/dead",
    "service": "/service/forum_detail",
    "crawler": "/crawler/forum_detail/0",
    "jobs": "/jobs",
    "login": "/login",
    "alert": "/act/alert?match=the",
    "missing": "/site/nowhere",
}
COMMANDS = ("trawl status", "trawl forums", "trawl search the --limit 3", "trawl alert", "trawl --help")
WIDTHS = (390, 1280)
COLUMNS, LINES = 80, 24
STATES = ("fine", "trouble")
_LOG_IN = """fetch('/login', {method: 'POST', redirect: 'manual',
  body: new URLSearchParams(new FormData(document.querySelector('main form')))}).then(() => true)"""


class LookedAtFleet(PictureFleet):
    """The fleet, of which each page is taken in each state."""

    def __init__(self, folder: Path, target: Path) -> None:
        super().__init__(folder)
        self._target, self._token = target, secrets.token_urlsafe(24)
        self._environment |= {"TRAWL_API_ACT_TOKEN": self._token, "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
        self.wrong: list[str] = []

    def _picture(self, state: str) -> None:
        if state in STATES:
            asyncio.run(self._every(state))

    async def _every(self, state: str) -> None:
        async with browser() as page:
            await page.open(f"{self._page}/login")
            await page.evaluate(f"document.querySelector('input[type=password]').value = '{self._token}'")
            await page.evaluate(_LOG_IN)
            await page.open(f"{self._page}/")
            thread = await page.evaluate("document.querySelector('a[href^=\"/thread/\"]')?.getAttribute('href') ?? '/'")
            for name, path in PAGES.items():
                for width in WIDTHS:
                    for dark in (False, True):
                        await page.look_as(width, 900, dark=dark)
                        await page.open(f"{self._page}{path or thread}")
                        await self._keep(page, f"{state}-{name}-{width}-{'dark' if dark else 'light'}")
            for command in COMMANDS:
                await page.look_as(COLUMNS * 10, LINES * 24)
                await page.evaluate(f"document.documentElement.innerHTML = {_screen(self._output(command))!r}")
                await self._keep(page, f"{state}-{'-'.join(command.split()[:2])}-{COLUMNS}x{LINES}")

    async def _keep(self, page: Page, name: str) -> None:
        (self._target / f"{name}.png").write_bytes(await page.picture())
        shown = await page.evaluate("document.querySelector('main h1')?.innerText ?? ''")
        if not shown and not name.endswith(f"{COLUMNS}x{LINES}"):
            self.wrong.append(f"{name}: no page, {await page.evaluate('document.body.innerText.slice(0, 100)')!r}")
        if over := await page.evaluate("document.documentElement.scrollWidth - innerWidth"):
            self.wrong.append(f"{name}: {over} px wider than the window")

    def _output(self, command: str) -> str:
        return output_of(command, self._folder, self._environment | {"TERM": "xterm-256color"}, (LINES, COLUMNS))


def _screen(output: str) -> str:
    """Return a screen of a terminal as HTML, in the colours of the output."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output), soft_wrap=False)
    return f'<body style="background:#fff;margin:8px"><pre>{console.export_html(code_format="{code}", inline_styles=True)}</pre>'


def main() -> int:
    """Take the pictures into the folder of the first argument; 1 where something is wider than its window."""
    if CHROMIUM is None:
        sys.stderr.write("Chromium is not installed (apt-get install chromium): no picture is made\n")
        return 1
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "dist/looks").absolute()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trawl-looks-") as folder:
        os.environ["TRAWL_ENV_FILE"] = ""
        fleet = LookedAtFleet(Path(folder), target)
        fleet.take_pictures()
    sys.stdout.write("\n".join([*fleet.wrong, f"{target}: {len(list(target.glob('*.png')))} pictures\n"]))
    return bool(fleet.wrong)


if __name__ == "__main__":
    sys.exit(main())
