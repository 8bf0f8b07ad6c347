"""Rehearsal of a version: the service's spider on the pages that were kept of its last crawl, once with the present version and
once with the new one, each in a process without network; then the items of both are compared.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import redis

from redis_components.errors import ConfigError
from workers.fleet.sizes import as_declared
from workers.process.options import CrawlerOptions
from workers.raw_pages.store import SUFFIX, raw_dir

from .deploy import find, run_apart
from .environments import as_deployed, prepare

PAGES, OUT = "REPLAY_PAGES", "REPLAY_OUT"
LONGEST_S = 1200.0
MOST_SHOWN = 10


class Replayed(msgspec.Struct, kw_only=True):
    """The items and the faults of a crawl on kept pages."""

    pages: int = 0
    missing: int = 0
    """Requests whose page was not kept."""
    items: list[tuple[str, Any]] = []
    """Each with the URL of its page."""
    errors: dict[str, int] = {}
    """Exceptions of callbacks."""
    ended: str = ""
    """The crash of the whole crawl; "": none."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """The comparison of two versions on the same pages."""

    before: Replayed
    after: Replayed

    def changed(self) -> dict[str, tuple[int, int]]:
        """Return the fields that differ in items of the same page and place: in how many, and how many of these have lost it."""
        others, lost = Counter[str](), Counter[str]()
        before, after = _by_page(self.before), _by_page(self.after)
        for url in before.keys() & after.keys():
            for old, new in zip(before[url], after[url], strict=False):
                if isinstance(old, dict) and isinstance(new, dict):
                    differing = [name for name in {*old, *new} if old.get(name) != new.get(name)]
                    others.update(differing)
                    lost.update(name for name in differing if new.get(name) in (None, "", [], {}))
        return {name: (number, lost[name]) for name, number in others.most_common()}

    def worse(self) -> Iterator[str]:
        """Yield a sentence for each fault of the new version that the present one has not."""
        before, after = self.before, self.after
        if after.ended and not before.ended:
            yield f"it ends: {after.ended}"
        for error, number in after.errors.items():
            if number > before.errors.get(error, 0):
                yield f"{number} pages raise {error} ({before.errors.get(error, 0)} before)"
        if len(after.items) < len(before.items):
            yield f"{len(after.items):,} items, {len(before.items):,} before"
        for name, (_, number) in self.changed().items():
            if number:
                yield f"{name}: {number:,} items have lost it"

    def lines(self) -> Iterator[str]:
        """Yield the comparison for people."""
        before, after = self.before, self.after
        missing = f", {after.missing:,} requests for pages that were not kept" if after.missing else ""
        yield f"rehearsed on {after.pages:,} kept pages{missing}: {len(before.items):,} items before, {len(after.items):,} after"
        for name, (number, lost) in list(self.changed().items())[:MOST_SHOWN]:
            yield f"  {name}: another value in {number:,} items, none in {lost:,} of them"


def _by_page(one: Replayed) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for url, item in one.items:
        found.setdefault(url, []).append(item)
    return found


def kept_pages(service: str) -> Path:
    """Return the folder of the pages that were kept last of a service, or of one of its jobs. Raises ConfigError."""
    folders = [raw_dir() / service, *raw_dir().glob(f"{service}.*")]
    newest = {folder: max((file.stat().st_mtime for file in folder.glob(f"*/*{SUFFIX}")), default=0.0) for folder in folders}
    found = max(newest, key=lambda folder: newest[folder])
    if not newest[found]:
        raise ConfigError(
            f"no page of {service} is kept in {raw_dir()}: set RAW_PAGES_KEEP_DAYS and KeepRawPages for it, and"
            " rehearse on a node that has crawled"
        )
    return found


def rehearse(client: redis.Redis, service: str, version: str) -> Rehearsal:
    """Run the present and a new version on the kept pages. Raises ConfigError, BuildFailed and `redis.RedisError`."""
    folder, new = kept_pages(service), find(client, service, version)
    options = CrawlerOptions(spider=service)
    present = as_deployed(client, options, install=True)
    after = as_declared(client, options, lambda _: (prepare(client, service, new), new.project))
    return Rehearsal(before=replay(present, folder), after=replay(after, folder))


def replay(options: CrawlerOptions, folder: Path) -> Replayed:
    """Crawl on kept pages in a separate process."""
    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "replayed.json"
        given = replace(options, settings={**options.settings, PAGES: str(folder), OUT: str(out)})
        _, output = run_apart("fleet_operations.deploy.replay", given, LONGEST_S, 10_000)
        if out.exists():
            return msgspec.json.decode(out.read_bytes(), type=Replayed)
    last = output.decode(errors="replace").strip().splitlines()[-1:] or ["it was ended"]
    return Replayed(ended=last[0][:500])
