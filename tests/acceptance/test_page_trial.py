"""The page as somebody meets it who has just started `make demo KEEP=1`: four questions, each answered in a real Chromium; then a
webhook whose receiver is away for a minute. `make try-page` prints what was opened, typed and found.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from redis_components.embedded.files import free_port
from tests.acceptance.test_demo import MARK, Demo
from tests.integration.test_pages_axe import BROWSER
from tests.support import keeping_receiver
from tests.support.fleet import ROOT
from tests.support.processes import none_left, stays, wait_until

AWAY_S = float(os.environ.get("TRY_PAGE_AWAY_S", "60"))
"""How long the webhook's receiver is away."""
WIDTH, HEIGHT = 1400, 900
WORD = "bread|compost"
HOLDS = re.compile(rf"\b({WORD})\b", re.IGNORECASE)
IN_SIGHT = """[...document.querySelectorAll('h1, h2, p, li, dd, tbody tr')].filter(one => {
  const box = one.getBoundingClientRect(); return box.height && box.top >= 0 && box.bottom <= innerHeight })
  .map(one => one.innerText.replace(/\\s+/g, ' ').trim()).join('\\n')"""
FIND = "document.querySelector('header input[name=q]').focus()"


@dataclass
class Answer:
    """One question: what was done for its answer, and what the page said."""

    question: str
    pages: list[str]
    clicks: int
    seconds: float
    said: str


@dataclass
class Trial:
    """A kept demo, and somebody who looks at its page."""

    demo: Demo
    page: Any = None
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.demo.find(r"Everything goes on", 400)
        self.url = self.demo.find(r"exporter +(http://\S+)", 5)[1]
        self.forum = self.demo.find(r"forum +(http://\S+)", 5)[1]
        (self.database,) = self.demo.data.glob("demo/*/trawl.sqlite")

    def control(self, **settings: object) -> None:
        self._asked("/control", json.dumps(settings).encode())

    def truth(self) -> Any:
        return self._asked("/truth")

    def _asked(self, path: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(urllib.request.Request(f"{self.forum}{path}", body), timeout=30) as answer:
            return json.load(answer)

    def rows(self, query: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(query, values).fetchall()

    async def ask(self, question: str, wanted: str, *, find: str = "") -> re.Match[str]:
        """Open the overview, and type `find` into the field at its top; what is wanted must stand in the window then."""
        began, pages, clicks = time.monotonic(), ["/"], 0
        await self.page.open(f"{self.url}/")
        if find:
            await self.page.evaluate(FIND)
            await self.page.call("Input.insertText", text=find)
            await self.page.press("Enter")
            clicks, pages = 1, ["/", "/search"]
            while not await self._has_come_to("/search"):  # noqa: ASYNC110 - a page does not tell us
                await asyncio.sleep(0.05)
        shown = await self.page.evaluate(IN_SIGHT)
        found = re.search(wanted, shown)
        assert found, f"{question}: {wanted!r} is not in sight:\n{shown}"
        self.answers.append(Answer(question, pages, clicks, time.monotonic() - began, found[0]))
        return found

    async def _has_come_to(self, path: str) -> bool:
        try:
            return bool(await self.page.evaluate(f"location.pathname === '{path}' && document.readyState === 'complete'"))
        except BROWSER.BrowserError:  # between two pages
            return False


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    with none_left((MARK, str(tmp_path)), timeout_s=60.0):
        secret = "a secret of more than sixteen characters"
        kept = Demo(tmp_path, KEEP="1", HOOK_SECRET=secret)
        try:
            yield Trial(kept)
        finally:
            kept.end()


@pytest.mark.processes
@pytest.mark.skipif(BROWSER.CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
def test_four_questions_are_answered_at_a_glance_then_a_webhook_is_told_of_a_word(trial: Trial, tmp_path: Path) -> None:
    asyncio.run(look_around(trial))
    for one in trial.answers:
        say(f"{one.question}: {' > '.join(one.pages)}, {one.clicks} clicks, {one.seconds:.1f} s: {' '.join(one.said.split())}")
    told, again = be_told(trial, tmp_path)
    say(f"webhook, receiver away for {AWAY_S:.0f} s: {told} events, none missing, none kept twice, {again} delivered again")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


async def look_around(trial: Trial) -> None:
    """Each question from the overview; the answers are compared with the database and the forum."""
    async with BROWSER.browser() as trial.page:
        await trial.page.look_as(WIDTH, HEIGHT)
        killed = await trial.ask("which crawler was killed, and when", r"before: killed \(SIGKILL\), .* ago, (\S+ \S+) UTC")
        ((changes,),) = trial.rows("select changes from events where changes like '%killed (signal 9)%'")
        (died,) = (one for one in json.loads(changes) if one[5] == "died")
        assert abs(datetime.fromisoformat(f"{killed[1]}+00:00").timestamp() - died[9]) <= 2
        assert re.search(rf"{died[8].partition('/')[0]}/0 running.*\n{re.escape(killed[0])}", await trial.page.evaluate(IN_SIGHT))

        trial.control(wall="login", wall_forum="f3", wall_page="list")
        wait_until(lambda: "failing" in forums(trial), lambda: f"the scans of f3 fail: {forums(trial)}", 120)
        board = r"Boards, the stalest first.*\n(demo/f3 .*failing.*scans? failed: .*login page.*)"
        await trial.ask("which board is the stalest, and why", board)
        trial.control(wall="", wall_forum="", wall_page="")

        deleted = seen_deleted(trial)
        trial.control(rate=0, delete_rate=0)  # nobody posts while it is compared
        wait_until(lambda: "failing" not in forums(trial), lambda: f"f3 is scanned again: {forums(trial)}", 120)
        author = trial.rows("select author from posts where deleted_at is null order by created_at desc limit 1")[0][0]
        newest = (
            "select max(created_at) from (select author, created_at, deleted_at from posts"
            " union all select author, created_at, deleted_at from comments) where author = ?"
        )
        found = await trial.ask(
            "the newest post of an author", r"(?s)newest first\n.*?(\d{4}-\S+ \S+) demo", find=f"author:{author}"
        )
        assert trial.rows(newest, author)[0][0][:19].replace("T", " ") == found[1]

        for what, url, wanted in (
            (
                "never published",
                f"{trial.forum}/post/p999999",
                "never seen nothing in Redis or in the database holds thread p999999.*",
            ),
            ("deleted", f"{trial.forum}/post/{deleted}", f"gone thread demo/{deleted} was gone .*"),
            ("a list", f"{trial.forum}/list/f1/1", "list it is a page of a board's list.*"),
            (
                "elsewhere",
                "https://elsewhere.example/post/1",
                "never seen .*\n.*no site no site file has https://elsewhere.example.*",
            ),
        ):
            await trial.ask(f"why a URL is not stored ({what})", wanted, find=url)


def seen_deleted(trial: Trial) -> str:
    """A thread that the forum has deleted, and of which the database says so. Of the deletions, a tenth take a whole thread."""
    trial.control(rate=10, delete_rate=0.9, edit_rate=0, move_rate=0)
    wait_until(lambda: trial.truth()["deleted"]["posts"], "the forum deletes a thread", 120)
    trial.control(rate=2, delete_rate=0.05)

    def seen() -> list[str]:
        stored = trial.rows("select id from posts where deleted_at is not null")
        return sorted({id_ for (id_,) in stored} & trial.truth()["deleted"]["posts"].keys())

    return wait_until(seen, lambda: f"of one of {trial.truth()['deleted']['posts'].keys()} it is known", 240)[0]


def forums(trial: Trial) -> str:
    """What `trawl forums` says in a terminal that was given what the demo says."""
    terminal, trawl = trial.demo.find(r"terminal +(\S.*)", 5)[1], Path(sys.executable).with_name("trawl")
    command = ["sh", "-c", f"{terminal} && exec {trawl} forums"]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout


def be_told(trial: Trial, folder: Path) -> tuple[int, int]:
    """Events that a webhook got whose receiver was killed for a while, and how many came again. Each row that holds the word is
    told of, and no id is kept twice.
    """
    port, kept = free_port(), folder / "kept"
    command = [sys.executable, keeping_receiver.__file__, str(port), str(kept)]

    def told() -> list[str]:
        return kept.read_text().split("\n")[:-1] if kept.exists() else []

    receiver = subprocess.Popen(command)
    try:
        (trial.database.parent / "trawl.toml").write_text(
            f'[rules.word]\nmatch = \'/\\b({WORD})\\b/\'\n[outputs.hook]\nkind = "webhook"\nurl = "http://127.0.0.1:{port}/"\n'
            'secret = "${HOOK_SECRET}"\nbegin = "oldest"\nrules = ["word"]\n'
        )
        trial.control(rate=10)
        wait_until(told, "the receiver is told of something", 120)
        receiver.send_signal(signal.SIGKILL)
        receiver.wait()
        began, before = trial.rows("select count(*) from comments")[0][0], len(told())
        stays(lambda: len(told()) == before, "nobody takes what is told", AWAY_S, every_s=1.0)
        assert trial.rows("select count(*) from comments")[0][0] > began, "the forum was read meanwhile"
        receiver = subprocess.Popen(command)
        trial.control(rate=0)
        wait_until(lambda: not missing(trial, told()), lambda: f"everything is told; missing: {missing(trial, told())}", 400)
    finally:
        receiver.kill()
        receiver.wait()
    kept_ids = [one for one in told() if not one.startswith("again ")]
    assert len(kept_ids) == len(set(kept_ids)), "none twice"
    return len(kept_ids), len(told()) - len(kept_ids)


def missing(trial: Trial, told: list[str]) -> set[str]:
    """Rows whose text, or the title of whose thread, holds the word now, in a version that no event is of."""
    posts = trial.rows("select 'post', id, version, title, body from posts where deleted_at is null")
    comments = trial.rows(
        "select 'comment', c.id, c.version, p.title, c.body from comments c join posts p on p.site = c.site and p.id = c.post_id"
        " where c.deleted_at is null"
    )
    held = {
        f"demo/{kind}/{id_}@{version}"
        for kind, id_, version, *texts in posts + comments
        if HOLDS.search("\n".join(filter(None, texts)))
    }
    return held - set(told)
