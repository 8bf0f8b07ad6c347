"""Dupefilters that are not of ours: whatever class with `request_seen` the user names, asked before a request is stored.

Such a filter says "seen" from the first question on, though who asked may be killed before the request is stored. So each
question is noted in Redis first, and the note goes in the very step that stores the request. A note whose owner is gone tells
that the filter's "seen" may stand for a request that nobody has: it is stored then. Each question costs a round trip, beside
what the filter itself does, and the reactor waits for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .exchange import NO_FILTER
from .scripts import script

if TYPE_CHECKING:
    import redis
    from scrapy import Request

    from .frontier import Frontier


class CustomDupeFilter:
    """Asks `dupefilter`; its notes go through `server`, and name requests by `fingerprint`."""

    def __init__(self, dupefilter: Any, server: redis.Redis, frontier: Frontier, fingerprint: Callable[[Request], bytes]) -> None:
        self._dupefilter = dupefilter
        self._server = server
        self._frontier = frontier
        self._fingerprint = fingerprint
        self._forget: list[bytes] = []

    def check(self, request: Request) -> bytes | None:
        """None where the filter knows the request; else its fingerprint for the exchange, under which it is noted.

        Raises what the filter or Redis raises. A request that is not stored after all stays noted, for whoever finds it again
        after this process.
        """
        fingerprint = self._fingerprint(request)
        outcome = self._note(fingerprint)
        if not self._dupefilter.request_seen(request):
            return NO_FILTER if outcome == b"busy" else fingerprint
        if outcome == b"again":
            return fingerprint
        if outcome == b"noted":
            self._forget.append(fingerprint)
        return None

    def fenced(self) -> None:
        """Redis may have lost notes of what is written again: it is stored without them."""
        entries = self._frontier.outbox.entries
        for place, (kind, entry, size) in enumerate(entries):
            if kind == "requests":
                entries[place] = (kind, entry._replace(fingerprint=NO_FILTER), size)

    def leave(self) -> None:
        """Remove the notes of duplicates. Raises RedisError."""
        if self._forget:
            self._note(b"")

    def _note(self, fingerprint: bytes) -> bytes:
        keys = self._frontier.config.keys
        outcome: bytes = script("note")(
            self._server,
            {"notes": keys.notes(), "owners": keys.owners()},
            {"owner": self._frontier.owner, "fingerprint": fingerprint, "forget": self._forget},
        )
        self._forget.clear()
        return outcome
