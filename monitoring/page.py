"""The status page: one screen of HTML that loads no other resource and refreshes automatically."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from forums.overview import BoardView, Overview, ServiceView, SitesView, problems
from forums.overview.boards import BAD_STATES, BoardState
from forums.overview.model import GONE, shown_state
from forums.state.site_breakers import drift_sentence
from redis_components.fleet.nodes import NodeRecord
from redis_components.fleet.registry import CrawlerRecord, CrawlerState
from redis_components.fleet.rolls import RollState

REFRESH_S = 3
PROBLEMS_SHOWN = 12
FOREIGN_SHOWN = 10
BOARDS_SHOWN = 12

_BAD = {CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED, GONE}


def page(view: Overview, source: str) -> str:
    """The whole page. `source` is the name of the Redis that was read; the templates escape every value."""
    found = problems(view)
    grave = sum(one.grave for one in found)
    boards = sorted(view.sites.boards, key=lambda one: (one.word not in BAD_STATES, one.watched.due_at))
    return _template().render(
        view=view,
        source=source,
        title=f"({grave}) Trawl" if grave else "Trawl",
        problems=found,
        grave=grave,
        held=[one for one in view.held if not one.by_breaker],  # those stand among the sites
        roll=view.roll if view.roll is not None and view.roll.state is RollState.ROLLING else None,
        wrong_files=_wrong_files(view.sites),
        boards=boards[:BOARDS_SHOWN],
        boards_title=f"Boards, {BOARDS_SHOWN} of {len(boards):,}" if len(boards) > BOARDS_SHOWN else "Boards",
        crew=lambda one: _crew(view, one),
        node_tone=lambda one: _node_tone(one, view.now),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ago": _span, "clock": _clock, "count": _count}
    environment.globals |= {
        "refresh_s": REFRESH_S,
        "problems_shown": PROBLEMS_SHOWN,
        "foreign_shown": FOREIGN_SHOWN,
        "drift_sentence": drift_sentence,
        "shown_state": shown_state,
        "crawler_tone": _crawler_tone,
        "board_tone": _board_tone,
        "story": _story,
    }
    return environment.get_template("page.html")


def _crew(view: Overview, one: ServiceView) -> tuple[str, str]:
    """`1 of 22, paused`, and its tone."""
    text = f"{one.alive} of {one.desired}" if one.desired is not None else str(one.alive)
    if one.state:
        return f"{text}, {one.state}", "wait"
    return text, "good" if one.alive >= view.wanted(one) else "bad" if one.alive == 0 else "wait"


def _crawler_tone(state: str) -> str:
    return "good" if state == CrawlerState.RUNNING else "bad" if state in _BAD else "wait"


def _board_tone(one: BoardView) -> str:
    return "good" if one.word == BoardState.FRESH else "bad" if one.word in BAD_STATES else "wait"


def _node_tone(node: NodeRecord, now: float) -> str:
    return {"up": "good", "draining": "wait"}.get(node.state(now), "bad")


def _story(record: CrawlerRecord) -> str:
    """Why a crawler is in its state, and how the process before it ended; "" for nothing to tell."""
    before = f"before: {record.last_exit}" if record.last_exit else None
    return " · ".join(filter(None, (record.note, record.error, before)))


def _wrong_files(sites: SitesView) -> dict[str, str]:
    """Without those that a breaker says already."""
    return {site: said for site, said in sites.wrong_files.items() if site not in sites.breakers}


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: float) -> str:
    """`3 s`, `12 min`, `5 h`, `9 days`."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
