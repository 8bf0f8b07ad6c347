"""`trawl forums`: how fresh each forum is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.access.database import NoData, stored_data
from cli.access.names import OF_SITE, either
from cli.access.redis import redis_client, running_url
from cli.views.columns import Column, FittedTable, figures
from cli.views.output import complain, console, counted, duration, iso, print_json, say
from forums.freshness import DAY_S, estimate
from forums.overview import BoardView, OverviewReader
from forums.overview.boards import BAD_STATES, SOON_S, BoardState
from forums.sites import load_all, load_site
from forums.state.request_ledger import Purpose, Spent
from forums.storage import StorageError
from forums.storage.read.site_figures import Delay, delays, last_scans

NOTHING = "No forum is watched yet. `trawl seed` queues the first scans; while `trawl up` runs, beat does it."
NO_REDIS = "No Redis runs here to say how fresh the forums are: start the fleet with `trawl up`, or name it in TRAWL_REDIS_URL."


def forums(
    site: Annotated[str | None, typer.Argument(metavar="SITE", help="Only forums of this site.", show_default=False)] = None,
    of_site: Annotated[str | None, typer.Option("--site", metavar="SITE", help=OF_SITE, show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Show how fresh each forum is, the stalest first.

    **scanned** and **due** are its last and next list scan; **new/h** is how often something changes there, as learned;
    **newest** is the last activity seen. **delay** is the measured time from publication to the database, median and 90 % of
    what was published in the last day. A **gap**: a scan stopped before it reached known threads, so threads may be missing
    until a deeper scan.

    **Examples:**

        trawl forums
        trawl forums demo
        trawl forums --site demo --json | jq '.forums[] | select(.state == "stale")'
    """
    site = either(site, of_site)
    found = _look(site)
    for line in found.wrong:
        complain(line)
    if as_json:
        forums = [one.to_json() for one in found.forums]
        print_json({"running": found.running, "forums": forums, "budgets": _budgets_json(found), "wrong": list(found.wrong)})
    elif not found.forums:
        say(NOTHING if found.running else NO_REDIS)
        if stored := _stored(site):
            say(stored)
    else:
        console().print(forums_table(found.forums), "", *_budget_lines(found), sep="\n")
    return 0


@dataclass(frozen=True, kw_only=True)
class _Forum:
    """One line: a board, how often something changes there, and how long what is published takes to the database."""

    board: BoardView
    per_hour: float
    delay: Delay | None

    def to_json(self) -> dict[str, Any]:
        """As `--json` shows it: times in ISO 8601, spans in seconds."""
        watched, state = self.board.watched, self.board.state

        def time(at: float | None) -> str | None:
            return None if at is None else iso(at)

        return {
            "site": watched.site,
            "forum": watched.forum,
            "name": state.name,
            "state": self.board.word,
            "why": self.board.why or None,
            "scanned_at": time(state.scanned_at),
            "due_at": time(watched.due_at),
            "overdue_s": round(watched.overdue_s(self.board.now), 3),
            "new_per_hour": round(self.per_hour, 4),
            "newest_at": time(state.newest_at),
            "gap_since": time(state.gap_at),
            "failed_scans": state.errors,
            "delay_median_s": self.delay and round(self.delay.median_s, 3),
            "delay_p90_s": self.delay and round(self.delay.p90_s, 3),
            "measured": self.delay.number if self.delay else 0,
        }


@dataclass(frozen=True, kw_only=True)
class _Found:
    running: bool = True  # a Redis that could know
    forums: list[_Forum]
    spent: Mapping[str, Spent]
    budgets: Mapping[str, float]  # requests an hour, of the sites that have a file here
    wrong: tuple[str, ...]  # what is wrong with site files: their forums are not scanned


def _look(site: str | None) -> _Found:

    known, errors = ([load_site(site)], {}) if site else load_all()
    wrong = tuple(line for error in errors.values() for line in str(error).splitlines())
    url = running_url()
    if url is None:
        return _Found(running=False, forums=[], spent={}, budgets={}, wrong=wrong)
    with redis_client(url) as client:
        view = OverviewReader(client).read_sites(site)
    measured = _delays(site, view.now)
    boards = sorted(view.sites.boards, key=lambda one: (not one.is_stale, one.watched.due_at))
    return _Found(
        forums=[
            _Forum(board=one, per_hour=estimate(one.state, view.now).now * 3600, delay=measured.get(one.name)) for one in boards
        ],
        spent=view.sites.spent,
        budgets={**view.sites.budgets, **{one.name: one.schedule.requests_per_hour for one in known}},
        wrong=(*wrong, *(f"{part} cannot be read: {why}" for part, why in view.unreadable.items())),
    )


def _stored(site: str | None) -> str:
    """What the database knows of forums; "" for nothing."""
    try:
        with stored_data() as database:
            known = last_scans(database, site)
    except (NoData, StorageError):
        return ""
    if known.at is None:
        return ""
    ago = duration((datetime.now(UTC) - known.at).total_seconds())
    return f"The database has what was read of {counted(known.forums, 'forum')}; the last scan ended {ago} ago."


def _delays(site: str | None, now: float) -> dict[str, Delay]:
    """None where nothing is stored yet, or the database does not answer: the rest is shown all the same."""
    with ExitStack() as stack:
        try:
            return delays(stack.enter_context(stored_data()), datetime.fromtimestamp(now - DAY_S, UTC), site)
        except NoData:
            return {}
        except StorageError as error:
            complain(f"without delays: {error}")
            return {}


def forums_table(found: list[_Forum]) -> FittedTable:
    """One line per board."""
    columns = (
        Column(name="forum", least=16),
        Column(name="state"),
        *figures("scanned", rank=2),
        *figures("due", rank=1),
        *figures("new/h", rank=5),
        *figures("newest", rank=4),
        *figures("delay", rank=3),
        *figures("90 %", rank=6),
        Column(name="why", least=30, rank=7, below=True),
    )
    return FittedTable(columns, [_cells(one) for one in found])


def _cells(one: _Forum) -> tuple[str | Text, ...]:

    def ago(at: float | None) -> str:
        return "-" if at is None else f"{duration(one.board.now - at)} ago"

    board, state = one.board, one.board.state
    wait, late = board.watched.due_at - board.now, board.watched.overdue_s(board.now)
    style = "green" if board.word == BoardState.FRESH else "red" if board.word in BAD_STATES else "yellow"
    return (
        board.name if state.name is None else f"{board.name} ({state.name})",
        Text(board.word, style=style),
        ago(state.scanned_at),
        f"in {duration(wait)}" if wait > 0 else f"{duration(late)} late" if late > SOON_S else "now",
        f"{one.per_hour:,.0f}" if one.per_hour >= 100 else f"{one.per_hour:.2g}",
        ago(state.newest_at),
        duration(one.delay.median_s) if one.delay else "-",
        duration(one.delay.p90_s) if one.delay else "-",
        board.why,
    )


def _budget_lines(found: _Found) -> list[str]:
    lines = []
    for site, spent in found.spent.items():
        of = f" of {found.budgets[site]:,.10g}" if site in found.budgets else ""
        parts = f"lists {spent.scan:,.0f}, threads {spent.detail:,.0f}, checks {spent.check:,.0f}, history {spent.backfill:,.0f}"
        lines.append(f"{site}: {spent.total:,.0f}{of} requests in the last hour ({parts})")
    return lines


def _budgets_json(found: _Found) -> list[dict[str, Any]]:

    return [
        {
            "site": site,
            "requests_per_hour": found.budgets.get(site),
            "spent": round(spent.total, 1),
            **{str(purpose): round(spent.on(purpose), 1) for purpose in Purpose},
        }
        for site, spent in found.spent.items()
    ]
