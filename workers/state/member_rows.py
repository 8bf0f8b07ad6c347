"""Outcomes of members of runs, between Redis and the database."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from redis_components.server.untrusted_values import decoded

from .group_runs import EndedMember, Member, Verdict
from .history import MemberRow

LONGEST_NAME = 255


def member_rows(entries: Iterable[bytes]) -> list[MemberRow]:
    """Convert members that are over for the database, without what is none."""
    rows = []
    for text in entries:
        try:
            one = decoded(text, EndedMember)
            started_at, ended_at = (datetime.fromtimestamp(at, UTC) for at in (one.started_at, one.ended_at))
        except (ValueError, OverflowError, OSError):
            continue
        if max(map(len, (one.run, one.spider, one.group))) > LONGEST_NAME:  # as Trawl writes none, and MySQL stores none
            continue
        clean = {name: getattr(one, name).replace("\0", "") for name in ("run", "spider", "reason")}
        rows.append(
            MemberRow(
                **clean,
                of_group=one.group.replace("\0", ""),
                verdict=str(one.verdict),
                pages=one.pages,
                scraped=one.items,
                errors=one.errors,
                seconds=one.seconds,
                fields=msgspec.json.encode(one.fields).decode(),
                started_at=started_at,
                ended_at=ended_at,
            )
        )
    return rows


def of_row(row: MemberRow) -> Member:
    """Return a member as it was, but for its page and traceback."""
    return Member(
        spider=row.spider,
        verdict=Verdict(row.verdict),
        reason=row.reason,
        pages=row.pages,
        items=row.scraped,
        errors=row.errors,
        seconds=row.seconds,
        fields=decoded(row.fields, dict[str, float]),
        started_at=row.started_at.timestamp(),
        ended_at=row.ended_at.timestamp(),
    )
