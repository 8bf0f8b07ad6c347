"""Loads the project and the spider of a service, in a separate process, and reports the faults that prevent a crawl.

`run_module.py workers.crawler.check_service`, with the crawler's command line: a line of JSON with `wrong` and `warnings`.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import scrapy
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter as ScrapysDupeFilter
from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from redis_components.connection import get_redis_from_settings, name_of, names_redis
from redis_components.dupefilter import dupefilter_class
from redis_components.embedded import redis_url
from redis_components.errors import TrawlError, did_you_mean
from redis_components.pipelines import RedisPipeline
from redis_components.scheduler import Scheduler
from redis_components.scrapy_glue.config import config_of
from redis_components.scrapy_glue.scheduler_parts import arguments_of
from redis_components.server.url import masked
from redis_components.setting_values import item_groups, loaded, object_of
from redis_components.stats import RedisStatsCollector
from workers.consumers.item_consumers import consumer_of
from workers.process.options import CrawlerOptions, parse, received

from .__main__ import load_settings
from .crawl_record import ServiceSpider, check_consumer, check_own_settings
from .limits import CrawlerLimits
from .setting_types import load_components

_STDLIB, _SCRAPY, _TRAWL = sysconfig.get_path("stdlib"), str(Path(scrapy.__file__).parent), str(Path(__file__).parents[2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; 0 in any case."""
    options = received(parse(arguments))
    try:
        found = {"wrong": "", "warnings": check(options)}
    except TrawlError as error:
        found = {"wrong": str(error), "warnings": []}
    except Exception as error:  # code of a project: its innermost line has to be mended
        found = {"wrong": f"{type(error).__name__}: {error}{_place(error)}", "warnings": []}
    sys.stdout.write("\n" + json.dumps(found) + "\n")
    return 0


def check(options: CrawlerOptions) -> list[str]:
    """Return the warnings for a service that can crawl. Raises the exceptions of its project, ConfigError for a fault."""
    settings = load_settings(options)
    loader, name = get_spider_loader(settings), options.loads or options.spider
    if name not in loader.list():
        known = sorted(loader.list())
        there = f"there are {', '.join(known)}" if known else f"SPIDER_MODULES = {settings.getlist('SPIDER_MODULES')} has none"
        raise TrawlError(f'unknown spider {name!r}: {there}{did_you_mean(name, known)}; name it with spider = "..."')
    spider = ServiceSpider(loads=options.loads, consumer=options.consumer).named(options.spider, loader.load(name))
    consumer = consumer_of(spider)
    check_own_settings(settings, spider)
    spider.update_settings(settings)
    groups = item_groups(settings)
    check_consumer(spider.name, consumer, groups)
    load_components(settings)
    for path in settings.getdict("ITEM_PIPELINES"):
        if groups and _is_pipeline(path):
            loaded(path, "ITEM_PIPELINES").check_groups()
    _check_arguments(spider, options)
    if _is_ours(settings, "SCHEDULER", Scheduler):
        arguments_of(settings)
        config_of(Crawler(spider, settings))
        for name in ("SCHEDULER_QUEUE_CLASS", "SCHEDULER_SERIALIZER"):
            object_of(settings, name)
    get_redis_from_settings(settings)  # is made, and asks for nothing
    CrawlerLimits.of(settings)
    return [*_warnings(settings), *_other_redis(settings)]


def _place(error: BaseException) -> str:
    """Return the place of an error in the project; "" where only Python, its packages or the fleet were at work."""
    if isinstance(error, SyntaxError):
        return f" ({error.filename})" if error.filename else ""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_projects(one.filename)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _is_projects(file: str) -> bool:
    installed = "site-packages" in file or "dist-packages" in file  # also below the standard library, and a project may be there
    others = (_SCRAPY, *(f"{_TRAWL}/{name}/" for name in ("workers", "redis_components")), *(() if installed else (_STDLIB,)))
    return not file.startswith(("<", *others))


def _check_arguments(spider: type[Spider], options: CrawlerOptions) -> None:
    try:
        inspect.signature(spider).bind(**options.arguments)
    except TypeError as error:
        raise TrawlError(f"arguments: {spider.__name__} cannot be made with {sorted(options.arguments)}: {error}") from None


def _warnings(settings: BaseSettings) -> Iterator[str]:
    """Yield the settings of docs/services.md that are missing, and the consequence of each."""
    if not (shared := _is_ours(settings, "SCHEDULER", Scheduler)):
        yield (
            "its queue is not in Redis, so a crawler that dies loses it and each crawler crawls everything:"
            ' SCHEDULER = "redis_components.scheduler.Scheduler"'
        )
    if shared and issubclass(dupefilter_class(settings), ScrapysDupeFilter):
        yield (
            "its dupefilter is not in Redis, so each crawler fetches what others have fetched:"
            ' DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"'
        )
    if not _is_ours(settings, "STATS_CLASS", RedisStatsCollector):
        yield (
            "its stats are not in Redis, so trawl status shows no pages and items of it:"
            ' STATS_CLASS = "redis_components.stats.RedisStatsCollector"'
        )
    if not any(_is_pipeline(path) for path in settings.getdict("ITEM_PIPELINES")):
        yield (
            "its items go to no item stream, so trawl items consume sees none:"
            ' ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}'
        )


def _other_redis(settings: BaseSettings) -> Iterator[str]:
    """Yield a warning for a Redis of another name. Two names may be one server: a crawler tests that by a write, a check may
    not.
    """
    fleet = re.sub(r"//[^/]*@", "//", masked(redis_url()))
    if names_redis(settings) and (named := re.sub(r"//[^/]*@", "//", name_of(settings))) != fleet:
        yield (
            f"its project names {named}, the fleet's Redis is {fleet}: if these are two, status, pauses and consumers of the"
            " fleet do not reach its crawl; remove REDIS_URL, REDIS_HOST and the like from the project's settings"
        )


def _is_ours(settings: BaseSettings, name: str, kind: type) -> bool:
    return kind in getattr(object_of(settings, name), "__mro__", ())  # to issubclass every scheduler is a subclass of every other


def _is_pipeline(path: object) -> bool:
    named = loaded(path, "ITEM_PIPELINES")
    return isinstance(named, type) and issubclass(named, RedisPipeline)


if __name__ == "__main__":
    sys.exit(main())
