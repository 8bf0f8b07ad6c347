"""Makes the files of members of a run, as Scrapy's feed exports would: `python -m fleet_operations.consumers.member_files` reads
a FilesOrder; a member whose files are whole has a note, `done.json`.

It runs the project's code: settings, the member's module, exporters, storages. That has the rights of its crawlers, and a death
of this process costs a try.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec
from itemadapter import is_item
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FileFeedStorage
from scrapy.spiderloader import SpiderLoader
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.project import get_project_settings
from scrapy.utils.reactor import install_reactor

from redis_components.server.variables import load_env_file

from .files import sync_folder
from .parts import Place, digest_of, place_of, put_text
from .run_files import FEEDS_ONLY, Feed, FilesOrder, MemberOrder, Written, folder_of

if TYPE_CHECKING:
    from scrapy.settings import Settings

logger = logging.getLogger(__name__)

_ENDINGS = {"jsonlines": "jsonl", "jl": "jsonl"}
_PARQUET = "fleet_operations.consumers.parquet_files.ParquetExporter"


class Rows:
    """The items of one member, each once where items have a key."""

    def __init__(self, place: Place, folder: str, key: str) -> None:
        self._place, self._folder, self._key = place, folder, key
        self.count = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield the class of each item, and the item."""
        seen: set[bytes] = set()
        self.count = 0
        for name in self._place.names(self._folder):
            for line in self._place.lines(name):
                row = msgspec.json.decode(line)
                if self._is_new(row["item"], seen):
                    self.count += 1
                    yield row["class"], row["item"]

    def _is_new(self, item: Any, seen: set[bytes]) -> bool:
        value = item.get(self._key) if self._key and isinstance(item, dict) else None
        if value is None:
            return True
        digest = blake2b(msgspec.json.encode(value), digest_size=16).digest()
        is_new = digest not in seen
        seen.add(digest)
        return is_new


class WholeFile(FileFeedStorage):
    """A feed in a file, which has its name when it is whole; it takes the place of one from before."""

    written: list[Path] = []  # noqa: RUF012 - of the member at work

    def open(self, spider: Spider) -> IO[bytes]:  # noqa: ARG002
        """Return a file next to it."""
        path = Path(self.path).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        return self._part.open("wb")

    def store(self, file: IO[bytes]) -> None:
        """Give it the name."""
        path = Path(self.path).absolute()
        file.flush()
        os.fsync(file.fileno())
        file.close()
        self._part.replace(path)
        sync_folder(path.parent)
        self.written.append(path)


class MemberFiles:
    """Makes the files of one order."""

    def __init__(self, order: FilesOrder, settings: Settings) -> None:
        self._run, self._settings = order.run, settings
        self._folder, self._place = folder_of(order.run), place_of(order.run.files)

    async def make(self, member: MemberOrder) -> None:
        """Write the files of a member, then the note that they are whole. Raises any error of the project's code."""
        parts = f"{self._folder}/.parts/{member.spider}"
        rows = Rows(self._place, f"{parts}/items", self._run.key)
        error = "its exporters failed: these are its items as JSON Lines" if member.plain else ""
        feeds = [self._plain(member, rows)] if member.plain else await self._exported(member, rows)
        done = Written(spider=member.spider, rows=rows.count, files=feeds, error=error)
        put_text(self._place, f"{parts}/done.json", msgspec.json.encode(done))
        self._place.remove(f"{parts}/items")

    def _plain(self, member: MemberOrder, rows: Rows) -> Feed:
        with tempfile.TemporaryFile() as file:
            file.writelines(msgspec.json.encode(item) + b"\n" for _, item in rows)
            file.seek(0)
            return self._put(f"{member.spider}.jsonl", cast("Any", file))

    def _put(self, name: str, file: Any) -> Feed:
        size, digest = digest_of(file)
        self._place.put(f"{self._folder}/{name}", file)
        return Feed(file=name, bytes=size, sha256=digest)

    async def _exported(self, member: MemberOrder, rows: Rows) -> list[Feed]:
        name = f"{member.spider}.{_ENDINGS.get(self._run.format, self._run.format)}"
        WholeFile.written.clear()
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / name if self._run.format != FEEDS_ONLY else None
            crawler = self._crawler(member)
            self._name_feeds(crawler.settings, own, rows)
            spider = crawler.spider = crawler.spidercls.from_crawler(crawler, **self._run.arguments)
            exporter = FeedExporter(crawler)
            exporter.open_spider(spider)
            for kind, item in rows:
                exporter.item_scraped(_as_item(kind, item), spider)
            await exporter.close_spider(spider)
            if failed := [name for name in crawler.stats.get_stats() if name.startswith("feedexport/failed_count/")]:
                raise OSError(f"{failed[0].rpartition('/')[2]} could not store a feed: see the log of the node")
            feeds = [_feed(path) for path in WholeFile.written if path != own]
            if own is not None:
                with own.open("rb") as file:
                    feeds.insert(0, self._put(name, file))
            return feeds

    def _crawler(self, member: MemberOrder) -> Crawler:
        settings = self._settings.copy()
        settings.setdict(self._run.settings, priority="cmdline")
        if member.module:
            settings.set("SPIDER_MODULES", member.module, priority="cmdline")
        crawler = Crawler(SpiderLoader.from_settings(settings).load(member.spider), settings)
        crawler.stats = MemoryStatsCollector(crawler)
        return crawler

    def _name_feeds(self, settings: Settings, own: Path | None, rows: Rows) -> None:
        feeds = {uri: {**(options or {}), "overwrite": True} for uri, options in settings.getdict("FEEDS").items()}
        if own is not None:
            mine: dict[str, Any] = {"format": self._run.format, "overwrite": True, "store_empty": True}
            if self._run.format == "csv" and not settings.getlist("FEED_EXPORT_FIELDS"):
                mine["fields"] = list(dict.fromkeys(name for _, item in rows if isinstance(item, dict) for name in item))
            feeds[str(own).replace("%", "%%")] = mine
        storages, exporters = settings.getwithbase("FEED_STORAGES"), dict(settings.getwithbase("FEED_EXPORTERS"))
        if "parquet" in (one.get("format") for one in feeds.values()):  # only then: the feed exports load each of them
            exporters.setdefault("parquet", _PARQUET)
        scrapys = "scrapy.extensions.feedexport.FileFeedStorage"
        ours = {scheme: WholeFile for scheme in ("", "file") if storages.get(scheme) in (scrapys, FileFeedStorage)}
        changed = {
            "FEEDS": feeds,
            "FEED_STORAGES": {**settings.getdict("FEED_STORAGES"), **ours},
            "FEED_EXPORTERS": exporters,
        }
        settings.setdict(changed, priority="cmdline")


def _as_item(kind: str, item: Any) -> Any:
    """Return the item in its class, where the spider's module has it: filters and serializers of fields go by it."""
    module, _, name = kind.rpartition(":")
    cls = getattr(sys.modules.get(module), name, None) if module else None
    try:
        made = cls(**item) if isinstance(cls, type) and isinstance(item, dict) else item
    except (TypeError, ValueError, KeyError):  # fields that JSON has changed, or that its class computes
        return item
    return made if is_item(made) else item


def _feed(path: Path) -> Feed:
    with path.open("rb") as file:
        size, digest = digest_of(file)
    return Feed(file=str(path), bytes=size, sha256=digest)


async def make_all(order: FilesOrder, settings: Settings) -> None:
    """Make the files of all members of an order; an error of one costs no other."""
    files = MemberFiles(order, settings)
    for member in order.members:
        try:
            await files.make(member)
        except Exception:  # of the project's code
            logger.exception("run %s: the files of %s", order.run.id, member.spider)


def main() -> None:
    """Read the order and follow it."""
    from twisted.internet import task

    load_env_file()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=FilesOrder)
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    task.react(lambda _: deferred_from_coro(make_all(order, get_project_settings())))


if __name__ == "__main__":
    main()
