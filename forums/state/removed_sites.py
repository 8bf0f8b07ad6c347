"""Removed sites: nothing is asked of them any more, and what still comes is dropped.

A removed site is paused by a hold that is marked so. Crawlers set aside what they meet of it, the seeder leaves it out, and the
writer drops its items, until a site file of that name is made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

import redis

from forums import FORUM_DETAIL, FORUM_LIST
from forums.environment import Sites
from forums.state.alerts import Alerts
from forums.state.database_state import forget_fields
from forums.state.keys import ForumCrawlKeys, ForumFleetKeys
from redis_components.admin.dead_letters import purge_list
from redis_components.admin.find_entries import Search, find, take_out
from redis_components.frontier.holds import BREAKER, REQUESTS, SITE, TASKS, Hold, HoldKind, read
from redis_components.items.stream import parse as parse_refused
from redis_components.keys import CrawlKeys, CrawlRecords, keys_in, limits_key
from redis_components.politeness import limits
from redis_components.server.untrusted_values import server_time
from workers.application import application
from workers.fleet.sizes import declared_fleet
from workers.state.holds import FleetHolds

_AT_ONCE = 1000
_COUNTERS = {REQUESTS: "parked", TASKS: "parked_tasks"}


def mark_removed(client: redis.Redis, site: str, by: str) -> Hold | None:
    """Pause the site everywhere, as a removed one; return the hold of an operator that this replaces."""
    before = read(client, ForumFleetKeys()).get(SITE + site)
    hold = Hold(word=HoldKind.PAUSE, at=server_time(client), by=by, reason="a new site file ends this", removed=True)
    _hold(client, site, hold)
    return None if before is None or before.removed else before


def readmit(client: redis.Redis, site: str, hold: Hold | None) -> None:
    """Let a site in again, with the hold that it had before."""
    _hold(client, site, hold)


def readmit_if_new(client: redis.Redis, site: str, removed_at: float) -> None:
    """Let a removed site in again if its site file is newer than the removal, else drop what is set aside of it."""
    try:
        is_back = (Sites.read().sites_dir / f"{site}.toml").stat().st_mtime > removed_at
    except OSError:
        is_back = False
    if is_back:
        forget_site(client, site)
        _hold(client, site, None)
    else:
        for keys in _crawls(client):
            _drop_parked(client, keys, site)


def _hold(client: redis.Redis, site: str, hold: Hold | None) -> None:
    fleet = FleetHolds(client)
    fleet.change({SITE + site: hold, BREAKER + site: None})
    fleet.spread(declared_fleet(client))


def waiting(client: redis.Redis, site: str) -> int:
    """Return the number of requests and start tasks of a site, in all places."""
    found: list[Search] = [find(client, keys, [site.encode()], lambda one: _is_of(one, site)) for keys in _crawls(client)]
    return sum(len(one.entries) for one in found)


def alerts_of(client: redis.Redis, site: str) -> list[int]:
    """Return the numbers of the alerts for this site alone."""
    return [int(number) for number, alert in Alerts(client).all().items() if alert.site == site]


def forget_site(client: redis.Redis, site: str, *, crawled_only: bool = False) -> int:
    """Delete all that Redis has of a site, but its holds; return the number of requests and start tasks. Repeatable.
    `crawled_only`: limits and alerts, which operators set, stay.
    """
    gone = 0
    for keys in _crawls(client):
        gone += take_out(client, keys, [site.encode()], lambda fields: _is_of(fields, site)) + _drop_parked(client, keys, site)
        purge_list(client, keys.bad_items(), parse_refused, lambda item: _site_of(item.payload) == site)
        _forget_ids(client, keys.fed_ids(), site)
        of_crawl = ForumCrawlKeys(keys)
        for key in (
            *(keys.threads(), keys.start_tokens(), keys.fed_waiting(), keys.pending(), keys.seeded()),
            *(of_crawl.marks(), of_crawl.forum_states(), of_crawl.forum_dues()),
        ):
            forget_fields(client, key, f"{site}/")
    fleet = ForumFleetKeys()
    forget_fields(client, fleet.delays(), f"{site}|")
    for key in (fleet.wrong_sites(), fleet.budgets(), fleet.breakers()):
        client.hdel(key, site)
    client.unlink(fleet.spent(site), fleet.counted(site))
    if crawled_only:
        return gone
    limits.change(client, limits_key(), site, None)
    for number in alerts_of(client, site):
        Alerts(client).remove(number)
    return gone


def _crawls(client: redis.Redis) -> list[CrawlKeys]:
    """Return the keys of the crawls whose items the forum writer stores."""
    writers = application().consumers()
    crawls = [one.keys for one in CrawlRecords(client).all().values() if one.consumer in writers]
    known = {keys.start_urls: keys for keys in (*crawls, keys_in(client, FORUM_LIST), keys_in(client, FORUM_DETAIL))}
    return list(known.values())


def _is_of(fields: dict[str, Any], site: str) -> bool:
    """Return True for a start task, or a request, of this site."""
    meta = fields.get("t")
    return fields.get("site") == site or (isinstance(meta, dict) and meta.get("site") == site)


def _drop_parked(client: redis.Redis, keys: CrawlKeys, site: str) -> int:
    """Delete the requests and start tasks that crawlers have set aside."""
    gone = 0
    for kind, counter in _COUNTERS.items():
        lot = keys.parked_lot(f"{kind}{site}")
        while dropped := len(cast("Sequence[bytes]", client.lpop(lot, _AT_ONCE) or ())):
            client.hincrby(keys.counters(), counter, -dropped)
            gone += dropped
        client.hdel(keys.parked(), f"{kind}{site}")
    return gone


def _site_of(payload: bytes) -> object:
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return fields.get("site") if isinstance(fields, dict) else None


def _forget_ids(client: redis.Redis, key: str, site: str) -> None:
    """Delete the ids of start tasks of a site: `<wide>|<how many>|<order>|<site>/<thread>`, by the digest of their texts."""
    head = f"{site}/".encode()
    for digest, value in cast("Iterable[tuple[str, bytes]]", client.hscan_iter(key, count=_AT_ONCE)):
        if value.split(b"|", 3)[-1].startswith(head):
            client.hdel(key, digest)
