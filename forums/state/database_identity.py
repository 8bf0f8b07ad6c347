"""Which database the records of threads speak of, and which one was written last: the records promise too much of another one."""

from __future__ import annotations

from typing import Any

import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.replies import as_text
from redis_components.server.stored_values import answers_of

ANOTHER_DATABASE = (
    "The database is another one than the one whose threads Redis remembers: what only that one held is not read again."
    " Run `trawl forget --all`, or put the former database back."
)


class DatabaseNote:
    """Ids of databases. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().database()

    def tell(self, identity: str) -> bool:
        """The database with this id is going to be written; True: another one than before, and than the records speak of.

        Safe to repeat; the second time it is the one of before.
        """
        known, written = self._read()
        if known is None:
            known = identity
            self._client.hset(self._key, "known", identity)
        if written == identity:
            return False
        self._client.hset(self._key, "written", identity)
        return known != identity

    def is_another(self) -> bool:
        """Whether the database that was written last is not the one that the records speak of."""
        known, written = self._read()
        return known is not None and written is not None and known != written

    def forget(self) -> None:
        """There are no records any more: the next database that is written is the one that they speak of."""
        self._client.hdel(self._key, "known")

    def _read(self) -> tuple[str | None, str | None]:
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hmget(self._key, ["known", "written"])
            values: Any = answers_of(pipe)[0] or (None, None)
        known, written = (None if value is None else as_text(value) for value in values)
        return known, written
