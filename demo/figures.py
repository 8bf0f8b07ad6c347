"""Figures of a run: the forum's statistics, and the growth of a count."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from .followed import pages_of
from .forum.process import ForumProcess


@dataclass(frozen=True, kw_only=True)
class ForumFigures:
    """The forum's statistics."""

    pieces: int  # existing posts and comments
    size: int  # existing pages
    served: Mapping[str, int]  # pages by HTTP status

    @property
    def pages(self) -> int:
        """Pages asked for, refused ones included."""
        return sum(self.served.values())


class ForumGauge:
    """Reader of the forum's statistics."""

    def __init__(self, forum: ForumProcess) -> None:
        self._forum = forum

    def read(self) -> ForumFigures:
        """Return the present figures. Raises ForumError."""
        stats = self._forum.stats()
        served: Counter[str] = Counter()
        for by_status in stats["served"].values():
            served.update(by_status)
        return ForumFigures(pieces=stats["posts"] + stats["comments"], size=pages_of(stats), served=served)


class Speed:
    """Growth of a count over the last `window_s` seconds, which smooths gusts."""

    def __init__(self, window_s: float = 3.0) -> None:
        self._window_s = window_s
        self._counts: deque[tuple[float, int]] = deque()
        self.best = 0.0  # per second, over a whole window

    def add(self, at_s: float, count: int) -> float:
        """Add the count at this time; return the speed per second."""
        self._counts.append((at_s, count))
        while len(self._counts) > 2 and at_s - self._counts[1][0] >= self._window_s:
            self._counts.popleft()
        then, before = self._counts[0]
        if at_s <= then:
            return 0.0
        speed = (count - before) / (at_s - then)
        if at_s - then >= self._window_s:
            self.best = max(self.best, speed)
        return speed
