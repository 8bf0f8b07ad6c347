"""The pages: each function reads what its page shows, and renders it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import redis

from fleet_operations.overview import WELL, Overview, ServiceView, calm, problems
from fleet_operations.overview.samples import History
from monitoring.part import part
from redis_components.admin.dead_letters import DeadEntry, newest
from redis_components.errors import TrawlError
from redis_components.keys import CrawlRecords
from workers.application import application
from workers.logs.slot_log import LogLine, is_routine, last_lines, slot_logs
from workers.state.group_runs import EndedMember, Member
from workers.state.history import Run, latest
from workers.state.registry import CrawlerRecord
from workers.state.rolls import RollState

from .charts import StoredRows, fleet_charts
from .rendering import rendered


def overview(reading: Reading, *, is_known: bool = False) -> str:
    """Render the status page; what was crawled is shown to a viewer with access alone, the fleet's state to every one."""
    view, rows = reading.view, reading.rows()
    found = problems(view)
    grave = sum(one.grave for one in found)
    return rendered(
        "status_page.html",
        role=reading.role,
        charts=fleet_charts(reading.history(), view.now, rows)[:3],
        view=view,
        source=reading.source,
        title=f"({grave}) Trawl" if grave else "Trawl",
        problems=found,
        grave=grave,
        calm=calm(view),
        is_well=calm(view) == WELL,
        held=[one for one in view.held if not one.by_breaker],  # breakers are listed with the sites
        roll=view.roll if view.roll is not None and view.roll.state is RollState.ROLLING else None,
        **part().overview(view, rows, is_known),
        crew=lambda one: crew(view, one),
    )


def crew(view: Overview, one: ServiceView) -> tuple[str, str]:
    """Return `1 of 22, paused`, and its tone."""
    text = f"{one.alive} of {one.desired}" if one.desired is not None else str(one.alive)
    if one.state:
        return f"{text}, {one.state}", "wait"
    return text, "good" if one.alive >= view.wanted(one) else "bad" if one.alive == 0 else "wait"


class NotThere(Exception):
    """Nothing of that name is known; the message is one line for people."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The sources of a page: the Redis at `source`, and the shared overview."""

    client: redis.Redis
    source: str
    view: Overview
    history: Callable[[], History] = History
    rows: Callable[[], StoredRows] = StoredRows
    role: str = "read"  # or "act": the page offers actions

    def html(self, template: str, title: str, **values: object) -> str:
        """Render that template; where Redis is away, a page that reports it."""
        if self.view.failure is not None:
            return rendered("away.html", title=title, source=self.source, view=self.view, role=self.role)
        return rendered(template, title=title, source=self.source, view=self.view, role=self.role, **values)


def service(reading: Reading, name: str) -> str:
    """Render one service. Raises NotThere."""
    one = next((one for one in reading.view.services if one.name == name), None)
    if one is None and reading.view.failure is None:
        raise NotThere(f"no service {name!r:.100} is known")
    return reading.html(
        "service.html",
        name,
        one=one,
        crew=lambda one: crew(reading.view, one),
        crawlers=[record for record in reading.view.crawlers if record.spider == name],
        held=[held for held in reading.view.held if held.service in ("", name) and not held.by_breaker],
        autoscaled=reading.view.autoscaled.get(name),
        runs=_runs(reading, name, None),
    )


def crawler(reading: Reading, name: str) -> str:
    """Render one crawler: a slot, or a process that was started by hand. Raises NotThere."""
    one = next((one for one in reading.view.crawlers if one.name == name), None)
    if one is None and reading.view.failure is None:
        raise NotThere(f"no crawler {name!r:.100} has reported")
    runs = _runs(reading, one.spider, one.number) if one else []
    return reading.html("crawler.html", name, one=one, log=_log(one) if one else [], runs=runs)


def dead(reading: Reading) -> str:
    """Render the dead letters of all services."""
    entries = dead_of(reading.client, reading.view) if reading.view.failure is None else []
    return reading.html("dead.html", "Dead letters", entries=entries, payload=payload_of)


def history(reading: Reading) -> str:
    """Render the fleet over a day and over 30 days."""
    known, now, rows = reading.history(), reading.view.now, reading.rows()
    return reading.html(
        "history.html",
        "History",
        day=fleet_charts(known, now, rows),
        month=fleet_charts(known, now, rows, month=True),
    )


def _runs(reading: Reading, spider: str, number: int | None) -> list[Run]:
    return latest(reading.client, RUNS_SHOWN, spider=spider, number=number) if reading.view.failure is None else []


def _log(one: CrawlerRecord) -> list[str] | None:
    """Return the last lines of its log; None: they are on another machine."""
    if (lines := log_of(one.spider, one.number)) is not None:
        return [line.shown[:LINE_CHARACTERS] for line in lines]
    return one.log.split("\n") if one.log else None


LONGEST_S = 10.0  # that a page may keep the database at work
LOG_LINES = 200
LINE_CHARACTERS = 2000
RUNS_SHOWN = 20
NIGHTS_SHOWN = 400
DEAD_SHOWN = 50
PAYLOAD_BYTES = 4000


def nights_of(spider: str, group: str, recent: list[Member]) -> tuple[list[Member], str]:
    """Return the outcomes of a member in runs of its group: those that the database has, and the `recent` ones; and "" or why the
    stored ones are missing.
    """
    stored, trouble = list[EndedMember](), ""
    try:
        stored = application().stored_members(spider, group, NIGHTS_SHOWN, longest_s=LONGEST_S) or []
    except TrawlError as error:
        trouble = str(error)
    found: dict[float, Member] = {round(one.ended_at, 2): one for one in (*stored, *recent)}
    return list(found.values()), trouble


def log_of(spider: str, number: int | None) -> list[LogLine] | None:
    """Return the last lines of a crawler's log; None where it is not on this machine."""
    log = slot_logs().get((spider, number)) if number is not None else None
    try:
        return last_lines(log, LOG_LINES, fits=lambda line: not is_routine(line)) if log else None
    except OSError:
        return None


def dead_of(client: redis.Redis, view: Overview) -> list[tuple[str, DeadEntry]]:
    """Return the requests and start tasks that were given up, with their service, newest first."""
    names = [one.name for one in view.services if one.crawl.dead]
    crawls = CrawlRecords(client).keys_of_all(names)
    found = [(name, entry) for name, keys in crawls.items() for entry in newest(client, keys, DEAD_SHOWN)[0]]
    return sorted(found, key=lambda one: one[1].at_s, reverse=True)[:DEAD_SHOWN]


def payload_of(entry: DeadEntry) -> str:
    """Return the request as it stands in Redis, for people; cut where it is long."""
    shown = entry.payload[:PAYLOAD_BYTES].decode("utf-8", "backslashreplace")
    return f"{shown}… ({len(entry.payload):,} bytes)" if len(entry.payload) > PAYLOAD_BYTES else shown
