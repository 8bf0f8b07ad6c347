"""Which queue a task goes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CONTROL = "control"  # the default queue, of tasks that last seconds


def route(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, str] | None:
    """`run_crawler` goes to the nodes that serve its spider, everything else to the default queue."""
    if name != "trawl.run_crawler":
        return None
    spider = kwargs.get("spider") or (args[0] if args else "")
    return {"queue": f"crawlers.{spider}", "routing_key": f"crawlers.{spider}"}
