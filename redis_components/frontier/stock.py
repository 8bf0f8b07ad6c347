"""The requests that are leased to this process and not started yet, in the order of the queue that they come from; of sites with
limits, each at its time, by Redis's clock.
"""

from __future__ import annotations

import heapq
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from redis_components.politeness.limits import KnownLimits

from .holds import UNKNOWN, HoldPolicy
from .messages import HeldNow, Lease, Reply, SendSlot
from .outbox import Outbox


class RedisTime:
    """The difference of the two clocks: by the answer that took the shortest way back, within what the present exchange proves.

    The difference lies between the moment at which an exchange was sent and the one at which its answer was read (NTP has the
    same bounds). A busy event loop reads late, so the smallest difference seen counts; a Redis whose clock is set, or another
    Redis, shows as a difference that the present exchange rules out.
    """

    def __init__(self) -> None:
        self._apart: float | None = None

    def here(self, redis_ms: int, sent: float, received: float) -> float:
        """Return the time of this process's clock (s) at which Redis's showed `redis_ms`, in an exchange between the
        two times.
        """
        redis_s = redis_ms / 1000
        least, most = sent - redis_s, received - redis_s
        self._apart = most if self._apart is None else min(max(self._apart, least), most)
        return redis_s + self._apart


class SharedClock:
    """The time of day by Redis's clock, as far as exchanges prove that this machine's is wrong: what several machines have read
    is put in order by one clock. Where the two may agree, this machine's counts.
    """

    def __init__(self) -> None:
        self._ahead = 0.0

    def learn(self, redis_ms: int, took_s: float) -> None:
        """Learn that Redis's clock showed `redis_ms` (0: not given) in an exchange of the last `took_s` seconds."""
        if redis_ms:
            most = time.time() - redis_ms / 1000
            self._ahead = min(max(self._ahead, most - took_s), most)

    def time(self) -> float:
        """Return the seconds since the epoch, by Redis's clock."""
        return time.time() - self._ahead


shared_clock = SharedClock()
"""Of this process: all its crawls use one Redis."""


class TimedLeases:
    """In the order of their times (s of the clock)."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, Lease, float]] = []
        """Time, lease, time from which it is too late; open to the frontier, which looks for each page whether there is any."""
        self.resting: dict[str, float] = {}
        """Lane -> time until which this process sends nothing of it."""
        self._closing: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, now: float, turn: SendSlot, lease: Lease) -> None:
        """Add a lease, to be sent at its turn, counted from `now`, the time at which Redis decided."""
        at = now + (turn.wait_s or 0.0)
        heapq.heappush(self.heap, (at, lease, at + turn.late_s))

    def close(self, lane: str, at: float) -> None:
        """Send nothing of a lane from that time on, at which its quiet hours begin."""
        self._closing[lane] = at

    def take_closed(self, now: float) -> list[Lease] | None:
        """Remove and return those of lanes whose quiet hours have begun, once for each; None where none have."""
        closed = {lane for lane, at in self._closing.items() if at <= now}
        if not closed:
            return None
        for lane in closed:
            del self._closing[lane]
        return self._remove(lambda entry: entry[1].lane in closed)

    def next_change(self, now: float) -> float | None:
        """Return the time when the next one may be sent, or one is too late, or quiet hours begin, or a rest ends; None where
        there is no such time.
        """
        times = (at if at > now else until for at, _, until in self.heap)
        soonest = min((time for time in times if time > now and time < math.inf), default=None)
        closing = min(self._closing.values(), default=None)
        rested = min(self.resting.values(), default=None)
        return min((time for time in (soonest, closing, rested) if time is not None), default=None)

    def end_rests(self, now: float) -> bool:
        """Forget the rests that are over; return True if there is any."""
        before = len(self.resting)
        self.resting = {lane: until for lane, until in self.resting.items() if until > now}
        return len(self.resting) < before

    def take_lane(self, lane: str) -> list[Lease]:
        """Remove and return those of a lane."""
        return self._remove(lambda entry: entry[1].lane == lane)

    def is_due(self, now: float) -> bool:
        """Return True if a request may be sent now."""
        return bool(self.heap) and self.heap[0][0] <= now

    def take(self, now: float) -> tuple[Lease | None, list[Lease]]:
        """Return the next request that may be sent now, or None; and those before it that are too late."""
        late = self.take_late(now)
        if self.heap and self.heap[0][0] <= now:
            _, lease, until = heapq.heappop(self.heap)
            return lease._replace(until=until), late
        return None, late

    def take_late(self, now: float) -> list[Lease]:
        """Remove and return those that are too late."""
        return self._remove(lambda entry: entry[2] <= now)

    def _remove(self, goes: Callable[[tuple[float, Lease, float]], bool]) -> list[Lease]:
        gone = [entry[1] for entry in self.heap if goes(entry)]
        if gone:
            self.heap = [entry for entry in self.heap if not goes(entry)]
            heapq.heapify(self.heap)
        return gone

    def drain(self) -> list[Lease]:
        """Remove and return all."""
        leases, self.heap = [entry[1] for entry in self.heap], []
        return leases

    @property
    def ids(self) -> list[str]:
        """Of all that wait."""
        return [lease.id for _, lease, _ in self.heap]


class Buffer:
    """Sorted as READY requests are, by score and then by order, so a later lease that comes first is started first.

    Leases that must wait for a place of their site (`defer`) are aside, and hold back no others: they count neither as the next
    one nor in the length.
    """

    def __init__(self) -> None:
        self.leases: list[Lease] = []  # the next one is the last; open to the frontier, which asks for its length for each page
        self.deferred = 0
        """Leases that are aside."""
        self.aside: dict[str, list[Lease]] = {}  # heaps, by site; open to the frontier, which asks for their lengths
        self._mixed = False  # a later lease may have been started before one that waits
        self._newest = (0, 0)  # of the leases started while it was mixed

    def __len__(self) -> int:
        return len(self.leases)

    @property
    def best(self) -> float:
        """Score of the next request. Raises IndexError when there is none."""
        return self.leases[-1].score

    def add(self, leases: list[Lease]) -> None:
        """Sort the leases of one exchange, in the queue's order, into the waiting ones."""
        if not leases:
            return
        if self.leases and leases[0] < self.leases[0]:
            self._mixed = True
        self.leases.extend(leases)
        self.leases.sort(reverse=True)

    def take(self) -> Lease | None:
        """Return the next request to start, or None."""
        if not self.leases:
            self._mixed = False
            return None
        lease = self.leases.pop()
        if self._mixed:
            self._newest = max(self._newest, _made(lease))
        return lease

    def defer(self, lease: Lease, site: str) -> None:
        """Put what `take` gave aside, until its site has a place for it."""
        heapq.heappush(self.aside.setdefault(site, []), lease)
        self.deferred += 1

    def recall(self, site: str) -> bool:
        """Put the next deferred request of `site` among the others again, as a place is free. False: there is none."""
        heap = self.aside.get(site)
        if not heap:
            return False
        lease = heapq.heappop(heap)
        if not heap:
            del self.aside[site]
        self.deferred -= 1
        self.add([lease])
        return True

    def retain(self, wanted: Callable[[Lease], bool]) -> None:
        """Remove those that are not `wanted`."""
        self.leases = [lease for lease in self.leases if wanted(lease)]
        self.aside = {site: left for site, heap in self.aside.items() if (left := [one for one in heap if wanted(one)])}
        for heap in self.aside.values():
            heapq.heapify(heap)
        self.deferred = sum(map(len, self.aside.values()))

    def overtaken(self) -> list[str]:
        """Return the ids of leases that wait although a later one was started, or may be: a death of this process is not theirs
        to answer for.
        """
        if not (self._mixed or self.deferred):
            return []
        late = [lease.id for lease in self.leases if _made(lease) < self._newest] if self._mixed else []
        return late + [lease.id for heap in self.aside.values() for lease in heap]

    def drain(self) -> list[Lease]:
        """Remove and return everything, the next request first."""
        leases = self.leases[::-1]
        if self.deferred:
            leases = sorted(leases + [lease for heap in self.aside.values() for lease in heap])
        self.leases, self.aside, self.deferred = [], {}, 0
        self._mixed = False
        return leases


def _made(lease: Lease) -> tuple[int, int]:
    exchange, _, place = lease.id.partition(".")
    return int(exchange), int(place)


logger = logging.getLogger(__name__)

FULL_S = 1.0
"""After so long a site is asked for again that had no place, also where none of its requests has ended meanwhile."""


class Stock:
    """Gives back, or sets aside, through the outbox what must not be started. `names` are those of a lease's request."""

    def __init__(self, outbox: Outbox, names: Callable[[bytes], Iterator[str]]) -> None:
        self.buffer = Buffer()
        self.tasks: deque[Lease] = deque()
        self.restraint = HoldPolicy()
        self.timed = TimedLeases()
        self._redis_time = RedisTime()
        self.limits = KnownLimits()
        self.full: dict[str, float] = {}
        """Lane of which nothing can be started here -> until when that is believed; open to the frontier, which empties it."""
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
        self._give_back([lease])
        self.rest(lease.lane, now, math.inf)

    def rest(self, lane: str, now: float, seconds: float) -> None:
        """Want nothing of a lane for `seconds`, inf: until a place is found; what is leased of it goes back."""
        rests, seconds = (self.full, FULL_S) if seconds == math.inf else (self.timed.resting, seconds)
        rests[lane] = now + seconds
        self._give_back(self.timed.take_lane(lane))

    def unwanted(self, now: float) -> list[str]:
        """Return the lanes of which nothing is wanted now."""
        return [lane for rests in (self.full, self.timed.resting) for lane, until in rests.items() if now < until]

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
