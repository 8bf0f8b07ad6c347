"""Quality of following a known forum: delays by board, and requests in comparison with reading everything."""

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
    """Number of new pieces on one board, and their mean time from publication to fetch, in seconds."""

    forum_id: str
    published: int
    delay_s: float


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A period in which the known forum was active."""

    seconds: float
    requests: int
    pages: float  # of the whole forum, mean
    boards: Sequence[Board] = ()  # counted when all new pieces are fetched, else quick ones would count only

    @property
    def delay_s(self) -> float | None:
        """Mean delay of all new pieces; None if there were none."""
        total = sum(board.published for board in self.boards)
        return sum(board.delay_s * board.published for board in self.boards) / total if total else None

    @property
    def rescan_requests(self) -> float | None:
        """Requests of reading every page repeatedly in this time, to be as fresh."""
        return requests_per_s([self.pages], self.delay_s) * self.seconds if self.delay_s else None


def requests_per_s(pages: Sequence[float], mean_delay_s: float) -> float:
    """Return the requests per second of a uniform rescan with this mean delay, of a forum with these page counts over time. Its
    period is twice the delay: on average a change waits half a period; fetching and storing are counted as instant.
    """
    return mean(pages) / (2 * mean_delay_s)


def pages_of(stats: Mapping[str, Any]) -> int:
    """Return the number of pages of such a rescan: list pages, posts, and pages of comments."""
    return int(sum(stats["pages"].values()))


def boards(database: Database, site: str, since: datetime) -> list[Board]:
    """Return the boards with pieces published after `since` and fetched, by id.

    A site's dates are truncated to the second: half a second is subtracted, their mean error.
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
    """Group rows of board, time of publication and time of the first fetch."""
    delays: defaultdict[str, list[float]] = defaultdict(list)
    for forum_id, created_at, first_seen_at in rows:
        delays[forum_id or "?"].append(max(0.0, (first_seen_at - created_at).total_seconds() - 0.5))
    return [Board(forum_id=name, published=len(found), delay_s=mean(found)) for name, found in sorted(delays.items())]
