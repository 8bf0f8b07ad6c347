"""Dupefilters of the user's: any class with `request_seen`, called before a request is stored.

Such a filter returns "seen" from the first call on, though the caller may be killed before the request is stored. So each call
is noted in Redis first, and the note is removed in the very step that stores the request. A note whose owner is gone means that
the filter's "seen" may stand for a request that no process has: it is stored then. Each call costs a round trip, and the time of
the filter itself, and the reactor waits for both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import redis
from redis.exceptions import ClusterDownError

from redis_components.frontier.messages import NO_FILTER
from redis_components.server.scripts import script

if TYPE_CHECKING:
    from scrapy import Request

    from redis_components.frontier.frontier import Frontier

OUTAGES = (redis.ConnectionError, redis.TimeoutError, redis.OutOfMemoryError, redis.ReadOnlyError, ClusterDownError)
"""Errors that end with time, or when an operator mends Redis: a filter that could not be called is called again then."""

logger = logging.getLogger(__name__)


class CustomDupeFilter:
    """Asks `dupefilter`; its notes go through `server`, and name requests by `fingerprint`."""

    def __init__(self, dupefilter: Any, server: redis.Redis, frontier: Frontier, fingerprint: Callable[[Request], bytes]) -> None:
        self._dupefilter = dupefilter
        self._server = server
        self._frontier = frontier
        self._fingerprint = fingerprint
        self._forget: list[bytes] = []
        self._pausing = self._away = False
        self._failed: set[bytes] = set()
        self._unanswered: set[bytes] = set()  # the filter was asked, and its answer may have been lost
        self._rescued: set[bytes] = set()  # sent although the filter has them as seen; most of their notes are gone by now

    def check(self, request: Request) -> bytes | None:
        """Return None where the filter knows the request; else its fingerprint for the exchange, under which it is noted.

        Raises Redis's errors; after one of OUTAGES it shall be called again. A request that is not stored after all stays noted,
        for the process that finds it again after this one.
        """
        if self._pausing:  # each try may take as long as the client waits
            raise redis.ConnectionError("not asked again yet")
        fingerprint = self._fingerprint(request)
        outcome = b"noted"
        try:
            outcome = self._note(fingerprint)
            is_seen = self._ask(request, fingerprint)
        except OUTAGES as exc:
            if not self._away:
                logger.warning("%s cannot be asked, what is found waits: %s", type(self._dupefilter).__qualname__, exc)
            self._pausing = self._away = True
            raise
        except Exception as exc:  # the user's own
            return self._undecided(fingerprint, outcome, exc)
        self._away = False
        if not is_seen:
            self._unanswered.discard(fingerprint)
            return NO_FILTER if outcome == b"busy" else fingerprint
        if fingerprint in self._unanswered:  # by this process alone, as far as we know
            self._unanswered.discard(fingerprint)
            return fingerprint
        if outcome == b"again" and fingerprint not in self._rescued:
            self._rescued.add(fingerprint)
            return fingerprint
        if outcome == b"noted":
            self._forget.append(fingerprint)
        return None

    def _ask(self, request: Request, fingerprint: bytes) -> bool:
        try:
            return bool(self._dupefilter.request_seen(request))
        except OUTAGES:
            self._unanswered.add(fingerprint)
            raise

    def _undecided(self, fingerprint: bytes, outcome: bytes, exc: Exception) -> bytes | None:
        """Return the outcome of a filter that failed: an undecided request is stored once by each process, or a link back would
        be crawled for ever.
        """
        if not self._failed:
            name = type(self._dupefilter).__qualname__
            logger.error("%s failed (logged once); what it does not decide is crawled once", name, exc_info=exc)
        if fingerprint in self._failed:
            return None
        self._failed.add(fingerprint)
        return NO_FILTER if outcome == b"busy" else fingerprint

    def resume(self) -> None:
        """Let the filter be asked again."""
        self._pausing = False

    def fenced(self) -> None:
        """Note that Redis may have lost notes of requests that are written again: they are stored without notes."""
        self._rescued.clear()
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
