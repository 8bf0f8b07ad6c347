"""The pages in a real browser: our script runs under the page's own rules, and refreshes keep what was opened."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
import uvicorn

from forums.storage import Database, parse
from monitoring.app import create_app
from monitoring.exporter import listen
from monitoring.source import Source
from tests.integration.test_pages import bury
from tests.integration.test_pages_axe import load_browser, served
from tests.support.items import comment, post, wire

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=12000"),
)


@pytest.mark.processes
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
def test_a_browser_shows_the_page_and_refreshes_it(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    bury(redis_client, "books", "https://example.org/<img src=x onerror=document.title='hacked'>", "HTTP 503")
    with listen("127.0.0.1", 0) as listener:
        pages, refreshed = create_app(Source(redis_url, {"books": 1})), list[str]()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if any(name == b"x-refresh" for name, _ in scope.get("headers", ())):
                refreshed.append(scope["path"])
            await pages(scope, receive, send)

        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/dead"
            profile = f"--user-data-dir={tmp_path}/profile"
            command = [str(CHROMIUM), *FLAGS, profile, "--enable-logging=stderr", "--dump-dom", address]
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        finally:
            server.should_exit = True
            thread.join(40)
    assert "<title>Dead letters</title>" in done.stdout, done.stderr[-2000:]
    assert "HTTP 503" in done.stdout
    assert '<span id="fresh" data-every="5">every 5 s</span>' in done.stdout
    assert set(refreshed) == {"/dead"}, "our script has run, and has read the page again"
    assert "Content Security Policy" not in done.stderr, "nothing on the page breaks its own rules"


@pytest.mark.processes
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
def test_new_posts_and_replies_appear_without_reloading(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/data.db")
    with Database.from_url() as database, served(redis_url) as address:

        def stored(*items: dict[str, Any]) -> None:
            assert database.write([parse(wire(one)) for one in items]) == []

        stored(post("p1", title="The first"), comment("c1", body="an answer"))
        seen = asyncio.run(watched(address, stored))
    assert seen == {"/": ["a second one"], "/thread/demo/p1": ["another answer"]}


async def watched(address: str, stored: Any) -> dict[str, list[str]]:
    """By page: what appeared in the document that was opened first, without a click."""
    seen = dict[str, list[str]]()
    async with load_browser().browser() as page:
        for path, text, item in (
            ("/", "a second one", post("p2", title="a second one")),
            ("/thread/demo/p1", "another answer", comment("c2", body="another answer")),
        ):
            await page.open(f"{address}{path}")
            await page.evaluate("document.title = 'opened once'; window.first = document")
            assert not await page.evaluate(f"document.body.innerText.includes({text!r})")
            stored(item)
            appears = f"""new Promise(done => {{
              const there = () => document.body.innerText.includes({text!r});
              const look = () => there() ? done(window.first === document) : setTimeout(look, 50);
              look(); setTimeout(() => done(false), 120000)}})"""
            seen[path] = [text] if await page.evaluate(appears) else []
    return seen
