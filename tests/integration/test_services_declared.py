"""A service declared at run time: a spider of another project, under another name, in nodes that run already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redis_components.keys import CrawlRecords
from tests.support.plain_project import PlainFleet, plain_fleet
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")
SPIDER = '''
import scrapy


class Shop(scrapy.Spider):
    """Knows neither Trawl nor scrapy-redis."""

    name = "shop"

    def __init__(self, first="", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [first]

    def parse(self, response):
        yield {"url": response.url, "delay": self.settings["DOWNLOAD_DELAY"]}
        yield from response.follow_all(css="a")
'''


def checked(fleet: PlainFleet, name: str) -> tuple[str, list[str]]:
    found = json.loads(fleet.trawl("services", "check", name, "--json").splitlines()[0])[name]
    return found["wrong"], found["warnings"]


def test_a_spider_of_another_project_is_declared_checked_crawled_and_removed(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=1", pages=30) as fleet:
        project = tmp_path / "project"
        (project / "shop_spiders.py").write_text(SPIDER)
        (project / "shop_settings.py").write_text('from plain_settings import *\nSPIDER_MODULES = ["shop_spiders"]\n')
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")

        declare = ["services", "add", "sale", "--project", "shop_settings", "-s", "DOWNLOAD_DELAY=0.01", "--size", "0"]
        fleet.trawl(*declare, "-a", f"first={fleet.site}/1")
        assert checked(fleet, "sale")[0] == "unknown spider 'sale': there are shop; name it with spider = \"...\""
        fleet.trawl(*declare, "--spider", "shop", "-a", f"first={fleet.site}/1")
        assert checked(fleet, "sale") == ("", [])
        fleet.trawl(*declare, "--spider", "shop", "--project", "shop_setings")
        assert "shop_setings" in checked(fleet, "sale")[0]

        # Its keys are called as the service; the other service does not notice.
        fleet.trawl(*declare, "--spider", "shop", "-a", f"first={fleet.site}/1", "--size", "1")
        fleet.wait_count("sale:items", 30)
        client = fleet.redis.client()
        items = [json.loads(item) for item in client.lrange("sale:items", 0, -1)]
        assert {item["url"] for item in items} == {f"{fleet.site}/{page}" for page in range(1, 31)}
        assert {item["delay"] for item in items} == {"0.01"}
        assert not client.exists("shop:items", "books:items")
        record = wait_until(lambda: CrawlRecords(client).of("sale"), lambda: f"its crawler records its crawl\n{fleet.said()}")
        assert record is not None
        assert record.keys.items == "sale:items"
        assert "sale" in fleet.trawl("status")

        fleet.trawl("services", "remove", "sale")
        fleet.wait_whole("books/0")
        assert client.llen("sale:items") >= 30, "what it has left stays"
