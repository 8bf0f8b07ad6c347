"""What a crawler process may use before it is replaced."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from redis_components.errors import ConfigError
from workers.crawler.setting_types import MIB, CrawlerLimits


def of(**settings: object) -> CrawlerLimits:
    return CrawlerLimits.of(Settings(settings), luck=0.0)


def test_without_settings_there_are_no_limits() -> None:
    limits = of()
    assert limits == CrawlerLimits()
    assert limits.too_low(10**12) is limits.exhausted(10**12) is None
    assert limits.reached(rss_bytes=10**12, age_s=1e9, pages=10**9) is None


def test_each_limit_names_its_setting() -> None:
    limits = of(CRAWLER_MEMORY_SOFT_MB="100", CRAWLER_MEMORY_HARD_MB=200, CRAWLER_MAX_AGE=60, CRAWLER_MAX_PAGES=1000)
    assert limits.reached(rss_bytes=100 * MIB, age_s=59, pages=999) is None
    assert limits.reached(rss_bytes=101 * MIB, age_s=0, pages=0) == "101 MiB of memory are over CRAWLER_MEMORY_SOFT_MB = 100"
    assert limits.reached(rss_bytes=0, age_s=60, pages=0) == "it is 60 s old (CRAWLER_MAX_AGE)"
    assert limits.reached(rss_bytes=0, age_s=0, pages=1000) == "it has fetched 1000 pages (CRAWLER_MAX_PAGES)"
    assert limits.exhausted(200 * MIB) is None
    assert limits.exhausted(201 * MIB) == "201 MiB of memory are over CRAWLER_MEMORY_HARD_MB = 200"
    assert limits.too_low(100 * MIB) is None
    assert "CRAWLER_MEMORY_SOFT_MB = 100 is less than a crawler needs before its first page, 120 MiB" in (
        limits.too_low(120 * MIB) or ""
    )


def test_age_and_pages_differ_from_process_to_process_by_a_tenth_at_most() -> None:
    settings = Settings({"CRAWLER_MAX_AGE": 100, "CRAWLER_MAX_PAGES": 100, "CRAWLER_MEMORY_SOFT_MB": 100})
    drawn = [CrawlerLimits.of(settings) for _ in range(100)]
    assert all(90 <= one.max_age_s <= 100 and 90 <= one.max_pages <= 100 for one in drawn)
    assert len({one.max_age_s for one in drawn}) > 50
    assert {one.memory_soft_mb for one in drawn} == {100}
    assert CrawlerLimits.of(Settings({"CRAWLER_MAX_PAGES": 1}), luck=0.99).max_pages == 1, "and never none"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"CRAWLER_MEMORY_SOFT_MB": "much"}, "CRAWLER_MEMORY_SOFT_MB = 'much' is not a number"),
        ({"CRAWLER_MAX_PAGES": -1}, "CRAWLER_MAX_PAGES = -1 is out of range"),
        ({"CRAWLER_MAX_AGE": "inf"}, "CRAWLER_MAX_AGE = inf is out of range"),
        ({"CRAWLER_MEMORY_SOFT_MB": 300, "CRAWLER_MEMORY_HARD_MB": 200}, "is not above CRAWLER_MEMORY_SOFT_MB = 300"),
    ],
)
def test_what_cannot_be_is_refused_by_name(settings: dict[str, object], line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        of(**settings)
