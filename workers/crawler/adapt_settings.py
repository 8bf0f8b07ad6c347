"""The fleet's changes of a crawl's settings, after those of its project, its spider and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.tracing.page_spans import add_page_spans

from .crawl_record import bound_items, check_own_settings
from .fleet_redis import hand_over
from .isolated import crawl_alone
from .job_settings import share_job

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import Settings

    from workers.process.options import CrawlerOptions


def adapt(settings: Settings, spider: type[Spider], options: CrawlerOptions, url: str) -> None:
    """Adapt a crawl's settings to the fleet. `url`: the fleet's Redis. Raises ConfigError."""
    check_own_settings(settings, spider)
    bound_items(settings)
    if options.job_of:
        first = options.slot is None or options.slot.number == 0
        share_job(settings, spider, options.job_of, first=first)
    hand_over(settings, spider, url)
    add_page_spans(settings)
    if options.alone:
        crawl_alone(settings, spider)
