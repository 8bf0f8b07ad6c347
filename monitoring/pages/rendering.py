"""The templates of the page: every value is escaped, and no control character gets through."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from forums.overview import BoardView
from forums.overview.boards import BAD_STATES, BoardState
from forums.overview.model import GONE, shown_state
from forums.state.site_breakers import drift_sentence
from forums.state.writer_figures import BOUNDS_S, DelayHistogram
from redis_components.server.printable import printable
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerRecord, CrawlerState

REFRESH_S = 5  # as in live.js
PROBLEMS_SHOWN = 12
FOREIGN_SHOWN = 10

_WHY_TONES = {
    **dict.fromkeys(("done", "checked", "seeded", "list"), "good"),
    **dict.fromkeys(("never seen", "no site", "refused", "dead", "gone", "held"), "bad"),
}
"""Colours of the states that `trawl why` names; the others are yellow."""
_BAD = {CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED, GONE}


def rendered(template: str, *, role: str = "read", **values: object) -> str:
    """Render a template for a role, `read` or `act`. A name that it uses and that is not given is an error."""
    return _environment().get_template(template).render(role=role, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": span,
        "clock": clock,
        "count": _count,
        "stamp": _stamp,
        "web": _web_address,
        "command": _command,
    }
    environment.globals |= {
        "refresh_s": REFRESH_S,
        "problems_shown": PROBLEMS_SHOWN,
        "foreign_shown": FOREIGN_SHOWN,
        "drift_sentence": drift_sentence,
        "shown_state": shown_state,
        "crawler_tone": crawler_tone,
        "board_tone": board_tone,
        "node_tone": node_tone,
        "story": story,
        "board_why": board_why,
        "why_tones": _WHY_TONES,
    }
    return environment


def _harmless(value: object) -> object:
    return printable(value) if type(value) is str and not isinstance(value, Markup) else value


def crawler_tone(state: str) -> str:
    """Return the colour of a crawler's state: good, wait or bad."""
    return "good" if state == CrawlerState.RUNNING else "bad" if state in _BAD else "wait"


def board_tone(one: BoardView) -> str:
    """Return the colour of a board's state."""
    return "good" if one.word == BoardState.FRESH else "bad" if one.word in BAD_STATES else "wait"


def node_tone(node: NodeRecord, now: float) -> str:
    """Return the colour of a node's state."""
    return {"up": "good", "draining": "wait"}.get(node.state(now), "bad")


def story(record: CrawlerRecord, now: float) -> str:
    """Explain a crawler's state, and the end of the process before it; "" if there is nothing to explain."""
    at = record.last_exit_at
    when = f", {span(now - at)} ago, {clock(at)}" if at else ""
    before = f"before: {record.last_exit}{when}" if record.last_exit else None
    return " · ".join(filter(None, (record.note, record.error, before)))


def board_why(one: BoardView) -> str:
    """Explain the staleness of a board: its fault, else the rhythm of its scans."""
    tried, due = one.state.tried_at, one.watched.waits_from
    if one.why:
        return one.why
    if tried is None:
        return "its first scan is due"
    if due > one.now:
        return f"is scanned {span(due - tried)} after the last time: {_changes(one)}"
    return f"its next scan is due since {span(one.now - due)}: {_changes(one)}"


def _changes(one: BoardView) -> str:
    """Describe the rate of its changes, by the estimate that its scans are planned by."""
    state = one.state
    an_hour = 3600 * state.events / state.exposure if state.exposure > 0 else 0.0
    return f"about {an_hour:,.0f} changes an hour" if an_hour >= 1 else "little changes"


def median(one: DelayHistogram | None) -> str:
    """Format `half within 60 s` of publication; "" without a count."""
    total = sum(one.counts) if one else 0
    if not one or not total:
        return ""
    reached = 0
    for bound, number in zip(BOUNDS_S, one.counts, strict=False):
        reached += number
        if reached * 2 >= total:
            return f"half within {span(bound)}"
    return f"half take over {span(BOUNDS_S[-1])}"


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def clock(at: float) -> str:
    """Format epoch seconds as `2026-01-31 12:00:00 UTC`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _command(text: str) -> Markup:
    """Escape a text that names commands: no line ends within an option, as `--breaker` after its hyphens."""
    option = Markup('<span class="option">{}</span>')
    words = printable(text).split(" ")
    return Markup(" ").join(option.format(one) if one.startswith("--") else escape(one) for one in words)


def _stamp(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _web_address(url: str | None) -> str:
    """Return an address that may be a link, else "": a stored `javascript:` would run in the operator's browser."""
    return url if url and url.startswith(("http://", "https://")) else ""


def span(seconds: float) -> str:
    """Format `3 s`, `12 min`, `5 h`, `9 days`."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
