"""Looks back through the newest messages of a site: one request shows edits and removals on a page of them.

A check of a thread costs two requests for some ten messages; a page of the newest messages has fifty. So if the site file has
such a page with full texts, most requests for edits and removals go to it. Messages on the page are stored as shown. Threads
with a message missing between its neighbours, or with another opening text, are checked
(`forums/storage/write/scans.py`).
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request

from forums.freshness import POWER
from forums.records.items import scan_item, stamp, utc_now
from forums.records.start_tasks import RECENT, ForumTask
from forums.records.stored import SeenMessage, text_digest
from forums.sites import Site, UnreadablePage, site_in_use
from redis_components.scrapy_glue.page_tracker import reason_of

from .base import page_request, read_page
from .recent_scan import RecentSpider, comment_of
from .thread_reading import is_behind

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from forum_reader.reading.asked_page import RecentMessage, RecentPage
    from forums.state.thread_records import ThreadRecord

PRIORITY = -5
MOST_PAGES = 50
"""Limit for one task."""


class BackState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a look back; part of its requests."""

    started_at: datetime
    ahead: tuple[int, ...]  # numbers of the pages still to read, the present one first
    pages: int = 0
    messages: int = 0
    seen: tuple[tuple[SeenMessage, ...], ...] = ()


def pages_back(number: int, depth: int, chance: random.Random) -> tuple[int, ...]:
    """Draw at most `number` pages behind the first of `depth` pages, pages near the front more often, since young messages are
    edited more. The probability is the page's age to the power `-POWER`, as in the schedule of checks.
    """
    low, high, rest = 2.0, depth + 1.0, 1 - POWER
    if depth < low:
        return ()
    drawn = ((low**rest + chance.random() * (high**rest - low**rest)) ** (1 / rest) for _ in range(min(number, MOST_PAGES)))
    return tuple(sorted({min(int(page), depth) for page in drawn}))


class LookBackSpider(RecentSpider):
    """A spider that also looks back through the newest messages."""

    def first_page_back(self, site: Site, task: ForumTask) -> Request:
        """Return the request for the first of the pages that the task draws."""
        ahead = pages_back(task.pages or 1, task.depth or 0, random.Random())  # noqa: S311 - not a secret
        if not ahead:
            raise ValueError(f"a look back needs a depth of two pages and more, not {task.depth}")
        return self._page_back(site, BackState(started_at=datetime.now(UTC), ahead=ahead))

    def _page_back(self, site: Site, state: BackState) -> Request:
        number = state.ahead[0]
        return page_request(
            site,
            "recent",
            site.url("recent", number=number),
            self.parse_back,
            self.back_failed,
            forum=RECENT,
            number=number,
            priority=PRIORITY,
            back=msgspec.to_builtins(state),
        )

    async def parse_back(self, response: Response, back: dict[str, Any]) -> AsyncIterator[Any]:
        """Store the messages of the page, and go on to the next page or end with a report."""
        state, site = msgspec.convert(back, BackState), site_in_use(response.meta["site"])
        try:
            page: RecentPage = await read_page(self, response)
        except UnreadablePage as error:
            yield _report(site.name, state, str(error))
            return
        records = await self.stored_threads(site.name, list(dict.fromkeys(one.thread for one in page.messages)))
        fetched_at = str(response.meta.get("fetched_at") or utc_now())
        for one in page.messages:
            if (record := records[one.thread]) is not None and _is_stored(one, record):
                item = comment_of(one, record, site.name, response.url, fetched_at)
                if item is not None:
                    yield item
        state = msgspec.structs.replace(
            state,
            ahead=state.ahead[1:],
            pages=state.pages + 1,
            messages=state.messages + len(page.messages),
            seen=(*state.seen, seen_of(page.messages, records)),
        )
        yield self._page_back(site, state) if state.ahead and page.messages else _report(site.name, state, None)

    def back_failed(self, failure: Failure) -> Iterator[Any]:
        """End the look with a report; a page that failed has no other effect."""
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        yield _report(request.meta["site"], msgspec.convert(request.cb_kwargs["back"], BackState), reason_of(failure))


def _is_stored(message: RecentMessage, record: ThreadRecord) -> bool:
    """Return True for a reply that a reading has stored; other messages are left to the looks at new ones."""
    return not record.is_gone and message.id is not None and is_behind(message.id, record.last_comment) is False


def seen_of(messages: Sequence[RecentMessage], records: Mapping[str, ThreadRecord | None]) -> tuple[SeenMessage, ...]:
    """Return the messages of a page, the newest first; empty for another order, which does not show what is missing."""
    dated = [one for one in messages if one.id is not None and one.created_at is not None]
    dates = [one.created_at for one in dated]
    if any(later < earlier for later, earlier in pairwise(dates) if later and earlier):
        return ()
    return tuple(
        SeenMessage(
            one.id or "",
            record.own if (record := records.get(one.thread)) is not None and record.own else one.thread,
            one.created_at,
            text_digest(one.body) if one.opening and one.body is not None else None,
        )
        for one in dated
    )


def _report(site: str, state: BackState, reason: str | None) -> dict[str, Any]:
    return scan_item(
        site=site,
        forum=RECENT,
        mode="back",
        started_at=stamp(state.started_at),
        pages=max(1, state.pages + (reason is not None)),
        threads=state.messages,
        outcome="complete" if reason is None else "failed",
        stopped="end" if reason is None else "error",
        reason=reason,
        seen=msgspec.to_builtins(state.seen),
    )
