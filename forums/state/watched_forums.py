"""The forums that are watched, for who looks again and again: what has not changed since the last look is not parsed again.

Between two scrapes of the exporter few of 10,000 boards have been scanned. All are fetched, for Redis does not say which have
changed, but only those whose bytes differ are read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, ne
from typing import Self

import redis

from redis_components.server.stored_values import number

from .forum_states import ForumStates, WatchedForum, state_or_fresh


@dataclass(frozen=True)
class Watched:
    """All forums, or those of a site, in the order of their ids."""

    forums: Sequence[WatchedForum]
    by_site: Mapping[str, int]
    """How many each site has."""
    ill: Sequence[WatchedForum]
    """Those whose last scan failed, or that have a gap."""

    @classmethod
    def of(cls, forums: Sequence[WatchedForum]) -> Self:
        """Counted now."""
        return cls(forums, Counter(map(attrgetter("site"), forums)), [one for one in forums if _is_ill(one)])


class WatchedForums:
    """Remembers the last look. Not for two threads."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._dues: dict[bytes, bytes] = {}  # as they stand in Redis
        self._states: dict[bytes, bytes] = {}
        self._places: dict[bytes, int] = {}  # of those that can be read, in the list
        self._list: list[WatchedForum] = []
        self._by_site: Mapping[str, int] = {}
        self._ill: set[int] = set()  # places

    def look(self, site: str | None = None) -> Watched:
        """Every forum that is watched, or those of a site. Raises `redis.RedisError` when Redis does not answer."""
        store = ForumStates(self._client)
        dues, states = store.raw_dues(site), store.raw_states(site)
        of_dues, of_states = _differing(dues, self._dues), _differing(states, self._states)
        changed = of_dues + [name for name in of_states if name in dues]
        if not _same_names(states, self._states, of_states):
            changed += [name for name in self._states.keys() - states.keys() if name in dues]
        read = {name: _watched(name, dues[name], states.get(name)) for name in changed}
        if _same_names(dues, self._dues, of_dues) and all(one and name in self._places for name, one in read.items()):
            for name, one in read.items():
                if one is not None:
                    self._put(self._places[name], one)
        else:
            known = {name: self._list[place] for name, place in self._places.items() if name in dues} | read
            self._begin([(name, one) for name in sorted(known) if (one := known[name])])
        self._dues, self._states = dues, states
        return Watched(self._list.copy(), self._by_site, [self._list[place] for place in sorted(self._ill)])

    def _begin(self, found: list[tuple[bytes, WatchedForum]]) -> None:
        """Another set of forums than before."""
        self._places = {name: place for place, (name, _) in enumerate(found)}
        self._list = [one for _, one in found]
        self._by_site = Watched.of(self._list).by_site
        self._ill = {place for place, one in enumerate(self._list) if _is_ill(one)}

    def _put(self, place: int, one: WatchedForum) -> None:
        self._list[place] = one
        (self._ill.add if _is_ill(one) else self._ill.discard)(place)


def _differing(now: dict[bytes, bytes], before: dict[bytes, bytes]) -> list[bytes]:
    """The names that are new or have another text. Without a step in Python for each of 10,000."""
    return list(compress(now, map(ne, now.values(), map(before.get, now))))


def _same_names(now: dict[bytes, bytes], before: dict[bytes, bytes], differing: list[bytes]) -> bool:
    return len(now) == len(before) and all(name in before for name in differing)


def _is_ill(one: WatchedForum) -> bool:
    return one.state.errors > 0 or one.state.gap_at is not None


def _watched(name: bytes, due: bytes, state: bytes | None) -> WatchedForum | None:
    """None where the name or the due time is somebody else's."""
    try:
        site, _, forum = name.decode().partition("/")
        return WatchedForum(site=sys.intern(site), forum=forum, state=state_or_fresh(state), due_at=number(due))
    except ValueError:
        return None
