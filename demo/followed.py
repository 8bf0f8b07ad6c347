"""How well a crawl follows a forum once it knows it: delays by board, and requests in comparison with reading everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import mean
from typing import Any

from sqlalchemy import and_, select

from forums.storage import Database, comments, posts


@dataclass(frozen=True, kw_only=True)
class Board:
    """What was published on one board, and the mean time from then until it was fetched, in seconds."""

    forum_id: str
    published: int
    delay_s: float


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A stretch of time in which the forum lived and was known already."""

    seconds: float
    requests: int
    pages: float  # of the whole forum, mean
    boards: Sequence[Board] = ()  # counted when all that was published is fetched: what is quick comes first

    @property
    def delay_s(self) -> float | None:
        """Over everything that was published; None where nothing was."""
        total = sum(board.published for board in self.boards)
        return sum(board.delay_s * board.published for board in self.boards) / total if total else None

    @property
    def rescan_requests(self) -> float | None:
        """What reading every page over and over asks for in this time, to be as fresh."""
        return requests_per_s([self.pages], self.delay_s) * self.seconds if self.delay_s else None


def requests_per_s(pages: Sequence[float], mean_delay_s: float) -> float:
    """Requests per second of a uniform rescan whose mean delay is this one, of a forum that had so many pages in the course of
    time. Its period is twice the delay: in the mean a change waits half a period, and fetching and storing are taken for free.
    """
    return mean(pages) / (2 * mean_delay_s)


def pages_of(stats: Mapping[str, Any]) -> int:
    """How many pages such a rescan reads: every list page, and of every thread the post and each page of comments."""
    return int(sum(stats["pages"].values()))


def boards(database: Database, site: str, since: datetime) -> list[Board]:
    """The boards on which something was published after `since` and fetched, by id.

    A site's dates are to the second: half a second is taken off, which they are too early in the mean.
    """
    p, c = posts.c, comments.c
    of_posts = select(p.forum_id, p.created_at, p.first_seen_at).where(p.site == site, p.created_at > since)
    of_comments = (
        select(p.forum_id, c.created_at, c.first_seen_at)
        .join(posts, and_(p.site == c.site, p.id == c.post_id))
        .where(c.site == site, c.created_at > since)
    )
    return by_board([*database.stream(of_posts), *database.stream(of_comments)])


def by_board(rows: Iterable[Any]) -> list[Board]:
    """Rows of board, time of publication and time of the first fetch."""
    delays: defaultdict[str, list[float]] = defaultdict(list)
    for forum_id, created_at, first_seen_at in rows:
        delays[forum_id or "?"].append(max(0.0, (first_seen_at - created_at).total_seconds() - 0.5))
    return [Board(forum_id=name, published=len(found), delay_s=mean(found)) for name, found in sorted(delays.items())]
