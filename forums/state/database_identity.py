"""The database that a fleet stores into, by the random id in its tables, and the one whose threads Redis remembers."""

from __future__ import annotations

from typing import Any

import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.untrusted_values import as_text, server_time

from .keys import script

ANOTHER_DATABASE = (
    "The database is another one than the one whose threads Redis remembers: what only that one held is not read again."
    " Run `trawl forums forget --all`, or `trawl db move` back to the former database."
)
LATELY_S = 60.0  # a claim is renewed each time that items are stored, usually each second


class DatabaseClaim:
    """The claim of one database for the fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().database()

    def take(self, identity: str, place: str) -> str | None:
        """Claim the database with this id, for good; return the place of the fleet's where that is another one.

        Safe to repeat. The first database that is written is the fleet's, until `move`.
        """
        ours, theirs = script("claim_database")(self._client, {"database": self._key}, {"identity": identity, "place": place})
        return None if ours else as_text(theirs)

    def holder(self) -> tuple[str, str] | None:
        """Return id and place of the fleet's database; None where none is claimed yet."""
        identity, place = self._fields("written", "place")
        return None if identity is None else (identity, place or "")

    def idle_s(self) -> float:
        """Return for how many seconds nothing was stored in the fleet's database."""
        (at,) = self._fields("at")
        return server_time(self._client) - float(at or 0)

    def move(self, identity: str, place: str) -> None:
        """Make this database the fleet's."""
        self._client.hset(self._key, mapping={"written": identity, "place": place})
        self._client.hdel(self._key, "refused", "refused_at")

    def refused(self) -> str | None:
        """Return the place of another database that a writer had within the last minute."""
        place, at = self._fields("refused", "refused_at")
        return place if at and server_time(self._client) - float(at) < LATELY_S else None

    def is_another(self) -> bool:
        """Return True if the records of threads speak of another database than the fleet's."""
        known, written = self._fields("known", "written")
        return known is not None and written is not None and known != written

    def forget(self) -> None:
        """Note that there are no records any more: the next database that is written is the one that they speak of."""
        self._client.hdel(self._key, "known")

    def _fields(self, *names: str) -> list[str | None]:
        values: Any = self._client.hmget(self._key, [*names])
        return [None if value is None else as_text(value) for value in values]
