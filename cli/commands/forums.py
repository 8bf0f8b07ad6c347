"""`trawl forums`: how fresh each forum is; scan forums, fetch history, forget threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from cli.access import redis_client, running_client, running_url
from cli.names import check_site
from cli.views.options import AsJson, SiteArgument, Yes, command_group
from cli.views.output import complain, confirm, duration, echo, iso, print_json, report
from cli.views.tables import Column, console, figure, table_of
from fleet_operations.overview import OverviewReader
from forums import FORUM_DETAIL, FORUM_LIST
from forums.freshness import DAY_S, HOUR_S, estimate, next_check
from forums.overview import BoardView, forum_sites
from forums.overview.boards import BAD_STATES, SOON_S, BoardState
from forums.records.tasks_and_items import forget_marks
from forums.sites import load_all, load_site, sites_dir
from forums.state.database_state import DatabaseClaim
from forums.state.database_state import forget as forget_threads
from forums.state.keys import Purpose, Spent
from redis_components.keys import keys_in

from .seed import backfill, refresh, rescan

if TYPE_CHECKING:
    from forum_reader.definition.site import Schedule

_AGES = {HOUR_S: "an hour", DAY_S: "a day", 7 * DAY_S: "a week"}
NO_FORUM = "No forum is watched yet. `trawl seed` queues the first scans; while `trawl up` runs, beat does it."
NO_SITE = "No forum is watched: there is no site file. `trawl watch ADDRESS` writes one, and starts what is needed."
NO_REDIS = "No Redis runs here that has the freshness of forums: start the fleet with `trawl up`, or name it in TRAWL_REDIS_URL."

app = command_group()
app.command()(rescan)
app.command()(refresh)
app.command()(backfill)


@app.command("list")
def list_forums(site: SiteArgument = None, as_json: AsJson = False) -> int:
    """Show how fresh each forum is, the stalest first.

    **scanned** and **due** are its last and next list scan; **new/h** is how often something changes there, as learned;
    **newest** is the last activity seen. A **gap**: a scan stopped before it reached known threads, so threads may be missing
    until a deeper scan.

    **Examples:**

        trawl forums
        trawl forums demo
        trawl forums demo --json | jq '.forums[] | select(.state == "stale")'
    """
    found = _look(site)
    for line in found.wrong:
        complain(line)
    if as_json:
        forums = [one.to_json() for one in found.forums]
        print_json({"running": found.running, "forums": forums, "budgets": _budgets_json(found), "wrong": list(found.wrong)})
    elif not found.forums:
        has_files = any(sites_dir().glob("*.toml"))
        echo((NO_FORUM if found.running else NO_REDIS) if has_files else NO_SITE)
    else:
        console().print(forums_table(found.forums), "", *_budget_lines(found), sep="\n")
    return 0


@dataclass(frozen=True, kw_only=True)
class _Forum:
    """One line: a board, and how often something changes there."""

    board: BoardView
    per_hour: float

    def to_json(self) -> dict[str, Any]:
        """Return the line as `--json` shows it."""
        watched, state = self.board.watched, self.board.state
        return {
            "site": watched.site,
            "forum": watched.forum,
            "name": state.name,
            "state": self.board.word,
            "why": self.board.why or None,
            "scanned_at": state.scanned_at,
            "due_at": watched.due_at,
            "overdue_s": round(watched.overdue_s(self.board.now), 3),
            "new_per_hour": round(self.per_hour, 4),
            "newest_at": state.newest_at,
            "gap_since": state.gap_at and iso(state.gap_at),
            "failed_scans": state.errors,
        }


@dataclass(frozen=True, kw_only=True)
class _Found:
    running: bool = True  # a Redis runs
    forums: list[_Forum]
    spent: Mapping[str, Spent]
    budgets: Mapping[str, float]  # requests an hour, of the sites that have a file here
    schedules: Mapping[str, Schedule]  # of the same sites
    wrong: tuple[str, ...]  # what is wrong with site files: their forums are not scanned


def _look(site: str | None) -> _Found:
    known, errors = ([load_site(site)], {}) if site else load_all()
    wrong = tuple(line for error in errors.values() for line in str(error).splitlines())
    url = running_url()
    if url is None:
        return _Found(running=False, forums=[], spent={}, budgets={}, schedules={}, wrong=wrong)
    with redis_client(url) as client:
        view = OverviewReader(client).read_sites(site)
    boards = sorted(forum_sites(view).boards, key=lambda one: (not one.is_stale, one.watched.due_at))
    return _Found(
        forums=[_Forum(board=one, per_hour=estimate(one.state, view.now) * 3600) for one in boards],
        spent=forum_sites(view).spent,
        budgets={**forum_sites(view).budgets, **{one.name: one.scan_budget_per_hour for one in known}},
        schedules={one.name: one.schedule for one in known},
        wrong=(*wrong, *(f"{part} cannot be read: {why}" for part, why in view.unreadable.items())),
    )


def forums_table(found: list[_Forum]) -> RenderableType:
    """Return one line per board."""

    def ago(one: _Forum, at: float | None) -> str:
        return "-" if at is None else f"{duration(one.board.now - at)} ago"

    columns = (
        Column("forum", lambda one: one.board.name + (f" ({name})" if (name := one.board.state.name) else ""), least=16),
        Column("state", _state),
        figure("scanned", lambda one: ago(one, one.board.state.scanned_at), rank=2),
        figure("due", _due, rank=1),
        figure("new/h", lambda one: f"{one.per_hour:,.0f}" if one.per_hour >= 100 else f"{one.per_hour:.2g}", rank=5),
        figure("newest", lambda one: ago(one, one.board.state.newest_at), rank=4),
        Column("why", lambda one: one.board.why, least=30, rank=7, below=True),
    )
    return table_of(found, columns)


def _state(one: _Forum) -> Text:
    word = one.board.word
    return Text(word, style="green" if word == BoardState.FRESH else "red" if word in BAD_STATES else "yellow")


def _due(one: _Forum) -> str:
    wait, late = one.board.watched.due_at - one.board.now, one.board.watched.overdue_s(one.board.now)
    return f"in {duration(wait)}" if wait > 0 else f"{duration(late)} late" if late > SOON_S else "now"


def _edit_delays(schedule: Schedule) -> dict[float, float]:
    """Return the delays in seconds that are planned for edits in threads without new posts, the time between two checks, by the
    age of the last post.
    """
    recheck_s = schedule.recheck_days * DAY_S
    waits = {age: next_check(age, recheck_s=recheck_s, min_interval_s=schedule.min_interval_s) for age in _AGES}
    return {age: wait for age, wait in waits.items() if wait is not None}


def _edits_line(schedule: Schedule) -> str:
    """Describe the delays of edits in threads without new posts."""
    if not schedule.recheck_days:
        return "edits in quiet threads are not looked for (recheck_days = 0)"
    delays = _edit_delays(schedule).items()
    parts = ", ".join(f"{_AGES[age]} after its last post within {duration(wait)}" for age, wait in delays)
    return f"an edit in a quiet thread is found {parts}, after {schedule.recheck_days:g} days not; later where checks wait"


def _budget_lines(found: _Found) -> list[str]:
    lines = []
    for site, spent in found.spent.items():
        lines += [f"{site}: {_edits_line(found.schedules[site])}"] if site in found.schedules else []
        of = f" of {found.budgets[site]:,.10g}" if site in found.budgets else ""
        parts = f"lists {spent.scan:,.0f}, threads {spent.detail:,.0f}, checks {spent.check:,.0f}, history {spent.backfill:,.0f}"
        lines.append(f"{site}: {spent.total:,.0f}{of} requests in the last hour ({parts})")
    return lines


def _budgets_json(found: _Found) -> list[dict[str, Any]]:
    return [
        {
            "site": site,
            "scan_budget_per_hour": found.budgets.get(site),
            "spent": round(spent.total, 1),
            **{str(purpose): round(spent.on(purpose), 1) for purpose in Purpose},
            "edit_delays": [
                {"last_post_s": age, "found_within_s": round(wait)} for age, wait in _edit_delays(found.schedules[site]).items()
            ]
            if site in found.schedules
            else None,
        }
        for site, spent in found.spent.items()
    ]


@app.command()
def forget(
    site: SiteArgument = None,
    threads: Annotated[
        list[str] | None, typer.Option("--thread", "-t", metavar="ID", help="Only this thread of it; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sites.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Forget which threads are stored, so that the next scans read them again. The database is not changed.

    Redis records what the database holds of each thread. After the database was replaced, or restored from a backup, these
    records are wrong: they name posts that are no longer there. Then each thread that a list shows is read again, which costs
    requests: for a whole site, or --all, the command asks first, and without a terminal needs --yes.

    **Examples:**

        trawl forums forget example
        trawl forums forget example --thread 4711 --thread 4712
        trawl forums forget --all --yes
    """
    if everything == (site is not None) or (threads and site is None):
        raise typer.BadParameter("name a site, or use --all")
    with running_client(as_json) as client:
        if site is not None:
            check_site(site, client=client)
        if not threads and not yes:
            _ask(client.hlen(keys_in(client, FORUM_DETAIL).threads()), site)
        count = forget_threads(client, keys_in(client, FORUM_DETAIL), site, threads)
        if not threads:
            forget_marks(client, keys_in(client, FORUM_LIST), site)
        if everything:
            DatabaseClaim(client).forget()
    report(as_json, {"forgotten": count}, f"{count} threads forgotten; the next scans read those that they list again")
    return 0


def _ask(known: object, site: str | None) -> None:
    """Ask before threads are forgotten. Raises ConfigError without a terminal, Abort after a no."""
    whose = f"every thread of {site}" if site is not None else "every thread of every site"
    confirm(
        f"the next scans will read {whose} again that they list ({known} threads are known in all); the database is not changed"
    )
