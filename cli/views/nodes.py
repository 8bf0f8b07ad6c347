"""The nodes for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.text import Text

from workers.state.nodes import NodeRecord

from .columns import Column, FittedTable
from .output import duration, iso


def node_json(node: NodeRecord, now: float) -> dict[str, Any]:
    """A node as `--json` shows it; `now` is Redis's time."""
    fields = asdict(node)
    del fields["files"]
    beat_at, started_at = fields.pop("beat_at"), fields.pop("started_at")
    del fields["back_at"], fields["instance"]
    return {
        **fields,
        "state": node.state(now),
        "started_at": iso(started_at) if started_at else None,
        "heartbeat_age_s": round(now - beat_at, 1),
    }


def nodes_line(found: Iterable[NodeRecord], now: float) -> Text:
    """`nodes  7 of 8 up, 62 of 64 crawlers`."""
    nodes = list(found)
    alive = [one for one in nodes if one.alive(now)]
    said = f"{len(alive)} of {len(nodes)} up, {sum(one.taken for one in alive)} of {sum(one.capacity for one in alive)} crawlers"
    return Text.assemble(("nodes  ", "bold"), Text(said, style="" if len(alive) == len(nodes) else "bold red"))


def nodes_table(found: Iterable[NodeRecord], now: float, *, most: int | None = None) -> FittedTable:
    """One line per node, those in trouble first."""
    styles = {"up": "green", "draining": "yellow", "gone": "bold red"}
    columns = (
        Column(name="node", least=26),
        Column(name="state"),
        Column(name="crawlers", right=True, rank=1),
        Column(name="heard", right=True, rank=2),
        Column(name="up for", right=True, rank=5),
        Column(name="configuration", rank=6),
        Column(name="version", rank=7),
        Column(name="serves", least=20, rank=3, cut=True),
    )
    rows = []
    for one in sorted(found, key=lambda one: (one.state(now) == "up" and not one.rivals, one.name)):
        state = one.state(now)
        twice = ", name used twice" if one.rivals else ""
        rows.append(
            (
                one.name,
                Text(state + twice, style="bold red" if twice else styles[state]),
                f"{one.taken}/{one.capacity}",
                duration(now - one.beat_at),
                duration(now - one.started_at) if one.started_at else "-",
                one.config or "-",
                one.version or "-",
                ", ".join(one.services),
            )
        )
    return FittedTable(columns, rows, most=most)
