"""Plan for a page of a site's newest messages: threads to read, and replies to store directly from the page. Pure.

A message is stored directly if that leaves nothing out: its thread is known, the message follows all stored comments of it,
and the page shows the whole text and the parent. The thread's record then counts it, and the next list is compared with that
count (`ThreadRecord.covers`): if a message was missing here, the list's count differs, and the thread is read. So the page saves
requests only; the lists stay the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from forum_reader.reading.page_records import ListedThread, RecentMessage
from forums.records.stored import FrontRow, Marks
from forums.spiders.scan_plan import MOST_KEPT, is_believable
from forums.state.database_state import ThreadRecord

from .scan_plan import Change, Listed, Stopped, change_of
from .thread_reading import is_behind, number_of


class RecentState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a look at the newest messages; part of its requests."""

    started_at: datetime
    limit: int
    marks: Marks | None = None  # of the look before; None: there was none
    pages: int = 0
    messages: int = 0
    news: int = 0  # messages that were stored or caused a reading
    newest_at: datetime | None = None
    oldest_at: datetime | None = None
    front: tuple[FrontRow, ...] = ()  # the first page
    seen: tuple[str, ...] = ()  # marks of the previous look's first page that were seen again


class RecentSummary(NamedTuple):
    """Replies of a thread that are stored from the page, the oldest first."""

    thread: str
    record: ThreadRecord
    messages: list[RecentMessage]


class RecentPlan(NamedTuple):
    """Result for a page: threads to read, each with the row that shows the change; replies to store; stored replies with another
    text; threads to check, because a message in them is gone; the new state; the reason to stop, if any.
    """

    fetch: list[tuple[RecentMessage, Listed]]
    direct: list[RecentSummary]
    edited: list[tuple[RecentMessage, ThreadRecord]]
    checked: list[str]
    state: RecentState
    stopped: Stopped | None


def plan_recent(
    state: RecentState,
    messages: Sequence[RecentMessage],
    records: Mapping[str, ThreadRecord | None],
    *,
    has_next: bool,
    watched: frozenset[str] | None = None,
    file: str = "",
) -> RecentPlan:
    """Return the plan for a page. `records` by thread; `watched`: the forums whose new threads are read, None for all."""
    known = {row.id: row for row in state.marks.front} if state.marks else {}
    overlaps = any(one.mark in known for one in messages)
    stopped: Stopped | None = None
    if not messages or overlaps or state.marks is None:
        stopped = "overlap" if messages else "end"
    elif not has_next:
        stopped = "end"
    elif state.pages + 1 >= state.limit:
        stopped = "limit"
    is_complete = state.pages == 0 and (overlaps or not has_next)  # else a reply before these may be on the next page
    fetch: list[tuple[RecentMessage, Listed]] = []
    direct: list[RecentSummary] = []
    edited: list[tuple[RecentMessage, ThreadRecord]] = []
    for thread, all_news, others in _by_thread(messages, known):
        record, news = records.get(thread), all_news
        if record is not None and not record.is_gone:
            edited += [(one, record) for one in others]
            news = [one for one in news if not one.opening]  # the opening is stored
        if not news or not _is_wanted(record, news, watched):
            continue
        if is_complete and record is not None and _can_be_stored(record, news):
            if behind := [one for one in news if one.id is not None and is_behind(one.id, record.last_comment)]:
                direct.append(RecentSummary(thread, record, sorted(behind, key=lambda one: number_of(one.id or ""))))
        elif (listed := _listed(news, record, state, file)) is not None:
            fetch.append(listed)
    return RecentPlan(
        fetch,
        direct,
        edited,
        _checked(state, messages, known, ended=stopped is not None),
        _counted(state, messages, len(fetch) + sum(len(one.messages) for one in direct), known),
        stopped,
    )


def _by_thread(
    messages: Sequence[RecentMessage], known: Mapping[str, FrontRow]
) -> Iterator[tuple[str, list[RecentMessage], list[RecentMessage]]]:
    """Yield each thread with its new messages, the oldest first, and its known messages with another text."""
    dates = [row.at for row in known.values() if row.at is not None]
    oldest = min(dates, default=None)
    threads: dict[str, tuple[list[RecentMessage], list[RecentMessage]]] = {}
    for one in reversed(messages):
        news, others = threads.setdefault(one.thread, ([], []))
        before = known.get(one.mark)
        if before is None:
            is_old = bool(oldest and one.created_at and one.created_at < oldest)  # on the page because others were removed
            news += [] if is_old else [one]
        elif one.id is not None and before.title != one.digest:
            others.append(one)
    for thread, (news, others) in threads.items():
        yield thread, news, others


def _is_wanted(record: ThreadRecord | None, news: Sequence[RecentMessage], watched: frozenset[str] | None) -> bool:
    """Return True if the thread's forum is watched: always for a known thread, else by the forum of its rows."""
    if record is not None or watched is None:
        return True
    return any(one.forum_id in watched for one in news if one.forum_id is not None)


def _can_be_stored(record: ThreadRecord, news: Sequence[RecentMessage]) -> bool:
    """Return True if the messages can be stored directly, which needs numeric ids to order them."""
    if record.is_gone or record.short:
        return False
    if record.last_comment is None and record.comments:
        return False
    return all(
        one.id is not None
        and (one.body is not None or one.deleted)
        and not one.has_unknown_parent
        and is_behind(one.id, record.last_comment) is not None
        for one in news
    )


def _listed(
    news: Sequence[RecentMessage], record: ThreadRecord | None, state: RecentState, file: str
) -> tuple[RecentMessage, Listed] | None:
    """Return the newest row of a thread as a list row; None if it shows no change."""
    row = news[-1]
    replies, active = row.reply_count, row.created_at
    thread = ListedThread(id=row.thread, token=row.token or "", url=row.url, reply_count=replies, last_activity=active)
    if record is None or record.is_gone or row.token is not None:
        change = change_of(thread, record, state.started_at, file)
    elif row.id is not None:
        last = record.last_comment
        is_stored = last is not None and all(one.id is not None and is_behind(one.id, last) is False for one in news)
        change = Change.UNCHANGED if is_stored else Change.CHANGED
    elif replies is not None:
        change = Change.UNCHANGED if record.counts(replies) else Change.CHANGED
    else:  # a new row is a change; the first look has nothing to compare with
        change = Change.UNCHANGED if state.marks is None else Change.CHANGED
    return None if change is Change.UNCHANGED else (row, Listed(thread, change, record))


def _checked(state: RecentState, messages: Sequence[RecentMessage], known: Mapping[str, FrontRow], *, ended: bool) -> list[str]:
    """Return the threads with messages that disappeared since the last look, although older messages are still shown."""
    there = {*state.seen, *(one.mark for one in messages)}
    dates = [one.created_at for one in messages if one.created_at is not None]
    if not ended or not dates or not known:
        return []
    end = min(dates)
    gone = [row for row in known.values() if row.at is not None and row.at > end and row.id not in there]
    return list(dict.fromkeys(row.token for row in gone)) if is_believable(len(gone), len(known)) else []


def _counted(state: RecentState, messages: Sequence[RecentMessage], news: int, known: Mapping[str, FrontRow]) -> RecentState:
    dates = [one.created_at for one in messages if one.created_at is not None]
    return msgspec.structs.replace(
        state,
        pages=state.pages + 1,
        messages=state.messages + len(messages),
        news=state.news + news,
        newest_at=max([*dates, *([state.newest_at] if state.newest_at else [])], default=None),
        oldest_at=min([*dates, *([state.oldest_at] if state.oldest_at else [])], default=None),
        seen=(*state.seen, *(one.mark for one in messages if one.mark in known)),
        front=state.front
        or tuple(FrontRow(one.mark, one.thread, one.created_at if one.id else None, one.digest) for one in messages[:MOST_KEPT]),
    )
