"""Pages of jobs and of runs: members and nights, each with its verdict; a member with its page, log and figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from redis_components.server.names import is_name
from workers.raw_pages.store import days_of, files_of, pages_in, raw_dir
from workers.state.group_runs import KEPT_AS, GroupRun, GroupRuns, Member, newest_of_groups
from workers.state.jobs import Jobs

from . import views
from .charts import Window, chart
from .views import NotThere, Reading

MOST_NIGHTS, MOST_MEMBERS = 7, 300
MOST_OF_RUN = 5_000
PAGE_BYTES = 20_000
DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Nights:
    """The last runs of a group, and the outcomes of each member in them; members that need a look come first."""

    group: str
    runs: list[GroupRun]
    members: list[tuple[str, list[Member | None]]]


def jobs(reading: Reading) -> str:
    """Render the jobs, the youngest first, and the last nights of each group."""
    is_read = reading.view.failure is None
    found = Jobs(reading.client).newest() if is_read else []
    known = GroupRuns(reading.client)
    everything = known.newest() if is_read else []
    groups = [_nights(known, one.group, everything, MOST_MEMBERS) for one in newest_of_groups(everything)]
    return reading.html("jobs.html", "Jobs", jobs=found, groups=groups)


def run(reading: Reading, name: str) -> str:
    """Render one run, `brands-20261129T030000`, or one of its members, `brands-20261129T030000/books`. Raises NotThere."""
    if reading.view.failure is not None:
        return reading.html("run.html", name)
    id_, _, spider = name.partition("/")
    known = GroupRuns(reading.client)
    everything = known.newest()
    one = next((run for run in everything if run.id == id_), None)
    if one is None:
        raise NotThere(f"no run {id_!r:.100} is known")
    if spider:
        return _member(reading, known, one, spider, everything)
    until = [run for run in everything if run.started_at <= one.started_at]
    waiting, crawling = known.waiting(one.id), known.crawling(one.id)
    nights = _nights(known, one.group, until, MOST_OF_RUN)
    return reading.html("run.html", one.id, one=one, nights=nights, crawling=sorted(crawling), waiting=len(waiting))


def _nights(known: GroupRuns, group: str, everything: list[GroupRun], most: int) -> Nights:
    runs = [run for run in everything if run.group == group][:MOST_NIGHTS]
    outcomes = [known.members(run.id) for run in runs]
    names = sorted({spider for one in outcomes for spider in one}, key=lambda name: (not _needs_look(outcomes, name), name))
    return Nights(group=group, runs=runs, members=[(name, [one.get(name) for one in outcomes]) for name in names[:most]])


def _needs_look(outcomes: list[dict[str, Member]], spider: str) -> bool:
    last = next((one[spider] for one in outcomes if spider in one), None)
    return last is not None and last.alerting


def _member(reading: Reading, known: GroupRuns, one: GroupRun, spider: str, everything: list[GroupRun]) -> str:
    member = known.members(one.id).get(spider) if is_name(spider) else None
    if member is None:
        raise NotThere(f"{spider!r:.100} has no verdict in {one.id}")
    before = known.before(one, [spider], everything, number=one.keep_runs)[spider]
    nights, trouble = views.nights_of(spider, one.group, [member, *before])
    return reading.html(
        "member.html",
        f"{spider} in {one.id}",
        run=one,
        one=member,
        before=before,
        kept=kept_page(one.id, member),
        log=views.log_of(f"{spider}.{one.id}", 0),
        charts=_charts(nights, reading.view.now),
        trouble=trouble,
    )


def _charts(nights: list[Member], now: float) -> list[Markup]:
    begin = min((one.ended_at for one in nights), default=now)
    window = Window(now=now, length_s=max(14 * DAY_S, now - begin + DAY_S), step_s=7 * DAY_S)
    figures: list[tuple[str, str, Callable[[Member], float]]] = [
        ("Items", "", lambda one: one.items),
        ("Pages", "", lambda one: one.pages),
        ("Seconds", "s", lambda one: one.seconds),
        ("Fields filled", "%", lambda one: 100 * sum(one.fields.values()) / max(1, len(one.fields))),
    ]
    nights = sorted(nights, key=lambda one: one.ended_at)
    return [
        chart(name, unit, [(one.ended_at, read(one)) for one in nights], window, running="last") for name, unit, read in figures
    ]


def kept_page(run: str, member: Member) -> str:
    """Return the beginning of the page that shows the verdict; "" where this machine has not kept it."""
    if not member.url or not math.isfinite(member.ended_at):
        return ""
    job, folder = f"{member.spider}.{run}", raw_dir()
    about = {datetime.fromtimestamp(at, UTC).date() for at in (member.started_at, member.ended_at)}
    for day in days_of(folder, KEPT_AS):
        if min(about) - timedelta(days=1) <= day <= max(about) + timedelta(days=1):
            for file in files_of(folder, KEPT_AS, day):
                for page in pages_in(file):
                    if page.page.get("job") == job and page.url == member.url:
                        return page.body[:PAGE_BYTES].decode("utf-8", "replace")
    return ""
