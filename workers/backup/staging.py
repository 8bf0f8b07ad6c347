"""The keys of a backup, loaded into Redis under other names, until they replace the fleet's keys in one step."""

from __future__ import annotations

import secrets
from typing import Any

import redis

from redis_components.server.untrusted_values import as_bytes, as_text
from workers.state.keys import FleetKeys

from .key_names import KeyNames
from .snapshot import AT_ONCE, KEPT_MS, BackupError, in_lots, write

LONGEST_MS = 100 * 366 * 86_400_000
"""A key's time to live: no backup has a longer one, and with some Redis would refuse the last step."""


class Staging:
    """Loads portions; `swap` makes them the fleet's. Nothing of the fleet is changed before, and `discard` leaves nothing.

    Methods raise `redis.RedisError`.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._word = secrets.token_hex(6)
        self._keys: dict[bytes, int] = {}  # -> time to live
        self._copies: dict[bytes, str] = {}

    def load(self, records: list[tuple[bytes, str, int, list[Any]]]) -> None:
        """Add portions. Raises BackupError for what no backup has."""
        for some in in_lots(records, AT_ONCE):
            with self._client.pipeline(transaction=False) as pipe:
                for key, kind, left_ms, values in some:
                    if not -1 <= left_ms <= LONGEST_MS:
                        raise BackupError(f"key {key!r:.100} cannot be restored: it would live for {left_ms} ms")
                    self._keys.setdefault(key, left_ms)
                    copy = self._copy(key)
                    try:
                        write(pipe, copy, kind, values)
                    except (ValueError, redis.DataError) as error:
                        raise BackupError(f"key {key!r:.100} cannot be restored: {error}") from error
                    pipe.pexpire(copy, KEPT_MS)
                pipe.execute()

    @property
    def keys(self) -> int:
        """Return the number of loaded keys."""
        return len(self._keys)

    def foreign(self, names: KeyNames) -> list[bytes]:
        """Return the loaded keys that are not the fleet's."""
        return [key for key in self._keys if not names.owns(key) or names.is_of_living_processes(key)]

    def hash_of(self, key: str) -> dict[bytes, bytes]:
        """Return the fields of a loaded hash."""
        if key.encode() not in self._copies:
            return {}
        fields = self._client.hgetall(self._copy(key.encode()))  # of the fleet: as many as services
        return {as_bytes(name): as_bytes(value) for name, value in fields.items()}

    def swap(self, names: KeyNames) -> None:
        """Replace the fleet's keys by those that were loaded, in one transaction; locks of living processes stay.

        Fencing tokens never go back. Raises BackupError when a loaded key is gone.
        """
        self._raise_fences()
        old = [key for some in in_lots(names.found(self._client), AT_ONCE) for key in self._without_locks(some)]
        order = list(self._keys)
        with self._client.pipeline(transaction=True) as pipe:
            for some in in_lots(old, AT_ONCE):
                pipe.unlink(*some)
            for key in order:
                pipe.rename(self._copy(key), key)
                if self._keys[key] >= 0:
                    pipe.pexpire(key, self._keys[key])
                else:
                    pipe.persist(key)
            replies = pipe.execute(raise_on_error=False)
        if any(isinstance(one, redis.RedisError) for one in replies):
            raise BackupError("a key that was loaded is gone again: does Redis evict keys? Restore once more")

    def discard(self) -> None:
        """Remove loaded keys that were not swapped."""
        for some in in_lots(self._copies.values(), AT_ONCE):
            self._client.unlink(*some)

    def renew(self) -> None:
        """Keep the loaded keys for another quarter of an hour. Raises BackupError when one of them is gone."""
        for some in in_lots(self._copies.values(), AT_ONCE):
            with self._client.pipeline(transaction=False) as pipe:
                for copy in some:
                    pipe.pexpire(copy, KEPT_MS)
                if not all(pipe.execute()):
                    raise BackupError("a key that was loaded is gone again: does Redis evict keys?")

    def _raise_fences(self) -> None:
        fences = FleetKeys().fences().encode()
        for name, token in self._client.hgetall(fences.decode()).items():  # slots: as many as crawlers
            if fences not in self._keys:
                self._keys[fences] = -1
            stored = self._client.hget(self._copy(fences), name)
            if _number(stored) < _number(token):
                self._client.hset(self._copy(fences), name, token)

    def _without_locks(self, keys: list[bytes]) -> list[bytes]:
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.pttl(key)
                pipe.type(key)
            replies = pipe.execute()
        return [
            key
            for key, left, kind in zip(keys, replies[::2], replies[1::2], strict=True)
            if left < 0 or as_text(kind) != "string"
        ]

    def _copy(self, key: bytes) -> str:
        return self._copies.setdefault(key, FleetKeys().backup_copy(self._word, len(self._copies)))


def _number(raw: bytes | str | None) -> int:
    try:
        return int(raw or 0)
    except ValueError:
        return 0
