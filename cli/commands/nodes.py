"""`trawl nodes`: the machines that host crawlers."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.access.redis import redis_client
from cli.views.nodes import node_json, nodes_table
from cli.views.output import console, print_json, say
from redis_components.server.replies import server_time
from workers.state.nodes import Nodes

NONE = "No node is running. Start one with `trawl up`, or with `celery -A tasks worker`."


def nodes(as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False) -> int:
    """Show the nodes: their services, crawlers and capacity, and whether they are drained.

    A node is a Celery worker that consumes the queue of at least one service (`-Q crawlers.forum_detail`). A node
    without a heartbeat for 15 s is **gone**; its crawlers start on other nodes when their slots have expired.

    **Examples:**

        trawl nodes
        trawl nodes --json | jq '.[] | select(.state == "up") | .name'
    """
    with redis_client() as client:
        found, now = Nodes(client).all(), server_time(client)
    if as_json:
        print_json([node_json(one, now) for one in found])
    elif found:
        console().print(nodes_table(found, now))
    else:
        say(NONE)
    return 0
