"""The pages: each function reads what its page shows, and renders it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import redis

from forums.overview import BoardView, Overview, ServiceView, SitesView, problems
from forums.overview.boards import BAD_STATES
from forums.overview.samples import History
from forums.state.site_breakers import Breakers
from forums.storage import Database
from forums.storage.read.event_reader import Event
from redis_components.errors import TrawlError
from redis_components.server.replies import server_time
from workers.state.jobs import Jobs
from workers.state.registry import CrawlerRecord
from workers.state.rolls import RollState
from workers.state.schedules import Round, Schedules

from . import data
from .charts import crawler_charts, fleet_charts, lately, site_charts
from .rendering import median, rendered

BOARDS_SHOWN = 12
SITES_SHOWN = 5  # in the line on freshness
NOTHING = History()


def page(view: Overview, source: str, role: str = "read", history: History = NOTHING) -> str:
    """Render the whole page. `source` is the name of the Redis that was read; the templates escape every value."""
    found = problems(view)
    grave = sum(one.grave for one in found)
    boards = stalest_first(view.sites.boards)
    return rendered(
        "status_page.html",
        role=role,
        posts_a_minute=lately(history, view.now),
        charts=fleet_charts(history, view.now)[:3],
        view=view,
        source=source,
        title=f"({grave}) Trawl" if grave else "Trawl",
        problems=found,
        grave=grave,
        held=[one for one in view.held if not one.by_breaker],  # breakers are listed with the sites
        roll=view.roll if view.roll is not None and view.roll.state is RollState.ROLLING else None,
        wrong_files=_wrong_files(view.sites),
        boards=boards[:BOARDS_SHOWN],
        boards_title=f"The {BOARDS_SHOWN} stalest of {len(boards):,} boards"
        if len(boards) > BOARDS_SHOWN
        else "Boards, the stalest first",
        freshness=_freshness(view.sites),
        crew=lambda one: crew(view, one),
    )


def stalest_first(boards: Iterable[BoardView]) -> list[BoardView]:
    """Sort boards: faulty ones first, then by the time of the last scan."""
    return sorted(boards, key=lambda one: (one.word not in BAD_STATES, one.state.scanned_at or 0.0, one.name))


def crew(view: Overview, one: ServiceView) -> tuple[str, str]:
    """Return `1 of 22, paused`, and its tone."""
    text = f"{one.alive} of {one.desired}" if one.desired is not None else str(one.alive)
    if one.state:
        return f"{text}, {one.state}", "wait"
    return text, "good" if one.alive >= view.wanted(one) else "bad" if one.alive == 0 else "wait"


def _freshness(sites: SitesView) -> str:
    """Return how long after their publication the posts of some sites are stored; /sites has all."""
    medians = [f"{name} {median(one)}" for name, one in sorted(sites.delays.items()) if median(one)]
    more = f" and {len(medians) - SITES_SHOWN:,} sites more" if len(medians) > SITES_SHOWN else ""
    return f"published to stored: {', '.join(medians[:SITES_SHOWN])}{more}" if medians else ""


def _wrong_files(sites: SitesView) -> dict[str, str]:
    """Return the wrong site files, without those that a breaker reports already."""
    return {site: fault for site, fault in sites.wrong_files.items() if site not in sites.breakers}


@dataclass(frozen=True, kw_only=True)
class ScheduleRow:
    """One entry of the schedule; `refused` is the reason why it is not sent. Times are epoch seconds by Redis's clock."""

    name: str
    task: str = ""
    rhythm: str = ""
    arguments: str = ""
    enabled: bool = False
    origin: str = ""
    last: Round | None = None
    due_at: float | None = None
    refused: str = ""


def schedule_rows(client: redis.Redis) -> list[ScheduleRow]:
    """Return the schedule as the beat that leads would read it now. Loads Celery's application."""
    from tasks import app as celery
    from tasks.beat.schedule import checker, defaults_of, effective, next_due

    celery.loader.import_default_modules()  # also an operator's own tasks
    schedules, now = Schedules(client), server_time(client)
    found = effective(defaults_of(celery.conf.beat_schedule), schedules.stored(), checker(celery.tasks))
    rounds = schedules.rounds()
    rows = []
    for name in sorted({*found.entries, *found.refused}):
        entry, last = found.entries.get(name), rounds.get(name)
        if entry is None:
            rows.append(ScheduleRow(name=name, refused=found.refused[name], last=last))
            continue
        given = [*map(repr, entry.args), *(f"{key}={value!r}" for key, value in entry.kwargs.items())]
        rows.append(
            ScheduleRow(
                name=name,
                task=entry.task,
                rhythm=entry.rhythm,
                arguments=", ".join(given),
                enabled=entry.enabled,
                origin=entry.origin,
                last=last,
                due_at=next_due(entry, last, now) if entry.enabled else None,
                refused=found.refused.get(name, ""),
            )
        )
    return rows


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
