"""Keys come from one place."""

from __future__ import annotations

import re
from pathlib import Path

from redis_components.keys import CrawlKeys
from tests.support.sources import PACKAGES
from workers.state.keys import FleetKeys

ROOT = Path(__file__).parents[4]


def test_the_five_patterns_are_those_of_scrapy_redis() -> None:
    keys = CrawlKeys.for_spider("books")
    assert (keys.requests, keys.dupefilter, keys.start_urls, keys.items, keys.stats) == (
        "books:requests",
        "books:dupefilter",
        "books:start_urls",
        "books:items",
        "books:stats",
    )


def test_a_hash_tag_in_the_patterns_reaches_every_key() -> None:
    tag = "{crawl}:%(spider)s:"
    keys = CrawlKeys.for_spider(
        "books", requests=tag + "r", dupefilter=tag + "d", start_urls=tag + "s", items=tag + "i", stats=tag + "t"
    )
    for name in (keys.ready(), keys.leases("o"), keys.owners(), keys.dead(), keys.pending(), keys.start_tokens(), keys.writer()):
        assert name.startswith("{crawl}:books:")


def test_no_key_is_built_anywhere_else() -> None:
    suspicious = re.compile(r"""f["'][^"']*\{[^}]*\}:(requests|dupefilter|start_urls|items|stats|owners|leases|dead|fleet)""")
    for package in (one for one in PACKAGES if one != "demo"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name != "keys.py" and path.parent.name != "keys":
                assert not suspicious.search(path.read_text()), f"{path} builds a key by itself"
    assert FleetKeys().slot("a", 1) == "trawl:fleet:slot:a/1"
