"""End of a scan whose first list page is unchanged (304, or the same body). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from forum_reader.reading.read_page import ListedThread
from forums.records.first_page import FrontRow
from forums.state.thread_records import ThreadRecord

from .scan_marks import Marks
from .scan_plan import Change, Order, ScanState, change_of


def finished(
    state: ScanState, marks: Marks | None, records: Mapping[str, ThreadRecord | None], *, order: Order, file: str
) -> ScanState | None:
    """Return the state of a scan completed by its unchanged first page; None if the page has to be read.

    The page is the one that the last complete scan read (`marks.front`), with all its threads stored; `records` by their ids.
    It has to be read if that scan leaves a range to be read twice, if a later scan was incomplete, if a thread of the page is
    not stored or due for a retry, and in lists that are not in the order of activity, where changes are on later pages.
    """
    if marks is None or not marks.front or order != "activity" or state.mode != "scan" or state.read_all:
        return None
    if marks.failed_pages or marks.newest is None or marks.until is None or marks.until < marks.newest:
        return None
    if any(_change(row, records, state.started_at, file) is not Change.UNCHANGED for row in marks.front):
        return None
    return msgspec.structs.replace(
        state,
        marks=marks,
        pages=1,
        threads=len(marks.front),
        newest_at=marks.newest,
        oldest_at=min((row.at for row in marks.front if row.at is not None), default=None),
        proven=True,
        front=marks.front,
    )


def _change(row: FrontRow, records: Mapping[str, ThreadRecord | None], at: datetime, file: str) -> Change:
    return change_of(ListedThread(id=row.id, url=row.url or "", token=row.token), records.get(row.id), at, file)
