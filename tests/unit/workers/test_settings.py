"""The fleet's own settings of Scrapy, where one of them has to fit another."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.core.scraper import Slot
from scrapy.http import Response
from scrapy.settings import Settings

from forum_reader.definition.site import Politeness


def test_pages_of_one_site_that_wait_to_be_read_stop_no_other_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://127.0.0.1:1")
    settings = Settings()
    settings.setmodule("workers.settings")
    slot = Slot(settings.getint("SCRAPER_SLOT_MAX_ACTIVE_SIZE"))
    for number in range(3 * (Politeness().crawler_concurrency or 0)):
        url = f"http://evil.example/{number}"
        slot.add_response_request(Response(url, body=bytes(settings.getint("DOWNLOAD_MAXSIZE"))), Request(url))
    assert not slot.needs_backout()
