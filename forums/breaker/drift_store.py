"""State of drift in Redis, updated from the stats that all crawlers send with their exchanges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec
import redis

from forums.state.keys import ForumFleetKeys
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import as_bytes, as_text
from workers.fleet.sizes import declared_fleet

from .drift import Drift, Totals, broken, forgiven, observe

STATS = "sites/"
"""Prefix of the crawlers' stats of sites: `sites/<site>/<kind>/pages`, `…/rows`, `…/empty/<field>`."""

Kind = tuple[str, str]
"""A site and a kind of page."""


def look_for_drift(client: redis.Redis, sites: Collection[str], required: Mapping[str, tuple[str, ...]]) -> dict[Kind, str]:
    """Update the state from the counters since the last call; return the kinds of page that became useless, with the reasons."""
    key = ForumFleetKeys().drift()
    raw = {as_text(name): as_bytes(text) for name, text in client.hgetall(key).items()}
    found = {}
    for (site, kind), totals in counted(_stats(client)).items():
        if site not in sites:
            continue
        name = f"{site}/{kind}"
        before = read_drift(raw.get(name, b""))
        after = observe(before, totals)
        if after is before:
            continue
        args = {"field": name, "expected": raw.get(name, b""), "value": msgspec.json.encode(after)}
        if script("swap")(client, {"notes": key}, args) and (reason := broken(after, required.get(kind, ()))):
            found[site, kind] = reason
    if stale := [name for name in raw if name.rpartition("/")[0] not in sites]:
        client.hdel(key, *stale)
    return found


def drifts(client: redis.Redis) -> dict[Kind, Drift]:
    """Return the state of each kind of page."""
    found = client.hgetall(ForumFleetKeys().drift())
    named = ((as_text(name).rpartition("/"), read_drift(as_bytes(raw))) for name, raw in sorted(found.items()))
    return {(name[0], name[2]): drift for name, drift in named}


def forgive(client: redis.Redis, site: str, *, forget: bool = False) -> None:
    """Clear the drifts of a site that is well. `forget`: clear the baseline, too, and learn it from the present pages."""
    key = ForumFleetKeys().drift()
    for (name, kind), drift in drifts(client).items():
        if name != site:
            continue
        after = Drift(counted=drift.counted) if forget else forgiven(drift)
        client.hset(key, f"{name}/{kind}", msgspec.json.encode(after))


def counted(stats: Iterable[Mapping[str, str]]) -> dict[Kind, Totals]:
    """Sum the stats of all crawlers by site and kind of page; values that are not numbers are left out."""
    pages: dict[Kind, dict[str, int]] = {}
    for one in stats:
        for name, text in one.items():
            parts = name.split("/", 3)
            if len(parts) != 4 or f"{parts[0]}/" != STATS or not text.isdecimal() or len(text) > 18:
                continue
            figures = pages.setdefault((parts[1], parts[2]), {})
            figures[parts[3]] = figures.get(parts[3], 0) + int(text)
    return {
        kind: Totals(
            pages=figures.get("pages", 0),
            rows=figures.get("rows", 0),
            empty={name.removeprefix("empty/"): n for name, n in figures.items() if name.startswith("empty/")},
        )
        for kind, figures in pages.items()
    }


def read_drift(raw: bytes) -> Drift:
    """Decode a stored state; an empty state if it is unreadable."""
    try:
        return msgspec.json.decode(raw, type=Drift) if raw else Drift()
    except ValueError:
        return Drift()


def _stats(client: redis.Redis) -> list[dict[str, str]]:
    crawls = CrawlRecords(client).keys_of_all(declared_fleet(client))
    found = [client.hgetall(keys.stats_hash()) for keys in crawls.values()]
    return [{as_text(name): as_text(value) for name, value in one.items()} for one in found]
