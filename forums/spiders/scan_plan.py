"""Plan for a list page: the new and changed threads, and the end of the scan. Pure.

A list in the order of activity is read until it overlaps the last complete scan: until rows are older than that scan's mark, the
activity at the top of its first page. Activity after that page was read is above the mark, so the next scan finds it. A row can
only be missed if a thread above it is removed between two pages, which moves the row to a page that was read already. So the
whole range of a scan of more than one page is read once more by the next scan (`marks_after`): a row is lost to the scans only if
a removal hides it twice. Deep scans and re-checks of threads find even that row.

A scan's report holds the rows of its first list page, which the next scan compares with its own. In a list in the order of
activity, newer threads push a thread down. A thread that was on the first page and is not any more, although threads that were
active before it are, was removed, or moved to another forum, or lost its last comments. No row shows that, since no remaining
thread changed. New titles, found by the same comparison, are edits of opening posts.

Background: decision 24.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from forum_reader.reading.page_records import ListedThread
from forum_reader.reading.read_page import NO_SIGN
from forums.records.stored import FrontRow, ListMode, Marks, PostTask
from forums.records.tasks_and_items import stamp
from forums.state.database_state import ThreadRecord

Order = Literal["activity", "created", "none"]
Stopped = Literal["overlap", "end", "limit"]

TRAIL = 3
"""Rows at the end of a page that must be older: single rows may be out of order, such as a thread that was moved."""
AT_LEAST = 3
"""Rows that may vanish at once from a short page; from a long page half of them. More mean that the list is sorted otherwise."""
MOST_KEPT = 500
"""Rows of a first page that are kept for the next scan; pages of forums have 20 to 300."""
_MOST_CHARACTERS = 1 << 16

OUTLIERS = 2
"""Threads of a page that may have a date in the future; the mark is taken after them."""

MOST_FED = 500
"""Threads of one scan that are remembered as fetched: a thread that is listed again within this number is not read twice."""

TOLD_SOON = timedelta(minutes=2)
"""After a look at the newest messages within this time, another one is expected soon."""
TOLD_GRACE = timedelta(seconds=5)
"""Time until the threads and replies of such a look are stored; a scan that still sees them as new does not count them."""

GONE_FOR = timedelta(days=1)
"""Retry interval of a listed thread that could not be opened, since it may be hidden temporarily."""

WHOLE_PAGES = 10
"""Threads with missing comments are read whole up to this number of pages; in longer ones a check finds the missing ones."""


class Change(StrEnum):
    """Change of a thread that a list row shows."""

    NEW = "new"  # nothing of it is stored
    CHANGED = "changed"  # its token differs from the stored one
    UNCHANGED = "unchanged"


class ScanState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a scan; part of its requests."""

    started_at: datetime
    mode: ListMode = "scan"
    limit: int
    read_all: bool = False  # read `limit` pages, regardless of their rows
    since: datetime | None = None  # backfill: its lower end
    marks: Marks | None = None  # of earlier scans; None: there was no complete one
    told_until: datetime | None = None  # changes since then are left to the next look at the newest messages
    left: bool = False  # a page had such changes
    pages: int = 0
    threads: int = 0
    new: int = 0
    changed: int = 0
    newest_at: datetime | None = None
    oldest_at: datetime | None = None
    known_pages: int = 0  # pages without changes
    proven: bool = False  # it has read below the mark of the last complete scan
    page_digest: str = ""  # of the ids of the last page
    front: tuple[FrontRow, ...] = ()  # the first page
    fed: tuple[str, ...] = ()  # digests of the last threads that were fed


class Listed(NamedTuple):
    """A thread to fetch."""

    thread: ListedThread
    change: Change
    record: ThreadRecord | None


class PagePlan(NamedTuple):
    """Result for a page: threads to fetch, the scan's state, the reason to stop or None; threads to check, because their position
    or their title changed.
    """

    fetch: list[Listed]
    state: ScanState
    stopped: Stopped | None
    missed: list[FrontRow]
    renamed: list[ListedThread]


def change_of(thread: ListedThread, record: ThreadRecord | None, at: datetime, file: str = "") -> Change:
    """Return the change of a thread that its row shows at time `at`. A gone thread that is listed again is retried after a
    day, and at once if the site file changed since it was requested: `file` is the digest of the present one.
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
    if thread.token == NO_SIGN:  # another list of the site shows more of it
        return Change.UNCHANGED
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
    """Return the plan for the next list page of a scan. `records` by thread id; `zone` is that of dates without a time;
    `file`: the digest of the site file.
    """
    digest = hashlib.blake2b("\n".join(one.id for one in threads).encode(), digest_size=8).hexdigest()
    repeated = bool(threads) and digest == state.page_digest  # some sites show the last page for all numbers behind it
    rows = [Listed(one, change_of(one, records.get(one.id), state.started_at, file), records.get(one.id)) for one in threads]
    dates = [date for one in threads if not one.sticky and (date := _date(one, order)) is not None]
    page = _Page(rows, order, ZoneInfo(zone))
    missed, renamed = _compared(state, threads, records, has_next=has_next)
    state = _counted(state, rows, dates, page, digest)
    if state.pages == 1:
        marks = state.marks and msgspec.structs.replace(state.marks, front=())  # the previous first page is not needed any more
        state = msgspec.structs.replace(state, front=front_of(threads, order), marks=marks)
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
    fetch = [row for row in fetch if _short_digest(row.thread.id) not in fed]  # a list of messages has a thread on several pages
    state = msgspec.structs.replace(state, fed=(*state.fed, *(_short_digest(row.thread.id) for row in fetch))[-MOST_FED:])
    return PagePlan(fetch, state, stopped, missed, renamed)


def _short_digest(id_: str) -> str:
    return hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def front_of(threads: Sequence[ListedThread], order: str) -> tuple[FrontRow, ...]:
    """Return the rows of a first page to keep, none of an oversized page, since only a complete one can be compared. They are
    part of each request of their scan, and stored in Redis for each forum of a site.
    """
    size = sum(len(one.id) + len(one.token) + len(one.url or "") for one in threads)
    if len(threads) > MOST_KEPT or size > _MOST_CHARACTERS:
        return ()
    return tuple(
        FrontRow(one.id, one.token, None if one.sticky or order != "activity" else one.last_activity, _title_digest(one), one.url)
        for one in threads
    )


def vanished(before: Sequence[FrontRow], threads: Sequence[ListedThread], *, has_next: bool) -> list[FrontRow]:
    """Return the rows of `before` that should still be among `threads`, the present first page, and are not. Empty if the list
    shows no dates, or dates that change with the time of day ("3 hours ago").
    """
    there = {one.id: one for one in threads}
    dates = [one.last_activity for one in threads if not one.sticky and one.last_activity is not None]
    same = [(row.at, one.last_activity) for row in before if row.at and (one := there.get(row.id)) and one.token == row.token]
    if not threads or (has_next and not dates) or any(was != now for was, now in same):
        return []
    end = max(dates[-TRAIL:]) if has_next else None
    gone = [row for row in before if row.at is not None and row.id not in there and (end is None or row.at > end)]
    return gone if is_believable(len(gone), len(before)) else []


def retitled(before: Sequence[FrontRow], threads: Sequence[ListedThread]) -> list[ListedThread]:
    """Return the threads with another title than in `before`."""
    titles = {row.id: row.title for row in before}
    found = [one for one in threads if titles.get(one.id) and (title := _title_digest(one)) and title != titles[one.id]]
    return found if is_believable(len(found), len(before)) else []


def is_believable(number: int, rows: int) -> bool:
    """Return True if so many of `rows` rows may vanish at once."""
    return number <= max(AT_LEAST, rows // 2)


def _title_digest(thread: ListedThread) -> str:
    title = thread.title or ""
    return title and hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _compared(
    state: ScanState, threads: Sequence[ListedThread], records: Mapping[str, ThreadRecord | None], *, has_next: bool
) -> tuple[list[FrontRow], list[ListedThread]]:
    """Return the vanished rows and the retitled threads of the first page. Very long threads are not read again for a title."""
    if state.pages or state.marks is None or state.mode == "backfill":
        return [], []
    before = state.marks.front
    short = [one for one in retitled(before, threads) if (record := records.get(one.id)) and 0 < record.last_page <= WHOLE_PAGES]
    return vanished(before, threads, has_next=has_next), short


def is_gap(state: ScanState, stopped: Stopped, order: Order) -> bool:
    """Return True if a scan ended before it reached rows of the last complete scan."""
    return (
        stopped == "limit" and order == "activity" and state.marks is not None and state.mode != "backfill" and not state.read_all
    )


class _Page:
    """A list page, for comparisons with a mark and with known threads."""

    def __init__(self, rows: Sequence[Listed], order: Order, zone: ZoneInfo) -> None:
        self.order = order
        self.zone = zone
        self._rows = [row for row in rows if not row.thread.sticky]
        self._dates = [date for row in self._rows if (date := _date(row.thread, order)) is not None]

    def is_older_than(self, mark: datetime) -> bool:
        """Return True if its last rows are older than `mark`."""
        return bool(self._dates) and all(_latest(date, self.zone) < mark for date in self._dates[-TRAIL:])

    def is_known(self) -> bool:
        """Return True if nothing on the page is new or changed; for lists without times."""
        return not self._dates and bool(self._rows) and all(row.change is Change.UNCHANGED for row in self._rows)


def _counted(state: ScanState, rows: Sequence[Listed], dates: Sequence[datetime], page: _Page, digest: str) -> ScanState:
    mark = state.marks.newest if state.marks else None
    # Threads of an earlier scan that still wait to be fetched are older than its mark; they are not counted again.
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
        oldest_at=min(filter(None, (state.oldest_at, *by_age[-1:])), default=None),
        proven=state.proven or (mark is not None and page.order == "activity" and page.is_older_than(mark)),
        known_pages=state.known_pages + page.is_known(),
        page_digest=digest,
    )


def _reached(state: ScanState, page: _Page) -> bool:
    """Return True if the scan has reached its lower end."""
    if state.read_all:
        return False
    if state.mode == "backfill":
        return state.since is not None and page.order != "none" and page.is_older_than(state.since)
    if state.marks is None or page.order != "activity":
        return False
    if state.marks.until is not None and page.is_older_than(state.marks.until):
        return True
    # A list without times: more unchanged pages than incomplete scans have read overlap the last complete scan.
    return page.is_known() and state.known_pages > state.marks.failed_pages


def told_until(recent: Marks | None, at: datetime) -> datetime | None:
    """Return the time since which a scan that begins now leaves changes to the page of the newest messages; None without such a
    page or without a recent look at it.
    """
    return recent.scanned_at if recent is not None and at - recent.scanned_at < TOLD_SOON else None


def _is_left(state: ScanState, row: Listed, order: Order) -> bool:
    """Return True if the row's change came after the last look at the newest messages: the next look reads it at lower cost. A
    date in the future shows that the site's clock is wrong.
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
    """Return the latest time that a shown date may stand for: midnight stands for a date without a time."""
    return date + timedelta(days=1) if date.astimezone(zone).time() == time() else date


def begun(*, mode: ListMode, limit: int, read_all: bool, since: datetime | None) -> ScanState:
    """Return the state of a scan that begins now; the marks are added with its first page."""
    return ScanState(started_at=datetime.now(UTC), mode=mode, limit=limit, read_all=read_all, since=since)


def task_of(listed: Listed, site: str, forum: str | None, *, is_backfill: bool = False) -> PostTask:
    """Return the start task for a new or changed thread."""
    thread, record = listed.thread, listed.record
    task = PostTask(
        site=site,
        post=thread.id,
        forum=forum,
        mode="backfill" if is_backfill else "new",
        token=thread.token or None,
        url=thread.url,
        replies=thread.reply_count,
        author=thread.author,
        created_at=_stamp(thread.created_at),
        last_activity=_stamp(thread.last_activity),
    )
    if listed.change is not Change.CHANGED or record is None:
        return task
    return msgspec.structs.replace(
        task,
        mode="changed",
        page=page_to_begin(thread.reply_count, record),
        after=record.last_comment,
        expected=None if thread.reply_count is None or record.listed is None else thread.reply_count - record.listed,
        short=record.short if record.has_token(thread.token) else 0,
        known=record.comments,
        cursor=record.cursor,
        own=record.own,
    )


def page_to_begin(reply_count: int | None, record: ThreadRecord) -> int:
    """Return the comment page from which a changed thread is read; `reply_count` is the list's."""
    fewer = reply_count is not None and record.listed is not None and reply_count < record.listed
    return 1 if (fewer or record.short) and record.last_page <= WHOLE_PAGES else record.last_page


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def checks_of(plan: PagePlan, site: str, forum: str) -> Iterator[PostTask]:
    """Yield the start tasks for the threads that a list page's plan has checked."""
    for row in plan.missed:
        yield PostTask(site=site, post=row.id, forum=forum, mode="check", token=row.token, url=row.url)
    for thread in plan.renamed:
        replies = thread.reply_count
        yield PostTask(site=site, post=thread.id, forum=forum, mode="check", token=thread.token, url=thread.url, replies=replies)
