"""Fixtures of the attacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.attacks.two_sites import SECRET, TwoSites
from tests.support.watched_site import WatchedSite


@pytest.fixture
def sites(tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoSites]:
    """Two sites whose files are in a folder that this process and its crawlers read."""
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("ATTACKED_TOKEN", SECRET)
    with WatchedSite() as mine, WatchedSite() as other:
        yield TwoSites(mine=mine, other=other, client=redis_client, redis_url=redis_url, folder=tmp_path)
