"""Bounded history of the fleet: a sample of its figures for each minute of a day and each hour of 30 days.

A beat round takes a sample; the first of a minute is kept. Counts are cumulative, and rates are computed from two of them, so a
missing sample loses no count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import msgspec
import redis

from redis_components.server.untrusted_values import Count, Epoch, decoded, hash_at, readable, whole
from workers.state.keys import FleetKeys

from .model import Overview, SiteSample

MOST_SITES = 200
FARTHEST = 2**40  # number of a minute
LEAST_S = 15.0


class Resolution(Enum):
    """Interval of the samples of a history (seconds), and how many are kept."""

    MINUTE = (60, 1440)
    HOUR = (3600, 720)

    @property
    def step_s(self) -> int:
        return self.value[0]

    @property
    def kept(self) -> int:
        return self.value[1]


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fleet at one moment. `stored` and `pages` are cumulative."""

    at: Epoch
    stored: Count = 0  # items whose time of publication is known
    pages: Count = 0
    waiting: Count = 0  # requests and start tasks
    items: Count = 0  # that wait for their consumer
    dead: Count = 0
    alive: Count = 0  # crawlers
    sites: dict[str, SiteSample] = {}


@dataclass(frozen=True, kw_only=True)
class History:
    """Samples, oldest first."""

    day: tuple[Sample, ...] = ()  # by the minute
    month: tuple[Sample, ...] = ()  # by the hour


class Samples:
    """The history of one fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._keys = client, FleetKeys()

    def add(self, sample: Sample) -> None:
        """Store the sample, if it is the first of its minute or hour, and drop old ones."""
        for one in Resolution:
            key, number = self._keys.samples(one.name.lower()), int(sample.at) // one.step_s
            if not self._client.hsetnx(key, str(number), msgspec.json.encode(sample)):
                continue
            fields = self._client.hkeys(key)  # as many as are kept, and one
            if old := [field for field in fields if not _is_kept(field, number, one.kept)]:
                self._client.hdel(key, *old)

    def read(self) -> History:
        """Return the stored samples, without unreadable ones."""
        return History(day=self._of(Resolution.MINUTE), month=self._of(Resolution.HOUR))

    def _of(self, one: Resolution) -> tuple[Sample, ...]:
        found = readable(hash_at(self._client, self._keys.samples(one.name.lower())), sample_of)
        return tuple(sorted(found.values(), key=lambda sample: sample.at))[-one.kept :]


def sample_of(name: str, raw: bytes) -> Sample:
    """Parse a field of the history. Raises ValueError."""
    whole(name, 0, FARTHEST)
    return decoded(raw, Sample)


def sample(view: Overview) -> Sample:
    """Build the sample of an overview."""
    alive = [one for one in view.crawlers if one.alive(view.now)]
    return Sample(
        at=view.now,
        stored=view.sites.stored,
        pages=sum(one.pages for one in view.services),
        waiting=sum(one.crawl.ready + one.crawl.start_tasks for one in view.services),
        items=sum(one.items_waiting for one in view.services),
        dead=sum(one.crawl.dead for one in view.services),
        alive=len(alive),
        sites=dict(list(view.sites.samples(view.now).items())[:MOST_SITES]),
    )


def until_now(history: History, view: Overview) -> History:
    """Return the history with the present at its end: what is read now stands in the charts of the first hour, too. Of a few
    seconds no rate is computed.
    """
    if view.failure is not None or any(view.now - one.at < LEAST_S for one in history.day[-1:]):
        return history if not history.day else History(day=history.day, month=(*history.month, history.day[-1]))
    now = sample(view)
    return History(day=(*history.day, now), month=(*history.month, now))


def rates(counts: Iterable[tuple[float, float | None]], per_s: float) -> list[tuple[float, float | None]]:
    """Return the growth of cumulative counts in `per_s` seconds, at the time of the later one; None after a restart from 0."""
    found: list[tuple[float, float | None]] = []
    before: tuple[float, float] | None = None
    for at, count in counts:
        if count is None:
            continue
        if before is not None and at > before[0]:
            grown = count - before[1]
            found.append((at, grown * per_s / (at - before[0]) if grown >= 0 else None))
        before = at, count
    return found


def _is_kept(field: bytes | str, newest: int, kept: int) -> bool:
    try:
        return newest - kept < whole(field, 0, FARTHEST) <= newest + 1  # another beat's clock may be a minute ahead
    except ValueError:
        return False
