"""Nodes, holds, and sites in trouble: as tables and as JSON; the whole overview as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from rich.text import Text

from redis_components.server.untrusted_values import as_text
from workers.state.holds import Held
from workers.state.nodes import NodeRecord

from .output import duration, in_plain_json, iso
from .tables import Column, FittedTable, figure

if TYPE_CHECKING:
    from fleet_operations.overview import Overview, SitesView
    from workers.state.holds import Breaker
    from workers.state.quarantine import Foreign
    from workers.state.registry import CrawlerRecord

ERRORS_SHOWN = 5


def node_json(node: NodeRecord, now: float) -> dict[str, Any]:
    """Return a node as `--json` shows it; `now` is Redis's time."""
    fields = in_plain_json(node)
    for name in ("files", "beat_at", "back_at", "instance"):
        del fields[name]
    return {**fields, "state": node.state(now), "heartbeat_age_s": round(now - node.beat_at, 1)}


def node_columns(now: float) -> tuple[Column, ...]:
    """Return the columns of nodes."""
    return (
        Column("node", "name", least=26),
        Column("state", lambda one: _node_state(one, now)),
        figure("crawlers", lambda one: f"{one.taken}/{one.capacity}", rank=1),
        figure("heard", lambda one: duration(now - one.beat_at), rank=2),
        figure("up for", lambda one: duration(now - one.started_at) if one.started_at else "-", rank=5),
        Column("version", lambda one: one.version or "-", rank=7),
        Column("serves", "services", least=20, rank=3, cut=True),
    )


def in_trouble_first(found: Iterable[NodeRecord], now: float) -> list[NodeRecord]:
    """Sort nodes."""
    return sorted(found, key=lambda one: (one.state(now) == "up" and not one.rivals, one.name))


def _node_state(node: NodeRecord, now: float) -> Text:
    state = node.state(now)
    if node.rivals:
        return Text(f"{state}, name used twice", style="bold red")
    return Text(state, style={"up": "green", "draining": "yellow", "gone": "bold red"}[state])


def held_json(held: Held) -> dict[str, Any]:
    """Return one hold as `--json` shows it; null stands for all of them."""
    return {
        "service": held.service or None,
        "site": held.site or None,
        "state": held.hold.state,
        "since": iso(held.hold.at),
        "by": held.hold.by,
        "reason": held.hold.reason,
    }


def held_table(held: Iterable[Held], now: float, *, most: int | None = None) -> FittedTable:
    """Return what is held, since when, by whom and why."""
    columns = (
        Column("held", "what", least=12),
        Column("", lambda one: Text(one.hold.state, style="bold yellow")),
        figure("for", lambda one: duration(now - one.hold.at)),
        Column("by", lambda one: one.hold.by or "-", least=10, rank=1),
        Column("why", lambda one: one.hold.reason or "-", least=20, rank=2, below=True),
    )
    return FittedTable(columns, held, most=most)


def sites_json(view: SitesView) -> dict[str, Any]:
    """Return sites in trouble and their limits as `--json` shows them."""
    breakers = []
    for site, one in view.breakers.items():
        fields = msgspec.to_builtins(one) | {"since": iso(one.since)}
        fields.pop("closed_at", None)
        breakers.append({"site": site, **fields})
    lanes = [{"site": one.lane, "state": one.condition.value, "rate_now": one.rate_now, "why": one.why} for one in view.lanes]
    return {"breakers": breakers, "limits": lanes, **view.details()}


def sites_table(view: SitesView, now: float) -> FittedTable:
    """Return one line for each open breaker: why, when the site is tried again, and what it answered.

    Other faults follow.
    """
    columns = (
        Column("site", least=8),
        Column(""),
        figure("for", rank=1),
        Column("next probe", rank=2),
        Column("why", least=30, rank=3, below=True),
        Column("answer", least=40, rank=4, below=True),
    )
    rows: list[tuple[str | Text, ...]] = []
    for site, one in view.breakers.items():
        left = max(0.0, one.next_probe_at - now)
        answer = " · ".join(filter(None, (one.url, one.excerpt and f"“{one.excerpt[:150]}”", _last_probe(one))))
        rows.append(
            (
                site,
                Text("broken", style="bold red"),
                duration(now - one.since),
                f"in {duration(left)}" if left else "now",
                Text(one.reason, style="red"),
                Text(answer, style="dim"),
            )
        )
    rows += [(one.site, Text(one.word, style="bold red"), "", "", Text(one.sentence, style="red"), "") for one in view.faults]
    return FittedTable(columns, rows)


def _last_probe(one: Breaker) -> str:
    return f"{one.probes} probes, the last: {one.last_probe}" if one.probes else ""


def overview_json(view: Overview) -> dict[str, Any]:
    """Return the overview as `--json` shows it: names as in the tables."""
    from cli.commands.deploy import roll_json
    from cli.commands.scale import autoscaled_json
    from fleet_operations.overview import problems

    sites = sites_json(view.sites)
    whole = {
        "at": view.now,
        "problems": problems(view),
        "unreadable": dict(view.unreadable),
        "held": [held_json(one) for one in view.held],
        "another_database": sites.pop("another_database", False),
        "sites": sites,
        "dead_messages": view.dead_messages,
        "redis": view.server,
        "foreign": [_foreign_json(one) for one in view.foreign],
        "services": [one.figures() for one in view.services],
        "beat": {**asdict(view.beats), "stalled": view.beats.stalled} if view.beats else None,
        "crawlers": [_crawler_json(one, view.now) for one in view.crawlers],
        "nodes": [node_json(one, view.now) for one in view.nodes],
        "no_room": dict(view.shortages),
        "roll": roll_json(view.roll) if view.roll else None,
        "autoscaled": [autoscaled_json(name, one, view.size_of(name)) for name, one in view.autoscaled.items()],
        "errors": [
            {"at": one.at, "where": one.where, "what": one.what, "times": one.times} for one in view.errors[:ERRORS_SHOWN]
        ],
    }
    return dict(in_plain_json(whole))


def _foreign_json(one: Foreign) -> dict[str, Any]:
    """Return a foreign value as `--json` shows it; a field of null: the key has another type, or it is an entry of a list."""
    return {
        "key": one.key,
        "field": None if one.field is None else as_text(one.field),
        "value": as_text(one.value)[:200],
        "reason": one.reason,
    }


def _crawler_json(record: CrawlerRecord, now: float) -> dict[str, Any]:
    fields = asdict(record)
    age_s = round(now - fields.pop("beat_at"), 1)
    return {"crawler": record.name, "alive": record.alive(now), **fields, "heartbeat_age_s": age_s}
