"""Watched forums, cached for repeated reads: unchanged ones are not parsed again.

Between two scrapes of the exporter few of 10,000 boards have been scanned. All are fetched, since Redis does not report changes,
but only values with other bytes are parsed.
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

from redis_components.server.untrusted_values import number

from .forum_states import ForumStates, WatchedForum, paired, state_or_fresh


@dataclass(frozen=True)
class Watched:
    """All forums, or those of a site, in the order of their ids."""

    forums: Sequence[WatchedForum]
    by_site: Mapping[str, int]
    """Number of forums by site."""
    ill: Sequence[WatchedForum]
    """Forums whose last scan failed, or that have a gap."""

    @classmethod
    def of(cls, forums: Sequence[WatchedForum]) -> Self:
        """Count the forums of a list."""
        return cls(forums, Counter(map(attrgetter("site"), forums)), [one for one in forums if _is_ill(one)])


class WatchedForums:
    """Reader that remembers its last result. Not thread-safe."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._dues: list[bytes] = []  # as stored: name, value, name, value
        self._states: list[bytes] = []
        self._places: dict[bytes, int] = {}  # of readable ones, in the list
        self._list: list[WatchedForum] = []
        self._by_site: Mapping[str, int] = {}
        self._ill: set[int] = set()  # places

    def look(self, site: str | None = None) -> Watched:
        """Return all watched forums, or those of a site. Raises `redis.RedisError` when Redis does not answer."""
        store = ForumStates(self._client)
        dues, states = store.flat_dues(site), store.flat_states(site)
        of_dues, of_states = _changed(dues, self._dues), _changed(states, self._states)
        if of_dues is None or of_states is None or not self._put_changed(of_dues, of_states):
            self._begin(paired(dues), paired(states))
        self._dues, self._states = dues, states
        return Watched(self._list.copy(), self._by_site, [self._list[place] for place in sorted(self._ill)])

    def _put_changed(self, dues: dict[bytes, bytes], states: dict[bytes, bytes]) -> bool:
        """Parse the changed ones; return False if the set of forums has changed."""
        for name in dues.keys() | states.keys():
            place = self._places.get(name)
            if place is None:
                if name in dues:
                    return False  # it could not be parsed before, or can be now
                continue  # it is not watched
            before = self._list[place]
            one = _watched(name, dues.get(name), states.get(name), before)
            if one is None:
                return False
            self._list[place] = one
            (self._ill.add if _is_ill(one) else self._ill.discard)(place)
        return True

    def _begin(self, dues: dict[bytes, bytes], states: dict[bytes, bytes]) -> None:
        """Build the list for another set of forums; unchanged forums keep their objects."""
        known_dues, known_states = paired(self._dues), paired(self._states)
        found = []
        for name in sorted(dues):
            due, state = dues[name], states.get(name)
            known = name in self._places and (known_dues.get(name), known_states.get(name)) == (due, state)
            one = self._list[self._places[name]] if known else _watched(name, due, state)
            if one is not None:
                found.append((name, one))
        self._places = {name: place for place, (name, _) in enumerate(found)}
        self._list = [one for _, one in found]
        self._by_site = Watched.of(self._list).by_site
        self._ill = {place for place, one in enumerate(self._list) if _is_ill(one)}


def _changed(now: list[bytes], before: list[bytes]) -> dict[bytes, bytes] | None:
    """Return the names with changed values, and these; None if names were added, removed or reordered. Without a Python step for
    each of 10,000.
    """
    names = now[::2]
    if names != before[::2]:
        return None
    values = now[1::2]
    return {names[place]: values[place] for place in compress(range(len(names)), map(ne, values, before[1::2]))}


def _is_ill(one: WatchedForum) -> bool:
    return one.state.errors > 0 or one.state.gap_at is not None


def _watched(name: bytes, due: bytes | None, state: bytes | None, before: WatchedForum | None = None) -> WatchedForum | None:
    """Build a forum; None if the name or the due time is foreign. A missing value is taken from `before`."""
    try:
        site, _, forum = name.decode().partition("/")
        return WatchedForum(
            site=sys.intern(site),
            forum=forum,
            state=before.state if before and state is None else state_or_fresh(state),
            due_at=before.due_at if before and due is None else number(due or b""),
        )
    except ValueError:
        return None
