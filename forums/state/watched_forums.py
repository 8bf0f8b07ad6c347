"""The forums that are watched, for who looks again and again: what has not changed since the last look is not parsed again.

Between two scrapes of the exporter few of 10,000 boards have been scanned. All are fetched, for Redis does not say which have
changed, but only those whose bytes differ are read.
"""

from __future__ import annotations

import redis

from redis_components.server.stored_values import number

from .forum_states import ForumStates, WatchedForum, state_or_fresh


class WatchedForums:
    """Remembers the last look. Not for two threads."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._dues: dict[bytes, bytes] = {}  # as they stand in Redis
        self._states: dict[bytes, bytes] = {}
        self._places: dict[bytes, int] = {}  # of those that can be read, in the list
        self._list: list[WatchedForum] = []

    def look(self, site: str | None = None) -> list[WatchedForum]:
        """Every forum that is watched, or those of a site, in the order of their ids. Raises `redis.RedisError` when Redis does
        not answer.
        """
        store = ForumStates(self._client)
        dues, states = store.raw_dues(site), store.raw_states(site)
        due_before, state_before = self._dues.get, self._states.get
        changed = [name for name, due in dues.items() if due_before(name) != due]
        changed += [name for name, state in states.items() if state_before(name) != state and name in dues]
        changed += [name for name in self._states.keys() - states.keys() if name in dues]
        read = {name: _watched(name, dues[name], states.get(name)) for name in changed}
        if dues.keys() == self._dues.keys() and all(one and name in self._places for name, one in read.items()):
            for name, one in read.items():
                if one is not None:
                    self._list[self._places[name]] = one
        else:
            known = {name: self._list[place] for name, place in self._places.items() if name in dues} | read
            self._places = {name: place for place, name in enumerate(sorted(name for name, one in known.items() if one))}
            self._list = [one for name in self._places if (one := known[name])]
        self._dues, self._states = dues, states
        return self._list.copy()


def _watched(name: bytes, due: bytes, state: bytes | None) -> WatchedForum | None:
    """None where the name or the due time is somebody else's."""
    try:
        site, _, forum = name.decode().partition("/")
        return WatchedForum(site=site, forum=forum, state=state_or_fresh(state), due_at=number(due))
    except ValueError:
        return None
