"""Figures of a run: what the forum says about itself, and how fast a count grows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from .followed import pages_of
from .forum.process import ForumProcess


@dataclass(frozen=True, kw_only=True)
class ForumFigures:
    """The forum as it says itself."""

    pieces: int  # posts and comments that there are now
    size: int  # pages that there are now
    served: Mapping[str, int]  # pages by HTTP status

    @property
    def pages(self) -> int:
        """Pages asked for, refused ones included."""
        return sum(self.served.values())


class ForumGauge:
    """Asks the forum."""

    def __init__(self, forum: ForumProcess) -> None:
        self._forum = forum

    def read(self) -> ForumFigures:
        """The figures of now. Raises ForumError."""
        said = self._forum.stats()
        served: Counter[str] = Counter()
        for by_status in said["served"].values():
            served.update(by_status)
        return ForumFigures(pieces=said["posts"] + said["comments"], size=pages_of(said), served=served)


class Speed:
    """How fast a count grows, over the last `window_s` seconds: what is counted arrives in gusts."""

    def __init__(self, window_s: float = 3.0) -> None:
        self._window_s = window_s
        self._counts: deque[tuple[float, int]] = deque()
        self.best = 0.0  # per second, over a whole window

    def add(self, at_s: float, count: int) -> float:
        """The count at this time; returns the speed, per second."""
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
