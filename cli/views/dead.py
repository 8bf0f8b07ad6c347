"""What was given up, for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .columns import Column, FittedTable
from .output import duration

if TYPE_CHECKING:
    from redis_components.crawl_admin.dead_letters import DeadEntry
    from redis_components.crawl_admin.refused_items import RefusedItem


def dead_table(entries: Iterable[tuple[str, DeadEntry]], now: float) -> FittedTable:
    """Requests and start tasks of these spiders; `now` is Redis's time."""
    columns = (
        Column(name="spider"),
        Column(name="kind", rank=2),
        Column(name="age", right=True),
        Column(name="url", least=30, rank=3, below=True),
        Column(name="reason", least=25, rank=4, below=True),
    )
    return FittedTable(
        columns,
        [
            (spider, entry.kind.name.lower().replace("_", " "), duration(now - entry.at_s), entry.url, entry.reason)
            for spider, entry in entries
        ],
    )


def refused_table(entries: Iterable[tuple[str, RefusedItem]], now: float) -> FittedTable:
    """Items that their consumer refused; `now` is Redis's time."""
    columns = (
        Column(name="spider"),
        Column(name="age", right=True),
        Column(name="reason", least=25, rank=2, below=True),
        Column(name="item", least=30, rank=3, below=True),
    )
    return FittedTable(columns, [(spider, duration(now - one.at_s), one.reason, one.shown) for spider, one in entries])
