"""The dupefilter of scrapy-redis into ours: a set of texts, mostly 40 hex digits each, to what our dupefilter stores.

Set aside under a separate name first, since both packages use the same key. A batch is added to ours before it leaves the
set-aside key, and adding twice does no harm: so it may be interrupted at any time and started again. The algorithm of the
fingerprints is found by the requests that wait in the queue, which were put into it before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis

from redis_components import filters as filter_access
from redis_components.errors import ConfigError
from redis_components.filters import Filter

from .members import BothKeys, Progress, kind_of, scanned, set_aside

SAMPLE = 100
_is_hex = re.compile(rb"[0-9a-f]{40}").fullmatch


@dataclass(frozen=True, kw_only=True)
class FingerprintsFound:
    """The content of the dupefilter's keys before the import."""

    foreign: int  # members of a set that scrapy-redis has written
    aside: int  # those that an earlier run has set aside
    mixed: bool  # ours and theirs in one set

    @property
    def total(self) -> int:
        """Members to import, with some that are none of scrapy-redis where it is mixed."""
        return self.foreign + self.aside


NOTHING = FingerprintsFound(foreign=0, aside=0, mixed=False)


@dataclass(kw_only=True)
class FingerprintsReport:
    """The outcome of importing fingerprints."""

    found: int = 0
    imported: int = 0


def fingerprint_of(member: bytes) -> bytes:
    """Return the bytes that our dupefilter makes of the same text, where a project has its own `request_fingerprint`."""
    return bytes.fromhex(member.decode()) if _is_hex(member) else member


def inspect_fingerprints(client: redis.Redis, keys: BothKeys, ours: Filter) -> FingerprintsFound:
    """Return the fingerprints to import for `ours`. Raises ConfigError for a key that scrapy-redis cannot have written."""
    key, aside = keys.theirs.dupefilter, keys.theirs.foreign_fingerprints()
    held = kind_of(client, aside)
    if held not in ("none", "set"):
        raise ConfigError(f"{aside} is a {held}, and scrapy-redis keeps fingerprints in a set: remove it, or rename it")
    foreign, mixed = 0, False
    if kind_of(client, key) == "set":
        sample: Any = client.srandmember(key, SAMPLE)
        theirs = sum(bool(_is_hex(member)) for member in sample)
        may_be_ours = keys.shared_dupefilter and ours.options() is None
        mixed = may_be_ours and theirs < len(sample)
        foreign = client.scard(key) if theirs or not may_be_ours else 0
    return FingerprintsFound(foreign=foreign, aside=client.scard(aside), mixed=mixed)


def import_fingerprints(
    client: redis.Redis, keys: BothKeys, found: FingerprintsFound, ours: Filter, *, progress: Progress
) -> FingerprintsReport:
    """Move them into our dupefilter. Raises TrawlError while a Trawl crawler works there, ConfigError where another dupefilter
    is in its key.
    """
    report = FingerprintsReport(found=found.total)
    if found.foreign:
        _put_aside(client, keys, found)
    aside = keys.theirs.foreign_fingerprints()
    for members in scanned(client, aside, "set"):
        _store(client, keys.ours.dupefilter, ours, [ours.entry(fingerprint_of(member)) for member in members])
        client.srem(aside, *members)
        report.imported += len(members)
        progress(report.imported, report.found)
    return report


def _store(client: redis.Redis, key: str, ours: Filter, entries: Sequence[bytes]) -> None:
    if ours.options() is None:
        client.sadd(key, *entries)
    else:
        filter_access.seen(client, key, ours, entries)


def _put_aside(client: redis.Redis, keys: BothKeys, found: FingerprintsFound) -> None:
    key, aside, owners = keys.theirs.dupefilter, keys.theirs.foreign_fingerprints(), keys.ours.owners()
    if not found.mixed and not found.aside:
        set_aside(client, key, aside, owners=owners)
    for batch in scanned(client, key, "set"):
        if members := [member for member in batch if not found.mixed or _is_hex(member)]:  # none: all of the key
            set_aside(client, key, aside, owners=owners, members=members)
