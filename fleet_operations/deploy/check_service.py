"""Loads the project and the spider of a service, in a separate process, and reports the faults that prevent a crawl.

`run_module.py fleet_operations.deploy.check_service`, with the crawler's command line: a line of JSON, `Findings`.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import NoReturn

import msgspec
import scrapy
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from redis_components.connection import get_redis_from_settings
from redis_components.errors import TrawlError, there_are
from redis_components.scheduler import Scheduler
from redis_components.scrapy_glue.engine import config_of
from redis_components.scrapy_glue.scheduler_parts import arguments_of
from redis_components.setting_values import loaded, object_of
from workers.crawler.__main__ import load_settings
from workers.crawler.crawl import ensure_reactor
from workers.crawler.crawl_record import ServiceSpider
from workers.crawler.setting_types import CrawlerLimits, load_components
from workers.process.memory import cap
from workers.process.options import CrawlerOptions, own_options
from workers.process.stat_metrics import SETTING, stat_patterns
from workers.targets import consumer_of

from .check_spider import MadeSpider, check_reactor, closing, is_ours, log_elsewhere, missing, opened, shared_files
from .deploy import Findings

MEMORY_BYTES = 2 * 1024**3
_STDLIB, _SCRAPY, _TRAWL = sysconfig.get_path("stdlib"), str(Path(scrapy.__file__).parent), str(Path(__file__).parents[2])


def main() -> NoReturn:
    """Print what was found, and leave at once: threads that the project has started may never end."""
    cap(MEMORY_BYTES)
    options, found = own_options(), Findings()
    try:
        _check(options, found)
    except TrawlError as error:
        found.wrong = str(error)
    except Exception as error:  # code of a project: its innermost line has to be mended
        found.wrong = f"{type(error).__name__}: {error}{_place(error)}"
    sys.stdout.write(f"\n{json.dumps(msgspec.structs.asdict(found))}\n")
    sys.stdout.flush()
    os._exit(0)


def _check(options: CrawlerOptions, found: Findings) -> None:
    """Fill `found` for a service that can crawl. Raises the exceptions of its project, ConfigError for a fault."""
    settings = load_settings(options)
    loaded(settings["TWISTED_REACTOR"], "TWISTED_REACTOR")
    ensure_reactor(settings)
    spider = _spider(settings, options)
    consumer_of(spider)
    own = settings.copy()
    spider.update_settings(own)
    stat_patterns(own.get(SETTING))
    load_components(own)
    if is_ours(own, "SCHEDULER", Scheduler):
        arguments_of(own)
        config_of(Crawler(spider, own))
        for name in ("SCHEDULER_QUEUE_CLASS", "SCHEDULER_SERIALIZER"):
            object_of(own, name)
    get_redis_from_settings(own)  # is made, and asks for nothing
    CrawlerLimits.of(own)
    check_reactor(own)
    made = MadeSpider(spider, own, options.arguments)
    made.check()
    found.faults = [*opened(own), *log_elsewhere(own)]
    found.shared = list(shared_files(own))
    found.ends = closing(own) or made.ends()
    found.warnings = list(missing(own))


def _spider(settings: BaseSettings, options: CrawlerOptions) -> type[Spider]:
    """Return the class of the service's spider. Raises TrawlError for an unknown one."""
    loader, name = get_spider_loader(settings), options.loads or options.spider
    if name not in loader.list():
        known = sorted(loader.list())
        there = there_are(name, known) if known else f"SPIDER_MODULES = {settings.getlist('SPIDER_MODULES')} has none"
        raise TrawlError(f'unknown spider {name!r}: {there}; name it with spider = "..."')
    return ServiceSpider(loads=options.loads, consumer=options.consumer).named(options.spider, loader.load(name))


def _place(error: BaseException) -> str:
    """Return the place of an error in the project; "" where only Python, its packages or the fleet were at work."""
    if isinstance(error, SyntaxError):
        return f" ({error.filename})" if error.filename else ""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_projects(one.filename)]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _is_projects(file: str) -> bool:
    installed = "site-packages" in file or "dist-packages" in file  # also below the standard library, and a project may be there
    ours = [f"{_TRAWL}/{name}/" for name in ("workers", "fleet_operations", "redis_components")]
    others = (_SCRAPY, *ours, *(() if installed else (_STDLIB,)))
    return not file.startswith(("<", *others))


if __name__ == "__main__":
    main()
