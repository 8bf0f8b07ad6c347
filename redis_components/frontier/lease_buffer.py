"""The requests that are leased to this process and not started yet, in the order of the queue that they come from."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from .messages import Lease


class Buffer:
    """Sorted as READY requests are, by score and then by order, so a later lease that comes first is started first.

    Leases that must wait for a place of their site (`defer`) are aside, and hold back no others: they count neither as the next
    one nor in the length.
    """

    def __init__(self) -> None:
        self.leases: list[Lease] = []  # the next one is the last; open to the frontier, which asks for its length for each page
        self.deferred = 0
        """Leases that are aside."""
        self._aside: dict[str, list[Lease]] = {}  # heaps, by site
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
        heapq.heappush(self._aside.setdefault(site, []), lease)
        self.deferred += 1

    def recall(self, site: str) -> bool:
        """Put the next deferred request of `site` among the others again, as a place is free. False: there is none."""
        heap = self._aside.get(site)
        if not heap:
            return False
        lease = heapq.heappop(heap)
        if not heap:
            del self._aside[site]
        self.deferred -= 1
        self.add([lease])
        return True

    def deferred_of(self, site: str) -> int:
        """Return the number of requests of `site` that wait for a place."""
        return len(self._aside.get(site, ()))

    def retain(self, wanted: Callable[[Lease], bool]) -> None:
        """Remove those that are not `wanted`."""
        self.leases = [lease for lease in self.leases if wanted(lease)]
        self._aside = {site: left for site, heap in self._aside.items() if (left := [one for one in heap if wanted(one)])}
        for heap in self._aside.values():
            heapq.heapify(heap)
        self.deferred = sum(map(len, self._aside.values()))

    def overtaken(self) -> list[str]:
        """Return the ids of leases that wait although a later one was started, or may be: a death of this process is not theirs
        to answer for.
        """
        if not (self._mixed or self.deferred):
            return []
        late = [lease.id for lease in self.leases if _made(lease) < self._newest] if self._mixed else []
        return late + [lease.id for heap in self._aside.values() for lease in heap]

    def drain(self) -> list[Lease]:
        """Remove and return everything, the next request first."""
        leases = self.leases[::-1]
        if self.deferred:
            leases = sorted(leases + [lease for heap in self._aside.values() for lease in heap])
        self.leases, self._aside, self.deferred = [], {}, 0
        self._mixed = False
        return leases


def _made(lease: Lease) -> tuple[int, int]:
    exchange, _, place = lease.id.partition(".")
    return int(exchange), int(place)
