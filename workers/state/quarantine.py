"""Finds values in the fleet's Redis keys that Trawl did not write, reports them by key, field and value.

Readers skip such values and go on (`redis_components.server.untrusted_values`); this module reports them. Each field is
checked by the function that its reader uses, so both agree.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import redis

from redis_components.frontier.holds import VERSION, Hold
from redis_components.keys import CrawlKeys, crawl_record_of
from redis_components.server.untrusted_values import (
    WrongValue,
    as_bytes,
    as_text,
    decoded,
    hash_at,
    number,
    readable,
    whole,
)
from redis_components.start_tasks.seeding import mark_of
from workers.application import Check, application
from workers.state.keys import FleetKeys, fixed_keys

from .beats import Schedules, round_of
from .group_runs import GroupRuns
from .history import Run
from .holds import Breakers
from .jobs import Jobs
from .nodes import node_of
from .records import ErrorRecord, parse_slot, slot_name
from .registry import crawler_of, size_of
from .reports import reported_of
from .rolls import RollNote
from .services import Autoscaling, Deployments, Services

MOST_FIELDS = 5_000
"""Fields of one hash that are checked: hashes of the fleet have fewer, hashes of forums rarely more."""
SHOWN = 60  # characters of a value

HASH, STRING, ZSET = ("hash",), ("string",), ("zset",)
QUEUE = ("zset", "list", "set", "hash", "stream")
"""READY has the type of its queue class; no class stores requests in a string."""


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """A value, or a key, that Trawl did not write."""

    key: str
    reason: str
    field: bytes | None = None  # None: the key has another type, or the value is an entry of a list
    value: bytes = b""

    def __str__(self) -> str:
        """Format as `trawl:fleet:desired, field forum_detail: 'abc' is not a whole number from 0 to 1000`."""
        where = f", field {as_text(self.field)[:SHOWN]}" if self.field is not None else ""
        value = f"{as_text(self.value)[:SHOWN]!r}{'…' if len(self.value) > SHOWN else ''} " if self.value else ""
        return f"{self.key}{where}: {value}{self.reason}"

    @property
    def fix(self) -> str:
        """The command of redis-cli that removes the field, or gives the key another name; for a shell."""
        if self.field is None:
            return f"redis-cli RENAME {shlex.quote(self.key)} {shlex.quote(f'{self.key}:foreign')}"
        field = "".join(chr(one) if 32 < one < 127 and chr(one) not in "\"'\\" else f"\\x{one:02x}" for one in self.field)
        return f"redis-cli --quoted-input HDEL {shlex.quote(self.key)} '\"{field}\"'"


def find(client: redis.Redis, services: Iterable[str], *, threads: bool = False) -> list[Foreign]:
    """Return all foreign values in the keys of the fleet and of its services' crawls. Raises `redis.RedisError`.

    `threads`: check all records of threads, too, in steps.
    """
    services = list(services)
    fleet, crawls = FleetKeys(), [CrawlKeys.for_spider(service) for service in services]
    own = application().key_rules(client, crawls, threads=threads)
    wanted = _types(fleet, crawls) | _slots(client, fleet, services) | dict(own.types)
    with client.pipeline(transaction=False) as pipe:
        for key in wanted:
            pipe.type(key)
        types = dict(zip(wanted, map(as_text, pipe.execute()), strict=True))
    found = [
        Foreign(key=key, reason=f"is a {types[key]}, Trawl has a {' or '.join(right)} there")
        for key, right in wanted.items()
        if types[key] not in ("none", *right)
    ]
    for key, check in (_hashes(client, fleet, crawls) | dict(own.checks)).items():
        if types.get(key, "hash") == "hash":
            found += _of_hash(client, key, check, None if threads else MOST_FIELDS)
    for key, check in {fleet.errors(): partial(_record, ErrorRecord), fleet.runs(): partial(_record, Run)}.items():
        if types[key] == "list":
            found += _of_list(client, key, check)
    locks = [key for key, right in wanted.items() if right == STRING and types[key] == "string"]
    return [*found, *_endless(client, locks)]


def _types(fleet: FleetKeys, crawls: Iterable[CrawlKeys]) -> dict[str, tuple[str, ...]]:
    """Return every key with a fixed name, and its allowed types."""
    types: dict[str, tuple[str, ...]] = {fleet.samples(step): HASH for step in ("minute", "hour")} | _fixed(fleet)
    for keys in crawls:
        types |= _fixed(keys) | dict.fromkeys(keys.turn_keys, ZSET) | {keys.ready(): QUEUE}
        types.pop(keys.fingerprints())  # of any type, by a dupefilter of the project's own
    return types


def _fixed(keys: object) -> dict[str, tuple[str, ...]]:
    kinds = {key: kind for key, kind in fixed_keys(keys).items() if kind != "STRING"}  # without an end: its reader checks it
    return {key: tuple(re.split(", | or ", kind.removesuffix(" with TTL").lower())) for key, kind in kinds.items()}


def _slots(client: redis.Redis, fleet: FleetKeys, services: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the keys of slots that are desired, or were ever held or reported."""
    found: dict[str, tuple[str, ...]] = {}
    sizes = dict.fromkeys(services, 1) | readable(hash_at(client, fleet.desired()), size_of)
    desired = {slot_name(service, number).encode() for service, size in sizes.items() for number in range(size)}
    for name in {*desired, *hash_at(client, fleet.fences()), *hash_at(client, fleet.crawlers())}:
        try:
            spider, number = parse_slot(as_text(name))
        except ValueError:  # `beat`, and crawlers that were started by hand
            continue
        found |= {fleet.slot(spider, number): STRING, fleet.launch(spider, number): STRING}
    return found


def _hashes(client: redis.Redis, fleet: FleetKeys, crawls: Iterable[CrawlKeys]) -> dict[str, Check]:
    """Return the hashes with checkable fields, and the checks."""
    checks: dict[str, Check] = {
        fleet.desired(): size_of,
        fleet.fences(): lambda _, raw: whole(raw),
        fleet.crawlers(): crawler_of,
        fleet.crawls(): crawl_record_of,
        fleet.services(): Services(client).parse,
        fleet.jobs(): Jobs(client).parse,
        fleet.group_runs(): GroupRuns(client).parse,
        fleet.versions(): Deployments(client).parse,
        fleet.nodes(): node_of,
        fleet.troubles(): reported_of,
        fleet.drained_nodes(): lambda _, raw: number(raw),
        fleet.roll(): RollNote(client).parse,
        fleet.autoscale(): Autoscaling(client).parse,
        fleet.holds(): _hold,
        fleet.beat_runs(): round_of,
        fleet.beat_begun(): _begun,
        fleet.schedule(): Schedules(client).parse,
        fleet.orders(): _order,
        fleet.breakers(): Breakers(client).parse,
    }
    for keys in crawls:
        checks |= {keys.holds(): _hold}
        checks |= {keys.pending(): mark_of, keys.seeded(): mark_of, keys.parked(): lambda _, raw: whole(raw)}
        checks |= {keys.counters(): _counter}
    return checks


def _of_hash(client: redis.Redis, key: str, check: Check, most: int | None) -> Iterable[Foreign]:
    try:
        for name, value in islice(client.hscan_iter(key, count=500), most):
            field, raw = as_bytes(name), as_bytes(value)
            try:
                check(field.decode(), raw)
            except ValueError as error:
                yield Foreign(key=key, field=field, value=raw, reason=_reason_of(error))
    except redis.ResponseError as error:  # a key whose type was not queried, of the application
        if "WRONGTYPE" not in str(error):
            raise
        yield Foreign(key=key, reason="has another type, Trawl has a hash there")


def _of_list(client: redis.Redis, key: str, check: Check) -> Iterable[Foreign]:
    for value in client.lrange(key, 0, MOST_FIELDS - 1):
        raw = as_bytes(value)
        try:
            check("", raw)
        except ValueError as error:
            yield Foreign(key=key, value=raw, reason=_reason_of(error))


def _endless(client: redis.Redis, locks: Sequence[str]) -> Iterable[Foreign]:
    """Yield locks and marks without expiry: Trawl sets an expiry on all of them."""
    with client.pipeline(transaction=False) as pipe:
        for key in locks:
            pipe.pttl(key)
        left = pipe.execute()
    for key, left_ms in zip(locks, left, strict=True):
        if left_ms == -1:
            yield Foreign(key=key, reason="has no time to live, each one of Trawl's has")


def _reason_of(error: ValueError) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, WrongValue) else f"cannot be read ({text[:200]})"


def _record(kind: type[Any], name: str, raw: bytes) -> object:  # noqa: ARG001 - the form of a check
    return decoded(raw, kind)


def _hold(name: str, raw: bytes) -> object:
    return None if name == VERSION else Hold.from_json(raw)


def _begun(name: str, raw: bytes) -> object:  # noqa: ARG001 - the form of a check
    token, bar, due = raw.decode().partition("|")
    if not bar:
        raise WrongValue("is not a round that was begun")
    return whole(token), whole(due)


def _order(name: str, raw: bytes) -> object:
    parse_slot(name)
    return whole(raw.partition(b"|")[0])


def _counter(name: str, raw: bytes) -> object:
    return None if name not in _COUNTERS else whole(raw)


_COUNTERS = {"order", "leased", "leased_tasks", "acked", "reclaimed", "parked", "parked_tasks"}
