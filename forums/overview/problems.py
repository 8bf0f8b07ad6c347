"""Problems of the sites of the forum crawl, each with its next step. Pure: depends on an `Overview` alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forums.state.database_identity import ANOTHER_DATABASE
from forums.state.forum_states import TRIAL_PER_DAY
from forums.state.site_faults import RULES_FILE, drift_sentence
from redis_components.politeness.limits import BY_TRIAL
from redis_components.server.health import Problem
from workers.overview.problems import named, span

from .boards import BoardState

if TYPE_CHECKING:
    from workers.overview import Overview

    from .model import ForumSites

WRITER_LATE_S = 300.0


def site_problems(sites: ForumSites, view: Overview) -> Iterator[Problem]:
    """Yield all problems of the sites, their boards, their database and the outputs of events."""
    yield from _database(sites)
    for site, reason in sites.wrong_files.items():
        if site not in sites.breakers or sites.breakers[site].reason != reason:
            yield Problem(what=f"site {site} is not scanned, its file is wrong: {reason}", fix=f"trawl sites check {site}")
    for (site, kind, figure), values in sites.drifts.items():
        what = f"site {site}: {kind} pages have changed: {drift_sentence(figure, *values)}"
        yield Problem(what=what, fix=f"trawl sites check {site}", grave=False)
    if trial := [one.lane for one in sites.lanes if one.limits.by == BY_TRIAL]:
        what = f"sites do not learn whom they can ask, and get {TRIAL_PER_DAY:,} requests a day until they do: {named(trial)}"
        yield Problem(what=what, fix="User-Agent under [headers] of the file, or USER_AGENT in the settings", grave=False)
    yield from _boards(sites, view)
    yield from _outputs(sites)


def _database(sites: ForumSites) -> Iterator[Problem]:
    if sites.refused_database is not None:
        what = f"a writer has another database than the fleet, {sites.refused_database}, and stores nothing"
        yield Problem(what=what, fix="set its TRAWL_DATABASE_URL to the fleet's, or: trawl db move")
    if sites.another_database:
        yield Problem(what=ANOTHER_DATABASE, fix="")
    if (sites.writer_lag_s or 0.0) >= WRITER_LATE_S:
        what = f"the oldest item has waited for {span(sites.writer_lag_s or 0.0)} to be stored"
        yield Problem(what=what, fix="is there a worker with -Q control, and does the database answer? trawl doctor")


def _boards(sites: ForumSites, view: Overview) -> Iterator[Problem]:
    if stale := sites.stale:
        late = view.now - stale[0].watched.due_at
        why = f"; {stale[0].why}" if stale[0].why else ""
        what = f"stale: {named(one.name for one in stale)} (the first is due for {span(late)}{why})"
        yield Problem(what=what, fix="trawl forums")
    ill = sites.boards.ill_ones()
    failing = [one for one in ill if one.word == BoardState.FAILING]
    if failing:
        worst = max(failing, key=lambda one: one.state.errors)
        of = "" if len(failing) == 1 else f"{worst.name}: "
        what = f"the last scan failed: {named(one.name for one in failing)} ({of}{worst.why})"
        fix = f"trawl why URL of its list; trawl sites check {worst.watched.site}; trawl forums has the others"
        yield Problem(what=what, fix=fix, grave=False)
    gaps = [one for one in ill if one.state.gap_at is not None]
    if gaps:
        what = f"a gap is open in {named(one.name for one in gaps)}: threads may be missing until a deeper scan has run"
        yield Problem(what=what, fix="trawl forums", grave=False)


def _outputs(sites: ForumSites) -> Iterator[Problem]:
    for name, why in sites.output_troubles.items():
        if name == RULES_FILE:
            reason = " ".join(why.split())
            yield Problem(
                what=f"no output gets events or alarms, the rules file is wrong: {reason}", fix="mend it (docs/events.md)"
            )
            continue
        yield Problem(what=f"output {name} {why}", fix="trawl events list", grave=False)
