"""`trawl dupefilter`: what a spider's dupefilter holds and costs; remove single URLs from it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import redis

    from redis_components.dupefilter import RFPDupeFilter
    from redis_components.filter_report import FilterReport
    from redis_components.keys import CrawlKeys

Urls = Annotated[list[str] | None, typer.Option("--forget", metavar="URL", help="Remove this URL; may be repeated.")]


def dupefilter(
    spider: Annotated[str, typer.Argument(metavar="SPIDER", help="Name of the spider.")],
    urls: Urls = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Show kind, size, memory and false positives of a spider's dupefilter, or remove URLs from it.

    A URL that is removed is crawled again when it is found or seeded again; running crawlers learn of it at once. It stands for
    a plain GET request, by the fingerprints of the spider's settings. A Bloom filter cannot remove anything.

    **Examples:**

        trawl dupefilter forum_list
        trawl dupefilter forum_list --forget http://127.0.0.1:8000/thread/7 --json
    """
    from .output import print_json
    from .redis_access import redis_client, running_url
    from .status import NOTHING

    url = running_url()
    if url is None:
        print_json({"running": False}) if as_json else print(NOTHING)
        return 0
    with redis_client(url) as client:
        if urls:
            outcomes = _forget(client, spider, urls)
            if as_json:
                words = ("forgotten", "unknown")
                print_json({"spider": spider, **{word: [url for url, one in outcomes.items() if one == word] for word in words}})
            else:
                print("\n".join(f"{word}: {one}" for one, word in outcomes.items()))
            return 0
        from redis_components.filter_report import report

        found = report(client, _keys_of(spider))
    print_json(_json(spider, found)) if as_json else print(_sentence(spider, found))
    return 0


def _json(spider: str, found: FilterReport) -> dict[str, Any]:
    figures = {
        name: getattr(found, name) for name in ("form", "entries", "keys", "bytes", "bytes_per_entry", "false_positive_rate")
    }
    return {"spider": spider, **figures}


def _sentence(spider: str, found: FilterReport) -> str:
    if not found.form:
        return f"{spider}: no dupefilter yet"
    memory = f"about {found.bytes:,} bytes in at most {found.keys:,} keys ({found.bytes_per_entry:.1f} for each entry)"
    errs = f", {found.false_positive_rate:.2g} of new requests count as seen" if found.false_positive_rate else ""
    return f"{spider}: {found.form}, {found.entries:,} entries, {memory}{errs}"


def _keys_of(spider: str) -> CrawlKeys:
    """By the project's settings and the spider's own, where this is run in a project; else by the default patterns."""
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings, inside_project

    from redis_components.crawl_config import crawl_keys
    from redis_components.keys import CrawlKeys

    if not inside_project():
        return CrawlKeys.for_spider(spider)
    settings = get_project_settings()
    with suppress(KeyError):  # another project's spider
        get_spider_loader(settings).load(spider).update_settings(settings)
    return crawl_keys(settings, spider)


def _forget(client: redis.Redis, spider: str, urls: list[str]) -> dict[str, str]:
    """What became of each URL: forgotten, or unknown."""
    from scrapy import Request

    from redis_components.errors import ConfigError

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
    """The spider's dupefilter, as its crawlers make it by the project's settings. Raises ConfigError."""
    from scrapy.crawler import Crawler
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.misc import build_from_crawler, load_object
    from scrapy.utils.project import get_project_settings

    from redis_components.dupefilter import RFPDupeFilter, dupefilter_class
    from redis_components.errors import ConfigError

    settings = get_project_settings()
    loader = get_spider_loader(settings)
    try:
        crawler = Crawler(loader.load(spider), settings)
    except KeyError:
        known = ", ".join(sorted(loader.list())) or "none; is this the folder of scrapy.cfg?"
        raise ConfigError(f"unknown spider {spider!r}; there are: {known}") from None
    cls: Any = dupefilter_class(crawler.settings)
    if not (isinstance(cls, type) and issubclass(cls, RFPDupeFilter)):
        name = crawler.settings.get("DUPEFILTER_CLASS")
        raise ConfigError(f"DUPEFILTER_CLASS = {name!r} keeps its entries in a way of its own: remove them by its own means")
    df = cls(client, _keys_of(spider).fingerprints())
    df.filter = cls.filter_from_settings(crawler.settings)
    df.use_fingerprinter(build_from_crawler(load_object(crawler.settings["REQUEST_FINGERPRINTER_CLASS"]), crawler))
    return df
