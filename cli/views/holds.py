"""What is held, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.text import Text

from forums.overview import SitesView
from forums.state.site_breakers import Breaker, drift_sentence
from workers.state.holds import Held

from .columns import Column, FittedTable
from .output import duration, iso


def held_json(held: Held) -> dict[str, Any]:
    """One hold as `--json` shows it; null: all of them."""
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
    return [f"{one.what} ({duration(now - one.hold.at)}): {one.hold}" for one in held]


def held_table(held: Iterable[Held], now: float, *, most: int | None = None) -> FittedTable:
    """What is held, since when, by whom and why."""
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


def sites_json(view: SitesView) -> dict[str, Any]:
    """All of it as `--json` shows it; times in ISO 8601."""
    breakers = []
    for site, one in view.breakers.items():
        fields = msgspec.to_builtins(one) | {"since": iso(one.since), "next_probe_at": iso(one.next_probe_at)}
        fields.pop("closed_at", None)
        breakers.append({"site": site, **fields})
    drifts = [
        {"site": site, "page": kind, "figure": figure, "now": round(now, 4), "usual": round(usual, 4)}
        for (site, kind, figure), (now, usual) in view.drifts.items()
    ]
    lanes = [{"site": one.lane, "state": one.condition.value, "rate_now": one.rate_now, "why": one.why} for one in view.lanes]
    return {"breakers": breakers, "drifts": drifts, "wrong_files": dict(view.wrong_files), "limits": lanes}


def sites_table(view: SitesView, now: float) -> FittedTable:
    """One line for each open breaker: why, when the site is tried again, and what it answered. Then site files that are wrong,
    and what has drifted.
    """
    columns = (
        Column(name="site", least=8),
        Column(name=""),
        Column(name="for", right=True, rank=1),
        Column(name="next probe", rank=2),
        Column(name="why", least=30, rank=3, below=True),
        Column(name="answer", least=40, rank=4, below=True),
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
    for site, said in view.wrong_files.items():
        if site not in view.breakers or view.breakers[site].reason != said:
            rows.append((site, Text("wrong file", style="bold red"), "", "", Text(f"not seeded: {said}", style="red"), ""))
    for (site, kind, figure), (value, usual) in view.drifts.items():
        why = f"{kind} pages: {drift_sentence(figure, value, usual)}"
        rows.append((site, Text("drifted", style="yellow"), "", "", why, ""))
    return FittedTable(columns, rows)


def _last_probe(one: Breaker) -> str:
    return f"{one.probes} probes, the last: {one.last_probe}" if one.probes else ""
