"""The pages of the forum crawl: sites and events, and its section of the overview."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from fleet_operations.overview import Overview
from forums.overview import BoardView, forum_sites
from forums.overview.boards import BAD_STATES, BoardState
from forums.overview.model import BoardTally
from forums.state.alerts import Alerts, shown_address
from forums.state.database_state import BOUNDS_S, DelayHistogram
from forums.storage import Database
from forums.storage.read.event_reader import Event
from forums.storage.read.search import Hit
from monitoring.pages.charts import StoredRows, site_charts
from monitoring.pages.rendering import clock
from monitoring.pages.views import NotThere, Reading
from redis_components.errors import TrawlError
from redis_components.server.printable import span
from workers.state.holds import Breakers

from . import data

BOARDS_SHOWN = 12
MONTHS_SHOWN = 12
DAY_S, HOUR_S, LATELY_S = 86_400, 3600, 300
SCAN_ENDS = {"overlap": "down to threads that were known", "end": "to the last page", "limit": "to the limit of pages"}
T = TypeVar("T")


def sites(reading: Reading) -> str:
    """Render all sites: their state, freshness and requests."""
    found = forum_sites(reading.view)
    names = sorted({*found.names, *found.breakers, *found.wrong_files})
    tallies = {name: found.tallies.get(name, BoardTally(0, 0, 0, 0)) for name in names}
    return reading.html("sites.html", "Sites", sites=found, names=names, tallies=tallies, median=median)


def site(reading: Reading, name: str) -> str:
    """Render one site. Raises NotThere."""
    found = forum_sites(reading.view)
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
        months=last_months(reading.view.now),
        charts=[site_charts(reading.history(), name, reading.view.now, reading.rows(), month=one) for one in (False, True)],
    )


def last_months(now: float) -> list[str]:
    """Return the last MONTHS_SHOWN months, as 2026-01."""
    moment = datetime.fromtimestamp(now, UTC)
    numbers = (moment.year * 12 + moment.month - 1 - back for back in range(MONTHS_SHOWN - 1, -1, -1))
    return [f"{number // 12}-{number % 12 + 1:02}" for number in numbers]


def events(reading: Reading) -> str:
    """Render the last events of posts and comments, and the fleet's errors."""
    nothing: list[Event] = []
    found, trouble = _stored(data.events_of, nothing)
    of_fleet, _ = _stored(data.fleet_events_of, nothing)
    troubles = forum_sites(reading.view).output_troubles
    return reading.html(
        "events.html",
        "Events",
        events=found,
        of_fleet=of_fleet,
        trouble=trouble,
        output_troubles=troubles,
        alerts=Alerts(reading.client).all() if reading.view.failure is None else {},
        receiver=shown_address,
    )


def _stored(read: Callable[[Database], T], otherwise: T) -> tuple[T, str]:
    """Return the result of `read` on the database, and "" or why it could not be read."""
    try:
        with data.stored_data() as database:
            found = read(database)
    except TrawlError as error:
        return otherwise, str(error)
    return found, ""


def thread(reading: Reading, site: str, name: str, number: int) -> str:
    """Render one page of a stored thread. Raises NotThere."""
    nothing = data.StoredThread(post=None, comments=(), number=0, earlier={})
    found, trouble = _stored(lambda database: data.thread_of(database, site, name, number), nothing)
    if not trouble and found.post is None and not found.comments:
        raise NotThere(f"no such thread of {site!r:.100} is stored")
    title = found.post.title if found.post else f"Thread {name}"
    pages = -(-found.number // data.COMMENTS_SHOWN)
    return reading.html(
        "thread.html", title, heading=title, site=site, name=name, thread=found, number=number, pages=pages, trouble=trouble
    )


def overview(view: Overview, rows: StoredRows, is_known: bool) -> Mapping[str, object]:
    """Return the values of the sections on boards and posts."""
    boards = stalest_first(forum_sites(view).boards)
    nothing: tuple[list[Hit], int] = [], 0
    news, of_hour = _stored(lambda database: data.news_of(database, view.now), nothing)[0] if is_known else nothing
    since = rows.since if isinstance(rows, data.ForumRows) else lambda _: 0
    lately_at = view.now // 60 * 60 - LATELY_S
    lately = since(lately_at)
    fresh = sum(one.word == BoardState.FRESH for one in boards)
    most = f"The {BOARDS_SHOWN} stalest of {len(boards):,} boards"
    return {
        "boards": boards[:BOARDS_SHOWN],
        "boards_title": most if len(boards) > BOARDS_SHOWN else "Boards, the stalest first",
        "figures": (
            ("posts and comments today", f"{since(view.now // DAY_S * DAY_S):,}"),
            ("fresh boards", f"{fresh:,} of {len(boards):,}"),
            ("from published to stored", median(*forum_sites(view).delays.values())),
        ),
        "of_last_hour": f"{since(view.now - HOUR_S):,} stored",
        "lately": f"{_counted(lately, 'post or comment', 'posts and comments')} since {clock(lately_at)[11:]}" if lately else "",
        "news": news,
        "published": of_hour,
    }


def stalest_first(boards: Iterable[BoardView]) -> list[BoardView]:
    """Sort boards: faulty ones first, then by the time of the last scan."""
    return sorted(boards, key=lambda one: (one.word not in BAD_STATES, one.state.scanned_at or 0.0, one.name))


def _counted(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def board_tone(one: BoardView) -> str:
    """Return the colour of a board's state."""
    return "good" if one.word == BoardState.FRESH else "bad" if one.word in BAD_STATES else "wait"


def board_why(one: BoardView) -> str:
    """Explain the staleness of a board: its fault, else the rhythm of its scans."""
    tried, due = one.state.tried_at, one.watched.waits_from
    if one.why:
        return one.why
    if tried is None:
        return "its first scan is due"
    if due > one.now and one.state.is_learning:
        return f"was scanned once: the next scan, in {span(due - one.now)}, shows how often it changes"
    if due > one.now:
        return f"is scanned every {span(due - tried)}: {_changes(one)}"
    return f"its next scan has been due for {span(one.now - due)}: {_changes(one)}"


def _changes(one: BoardView) -> str:
    """Describe the rate of its changes, by the estimate that its scans are planned by."""
    state = one.state
    an_hour = 3600 * state.events / state.exposure if state.exposure > 0 else 0.0
    return f"about {_counted(round(an_hour), 'change', 'changes')} an hour" if an_hour >= 1 else "changes rarely"


def median(*sites: DelayHistogram | None) -> str:
    """Format `half within 60 s` of publication, over the posts of some sites; "" without a count."""
    counts = [sum(numbers) for numbers in zip(*(one.counts for one in sites if one), strict=True)]
    total, reached = sum(counts), 0
    for bound, number in zip(BOUNDS_S, counts, strict=False) if total else ():
        reached += number
        if reached * 2 >= total:
            return f"half within {span(bound)}"
    return f"half take over {span(BOUNDS_S[-1])}" if total else ""
