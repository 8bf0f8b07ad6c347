"""Each page below the overview, as HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import redis

from forums.overview import Overview
from forums.overview.samples import History
from forums.state.site_breakers import Breakers
from forums.storage import Database
from forums.storage.read.event_reader import Event
from redis_components.errors import TrawlError
from workers.state.jobs import Jobs
from workers.state.registry import CrawlerRecord

from . import data
from .charts import crawler_charts, fleet_charts, site_charts
from .overview_page import crew, stalest_first
from .rendering import median, rendered
from .schedule import schedule_rows

SITES_CHARTED = 50
T = TypeVar("T")


class NotThere(Exception):
    """Nothing of that name is known; the message is one line for people."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The sources of a page: the Redis at `source`, and the shared overview."""

    client: redis.Redis
    source: str
    view: Overview
    history: Callable[[], History] = History
    role: str = "read"  # or "act": the page offers actions

    def html(self, template: str, title: str, **values: object) -> str:
        """Render that template; where Redis is away, a page that reports it."""
        if self.view.failure is not None:
            return rendered("away.html", title=title, source=self.source, view=self.view, role=self.role)
        return rendered(template, title=title, source=self.source, view=self.view, role=self.role, **values)


def _stored(read: Callable[[Database], T], otherwise: T) -> tuple[T, str]:
    """Return the result of `read` on the database, and "" or why it could not be read."""
    try:
        with data.stored_data() as database:
            found = read(database)
    except TrawlError as error:
        return otherwise, str(error)
    return found, ""


def sites(reading: Reading) -> str:
    """Render all sites: their state, freshness and requests."""
    found = reading.view.sites
    names = sorted({*found.names, *found.breakers, *found.wrong_files})
    boards = {name: [one for one in found.boards if one.watched.site == name] for name in names}
    return reading.html("sites.html", "Sites", sites=found, names=names, boards=boards, median=median)


def site(reading: Reading, name: str) -> str:
    """Render one site. Raises NotThere."""
    found = reading.view.sites
    if reading.view.failure is None and name not in {*found.names, *found.breakers, *found.wrong_files, *found.delays}:
        raise NotThere(f"no site {name!r:.100} is watched")
    stored, trouble = _stored(lambda database: data.of_site(database, name), data.Stored())
    boards = [one for one in found.boards if one.watched.site == name]
    return reading.html(
        "site.html",
        name,
        name=name,
        sites=found,
        boards=stalest_first(boards),
        breaker=found.breakers.get(name) or (Breakers(reading.client).get(name) if reading.view.failure is None else None),
        lanes=[one for one in found.lanes if one.lane == name],
        held=[one for one in reading.view.held if one.site == name],
        stored=stored,
        trouble=trouble,
        median=median,
        day=site_charts(reading.history(), name, reading.view.now),
    )


def service(reading: Reading, name: str) -> str:
    """Render one service. Raises NotThere."""
    one = next((one for one in reading.view.services if one.name == name), None)
    if one is None and reading.view.failure is None:
        raise NotThere(f"no service {name!r:.100} is known")
    runs, trouble = _runs(reading, name, None)
    return reading.html(
        "service.html",
        name,
        one=one,
        crew=lambda one: crew(reading.view, one),
        crawlers=[record for record in reading.view.crawlers if record.spider == name],
        held=[held for held in reading.view.held if held.service in ("", name) and not held.by_breaker],
        autoscaled=reading.view.autoscaled.get(name),
        runs=runs,
        trouble=trouble,
    )


def crawler(reading: Reading, name: str) -> str:
    """Render one crawler: a slot, or a process that was started by hand. Raises NotThere."""
    one = next((one for one in reading.view.crawlers if one.name == name), None)
    if one is None and reading.view.failure is None:
        raise NotThere(f"no crawler {name!r:.100} has reported")
    runs, trouble = _runs(reading, one.spider, one.number) if one else ([], "")
    charts = crawler_charts(reading.history(), name, reading.view.now)
    return reading.html("crawler.html", name, one=one, log=_log(one) if one else [], runs=runs, trouble=trouble, charts=charts)


def node(reading: Reading, name: str) -> str:
    """Render one node. Raises NotThere."""
    one = next((one for one in reading.view.nodes if one.name == name), None)
    if one is None and reading.view.failure is None:
        raise NotThere(f"no node {name!r:.100} has reported")
    crawlers = [record for record in reading.view.crawlers if record.node == name]
    return reading.html("node.html", name, one=one, crawlers=crawlers)


def dead(reading: Reading) -> str:
    """Render the dead letters of all services."""
    entries = data.dead_of(reading.client, reading.view) if reading.view.failure is None else []
    return reading.html("dead.html", "Dead letters", entries=entries, payload=data.payload_of)


def events(reading: Reading) -> str:
    """Render the last events of posts and comments, and the fleet's errors."""
    nothing: list[Event] = []
    found, trouble = _stored(data.events_of, nothing)
    of_fleet, _ = _stored(data.fleet_events_of, nothing)
    return reading.html("events.html", "Events", events=found, of_fleet=of_fleet, trouble=trouble)


def history(reading: Reading) -> str:
    """Render the fleet over a day and over 30 days, and each site."""
    known, now = reading.history(), reading.view.now
    names = reading.view.sites.names[:SITES_CHARTED]
    return reading.html(
        "history.html",
        "History",
        day=fleet_charts(known, now),
        month=fleet_charts(known, now, month=True),
        sites={name: site_charts(known, name, now, month=True) for name in names},
    )


def schedule(reading: Reading) -> str:
    """Render the schedule."""
    rows = schedule_rows(reading.client) if reading.view.failure is None else []
    return reading.html("schedule.html", "Schedule", rows=rows)


def jobs(reading: Reading) -> str:
    """Render the jobs, the youngest first."""
    found = Jobs(reading.client).all().values() if reading.view.failure is None else ()
    return reading.html("jobs.html", "Jobs", jobs=sorted(found, key=lambda job: job.started_at, reverse=True))


def _runs(reading: Reading, spider: str, number: int | None) -> tuple[list[Any], str]:
    if reading.view.failure is not None:
        return [], ""
    found, trouble = _stored(lambda database: data.runs_of(reading.client, database, spider, number), None)
    return (data.runs_of(reading.client, None, spider, number), trouble) if found is None else (found, "")


def _log(one: CrawlerRecord) -> list[str] | None:
    """Return the last lines of its log; None: they are on another machine."""
    if (lines := data.log_of(one.spider, one.number)) is not None:
        return [line.text[: data.LINE_CHARACTERS] for line in lines]
    return one.log.split("\n") if one.log else None
