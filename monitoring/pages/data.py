"""Reads the data of single pages beyond the overview: the history and the log of a crawler, and dead letters."""

from __future__ import annotations

import redis

from redis_components.admin.crawl_records import CrawlRecords
from redis_components.admin.dead_letters import DeadEntry, newest
from redis_components.errors import TrawlError
from workers.application import application
from workers.logs.lines import LogLine, is_routine, last_lines
from workers.logs.slot_log import slot_logs
from workers.overview import Overview
from workers.state.group_runs import Member
from workers.state.history import MemberRow, RunRow, Wanted, latest
from workers.state.member_rows import of_row

LONGEST_S = 10.0  # that a page may keep the database at work
LOG_LINES = 200
LINE_CHARACTERS = 2000
RUNS_SHOWN = 20
NIGHTS_SHOWN = 400
DEAD_SHOWN = 50
PAYLOAD_BYTES = 4000


def runs_of(client: redis.Redis, spider: str, number: int | None) -> tuple[list[RunRow], str]:
    """Return the crawler processes of a service, or of a slot, the youngest first; and "" or why the stored ones are missing."""
    wanted, stored, trouble = Wanted(spider=spider, number=number), list[RunRow](), ""
    try:
        stored = application().stored_runs(wanted, RUNS_SHOWN, longest_s=LONGEST_S) or []
    except TrawlError as error:
        trouble = str(error)
    return latest(stored, client, wanted, RUNS_SHOWN), trouble


def nights_of(spider: str, group: str, recent: list[Member]) -> tuple[list[Member], str]:
    """Return the outcomes of a member in runs of its group: those that the database has, and the `recent` ones; and "" or why the
    stored ones are missing.
    """
    stored, trouble = list[MemberRow](), ""
    try:
        stored = application().stored_members(spider, group, NIGHTS_SHOWN, longest_s=LONGEST_S) or []
    except TrawlError as error:
        trouble = str(error)
    found = {round(one.ended_at, 2): one for one in (*map(of_row, stored), *recent)}
    return list(found.values()), trouble


def log_of(spider: str, number: int | None) -> list[LogLine] | None:
    """Return the last lines of a crawler's log; None where it is not on this machine."""
    log = slot_logs().get((spider, number)) if number is not None else None
    try:
        return last_lines(log, LOG_LINES, fits=lambda line: not is_routine(line)) if log else None
    except OSError:
        return None


def dead_of(client: redis.Redis, view: Overview, service: str | None = None) -> list[tuple[str, DeadEntry]]:
    """Return the requests and start tasks that were given up, with their service, newest first."""
    names = [one.name for one in view.services if service in (None, one.name) and one.crawl.dead]
    crawls = CrawlRecords(client).keys_of_all(names)
    found = [(name, entry) for name, keys in crawls.items() for entry in newest(client, keys, DEAD_SHOWN)[0]]
    return sorted(found, key=lambda one: one[1].at_s, reverse=True)[:DEAD_SHOWN]


def payload_of(entry: DeadEntry) -> str:
    """Return the request as it stands in Redis, for people; cut where it is long."""
    shown = entry.payload[:PAYLOAD_BYTES].decode("utf-8", "backslashreplace")
    return f"{shown}… ({len(entry.payload):,} bytes)" if len(entry.payload) > PAYLOAD_BYTES else shown
