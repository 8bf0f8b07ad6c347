"""What is held, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from redis_components.fleet_holds import Held


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


def held_table(held: Iterable[Held], now: float) -> Table:
    """What is held, since when, by whom and why: the first thing that an operator has to know."""
    from rich.text import Text

    from .output import duration, plain_table

    table = plain_table()
    for name in ("held", "", "for", "by"):
        table.add_column(name, no_wrap=True)
    table.add_column("why")
    for one in held:
        table.add_row(
            Text(one.what),
            Text(one.hold.word.state, style="bold yellow"),
            duration(now - one.hold.at),
            Text(one.hold.by or "-"),
            Text(one.hold.reason or "-"),
        )
    return table
