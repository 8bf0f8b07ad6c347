"""The spiders of a public Scrapy project, and what plain Scrapy makes of a stub of the internet in one process."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

LEAST, HALF = 0.2, 0.5
"""The verdict's bounds of coverage, and of what is fewer."""
LIST = """
import importlib, inspect, json, pkgutil, re, sys
from scrapy.utils.project import get_project_settings
from scrapy.utils.spider import iter_spider_classes
settings, found = get_project_settings(), {}
NAMED = re.compile(r'\\b(?:feature|location|store|shop|poi)((?:\\["[\\w-]+"\\])+|\\.pop\\("[\\w-]+"\\))')
def named(cls):
    chains = [re.findall(r'"([\\w-]+)"', chain) for chain in NAMED.findall(inspect.getsource(inspect.getmodule(cls)))]
    return sorted({tuple(chain) for chain in chains if len(chain) < 3})
def entry(cls):
    start, bases = cls.start.__qualname__, {base.__name__ for base in cls.__mro__}
    form, urls, rules, key = "", getattr(cls, "start_urls", None), [], []
    if start == "SitemapSpider.start" and "StructuredDataSpider" in bases:
        form, urls, rules = "sitemap", cls.sitemap_urls, [rule for rule, call in cls.sitemap_rules if call == "parse_sd"]
    elif start == "JSONBlobSpider.start" and cls.extract_json.__qualname__ == "JSONBlobSpider.extract_json":
        form, key = "blob", cls.locations_key or []
    elif start == "Spider.start" and cls.parse.__qualname__ == "StructuredDataSpider.parse" and "CrawlSpider" not in bases:
        form = "page"
    if cls.custom_settings or not (form or start in ("Spider.start", "SitemapSpider.start", "JSONBlobSpider.start")):
        return None
    if urls and all(isinstance(one, str) for one in [*urls, *rules]):
        key, names = [key] if isinstance(key, str) else list(key), named(cls) if form == "blob" else []
        return {"module": cls.__module__, "urls": list(urls), "rules": rules, "form": form, "key": key, "names": names}
for name in settings.getlist("SPIDER_MODULES"):
    for one in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        try:
            found |= {cls.name: entry(cls) for cls in iter_spider_classes(importlib.import_module(one.name))}
        except BaseException:
            continue
json.dump({name: one for name, one in found.items() if one}, open(sys.argv[1], "w"))
"""
PLAIN = """
import json, sys
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings
settings, (given, out, more) = get_project_settings(), sys.argv[1:]
settings.setdict(json.loads(more), priority="cmdline")
names, results = json.load(open(given)), {}
settings.set("SPIDER_MODULES", [one["module"] for one in names.values()], priority="cmdline")
settings.set("FEEDS", {out + "/%(name)s.jsonl": {"format": "jsonlines", "overwrite": True}}, priority="cmdline")
process = AsyncCrawlerProcess(settings)
async def all_of_them():
    for name in names:
        crawler, raised = process.create_crawler(name), []
        crawler.signals.connect(lambda: raised.append(1), signals.spider_error, weak=False)
        crawler.signals.connect(lambda: raised.append(1), signals.item_error, weak=False)
        try:
            await process.crawl(crawler)
        except Exception as error:
            raised.append(error); print(name, repr(error), file=sys.stderr)
        stats = crawler.stats.get_stats() if crawler.stats else {}
        pages = stats.get("response_received_count", 0) - stats.get("robotstxt/response_count", 0)
        results[name] = {"raised": len(raised), "pages": pages}
    json.dump(results, open(out + "/results.json", "w"))
from twisted.internet import reactor
from scrapy.utils.defer import deferred_from_coro
reactor.callWhenRunning(lambda: deferred_from_coro(all_of_them()).addBoth(lambda _: reactor.stop()))
process.start(stop_after_crawl=False)
"""


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The end of a spider's crawl by plain Scrapy."""

    raised: int
    pages: int
    rows: list[str] = field(default_factory=list)

    def coverage(self) -> dict[str, float]:
        """Return the part of the rows that has each field."""
        found = Counter(name for row in self.rows for name, value in json.loads(row).items() if value not in (None, "", [], {}))
        return {name: number / len(self.rows) for name, number in found.items()}

    def verdict(self, before: Plain | None = None) -> str:
        """Return the right verdict, where the spider was fine the night before or there was none."""
        if self.raised and (not self.rows or 2 * self.raised > self.pages):
            return "crashed"
        if not self.rows:
            return "no_items"
        if before is not None:
            now, then = self.coverage(), before.coverage()
            if any(part >= LEAST and now.get(name, 0) < HALF * part for name, part in then.items()):
                return "field_gone"
            if len(self.rows) < HALF * len(before.rows):
                return "fewer_items"
        return "fine"


def rows_of(file: Path) -> list[str]:
    """Return the rows of a file of JSON lines, each with its fields in order."""
    lines = file.read_text().splitlines() if file.is_file() else []
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines if line)
