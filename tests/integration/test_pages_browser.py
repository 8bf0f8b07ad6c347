"""The pages in a real browser: our script runs under the page's own rules, and refreshes keep what somebody opened."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
import uvicorn

from monitoring.app import create_app
from monitoring.exporter import listen
from monitoring.source import Source
from tests.integration.test_pages import bury

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
    assert '<span id="fresh">every 5 s</span>' in done.stdout
    assert set(refreshed) == {"/dead"}, "our script has run, and has read the page again"
    assert "Content Security Policy" not in done.stderr, "nothing on the page breaks its own rules"
