"""Sites that are held by their breakers, and pages that have drifted, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from redis_components.breakers import Breaker, Breakers, drift_sentence, drifted, wrong_files

if TYPE_CHECKING:
    import redis
    from rich.table import Table

Drifts = Mapping[tuple[str, str, str], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class SitesView:
    """What is wrong with the sites themselves."""

    breakers: Mapping[str, Breaker] = field(default_factory=dict)  # the open ones, by site
    drifts: Drifts = field(default_factory=dict)
    wrong_files: Mapping[str, str] = field(default_factory=dict)  # what is wrong with them, by site

    def __bool__(self) -> bool:
        return bool(self.breakers or self.drifts or self.wrong_files)


def look_at_sites(client: redis.Redis) -> SitesView:
    """Read all of it. Raises `redis.RedisError`."""
    return SitesView(breakers=Breakers(client).open_ones(), drifts=drifted(client), wrong_files=wrong_files(client))


def sites_json(view: SitesView) -> dict[str, Any]:
    """All of it as `--json` shows it; times in ISO 8601."""
    from .output import iso

    breakers = []
    for site, one in view.breakers.items():
        fields = msgspec.to_builtins(one) | {"since": iso(one.since), "next_probe_at": iso(one.next_probe_at)}
        fields.pop("closed_at", None)
        breakers.append({"site": site, **fields})
    drifts = [
        {"site": site, "page": kind, "figure": figure, "now": round(now, 4), "usual": round(usual, 4)}
        for (site, kind, figure), (now, usual) in view.drifts.items()
    ]
    return {"breakers": breakers, "drifts": drifts, "wrong_files": dict(view.wrong_files)}


def sites_table(view: SitesView, now: float) -> Table:
    """One line for each open breaker: why, and when the site is tried again; below, what it answered. Then site files that are
    wrong, and what has drifted.
    """
    from rich.text import Text

    from .output import duration, plain_table

    table = plain_table("site", "", "for", "next probe", "why")
    for site, one in view.breakers.items():
        left = max(0.0, one.next_probe_at - now)
        next_probe = f"in {duration(left)}" if left else "now"
        why = Text(one.reason, style="red")
        for more in (one.url, one.excerpt and f"“{one.excerpt[:150]}”", _last_probe(one)):
            if more:
                why.append(f"\n{more}", style="dim")
        table.add_row(Text(site), Text("broken", style="bold red"), duration(now - one.since), next_probe, why)
    for site, said in view.wrong_files.items():
        if site not in view.breakers or view.breakers[site].reason != said:
            table.add_row(Text(site), Text("wrong file", style="bold red"), "", "", Text(f"not seeded: {said}", style="red"))
    for (site, kind, figure), (value, usual) in view.drifts.items():
        why = Text(f"{kind} pages: {drift_sentence(figure, value, usual)}")
        table.add_row(Text(site), Text("drifted", style="yellow"), "", "", why)
    return table


def _last_probe(one: Breaker) -> str:
    return f"{one.probes} probes, the last: {one.last_probe}" if one.probes else ""
