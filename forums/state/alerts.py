"""Alerts in Redis: filters of events, each with one receiver, made while the fleet runs (`trawl alert`)."""

from __future__ import annotations

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line, masked
from redis_components.server.untrusted_values import Count, Epoch, decoded, hash_at, readable, whole

from .keys import ForumFleetKeys

MOST = 200
"""Alerts of a fleet: each costs a part of every round of the publisher."""


class Alert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One alert. `to`: address of the receiver; `secret` signs what a webhook gets. Times are Redis's."""

    match: str
    to: str
    site: str = ""  # only of this site; empty: of all
    digest_minutes: Count = 0
    quiet_hours: str = ""  # with a time zone behind it
    history: bool = False  # also posts that were written before it was made
    secret: str = ""
    made_at: Epoch = 0.0
    by: str = ""


class Alerts:
    """The alerts of a fleet by their numbers. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().alerts()

    def all(self) -> dict[str, Alert]:
        """Return the alerts in the order of their numbers, without unreadable ones."""
        found = readable(hash_at(self._client, self._key), alert_of)
        return dict(sorted(found.items(), key=lambda one: int(one[0])))

    def put(self, number: int, alert: Alert) -> int:
        """Store an alert under this number, or the next free one; return it."""
        while not self._client.hsetnx(self._key, str(number), msgspec.json.encode(alert)):  # made by another process meanwhile
            number += 1
        return number

    def remove(self, number: int) -> None:
        """Remove an alert. Raises ConfigError where there is none with this number."""
        if not self._client.hdel(self._key, str(number)):
            raise ConfigError(f"there is no alert {number}; there is {', '.join(self.all()) or 'none'}")


def shown_address(address: str) -> str:
    """Return an address without passwords and options."""
    return masked(address) if "://" in address else in_one_line(address).partition("?")[0]


def alert_of(name: str, raw: bytes) -> Alert:
    """Parse an alert, whose name is its number. Raises ValueError."""
    whole(name, 1, 10**9)
    return decoded(raw, Alert)
