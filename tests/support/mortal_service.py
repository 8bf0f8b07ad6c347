"""A service to kill whose spider knows nothing of Trawl: a plain `scrapy.Spider`, or one with scrapy-redis's names."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

from tests.support.crawl import ask_site
from tests.support.mortal_fleet import CHAINS, KEYS, MortalFleet

_PARSE = """

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
"""
_PLAIN = (
    """import os
import scrapy


class Mortal(scrapy.Spider):
    name = "mortal"
    start_urls = [os.environ["MORTAL_SITE"] + "/1"]"""
    + _PARSE
)
_SCRAPY_REDIS = (
    '''from redis_components.spiders import RedisSpider


class Mortal(RedisSpider):
    name = "mortal"'''
    + _PARSE
)
# The user agent tells the site which process asks: that is the measurement's, not the spider's.
_SETTINGS = """import sys
SPIDER_MODULES = ["mortal_project"]
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
USER_AGENT = next((word.partition("=")[2] for word in sys.argv if word.startswith("--owner=")), "nobody")
MAX_IDLE_TIME_BEFORE_CLOSE = 0
ALLOW_PRIVATE_ADDRESSES = True
CONCURRENT_REQUESTS = CONCURRENT_REQUESTS_PER_DOMAIN = 4
"""


class Kind(Enum):
    """Whose spider it is: its name, and the source of its module."""

    PLAIN = ("scrapy.Spider", _PLAIN)
    SCRAPY_REDIS = ("scrapy-redis", _SCRAPY_REDIS)

    def __init__(self, label: str, source: str) -> None:
        self.label = label
        self.source = source


class MortalService(MortalFleet):
    """As MortalFleet, with a spider of that kind, whose items go into a list that nobody reads."""

    def __init__(self, folder: Path, kind: Kind, *, size: int = 2) -> None:
        super().__init__(folder, size=size, settings=_SETTINGS)
        self._kind = kind
        (folder / "project" / "mortal_project.py").write_text(kind.source)

    def site_listens(self) -> None:
        """A plain spider has its first page before the fleet starts."""
        self._more["MORTAL_SITE"] = self.site
        if self._kind is Kind.PLAIN:
            ask_site(self.site, f"begin/{CHAINS}", post=True)

    def begin(self) -> None:
        """Give the fleet a crawl that goes on until `end`; a plain spider has had it since its start."""
        if self._kind is Kind.SCRAPY_REDIS:
            super().begin()

    def lost_items(self) -> int:
        """Pages that were linked and have no item in the list."""
        linked = {f"{self.site}/{page}" for page in ask_site(self.site, "chains")}
        return len(linked - {json.loads(item)["url"] for item in self.client.lrange(KEYS.item_stream(), 0, -1)})
