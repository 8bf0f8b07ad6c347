"""`trawl forums`: how fresh each forum is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from redis_components.forum_states import ForumState, WatchedForum
    from redis_components.holds import Hold
    from redis_components.spending import Spent
    from workers.sites import Site
    from workers.storage.delays import Delay

NOTHING = "No forum is watched yet: `trawl seed` begins, and beat does so by itself while `trawl up` runs."
NO_REDIS = "No Redis runs here to say how fresh the forums are: start the fleet with `trawl up`, or name it in TRAWL_REDIS_URL."
NOW_S = 10.0  # twice the time between two looks of the seeder
_GOOD, _WAIT, _BAD = "green", "yellow", "red"


def forums(
    site: Annotated[str | None, typer.Option(help="Only forums of this site.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Show how fresh each forum is, the stalest first.

    **scanned** and **due** are its last and next list scan; **new/h** is how often something changes there, as learned;
    **newest** is the last activity seen. **delay** is the measured time from publication to the database, median and 90 % of
    what was published in the last day. A **gap**: a scan stopped before it came to what was known, so threads may be missing
    until a deeper one has been.

    **Examples:**

        trawl forums
        trawl forums --site demo --json | jq '.forums[] | select(.state == "stale")'
    """
    from .output import console, print_json

    found = _look(site)
    for line in found.wrong:
        print(f"trawl: {line}", file=sys.stderr)
    if as_json:
        forums = [one.to_json() for one in found.forums]
        print_json({"running": found.running, "forums": forums, "budgets": _budgets_json(found), "wrong": list(found.wrong)})
    elif not found.forums:
        print(NOTHING if found.running else NO_REDIS)
        if stored := _stored(site):
            print(stored)
    else:
        console().print(_table(found), "", *_budget_lines(found), sep="\n")
    return 0


@dataclass(frozen=True, kw_only=True)
class _Forum:
    """One line."""

    watched: WatchedForum
    now: float
    per_hour: float
    hold: Hold | None
    over_budget: str  # "" while there is room
    delay: Delay | None
    wrong_file: str  # what the seeder finds wrong with its site's file; "" for nothing

    @property
    def state(self) -> ForumState:
        """What is known of it."""
        return self.watched.state

    @property
    def word(self) -> tuple[str, str]:
        """The state in one word, and its colour."""
        if self.hold is not None:
            return self.hold.word.state, _WAIT
        if self.wrong_file:
            return "not scanned", _BAD
        if self.over_budget and self.watched.due_at < self.now - NOW_S:
            return "waits", _WAIT
        if self.watched.is_stale(self.now):
            return "stale", _BAD
        if self.state.errors:
            return "failing", _BAD
        if self.state.gap_at is not None:
            return "gap", _BAD
        return ("new", _WAIT) if self.state.tried_at is None else ("fresh", _GOOD)

    @property
    def why(self) -> str:
        """What else there is to know."""
        from .output import counted

        gap = "a gap is open" if self.state.gap_at is not None else ""
        failures = f"{counted(self.state.errors, 'scan')} failed" if self.state.errors else ""
        return ": ".join(
            filter(None, (str(self.hold or self.wrong_file or self.over_budget), failures or gap, self.state.reason or ""))
        )

    def to_json(self) -> dict[str, Any]:
        """As `--json` shows it: times in ISO 8601, spans in seconds."""
        from .output import iso

        state, due_at = self.state, self.watched.due_at

        def time(at: float | None) -> str | None:
            return None if at is None else iso(at)

        return {
            "site": self.watched.site,
            "forum": self.watched.forum,
            "name": state.name,
            "state": self.word[0],
            "why": self.why or None,
            "scanned_at": time(state.scanned_at),
            "due_at": time(due_at),
            "overdue_s": round(self.watched.overdue_s(self.now), 3),
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
    from redis_components import breakers
    from redis_components.answers import server_time
    from redis_components.forum_states import ForumStates
    from redis_components.spending import Ledger
    from workers.freshness import estimate
    from workers.holding import why_not_seeded
    from workers.sites import load_all, load_site

    from .redis_access import redis_client, running_url

    known, errors = ([load_site(site)], {}) if site else load_all()
    wrong = tuple(line for error in errors.values() for line in str(error).splitlines())
    declared = {one.name: one for one in known}
    budgets = {one.name: one.schedule.requests_per_hour for one in known}
    url = running_url()
    if url is None:
        return _Found(running=False, forums=[], spent={}, budgets={}, wrong=wrong)
    with redis_client(url) as client:
        now, states = server_time(client), ForumStates(client)
        watched = states.watched(site)
        sites = sorted({one.site for one in watched})
        wrong_files = breakers.wrong_files(client)
        spent, held = Ledger(client).spent(sites, now), why_not_seeded(client, "forum_list", sites)
    measured = _delays(site, now)
    found = [
        _Forum(
            watched=one,
            now=now,
            per_hour=estimate(one.state, now).now * 3600,
            hold=held.get(one.site),
            over_budget=_said_of_budget(declared.get(one.site), spent.get(one.site)),
            delay=measured.get(f"{one.site}/{one.forum}"),
            wrong_file=wrong_files.get(one.site, ""),
        )
        for one in watched
    ]
    found.sort(key=lambda one: (not one.watched.is_stale(now), one.watched.due_at))
    return _Found(forums=found, spent=spent, budgets=budgets, wrong=wrong)


def _said_of_budget(site: Site | None, spent: Spent | None) -> str:
    from workers import budget

    if site is None or spent is None or spent.total < site.schedule.requests_per_hour:
        return ""
    return budget.over(site, spent)


def _stored(site: str | None) -> str:
    """What the database knows of forums; "" for nothing."""
    from datetime import UTC, datetime

    from workers.storage import StorageError
    from workers.storage.last_scans import last_scans

    from .output import counted, duration
    from .stored_data import NoData, stored_data

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
    from datetime import UTC, datetime

    from workers.freshness import DAY_S
    from workers.storage import StorageError
    from workers.storage.delays import delays

    from .stored_data import NoData, stored_data

    with ExitStack() as stack:
        try:
            return delays(stack.enter_context(stored_data()), datetime.fromtimestamp(now - DAY_S, UTC), site)
        except NoData:
            return {}
        except StorageError as error:
            print(f"trawl: without delays: {error}", file=sys.stderr)
            return {}


def _table(found: _Found) -> Table:
    from rich.text import Text

    from .output import duration, plain_table

    table = plain_table()
    for name in ("forum", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("scanned", "due", "new/h", "newest", "delay", "90 %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")

    def ago(at: float | None, now: float) -> str:
        return "-" if at is None else f"{duration(now - at)} ago"

    for one in found.forums:
        word, style = one.word
        wait, late = one.watched.due_at - one.now, one.watched.overdue_s(one.now)
        name = f"{one.watched.site}/{one.watched.forum}"
        table.add_row(
            name if one.state.name is None else f"{name} ({one.state.name})",
            Text(word, style=style),
            ago(one.state.scanned_at, one.now),
            f"in {duration(wait)}" if wait > 0 else f"{duration(late)} late" if late > NOW_S else "now",
            f"{one.per_hour:,.0f}" if one.per_hour >= 100 else f"{one.per_hour:.2g}",
            ago(one.state.newest_at, one.now),
            duration(one.delay.median_s) if one.delay else "-",
            duration(one.delay.p90_s) if one.delay else "-",
            one.why,
        )
    return table


def _budget_lines(found: _Found) -> list[str]:
    lines = []
    for site, spent in found.spent.items():
        of = f" of {found.budgets[site]:.10g}" if site in found.budgets else ""
        parts = f"lists {spent.scan:.0f}, threads {spent.detail:.0f}, checks {spent.check:.0f}, history {spent.backfill:.0f}"
        lines.append(f"{site}: {spent.total:.0f}{of} requests in the last hour ({parts})")
    return lines


def _budgets_json(found: _Found) -> list[dict[str, Any]]:
    from redis_components.spending import Purpose

    return [
        {
            "site": site,
            "requests_per_hour": found.budgets.get(site),
            "spent": round(spent.total, 1),
            **{str(purpose): round(spent.on(purpose), 1) for purpose in Purpose},
        }
        for site, spent in found.spent.items()
    ]
