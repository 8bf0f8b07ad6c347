"""The watched forums, and the state of one board, as all views show it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter

import msgspec
import redis

from forums.records.stored import RECENT
from forums.state.keys import ForumState, ForumStates, state_or_fresh
from redis_components.frontier.holds import Hold
from redis_components.server.untrusted_values import number

SOON_S = 10.0  # twice the seeder's interval: a board that is due for less is not late


class BoardState(StrEnum):
    """Freshness of a board, or the reason for its lack. A board of a held site has the state of the hold (`BoardView.word`)."""

    NOT_SCANNED = "not scanned"  # its site's file is wrong
    WAITS = "waits"  # due, but its site's budget is spent
    STALE = "stale"  # overdue without a hold
    FAILING = "failing"  # the last scan failed
    BY_LISTS = "by lists"  # the page of the newest messages cannot be read: the lists are scanned as on a site without it
    GAP = "gap"  # a scan stopped before it reached known threads
    NEW = "new"  # not scanned yet
    LEARNING = "learning"  # scanned once: how often it changes is not known yet
    FRESH = "fresh"


BAD_STATES = frozenset({BoardState.NOT_SCANNED, BoardState.STALE, BoardState.FAILING, BoardState.GAP})


class WatchedForum(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A forum with its due time by the policy (epoch s)."""

    site: str
    forum: str
    state: ForumState
    due_at: float

    @property
    def waits_from(self) -> float:
        """Due time of its scan, at least the time of its last scan, until the seeder updates the due time (epoch s)."""
        return max(self.due_at, self.state.tried_at or 0.0)

    def overdue_s(self, now: float) -> float:
        """Return for how long its scan has been due."""
        return max(0.0, now - self.waits_from)

    def is_stale(self, now: float) -> bool:
        """Return True if it is overdue for five minutes, and for longer than its interval."""
        return self.overdue_s(now) > max(STALE_S, self.due_at - (self.state.tried_at or self.due_at))


STALE_S = 300.0


def fails(one: WatchedForum) -> bool:
    """Return True if its last scan failed; the page of the newest messages is not a forum."""
    return one.state.errors > 0 and one.forum != RECENT


class BoardView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A board of a forum at one moment (`now`: epoch seconds by Redis's clock)."""

    watched: WatchedForum
    now: float
    hold: Hold | None = None  # of its site, its service or the fleet
    wrong_file: str = ""  # error of its site's file, from the seeder
    over_budget: str = ""  # why nothing more is sent to its site; "" while there is budget

    @property
    def name(self) -> str:
        """Name of the board, as `demo/news`."""
        return f"{self.watched.site}/{self.watched.forum}"

    @property
    def state(self) -> ForumState:
        """State of the forum."""
        return self.watched.state

    @property
    def word(self) -> str:
        """State in one word: that of the hold, or a `BoardState`."""
        if self.hold is not None:
            return self.hold.state
        if self.wrong_file:
            return BoardState.NOT_SCANNED
        if self.over_budget and self.watched.due_at < self.now - SOON_S:
            return BoardState.WAITS
        if self.watched.is_stale(self.now):
            return BoardState.STALE
        if self.state.errors:
            return BoardState.FAILING if self.fails else BoardState.BY_LISTS
        if self.state.gap_at is not None:
            return BoardState.GAP
        if self.state.tried_at is None:
            return BoardState.NEW
        return BoardState.LEARNING if self.state.is_learning else BoardState.FRESH

    @property
    def fails(self) -> bool:
        """True if its last scan failed."""
        return fails(self.watched)

    @property
    def is_stale(self) -> bool:
        """True if it is overdue without a hold and within its site's budget."""
        if self.watched.due_at >= self.now - STALE_S:  # most boards: skips the rest
            return False
        return self.word == BoardState.STALE

    @property
    def why(self) -> str:
        """Details: the hold, the error, the failed scans and their reason; "" for none."""
        failed = f"{self.state.errors:,} scan{'' if self.state.errors == 1 else 's'} failed" if self.state.errors else ""
        gap = "a gap is open" if self.state.gap_at is not None else ""
        first = str(self.hold or self.wrong_file or self.over_budget)
        wall = f"guests see only the first pages of its threads: {self.state.wall}" if self.state.wall else ""
        return ": ".join(filter(None, (first, failed or gap, self.state.reason or ""))) or wall


def watched(client: redis.Redis, site: str | None = None) -> list[WatchedForum]:
    """Return all watched forums, or those of a site. Raises `redis.RedisError` when Redis does not answer."""
    store = ForumStates(client)
    dues, states = store.raw_dues(site), store.raw_states(site)
    found = (_watched(name, dues[name], states.get(name)) for name in sorted(dues))
    return [one for one in found if one is not None]


def _watched(name: bytes, due: bytes, state: bytes | None) -> WatchedForum | None:
    """Return a forum; None if the name or the due time is foreign."""
    try:
        site, _, forum = name.decode().partition("/")
        return WatchedForum(site=sys.intern(site), forum=forum, state=state_or_fresh(state), due_at=number(due))
    except ValueError:
        return None


class Boards:
    """The watched boards at one moment. Views are built on demand, since a scrape of 10,000 boards reads few of them.

    Holds, invalid files and spent budgets are given by site.
    """

    def __init__(
        self,
        watched: Sequence[WatchedForum],
        now: float,
        *,
        held: Mapping[str, Hold] | None = None,
        wrong: Mapping[str, str] | None = None,
        over: Mapping[str, str] | None = None,
    ) -> None:
        self.watched, self.by_site = watched, Counter(map(attrgetter("site"), watched))
        self.ill = [one for one in watched if one.state.errors > 0 or one.state.gap_at is not None]
        self._now, self._held, self._wrong, self._over = now, held or {}, wrong or {}, over or {}

    def __len__(self) -> int:
        return len(self.watched)

    def __iter__(self) -> Iterator[BoardView]:
        return map(self._view, self.watched)

    def stale(self) -> list[BoardView]:
        """Return the boards that are overdue without a hold; most are not due."""
        latest = self._now - STALE_S
        return [view for view in [self._view(one) for one in self.watched if one.due_at < latest] if view.is_stale]

    def ill_ones(self) -> list[BoardView]:
        """Return the boards whose last scan failed, or that have a gap; few do."""
        return [self._view(one) for one in self.ill]

    def _view(self, one: WatchedForum) -> BoardView:
        site = one.site
        return BoardView(
            watched=one,
            now=self._now,
            hold=self._held.get(site),
            wrong_file=self._wrong.get(site, ""),
            over_budget=self._over.get(site, ""),
        )
