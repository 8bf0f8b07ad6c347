"""What is held, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redis_components.fleet.holds import Held

    from .columns import FittedTable


def held_json(held: Held) -> dict[str, Any]:
    """One hold as `--json` shows it; null: all of them."""
    from .output import iso

    return {
        "service": held.service or None,
        "slot": held.slot,
        "site": held.site or None,
        "state": held.hold.word.state,
        "since": iso(held.hold.at),
        "by": held.hold.by,
        "reason": held.hold.reason,
    }


def held_lines(held: Iterable[Held], now: float) -> list[str]:
    """`forum_detail (12 s): paused by ops@host: the database is moved`; `now` is Redis's time."""
    from .output import duration

    return [f"{one.what} ({duration(now - one.hold.at)}): {one.hold}" for one in held]


def held_table(held: Iterable[Held], now: float, *, most: int | None = None) -> FittedTable:
    """What is held, since when, by whom and why."""
    from rich.text import Text

    from .columns import Column, FittedTable
    from .output import duration

    columns = (
        Column(name="held", least=12),
        Column(name=""),
        Column(name="for", right=True),
        Column(name="by", least=10, rank=1),
        Column(name="why", least=20, rank=2, below=True),
    )
    rows = [
        (
            one.what,
            Text(one.hold.word.state, style="bold yellow"),
            duration(now - one.hold.at),
            one.hold.by or "-",
            one.hold.reason or "-",
        )
        for one in held
    ]
    return FittedTable(columns, rows, most=most)
