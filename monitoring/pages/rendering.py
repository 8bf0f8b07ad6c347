"""The templates of the page: every value is escaped, and no control character gets through."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fleet_operations.overview.model import GONE, shown_state
from monitoring.part import part
from redis_components.server.printable import printable, span
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerRecord, CrawlerState

from .actions import ACTIONS

_LINKS = (("/dead", "Dead letters"), ("/history", "History"), ("/jobs", "Jobs"))
REFRESH_S = 5
PROBLEMS_SHOWN = 12
FOREIGN_SHOWN = 10

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
        "web": web_address,
    }
    environment.globals |= {
        "refresh_s": REFRESH_S,
        "problems_shown": PROBLEMS_SHOWN,
        "foreign_shown": FOREIGN_SHOWN,
        "shown_state": shown_state,
        "crawler_tone": crawler_tone,
        "node_tone": node_tone,
        "story": story,
        "links": (*part().links, *_LINKS),
        "linked": {"service", "crawler", "run", *part().named_pages},
        "acts_known": {*ACTIONS, *part().actions()},
        **part().names,
    }
    return environment


def _harmless(value: object) -> object:
    return printable(value) if type(value) is str and not isinstance(value, Markup) else value


def crawler_tone(state: str) -> str:
    """Return the colour of a crawler's state: good, wait or bad."""
    return "good" if state == CrawlerState.RUNNING else "bad" if state in _BAD else "wait"


def node_tone(node: NodeRecord, now: float) -> str:
    """Return the colour of a node's state."""
    return {"up": "good", "draining": "wait"}.get(node.state(now), "bad")


def story(record: CrawlerRecord, now: float) -> str:
    """Explain a crawler's state, and the end of the process before it; "" if there is nothing to explain."""
    at = record.last_exit_at
    when = f", {span(now - at)} ago, {clock(at)}" if at else ""
    before = f"before: {record.last_exit}{when}" if record.last_exit else None
    return " · ".join(filter(None, (record.note, record.error, before)))


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def clock(at: float | datetime | None) -> str:
    """Format a time, also epoch seconds, as `2026-01-31 12:00:00 UTC`; None as ""."""
    if at is None:
        return ""
    moment = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def web_address(url: str | None) -> str:
    """Return an address that may be a link, else "": a stored `javascript:` would run in the operator's browser."""
    return url if url and url.startswith(("http://", "https://")) else ""
