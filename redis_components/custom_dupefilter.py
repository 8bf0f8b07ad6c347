"""Dupefilters that are not of ours: whatever class with `request_seen` the user names, asked before a request is stored.

Such a filter says "seen" from the first question on, though its caller may be killed before the request is stored. So each
question is noted in Redis first, and the note goes when the request is stored. A note whose owner is gone tells that the filter's
"seen" may stand for a request that nobody has: it is stored then. So nothing is lost; after a kill a few requests may be stored
twice. Each question costs a round trip, beside what the filter itself does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .scripts import script

if TYPE_CHECKING:
    import redis
    from scrapy import Request

    from .exchange import Reply
    from .frontier import Frontier
    from .outbox import Batch

logger = logging.getLogger(__name__)


class CustomDupeFilter:
    """Asks `dupefilter`; its notes go through `server`, and name requests by `fingerprint`."""

    def __init__(self, dupefilter: Any, server: redis.Redis, frontier: Frontier, fingerprint: Callable[[Request], bytes]) -> None:
        self._dupefilter = dupefilter
        self._server = server
        self._frontier = frontier
        self._fingerprint = fingerprint
        self._noted: set[bytes] = set()  # asked about, and not known to be stored
        self._waiting: dict[bytes, bytes] = {}  # payload -> fingerprint of what is on its way to Redis
        self._done: list[bytes] = []

    def note_unless_seen(self, request: Request) -> bytes | None:
        """None where the filter knows the request; else its fingerprint, for `store`. Raises what the filter or Redis raises."""
        fingerprint = self._fingerprint(request)
        if fingerprint in self._noted:
            return None if self._dupefilter.request_seen(request) else fingerprint
        begun_by_the_dead = self._note(fingerprint)
        if self._dupefilter.request_seen(request) and not begun_by_the_dead:
            self._done.append(fingerprint)
            return None
        self._noted.add(fingerprint)
        return fingerprint

    def store(self, fingerprint: bytes, payload: bytes) -> None:
        """The request goes to Redis as `payload`. Without this call (it cannot be stored) its note stays, and so tells whoever
        finds the request again after this process.
        """
        self._waiting[payload] = fingerprint

    def applied(self, batch: Batch, reply: Reply) -> None:  # noqa: ARG002  # a listener
        """What was told is stored."""
        for request in batch.requests:
            fingerprint = self._waiting.pop(request.payload, None)
            if fingerprint is not None:
                self._noted.discard(fingerprint)
                self._done.append(fingerprint)

    def leave(self) -> None:
        """Remove the notes of what is stored by now. Raises RedisError."""
        self._note(b"")

    def _note(self, fingerprint: bytes) -> bool:
        done = self._done[:1000]
        keys = self._frontier.config.keys
        begun_by_the_dead = script("intend")(
            self._server,
            {"intents": keys.intents(), "owners": keys.owners()},
            {"owner": self._frontier.owner, "fingerprint": fingerprint, "forget": done},
        )
        del self._done[: len(done)]
        return bool(begun_by_the_dead)
