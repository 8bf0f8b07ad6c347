"""`trawl nodes`: the machines that host crawlers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from redis_components.nodes import NodeRecord

NONE = "No node is known. Start one with `trawl up`, or with `celery -A tasks worker`."


def nodes(as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False) -> int:
    """Show the nodes: what they serve, how many crawlers they host and may host, whether they are being drained.

    A node is a Celery worker that consumes the queue of at least one service (`-Q crawlers.forum_detail`). One that was not
    heard for 15 s is **gone**; its crawlers start on others as soon as their slots have run out.

    **Examples:**

        trawl nodes
        trawl nodes --json | jq '.[] | select(.state == "up") | .name'
    """
    from redis_components.answers import server_time
    from redis_components.nodes import Nodes

    from .output import console, print_json
    from .redis_access import redis_client

    with redis_client() as client:
        found, now = Nodes(client).all(), server_time(client)
    if as_json:
        print_json([node_json(one, now) for one in found])
    elif found:
        console().print(nodes_table(found, now))
    else:
        print(NONE)
    return 0


def node_json(node: NodeRecord, now: float) -> dict[str, Any]:
    """A node as `--json` shows it; `now` is Redis's time."""
    from .output import iso

    fields = asdict(node)
    beat_at, started_at = fields.pop("beat_at"), fields.pop("started_at")
    del fields["back_at"]
    return {
        **fields,
        "state": node.state(now),
        "started_at": iso(started_at) if started_at else None,
        "heartbeat_age_s": round(now - beat_at, 1),
    }


def nodes_table(found: Iterable[NodeRecord], now: float) -> RenderableType:
    """One line per node."""
    from rich.text import Text

    from .output import duration, plain_table

    styles = {"up": "green", "draining": "yellow", "gone": "bold red"}
    table = plain_table()
    table.add_column("node", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("crawlers", "heard", "up for"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("configuration", "version"):
        table.add_column(name, no_wrap=True)
    table.add_column("serves", overflow="fold")
    for one in found:
        state = one.state(now)
        clock = f", clock {one.clock_off_s:+.0f} s" if one.clock_off_s and state != "gone" else ""
        table.add_row(
            one.name,
            Text(state + clock, style="bold red" if clock else styles[state]),
            f"{one.taken}/{one.capacity}",
            duration(now - one.beat_at),
            duration(now - one.started_at) if one.started_at else "-",
            one.config or "-",
            one.version or "-",
            ", ".join(one.services),
        )
    return table
