"""Every page in Chromium, wide and narrow, light and dark: axe-core finds nothing, nothing is wider than the window, and the
keyboard reaches the content.

`npm install --prefix .venv-tools axe-core` installs it; AXE_CORE names another place.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import uvicorn

from fleet_operations.overview.samples import Sample, Samples
from forums.storage import Database, parse
from monitoring.api.access import Tokens
from monitoring.app import create_app
from monitoring.exporter import listen
from monitoring.source import Source
from tests.integration.test_pages import bury
from tests.support.items import at, comment, post, scan, wire
from workers.state.history import Run, RunBy, Runs
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("AXE_CORE", ROOT / ".venv-tools/node_modules/axe-core/axe.min.js"))
PATHS = (
    *("/", "/sites", "/site/demo", "/service/books", "/crawler/books/0", "/dead", "/events", "/history", "/jobs"),
    *(
        "/search",
        "/search?q=prices",
        "/thread/demo/p1",
        "/act/alert?match=prices",
        "/login",
        "/site/nowhere",
        "/act/pause?service=books",
    ),
)
LOOKS = ((1400, False), (1400, True), (400, True), (400, False))  # width, whether dark
_LOG_IN = """fetch('/login', {method: 'POST', redirect: 'manual',
  body: new URLSearchParams(new FormData(document.querySelector('main form')))}).then(() => true)"""
_LOOK = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(
  one => `${one.id}: ${one.nodes.map(node => node.target.join(' ')).slice(0, 3)}`))"""


def load_browser() -> Any:
    spec = importlib.util.spec_from_file_location("browser", ROOT / "packaging" / "browser.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BROWSER = load_browser()


@pytest.mark.processes
@pytest.mark.skipif(BROWSER.CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: npm install --prefix .venv-tools axe-core")
def test_every_page_is_without_violations_at_every_size_and_in_both_colours(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/data.db")
    fill(redis_client)
    with served(redis_url) as address:
        wrong = asyncio.run(walk(address))
    assert not wrong, "\n".join(wrong)


def fill(client: redis.Redis) -> None:
    """Something on every page: a post, a gap, a run, a dead letter, a crawler that was given up, an error, a history."""
    bury(client, "books", "https://example.org/x", "HTTP 503")
    registry, now = Registry(client), Registry(client).now()
    state = CrawlerState.CRASH_LOOPING
    registry.note(CrawlerRecord(spider="books", number=0, node="n1", pid=7, state=state, last_exit="killed", beat_at=now))
    registry.report_error("books/0", "killed (SIGKILL)")
    for minutes in (2, 1, 0):
        Samples(client).add(Sample(at=now - 60 * minutes, waiting=minutes, alive=1))
    run = Run(
        id="books/0#1.1",
        spider="books",
        by=RunBy.FLEET,
        number=0,
        token=1,
        node="n1",
        pid=7,
        pages=3,
        started_at=now - 86_400,
        items=2,
        ended_at=now,
        outcome="killed",
        exit_code=-9,
        reason=None,
        peak_rss_bytes=9,
    )
    gap = scan(outcome="gap", stopped="limit", started_at=at(1), finished_at=at(2))
    items = [parse(wire(one)) for one in (post(title="GPU prices", fetched_at=at(1)), comment(fetched_at=at(1)), gap)]
    with Database.from_url() as database:
        assert database.write(items) == []
    Runs(client).add(run)


@contextmanager
def served(redis_url: str) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listener:
        app = create_app(Source(redis_url, {"books": 1}), tokens=Tokens(act="a token of some length"))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(40)


async def walk(address: str) -> list[str]:
    """What is wrong, by page, width and colours."""
    wrong: list[str] = []
    axe = AXE.read_text("utf-8")  # noqa: ASYNC240 - nothing else runs
    async with BROWSER.browser() as page:
        await page.open(f"{address}/login")
        await page.evaluate("document.querySelector('input[type=password]').value = 'a token of some length'")
        await page.evaluate(_LOG_IN)
        for path in PATHS:
            for width, dark in LOOKS:
                await page.look_as(width, 900, dark=dark)
                await page.open(f"{address}{path}")
                await page.evaluate(axe)
                place = f"{path} {width} {'dark' if dark else 'light'}"
                wrong += [f"{place}: {one}" for one in await page.evaluate(_LOOK)]
                if over := await page.evaluate("document.documentElement.scrollWidth - innerWidth"):
                    wrong.append(f"{place}: {over} px wider than the window")
        await page.open(f"{address}/")
        await page.press("Tab")
        await page.press("Enter")
        if await page.evaluate("document.activeElement.id") != "main":
            wrong.append(f"the first Tab and Enter lead to {json.dumps(await page.evaluate('document.activeElement.outerHTML'))}")
    return wrong
