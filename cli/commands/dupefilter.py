"""`trawl dupefilter`: size and cost of a spider's dupefilter; remove single URLs from it."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import redis
import typer

from cli.access import running_client
from cli.names import check_spiders
from cli.views.options import AsJson
from cli.views.output import report
from redis_components.admin.health import FilterReport
from redis_components.admin.health import report as figures_of
from redis_components.admin.inspector import CrawlRecords
from redis_components.dupefilter import RFPDupeFilter, dupefilter_class
from redis_components.errors import ConfigError, did_you_mean
from redis_components.keys import CrawlKeys
from redis_components.scrapy_glue.engine import crawl_keys

Urls = Annotated[list[str] | None, typer.Option("--forget", metavar="URL", help="Remove this URL; may be repeated.")]


def dupefilter(
    spider: Annotated[str, typer.Argument(metavar="SPIDER", help="Name of the spider.")],
    urls: Urls = None,
    as_json: AsJson = False,
) -> int:
    """Show kind, size, memory and false positives of a spider's dupefilter, or remove URLs from it.

    A removed URL is crawled again when it is found or seeded again; running crawlers see it at once. The URL stands for a plain
    GET request, fingerprinted as in the spider's settings. A Bloom filter cannot remove URLs.

    **Examples:**

        trawl dupefilter forum_list
        trawl dupefilter forum_list --forget http://127.0.0.1:8000/thread/7 --json
    """
    with running_client(as_json) as client:
        check_spiders(client, [spider])
        if urls:
            outcomes = _forget(client, spider, urls)
            by_word = {word: [url for url, one in outcomes.items() if one == word] for word in ("forgotten", "unknown")}
            report(as_json, {"spider": spider, **by_word}, *(f"{word}: {one}" for one, word in outcomes.items()))
            return 0
        found = figures_of(client, _keys_of(client, spider))
    fields = {"spider": spider, **vars(found), "bytes_per_entry": found.bytes_per_entry}
    report(as_json, fields, _sentence(spider, found))
    return 0


def _sentence(spider: str, found: FilterReport) -> str:
    if not found.form:
        return f"{spider}: no dupefilter yet"
    memory = f"about {found.bytes:,} bytes in at most {found.keys:,} keys ({found.bytes_per_entry:.1f} for each entry)"
    errs = f", {found.false_positive_rate:.2g} of new requests count as seen" if found.false_positive_rate else ""
    return f"{spider}: {found.form}, {found.entries:,} entries, {memory}{errs}"


def _keys_of(client: redis.Redis, spider: str) -> CrawlKeys:
    """Return the keys that a crawler of the fleet recorded, else those of the spider's settings in this project, else the default
    ones.
    """
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings, inside_project

    if record := CrawlRecords(client).of(spider):
        return record.keys
    if not inside_project():
        return CrawlKeys.for_spider(spider)
    settings = get_project_settings()
    with suppress(KeyError):  # another project's spider
        get_spider_loader(settings).load(spider).update_settings(settings)
    return crawl_keys(settings, spider)


def _forget(client: redis.Redis, spider: str, urls: list[str]) -> dict[str, str]:
    """Return the outcome for each URL: forgotten, or unknown."""
    from scrapy import Request

    df = _filter_of(spider, client)
    outcomes = {}
    for url in dict.fromkeys(urls):
        try:
            request = Request(url)
        except ValueError as exc:
            raise ConfigError(f"--forget {url}: {exc}; write the whole URL") from exc
        outcomes[url] = "forgotten" if df.forget(request) else "unknown"
    return outcomes


def _filter_of(spider: str, client: redis.Redis) -> RFPDupeFilter:
    """Return the spider's dupefilter, as its crawlers make it by the project's settings. Raises ConfigError."""
    from scrapy.crawler import Crawler
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.misc import build_from_crawler, load_object
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    loader = get_spider_loader(settings)
    try:
        crawler = Crawler(loader.load(spider), settings)
    except KeyError:
        known = ", ".join(sorted(loader.list())) or "none; is this the folder of scrapy.cfg?"
        raise ConfigError(f"unknown spider {spider!r}; there are: {known}{did_you_mean(spider, loader.list())}") from None
    cls: Any = dupefilter_class(crawler.settings)
    if not (isinstance(cls, type) and issubclass(cls, RFPDupeFilter)):
        name = crawler.settings.get("DUPEFILTER_CLASS")
        raise ConfigError(f"DUPEFILTER_CLASS = {name!r} is not Trawl's dupefilter: remove entries with that class's own tools")
    df = cls(client, _keys_of(client, spider).fingerprints())
    df.filter = cls.filter_from_settings(crawler.settings)
    df.use_fingerprinter(build_from_crawler(load_object(crawler.settings["REQUEST_FINGERPRINTER_CLASS"]), crawler))
    return df
