"""The overview: one screen of HTML that loads nothing of others and refreshes automatically."""

from __future__ import annotations

from collections.abc import Iterable

from forums.overview import BoardView, Overview, ServiceView, SitesView, problems
from forums.overview.boards import BAD_STATES
from forums.overview.samples import History
from workers.state.rolls import RollState

from .charts import fleet_charts, lately
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
        "page.html",
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
