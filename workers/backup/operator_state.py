"""The operator's state: sizes, autoscaling, schedule, pauses, limits, drained nodes; read as of one instant, and put back.

Small, and worth more than all that crawls gather again: a copy of it is kept in the database. Breakers are left out, as they
measure the state of a site again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import redis

from redis_components.admin.dead_letters import parse
from redis_components.admin.inspector import CrawlRecords
from redis_components.frontier.holds import BREAKER, SITE, SPIDER, VERSION
from redis_components.keys import CrawlKeys, limits_key
from redis_components.server.untrusted_values import as_bytes
from workers.application import application
from workers.state.keys import FleetKeys

SIZES, AUTOSCALING, SCHEDULE, HOLDS, LIMITS, DRAINED = "sizes", "autoscaling", "schedule", "holds", "limits", "drained nodes"
OF_SERVICE = "holds of "
DEAD = "dead letters"
"""Counted, and not put back: the letters themselves are in backups only."""

State = dict[str, dict[str, str]]
"""Part -> field -> value, both as Redis has them."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The state of Redis at one instant."""

    marked: bool
    """It is a state that was copied before; False after a loss, and before the first copy."""
    state: State


def look(client: redis.Redis, services: Iterable[str]) -> Found:
    """Read mark and state in one transaction. Raises `redis.RedisError`."""
    crawls = CrawlRecords(client).keys_of_all(services)
    places = _places(crawls)
    with client.pipeline(transaction=True) as pipe:
        pipe.get(FleetKeys().operator_mark())
        for key in places.values():
            pipe.hgetall(key)  # of what people have typed
        for keys in crawls.values():
            pipe.llen(keys.dead())
            pipe.lrange(keys.dead(), -1, -1)
        marked, *replies = pipe.execute(raise_on_error=False)
    hashes = dict(zip(places, replies, strict=False))
    state = {part: kept for part, fields in hashes.items() if isinstance(fields, dict) and (kept := _texts(part, fields))}
    dead = replies[len(places) :]
    for service, count, last in zip(crawls, dead[::2], dead[1::2], strict=True):
        if isinstance(count, int) and count and isinstance(last, list):
            state.setdefault(DEAD, {})[service] = json.dumps({"count": count, "last_reason": _reason(last)})
    return Found(marked=isinstance(marked, bytes | str), state=state)


def put_back(client: redis.Redis, services: Iterable[str], state: Mapping[str, Mapping[str, str]], mark: str) -> list[str]:
    """Write the entries that Redis does not have, and the mark, in one transaction; return the parts that were written.

    Entries written since the loss stay. Raises `redis.RedisError`.
    """
    places = _places(CrawlRecords(client).keys_of_all(services))
    order = [(part, field) for part in places for field in state.get(part, {})]
    with client.pipeline(transaction=True) as pipe:
        for part, field in order:
            pipe.hsetnx(places[part], field, state[part][field])
        replies = pipe.execute(raise_on_error=False)
        written = [one for one, new in zip(order, replies, strict=True) if new == 1]
        for part in {part for part, _ in written if part in (HOLDS, LIMITS) or part.startswith(OF_SERVICE)}:
            if part == LIMITS:
                pipe.hincrby(places[part], VERSION, 1 + secrets.randbelow(2**40))  # another one than crawlers know
            else:
                pipe.hset(places[part], VERSION, secrets.token_hex(8))
        pipe.set(FleetKeys().operator_mark(), mark)
        pipe.execute()
    return sorted({part for part, _ in written})


def mark_copied(client: redis.Redis, mark: str) -> None:
    """Mark the state in Redis as copied. Raises `redis.RedisError`."""
    client.set(FleetKeys().operator_mark(), mark, nx=True)


def _places(crawls: Mapping[str, CrawlKeys]) -> dict[str, str]:
    fleet = FleetKeys()
    return {
        SIZES: fleet.desired(),
        AUTOSCALING: fleet.autoscale(),
        SCHEDULE: fleet.schedule(),
        HOLDS: fleet.holds(),
        LIMITS: limits_key(),
        DRAINED: fleet.drained_nodes(),
        **application().operator_keys(),
        **{f"{OF_SERVICE}{service}": keys.holds() for service, keys in crawls.items()},
    }


def _texts(part: str, fields: Mapping[Any, Any]) -> dict[str, str]:
    """Return an operator's entries in a hash, without derived ones and values that are not text."""
    kept: dict[str, str] = {}
    for raw_name, raw in fields.items():
        try:
            name, value = as_bytes(raw_name).decode(), as_bytes(raw).decode()
        except UnicodeDecodeError:
            continue
        of_a_crawl = part.startswith(OF_SERVICE) and not (name == SPIDER or name.startswith(SITE))
        if name != VERSION and not of_a_crawl and not (part == HOLDS and name.startswith(BREAKER)):
            kept[name] = _policy(value) if part == AUTOSCALING else value
    return kept


def _policy(value: str) -> str:
    """Return the policy of a service that sizes itself, without its measurements."""
    try:
        return json.dumps({"policy": json.loads(value)["policy"]}, sort_keys=True)
    except (ValueError, LookupError, TypeError, RecursionError):
        return value


def _reason(last: list[Any]) -> str:
    entry = parse(as_bytes(last[0]), 0) if last else None
    return entry.reason if entry else ""
