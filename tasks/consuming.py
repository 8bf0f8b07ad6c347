"""Task that takes the items of services that declare where these go."""

from __future__ import annotations

import os
from typing import Any

from redis_components.connection import connect
from workers.fleet.consumers import ConsumerHost
from workers.node.host import FULL, HELD, NODE
from workers.state.registry import Registry

from .app import app


@app.task(bind=True, name="trawl.consume_items")
def consume_items(self: Any) -> str:
    """Consume the items of declared services that no process consumes, for as long as this node lives and one is declared.

    Returns `held` where another process of this node does so, `full` where this node has none for it.
    """
    name = self.request.hostname
    if not NODE.consumers:
        what = "no process for the consumers of items: start this worker with a larger --concurrency, or another with -Q control"
        Registry(connect()).report_error(name, what)
        return FULL
    with NODE.consumers_room(name).place() as place:
        if place is None:
            return HELD
        place.note(os.getpid())
        ConsumerHost(name).run(NODE.drain.is_set)
        return "ended"
