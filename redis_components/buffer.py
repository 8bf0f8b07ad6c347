"""The requests that are leased to this process and not started yet, in the order of the queue that they come from."""

from __future__ import annotations

from collections.abc import Callable

from .exchange import Lease


class Buffer:
    """Sorted as READY requests are, by score and then by order, so what arrives later and comes first is started first."""

    def __init__(self) -> None:
        self.leases: list[Lease] = []  # the next one is the last; open to the frontier, which asks for its length for each page
        self._mixed = False  # a later lease may have been started before one that waits
        self._newest = (0, 0)  # of the leases started while it was mixed

    def __len__(self) -> int:
        return len(self.leases)

    @property
    def best(self) -> float:
        """Score of the next request. Raises IndexError when there is none."""
        return self.leases[-1].score

    def add(self, leases: list[Lease]) -> None:
        """Sort what was leased in one exchange, in the queue's order, into what waits."""
        if not leases:
            return
        if self.leases and leases[0] < self.leases[0]:
            self._mixed = True
        self.leases.extend(leases)
        self.leases.sort(reverse=True)

    def take(self) -> Lease | None:
        """The next request to start, or None."""
        if not self.leases:
            self._mixed = False
            return None
        lease = self.leases.pop()
        if self._mixed:
            self._newest = max(self._newest, _made(lease))
        return lease

    def retain(self, wanted: Callable[[Lease], bool]) -> None:
        """Remove those that are not `wanted`."""
        self.leases = [lease for lease in self.leases if wanted(lease)]

    def overtaken(self) -> list[str]:
        """Ids of leases that wait although a later one was started: a death of this process is not theirs to answer for."""
        if not self._mixed:
            return []
        return [lease.id for lease in self.leases if _made(lease) < self._newest]

    def drain(self) -> list[Lease]:
        """Remove and return everything, the next request first."""
        leases, self.leases = self.leases[::-1], []
        self._mixed = False
        return leases


def _made(lease: Lease) -> tuple[int, int]:
    exchange, _, place = lease.id.partition(".")
    return int(exchange), int(place)
