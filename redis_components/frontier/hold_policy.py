"""The holds of this crawler process, and their consequences for its leases. Pure: fed with Redis's answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .holds import Holds, lot_of, parsed
from .messages import Park
from .reply import HeldNow

MOST_TASKS = 500
"""Start tasks to lease at once where those before them were parked: the spider reads each of them while the reactor waits."""


UNKNOWN = "?"
"""No version: the answer then has all holds."""


class HoldPolicy:
    """Parks held leases, and puts released ones back.

    Where the head of the queue is of a held site, twice as much is leased each time, so that what lies behind it is reached soon.
    """

    def __init__(self) -> None:
        self.version = ""
        """Of the holds that this process knows."""
        self.holds = Holds()
        self.paused = False  # as `holds` has it; asked for several times in each exchange
        self.feeding = True
        self._back: list[str] = []  # lots that are not held any more and have entries, as far as we know
        self._parked = 0  # requests, since the last exchange that leased some
        self._parked_tasks = 0

    def learn(self, held: HeldNow) -> None:
        """Take over a new version of the holds."""
        self.version = held.version
        self.holds = Holds(entries=parsed(held.fields))
        self.paused, self.feeding = self.holds.paused, self.holds.feeding
        self._back = [lot for lot in held.lots if not self.holds.is_held(lot)]

    def park(self, lease_id: str, names: Iterator[str], *, task: bool) -> Park | None:
        """Return the parking of a lease whose request has these names; None where it is not held."""
        site = self.holds.site_of(names, task=task)
        if site is None:
            return None
        if task:
            self._parked_tasks += 1
        else:
            self._parked += 1
        return Park(lease_id, lot_of(site, task=task))

    def want(self, wanted: int, held: int, most: int) -> int:
        """Return the requests to lease where `wanted` would do without holds; no more than `most` with the `held` ones."""
        if not self._parked:
            return wanted
        return min(wanted + 2 * self._parked, max(wanted, most - held)) if wanted else 0

    def want_tasks(self, wanted: int) -> int:
        """Start tasks to lease, in the same way."""
        return min(wanted + 2 * self._parked_tasks, max(wanted, MOST_TASKS)) if wanted else 0

    def asked(self, *, requests: int, tasks: int) -> None:
        """Note that an exchange asks for this number."""
        if requests:
            self._parked = 0
        if tasks:
            self._parked_tasks = 0

    @property
    def unpark(self) -> str:
        """The lot to put back from in the next exchange; "" for none."""
        return self._back[-1] if self._back else ""

    def put_back(self, lot: str, left: int) -> None:
        """Note that an exchange has put back from `lot`, with `left` entries remaining."""
        if not left and lot in self._back:
            self._back.remove(lot)


def lots_in(parks: Iterable[Park], unpark: str) -> dict[str, int]:
    """Return the lots of a message, with their places from 1."""
    lots = dict.fromkeys([park.lot for park in parks] + ([unpark] if unpark else []))
    return {lot: place for place, lot in enumerate(lots, 1)}
