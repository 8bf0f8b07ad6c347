"""The leases of this process that are not started: requests in a buffer, start tasks in a queue, and the holds of both."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from .hold_policy import UNKNOWN, Restraint
from .lease_buffer import Buffer
from .limits import KnownLimits
from .messages import Lease
from .outbox import Outbox
from .redis_time import RedisTime
from .reply import HeldNow, Reply
from .timed_leases import TimedLeases

logger = logging.getLogger(__name__)

FULL_S = 1.0
"""After so long a site is asked for again that had no place, also where none of its requests has ended meanwhile."""


class Stock:
    """Gives back, or sets aside, through the outbox what must not be started. `names` are those of a lease's request."""

    def __init__(self, outbox: Outbox, names: Callable[[bytes], Iterator[str]]) -> None:
        self.buffer = Buffer()
        self.tasks: deque[Lease] = deque()
        self.restraint = Restraint()
        self.timed = TimedLeases()
        self._redis_time = RedisTime()
        self.limits = KnownLimits()
        self._full: dict[str, float] = {}  # lane of which nothing can be started here -> until when that is believed
        self._outbox = outbox
        self._names = names

    def receive(self, reply: Reply, sent: float, now: float) -> bool:
        """Add requests that arrived, those of lanes each for its time; `sent`: when they were asked for. Return True if one may
        be started.
        """
        allowed = self._not_held(reply.leases)
        decided = self._redis_time.here(reply.now, sent, now) if reply.now else now  # each answer may be the quickest one
        if reply.paced:
            for lease in allowed:
                if lease.lane:
                    self.timed.add(decided, reply.paced[lease.id], lease)
            allowed = [lease for lease in allowed if not lease.lane]
        self.buffer.add(allowed)
        return bool(allowed) or self.timed.is_due(now)

    def take_timed(self, now: float) -> Lease | None:
        """Return the request of a lane that is to be sent now, or None; late ones are given back."""
        lease, late = self.timed.take(now)
        self._give_back(late)
        return lease

    def refuse(self, lease: Lease, now: float) -> None:
        """Give back a request of a lane whose site has no place here: nothing more of it is wanted for a while."""
        self._full[lease.lane] = now + FULL_S
        self._give_back([lease])

    def find_place(self) -> None:
        """Lease from all sites again, as one of them has a place."""
        self._full.clear()

    def full(self, now: float) -> list[str]:
        """Return the lanes of which nothing is wanted now."""
        return [lane for lane, until in self._full.items() if now < until]

    def receive_tasks(self, tasks: list[Lease]) -> None:
        """Start tasks arrived."""
        self.tasks.extend(tasks)
        if not self.restraint.feeding:
            self._release_tasks()

    def release_late(self, now: float) -> bool:
        """Give back late requests; return True if there was any."""
        late = self.timed.take_late(now)
        self._give_back(late)
        return bool(late)

    def closes(self, closing: Mapping[str, float], now: float) -> None:
        """Return the lanes with the seconds until their quiet hours begin."""
        for lane, seconds in closing.items():
            self.timed.close(lane, now + seconds)

    def release_closed(self, now: float) -> bool:
        """Give back requests of lanes whose quiet hours begin; return True if there are any."""
        closed = self.timed.take_closed(now)
        self._give_back(closed or ())
        return closed is not None

    def release_all(self) -> None:
        """Give back everything (edge d)."""
        self._give_back(self.buffer.drain())
        self._give_back(self.timed.drain())
        self._release_tasks()

    def forget_all(self) -> None:
        """Forget all leases."""
        self.buffer.drain()
        self.timed.drain()
        self.tasks.clear()
        self.restraint.version = UNKNOWN

    def keep_off(self, lane: str) -> None:
        """Start nothing of the site of `lane`, which asks to be left alone, until Redis allows it."""
        self.limits.add(lane)
        self._give_back(self.timed.drain())

    def learn_limits(self, fields: Mapping[bytes, bytes]) -> None:
        """Give back what is to be sent soon, to be leased by the new limits: they have changed, or a site asks to be
        left alone.
        """
        self.limits.learn(fields)
        self._give_back(self.timed.drain())

    def learn(self, held: HeldNow) -> None:
        """Apply changed holds: leases that were not started are given back, or set aside."""
        restraint, before = self.restraint, str(self.restraint.holds)
        restraint.learn(held)
        if str(restraint.holds) != before:
            logger.info("held now: %s", restraint.holds)
        self._outbox.park_only(restraint.holds.is_held)
        self._give_back(self.timed.drain())
        if restraint.paused:
            self._give_back(self.buffer.drain())
        elif restraint.holds.sites:
            self.buffer.retain(lambda lease: not self._parks(lease))

    def park(self, lease_id: str, names: Iterator[str], *, task: bool) -> bool:
        """Set a lease aside if its site is held; whether it is."""
        park = self.restraint.park(lease_id, names, task=task)
        if park is not None:
            self._outbox.entries.append(("unsent", lease_id, 0))
            self._outbox.entries.append(("parks", park, 0))
        return park is not None

    def _parks(self, lease: Lease) -> bool:
        return self.park(lease.id, self._names(lease.data), task=False)

    def _not_held(self, leases: list[Lease]) -> list[Lease]:
        if self.restraint.paused:
            self._give_back(leases)
            return []
        if not self.restraint.holds.sites:
            return leases
        return [lease for lease in leases if not self._parks(lease)]

    def _release_tasks(self) -> None:
        self._give_back(reversed(self.tasks))  # each goes to the head of its list: the first one last
        self.tasks.clear()

    def _give_back(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            if lease.lane:  # another one may be sent in its place
                self._outbox.entries.append(("unsent", lease.id, 0))
            self._outbox.entries.append(("releases", lease.id, 0))
