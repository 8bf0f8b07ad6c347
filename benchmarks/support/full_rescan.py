"""A uniform rescan: a crawler without knowledge that reads every page of the forum once in a period, over and over.

`requests_per_s` computes it, in the rescan's favour: what it takes to fetch and to store is left out. `Rescan` does
it for real and notes when it saw what: `python -m benchmarks.support.full_rescan` compares the two.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

import aiohttp

from demo.compare import Piece, content_hash
from demo.forum.process import ForumProcess

from .sightings import Sightings, delays

_POST = ("id", "forum_id", "title", "body", "author", "created_at")
_COMMENT = ("id", "post_id", "parent_id", "author", "body", "created_at")
_GONE = (404, 410)


def requests_per_s(pages: Sequence[float], mean_delay_s: float) -> float:
    """Return the requests per second of a uniform rescan with this mean delay, of a forum with these page counts over time. Its
    period is twice the delay: on average a change waits half a period; fetching and storing are counted as instant.
    """
    return mean(pages) / (2 * mean_delay_s)


def pages_of(stats: Mapping[str, Any]) -> int:
    """Return the number of pages of such a rescan: list pages, posts, and pages of comments."""
    return int(sum(stats["pages"].values()))


class Rescan:
    """Reads the JSON pages of a demo forum, each once in `period_s`, as evenly as it can."""

    def __init__(self, url: str, pages: int, period_s: float) -> None:
        self.seen = Sightings()
        self.requests = 0
        self._url = url
        self._pages = pages
        self._period_s = period_s
        self._turn = asyncio.Lock()  # first come, first served
        self._next = 0.0
        self._known: dict[str, set[str]] = {}

    async def run(self, seconds: float) -> None:
        """Round after round, for so long."""
        async with aiohttp.ClientSession(self._url, timeout=aiohttp.ClientTimeout(30)) as session:
            with_limit = asyncio.timeout(seconds)
            try:
                async with with_limit:
                    while True:
                        await self._round(session)
            except TimeoutError:
                if not with_limit.expired():
                    raise

    async def _round(self, session: aiohttp.ClientSession) -> None:
        before = self.requests
        forums = await self._get(session, "/forums")
        async with asyncio.TaskGroup() as group:
            threads: set[str] = set()
            for forum in forums["forums"]:
                group.create_task(self._read_forum(session, forum["id"], group, threads))
        for post in self._known.keys() - threads:  # no list has it any more
            await self._read_thread(session, post)
        self._pages = self.requests - before

    async def _read_forum(self, session: aiohttp.ClientSession, forum: str, group: asyncio.TaskGroup, threads: set[str]) -> None:
        number, pages = 1, 1
        while number <= pages:
            page = await self._get(session, f"/list/{forum}/{number}")
            if page is None:
                return
            for row in page["threads"]:
                if row["id"] not in threads:
                    threads.add(row["id"])
                    group.create_task(self._read_thread(session, row["id"]))
            number, pages = number + 1, page["pages"]

    async def _read_thread(self, session: aiohttp.ClientSession, post: str) -> None:
        opening = await self._get(session, f"/post/{post}")
        if opening is None:
            self._bury(post, set())
            self.seen.see("posts", [Piece(post, "", True)], time.time())
            self._known.pop(post, None)
            return
        self._see("posts", [opening], _POST)
        number, pages, there = 1, 1, set[str]()
        while number <= pages:
            page = await self._get(session, f"/comment/{post}/{number}")
            if page is None:
                return  # it moved while it was read: the next round reads it
            alive = [comment for comment in page["comments"] if not comment["deleted"]]
            self._see("comments", alive, _COMMENT)
            there |= {comment["id"] for comment in alive}
            number, pages = number + 1, page["pages"]
        self._bury(post, there)

    def _see(self, kind: str, rows: Iterable[Mapping[str, Any]], fields: Sequence[str]) -> None:
        pieces = (Piece(row["id"], content_hash([row[name] for name in fields]), False) for row in rows)
        self.seen.see(kind, pieces, time.time())

    def _bury(self, post: str, there: set[str]) -> None:
        """Comments of a thread that were there in an earlier round and are not any more."""
        gone = self._known.get(post, set()) - there
        self.seen.see("comments", [Piece(comment, "", True) for comment in gone], time.time())
        self._known[post] = there

    async def _get(self, session: aiohttp.ClientSession, path: str) -> Any:
        """Return a page's content, None if it is gone; each waits for its turn in the period."""
        async with self._turn:
            now = time.monotonic()
            self._next = max(self._next, now - 1.0) + self._period_s / self._pages
            await asyncio.sleep(max(0.0, self._next - now))
        self.requests += 1
        async with session.get(path) as response:
            if response.status in _GONE:
                return None
            response.raise_for_status()
            return await response.json()


def main() -> None:
    """Run a rescan and compare it with what is computed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument("--period", type=float, default=10.0, help="seconds of one round (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=60, help="threads in each of six forums (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=5.0, help="events per second (default: %(default)s)")
    chosen = parser.parse_args()
    with ForumProcess(forums=6, threads=chosen.threads, pace=60) as forum:
        forum.control(rate=chosen.rate, edit_rate=0.15, delete_rate=0.08, move_rate=0.01, skew=1.0)
        pages = [pages_of(forum.stats())]
        rescan = Rescan(forum.url, pages[0], chosen.period)
        asyncio.run(rescan.run(chosen.seconds))
        pages.append(pages_of(forum.stats()))
        found = delays(forum.truth(), rescan.seen)
    computed = requests_per_s(pages, mean(found.published)) * chosen.seconds
    print(f"{rescan.requests} requests, computed {computed:.0f} for the mean delay of {mean(found.published):.1f} s")


if __name__ == "__main__":
    main()
