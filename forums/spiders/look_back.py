"""Looks back through the newest messages of a site: one request shows whether anything was edited or removed in a page of them.

A check of a thread costs two requests for some ten messages; a page of the newest has fifty. So where a site's file has such a
page with whole texts, most of what is spent on edits and removals goes to pages of it. What stands on it is stored as it is;
what is missing from it, though its neighbours are there, and an opening post with another text have their threads checked
(`forums/storage/look_backs.py`).
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request

from forums.freshness.rechecks import POWER
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

    from forums.sites.reading.recent_page import RecentMessage, RecentPage
    from forums.state.thread_records import ThreadRecord

PRIORITY = -5
MOST_PAGES = 50
"""Of one task."""


class BackState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a look back has come; travels with its requests."""

    started_at: datetime
    ahead: tuple[int, ...]  # numbers of the pages that are still to be read, the present one first
    pages: int = 0
    messages: int = 0
    seen: tuple[tuple[SeenMessage, ...], ...] = ()


def pages_back(number: int, depth: int, chance: random.Random) -> tuple[int, ...]:
    """So many pages behind the first, at most, of `depth` that there are: those near the front more often, as what is young is
    edited. A page is looked at as often as its age to the power `-POWER`, which is the rule of the checks of threads.
    """
    low, high, rest = 2.0, depth + 1.0, 1 - POWER
    if depth < low:
        return ()
    drawn = ((low**rest + chance.random() * (high**rest - low**rest)) ** (1 / rest) for _ in range(min(number, MOST_PAGES)))
    return tuple(sorted({min(int(page), depth) for page in drawn}))


class LookBackSpider(RecentSpider):
    """A spider that also looks back through the newest messages."""

    def first_page_back(self, site: Site, task: ForumTask) -> Request:
        """The request for the first of the pages that the task has drawn."""
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
        """Store what the page shows, and go on to the next page or end with a report."""
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
        """A page that cannot be had ends the look; nothing follows from it."""
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        yield _report(request.meta["site"], msgspec.convert(request.cb_kwargs["back"], BackState), reason_of(failure))


def _is_stored(message: RecentMessage, record: ThreadRecord) -> bool:
    """Whether the message is a reply that a reading has stored: the others are left to the looks at what is new."""
    return not record.is_gone and message.id is not None and is_behind(message.id, record.last_comment) is False


def seen_of(messages: Sequence[RecentMessage], records: Mapping[str, ThreadRecord | None]) -> tuple[SeenMessage, ...]:
    """What a page shows, the newest first; nothing where its order is another one: then it does not say what is missing."""
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
