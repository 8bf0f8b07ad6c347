"""Which User-Agent a site gets: its file's, else the project's, else Trawl's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from forums.sites.http.politeness import USER_AGENT, SitePoliteness

SITE = 'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = ["a"]\n'


@pytest.mark.parametrize(
    ("project", "headers", "sent"),
    [
        ({}, "", USER_AGENT),
        ({"USER_AGENT": "project"}, "", None),
        ({"USER_AGENT": "project"}, '[headers]\nuser-agent = "file"\n', "file"),
    ],
)
def test_the_nearest_name_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: dict[str, str], headers: str, sent: str | None
) -> None:
    """None: left to Scrapy, which sends the project's."""
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "books.toml").write_text(SITE + headers)
    request = Request("http://127.0.0.1:1/", meta={"site": "books"})
    crawler: Any = SimpleNamespace(settings=Settings(project, priority="project"), engine=None)
    SitePoliteness(crawler).process_request(request)
    assert request.headers.get("User-Agent") == (sent.encode() if sent else None)
