"""What a list page means: which threads are new or changed, and whether the scan has seen enough. Pure.

A list in the order of activity is read until it overlaps what the last complete scan saw: until rows are older than that scan's
mark, the activity at the top of its first page. All that happens after that page was read is above the mark, so the next scan
finds it. A row can only be missed where a thread above it is removed between two pages, which pulls it to a page that was read
already. So a scan that needed more than one page has its whole range read once more by the next one (`marks.py`): a row is
lost to the scans only when a removal hides it twice. Deep scans and the re-checks of threads find even that.

Decision 24 says more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from forums.records.first_page import TRAIL, FrontRow, front_of, retitled, vanished
from forums.records.start_tasks import ListMode
from forums.state.thread_records import ThreadRecord

from .scan_marks import Marks
from .thread_reading import WHOLE_PAGES

if TYPE_CHECKING:
    from forums.sites.reading.read_page import ListedThread

Order = Literal["activity", "created", "none"]
Stopped = Literal["overlap", "end", "limit"]

OUTLIERS = 2
"""So many threads of a page may have a date in the future; the mark is taken behind them."""

MOST_FED = 500
"""Threads of one scan that are remembered as fetched: a thread that comes again within so many is not read twice."""

TOLD_SOON = timedelta(minutes=2)
"""A look at the newest messages so long ago is followed by another one soon."""
TOLD_GRACE = timedelta(seconds=5)
"""What it has told of is read and stored in this time; a scan that still sees it has found nothing new."""

GONE_FOR = timedelta(days=1)
"""A thread that is listed and cannot be opened is asked for so often: it may be hidden for a while only."""


class Change(StrEnum):
    """What a row says of its thread."""

    NEW = "new"  # nothing of it is stored
    CHANGED = "changed"  # its token is another one than when it was stored
    UNCHANGED = "unchanged"


class ScanState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a scan has come; travels with its requests."""

    started_at: datetime
    mode: ListMode = "scan"
    limit: int
    read_all: bool = False  # read `limit` pages without a look at what they hold
    since: datetime | None = None  # backfill: down to where
    marks: Marks | None = None  # of the scans before; None: there was no complete one
    told_until: datetime | None = None  # what happened since then, the page of the newest messages will tell soon
    left: bool = False  # some of that was on a page, and is left to it
    pages: int = 0
    threads: int = 0
    new: int = 0
    changed: int = 0
    newest_at: datetime | None = None
    oldest_at: datetime | None = None
    known_pages: int = 0  # pages without news
    proven: bool = False  # it has read below the mark of the last complete scan
    page_digest: str = ""  # of the ids of the last page
    front: tuple[FrontRow, ...] = ()  # the first page
    fed: tuple[str, ...] = ()  # digests of the threads that it had fetched, the latest of them


class Listed(NamedTuple):
    """A thread that is to be fetched."""

    thread: ListedThread
    change: Change
    record: ThreadRecord | None


class PagePlan(NamedTuple):
    """What follows from a page: threads to be fetched, the scan's state, and why it ends here, or None; threads to be checked,
    because they are not where they were, or have another title.
    """

    fetch: list[Listed]
    state: ScanState
    stopped: Stopped | None
    missed: list[FrontRow]
    renamed: list[ListedThread]


def change_of(thread: ListedThread, record: ThreadRecord | None, at: datetime, file: str = "") -> Change:
    """What a row says of its thread at this time. One that is listed although it was gone is tried again after a day, and at once
    where the site file is another one than when it was asked for: `file` is the digest of the present one.
    """
    if record is None:
        return Change.NEW
    if record.is_gone:
        if record.asked and record.asked != file:
            return Change.NEW
        asked = datetime.fromtimestamp(record.hour * 3600, UTC)
        return Change.UNCHANGED if record.has_token(thread.token) and at - asked < GONE_FOR else Change.NEW
    if record.has_token(thread.token):
        return Change.CHANGED if record.short else Change.UNCHANGED
    return Change.UNCHANGED if record.covers(thread.reply_count, thread.last_activity) else Change.CHANGED


def plan_page(
    state: ScanState,
    threads: Sequence[ListedThread],
    records: Mapping[str, ThreadRecord | None],
    *,
    has_next: bool,
    order: Order = "activity",
    zone: str = "UTC",
    file: str = "",
) -> PagePlan:
    """The plan for the next list page of a scan. `records` by thread id; `zone` is that of dates without a time; `file`: the
    digest of the site file.
    """
    digest = hashlib.blake2b("\n".join(one.id for one in threads).encode(), digest_size=8).hexdigest()
    repeated = bool(threads) and digest == state.page_digest  # some sites show the last page for each number behind it
    rows = [Listed(one, change_of(one, records.get(one.id), state.started_at, file), records.get(one.id)) for one in threads]
    dates = [date for one in threads if not one.sticky and (date := _date(one, order)) is not None]
    page = _Page(rows, order, ZoneInfo(zone))
    missed, renamed = _compared(state, threads, records, has_next=has_next)
    state = _counted(state, rows, dates, page, digest)
    if state.pages == 1:
        state = _with_front(state, front_of(threads, order))
    if repeated or not threads:
        stopped: Stopped | None = "end"
    elif _reached(state, page):
        stopped = "overlap"
    elif not has_next:
        stopped = "end"
    elif state.pages >= state.limit:
        stopped = "overlap" if state.proven else "limit"
    else:
        stopped = None
    checked = {one.id for one in renamed}
    fed = set(state.fed)
    fetch = [row for row in rows if _is_wanted(state, row, order, page.zone) and row.thread.id not in checked]
    fetch = [row for row in fetch if _digest(row.thread.id) not in fed]  # a list of messages has a thread on several pages
    state = msgspec.structs.replace(state, fed=(*state.fed, *(_digest(row.thread.id) for row in fetch))[-MOST_FED:])
    return PagePlan(fetch, state, stopped, missed, renamed)


def _digest(id_: str) -> str:
    return hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _compared(
    state: ScanState, threads: Sequence[ListedThread], records: Mapping[str, ThreadRecord | None], *, has_next: bool
) -> tuple[list[FrontRow], list[ListedThread]]:
    """What the first page shows in addition to its rows. A thread that is very long is not read again for its title."""
    if state.pages or state.marks is None or state.mode == "backfill":
        return [], []
    before = state.marks.front
    short = [one for one in retitled(before, threads) if (record := records.get(one.id)) and 0 < record.last_page <= WHOLE_PAGES]
    return vanished(before, threads, has_next=has_next), short


def _with_front(state: ScanState, front: tuple[FrontRow, ...]) -> ScanState:
    """With the first page, and without the one before it, which has done its work."""
    return msgspec.structs.replace(state, front=front, marks=state.marks and msgspec.structs.replace(state.marks, front=()))


def is_gap(state: ScanState, stopped: Stopped, order: Order) -> bool:
    """Whether a scan ended before it came to what the last complete one had seen."""
    return (
        stopped == "limit" and order == "activity" and state.marks is not None and state.mode != "backfill" and not state.read_all
    )


class _Page:
    """A list page under the two questions that are asked of it: is it older than a time, is it known."""

    def __init__(self, rows: Sequence[Listed], order: Order, zone: ZoneInfo) -> None:
        self.order = order
        self.zone = zone
        self._rows = [row for row in rows if not row.thread.sticky]
        self._dates = [date for row in self._rows if (date := _date(row.thread, order)) is not None]

    def is_older_than(self, mark: datetime) -> bool:
        """Whether its last rows are."""
        return bool(self._dates) and all(_latest(date, self.zone) < mark for date in self._dates[-TRAIL:])

    def is_known(self) -> bool:
        """For lists that show no times: whether nothing on it is new or has changed."""
        return not self._dates and bool(self._rows) and all(row.change is Change.UNCHANGED for row in self._rows)


def _counted(state: ScanState, rows: Sequence[Listed], dates: Sequence[datetime], page: _Page, digest: str) -> ScanState:
    mark = state.marks.newest if state.marks else None
    # What waits to be fetched since an earlier scan has happened before its mark; it is not counted again.
    until = state.told_until and state.told_until - TOLD_GRACE
    since = [
        row.change
        for row in rows
        if (date := _date(row.thread, page.order)) is None or ((mark is None or date >= mark) and (until is None or date < until))
    ]
    left = state.left or any(row.change is not Change.UNCHANGED and _is_left(state, row, page.order) for row in rows)
    by_age = sorted(dates, reverse=True)
    return msgspec.structs.replace(
        state,
        pages=state.pages + 1,
        threads=state.threads + len(rows),
        new=state.new + since.count(Change.NEW),
        changed=state.changed + since.count(Change.CHANGED),
        left=left,
        newest_at=state.newest_at or (by_age[min(OUTLIERS, len(by_age) - 1)] if by_age else None),
        oldest_at=_earlier(state.oldest_at, by_age[-1] if by_age else None),
        proven=state.proven or (mark is not None and page.order == "activity" and page.is_older_than(mark)),
        known_pages=state.known_pages + page.is_known(),
        page_digest=digest,
    )


def _reached(state: ScanState, page: _Page) -> bool:
    """Whether the scan has come to where it goes."""
    if state.read_all:
        return False
    if state.mode == "backfill":
        return state.since is not None and page.order != "none" and page.is_older_than(state.since)
    if state.marks is None or page.order != "activity":
        return False
    if state.marks.until is not None and page.is_older_than(state.marks.until):
        return True
    # A list without times: more pages without news than incomplete scans have read hold something that the last complete one saw.
    return page.is_known() and state.known_pages > state.marks.failed_pages


def told_until(recent: Marks | None, at: datetime) -> datetime | None:
    """Down to where a scan that begins now leaves changes to the page of the newest messages: None where there is none, or where
    nobody has looked at it lately.
    """
    return recent.scanned_at if recent is not None and at - recent.scanned_at < TOLD_SOON else None


def _is_left(state: ScanState, row: Listed, order: Order) -> bool:
    """Whether a row tells of what came after the last look at the newest messages: the next one tells it for less. A date in the
    future says that the site's clock is another one.
    """
    date = _date(row.thread, order)
    is_usual = order == "activity" and state.mode == "scan" and not state.read_all
    return is_usual and state.told_until is not None and date is not None and state.told_until <= date <= state.started_at


def _is_wanted(state: ScanState, row: Listed, order: Order, zone: ZoneInfo) -> bool:
    if row.change is Change.UNCHANGED or _is_left(state, row, order):
        return False
    date = _date(row.thread, order)
    return state.since is None or date is None or _latest(date, zone) >= state.since


def _date(thread: ListedThread, order: Order) -> datetime | None:
    return thread.created_at if order == "created" else thread.last_activity or thread.created_at


def _latest(date: datetime, zone: ZoneInfo) -> datetime:
    """The latest time that a shown one may stand for: at midnight it is a date without a time."""
    return date + timedelta(days=1) if date.astimezone(zone).time() == time() else date


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((date for date in (one, other) if date is not None), default=None)


def begun(*, mode: ListMode, limit: int, read_all: bool, since: datetime | None) -> ScanState:
    """The state of a scan that begins now; the marks come with its first page."""
    return ScanState(started_at=datetime.now(UTC), mode=mode, limit=limit, read_all=read_all, since=since)
