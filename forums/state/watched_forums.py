"""The forums that are watched, for who looks again and again: what has not changed since the last look is not parsed again.

Between two scrapes of the exporter few of 10,000 boards have been scanned. All are fetched, for Redis does not say which have
changed, but only those whose bytes differ are read.
"""

from __future__ import annotations

import redis

from redis_components.server.stored_values import number

from .forum_states import ForumStates, WatchedForum, state_or_fresh

_Known = tuple[bytes, bytes | None, WatchedForum]  # the due time and the state as they stand in Redis, and what they say


class WatchedForums:
    """Remembers the last look. Not for two threads."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._known: dict[bytes, _Known] = {}
        self._order: list[bytes] = []

    def look(self, site: str | None = None) -> list[WatchedForum]:
        """Every forum that is watched, or those of a site, in the order of their ids. Raises `redis.RedisError` when Redis does
        not answer.
        """
        store = ForumStates(self._client)
        dues, states = store.raw_dues(site), store.raw_states(site)
        found: dict[bytes, _Known] = {}
        for name, due in dues.items():
            state, before = states.get(name), self._known.get(name)
            if before is not None and before[0] == due and before[1] == state:
                found[name] = before
            elif (watched := _watched(name, due, state)) is not None:
                found[name] = due, state, watched
        if found.keys() != self._known.keys():
            self._order = sorted(found)
        self._known = found
        return [found[name][2] for name in self._order]


def _watched(name: bytes, due: bytes, state: bytes | None) -> WatchedForum | None:
    """None where the name or the due time is somebody else's."""
    try:
        site, _, forum = name.decode().partition("/")
        return WatchedForum(site=site, forum=forum, state=state_or_fresh(state), due_at=number(due))
    except ValueError:
        return None
