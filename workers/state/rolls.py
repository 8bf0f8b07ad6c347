"""The roll under way: crawlers that are replaced by fresh processes, one after the other; kept in Redis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import redis

from redis_components.server.untrusted_values import Amount, Count, Epoch, JsonRecord, RecordStore
from workers.state.keys import FleetKeys

from .records import CrawlerRecord, slot_name

_FIELD = "roll"


TRIED_PAGES = 20  # of a new version, after which it is compared
TRIED_ITEMS = 10  # which the version before had in as many pages
RAISED = 5


@dataclass(frozen=True, kw_only=True)
class Work:
    """Figures of the crawlers of one version."""

    answered: Count = 0
    raised: Count = 0
    items: Count = 0
    pages_per_s: Amount = 0.0

    @classmethod
    def of(cls, records: Iterable[CrawlerRecord]) -> Work:
        """Return the sums over crawlers since the start of each, without those of 49295b45, which count items and no pages."""
        known = [one for one in records if one.answered or not one.items]
        sums = {name: sum(getattr(one, name) for one in known) for name in ("answered", "raised", "items", "pages_per_s")}
        return cls(**sums)

    def is_enough(self, before: Work) -> bool:
        """Return True if a version with this work can be compared with the one before."""
        return self.answered >= TRIED_PAGES and (not before.items or self._expected(before) >= TRIED_ITEMS)

    def worse_than(self, before: Work) -> str | None:
        """Return why a version with this work is worse than the one before: its callbacks raise, or its items have stopped."""
        raised_before = before.raised / max(1, before.answered)
        if self.raised >= RAISED and self.raised > self.answered * (0.25 + 2 * raised_before):
            return f"callbacks raised {self.raised} times on {self.answered} pages (before: {before.raised} on {before.answered})"
        if self.is_enough(before) and self.items < self._expected(before) / TRIED_PAGES:
            return f"{self.items} items from {self.answered} pages (before: {before.items} from {before.answered})"
        return None

    def _expected(self, before: Work) -> float:
        return self.answered * before.items / max(1, before.answered)


class RollState(StrEnum):
    """The progress of a roll."""

    ROLLING = "rolling"  # `reconcile_fleet` goes on with it
    DONE = "done"  # every crawler was replaced, or is not wanted any more
    FAILED = "failed"  # it stopped without a command, with its reason; crawlers that were not replaced go on as they are
    ABORTED = "aborted"  # an operator stopped it


@dataclass(frozen=True, kw_only=True)
class RollStep:
    """A crawler that a roll has to replace, as it was when the roll began."""

    spider: str
    number: Count
    token: Count  # fencing token of its supervisor
    pid: Count
    restarts: Count  # processes before it

    @property
    def name(self) -> str:
        """`forum_detail/2`."""
        return slot_name(self.spider, self.number)


@dataclass(frozen=True, kw_only=True)
class Roll(JsonRecord):
    """One roll from its beginning to its end. Times are Redis's, in epoch seconds."""

    MOST = 1024 * 1024  # it names every crawler of the fleet

    id: str  # the reason of its orders: a supervisor obeys each once
    services: tuple[str, ...]
    state: RollState = RollState.ROLLING
    waiting: tuple[RollStep, ...] = ()  # not begun
    current: RollStep | None = None  # ordered to restart, or awaited
    replaced: tuple[RollStep, ...] = ()
    left_out: tuple[str, ...] = ()  # slots that are not wanted any more
    started_at: Epoch = 0.0
    step_at: Epoch = 0.0  # since when the present step, or the wait before it, is under way
    healthy_at: Epoch | None = None  # since when the present crawler's successor is well
    seen_at: Epoch = 0.0  # when it was last looked at
    reason: str | None = None  # why it ended, or what it waits for
    before: Work | None = None  # of the version that is replaced, with which the new one is compared
    worse: bool = False  # it failed because of this comparison

    @property
    def total(self) -> int:
        """Crawlers that it replaces, has replaced or has left out."""
        return len(self.waiting) + len(self.replaced) + len(self.left_out) + (self.current is not None)

    def sentence(self) -> str:
        """Return the progress in one line: `rolling: 3 of 8 replaced, replaces forum_detail/2`."""
        done = f"{self.state}: {len(self.replaced)} of {self.total} replaced"
        left_out = f", {len(self.left_out)} not wanted any more" if self.left_out else ""
        return f"{done}{left_out}{f', {self.reason}' if self.reason else ''}"


class RollNote(RecordStore[Roll]):
    """The record of the fleet's roll: one at a time. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, FleetKeys().roll(), Roll)

    def read(self) -> Roll | None:
        """Return the present roll, or the last one; None when there was none that this version can read."""
        return self.get(_FIELD)

    def write(self, roll: Roll) -> bool:
        """Put the roll in the place of the one that was read; False, and change nothing, if it has changed meanwhile."""
        return self.put(_FIELD, roll)
