"""URLs for the crawlers of any service: which key they go to, and when they must not come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import redis

from redis_components.errors import ConfigError, unknown_name
from redis_components.keys import CrawlKeys, CrawlRecords, filled
from redis_components.server.names import fleet_namespace, prefixed
from redis_components.start_tasks.seeding import WEB, Pushed, push_urls
from workers.fleet.holds import refuse_if_draining
from workers.fleet.sizes import declared_fleet, service_in
from workers.state.services import MAX_WAITING
from workers.targets import Target

if TYPE_CHECKING:
    from fleet_operations.consumers.database_rows import DatabaseRows


def seed_urls(
    client: redis.Redis,
    service: str,
    tasks: Iterable[str | bytes | Mapping[str, Any]],
    *,
    unique: bool = False,
    raw: bool = False,
    wait: Callable[[Pushed], None] | None = None,
    unless_in: Target | None = None,
    table: str = "",
    key: str = "url",
) -> Iterator[Pushed]:
    """Append start tasks to the start key that the crawlers of `service` really read; as `push_urls`.

    `unless_in`: a database; those are left out that have a row in `table` (by default the service's name) with this `key`.

    Raises ConfigError for a service that the fleet does not have, OnHold where it is
    being drained, and SinkUnavailable where the database does not answer.
    """
    keys = _keys_of(client, service)
    refuse_if_draining(client, service, "")
    declared = service_in(client, service)
    rows = _rows_of(unless_in, table or service, key) if unless_in else None
    pushed = push_urls(
        client,
        keys,
        tasks,
        unique=unique,
        raw=raw,
        schemes=schemes_of(client, service),
        max_waiting=declared.max_waiting if declared else MAX_WAITING,
        wait=wait,
        **({"known": _stored(rows, unless_in, key)} if rows and unless_in else {}),
    )
    return _then_closed(pushed, rows) if rows else pushed


def _rows_of(target: Target, table: str, key: str) -> DatabaseRows:
    if not target.kind.has_rows:
        raise ConfigError(f"{target.kind.form} has no rows to look for: name a database, such as sqlite:///PATH")
    from fleet_operations.consumers.database_rows import DatabaseRows  # SQLAlchemy

    return DatabaseRows(target.place, table, key)


def _then_closed(pushed: Iterator[Pushed], rows: DatabaseRows) -> Iterator[Pushed]:
    with closing(rows):
        yield from pushed


def _stored(rows: DatabaseRows, target: Target, key: str) -> Callable[[Sequence[bytes]], list[bool]]:
    def known(tasks: Sequence[bytes]) -> list[bool]:
        if target.path and not target.path.exists():  # a look would make the file
            return [False] * len(tasks)
        values = [key_of(task, key) for task in tasks]
        stored = rows.known(values)
        return [value in stored for value in values]

    return known


def key_of(task: bytes, key: str) -> str:
    """Return the value by which the row of a start task is found: its field `key`, or that in its meta or cb_kwargs, else its
    URL, else all of it.
    """
    try:
        fields = msgspec.json.decode(task) if task.startswith(b"{") else {}
    except msgspec.DecodeError:
        fields = {}
    places = (fields, fields.get("meta"), fields.get("cb_kwargs"), {key: fields.get("url")})
    found = (one.get(key) for one in places if isinstance(one, dict))
    return str(next((one for one in found if one is not None), task.decode("utf-8", "replace")))


def schemes_of(client: redis.Redis, service: str) -> frozenset[str]:
    """Return the schemes that crawlers of `service` fetch: as they recorded them, and as its declaration opens them."""
    record, declared = CrawlRecords(client).of(service), service_in(client, service)
    named = declared.settings.get("DOWNLOAD_HANDLERS", {}) if declared else {}
    with suppress(ValueError):
        named = json.loads(named) if isinstance(named, str) else named
    opened = [scheme for scheme, handler in named.items() if handler] if isinstance(named, dict) else []
    return WEB.union(record.schemes if record else (), opened)


def _keys_of(client: redis.Redis, service: str) -> CrawlKeys:
    record = CrawlRecords(client).of(service)
    if record is None and service not in (fleet := declared_fleet(client)):
        raise unknown_name("service", service, fleet)
    if record:
        return record.keys
    keys, declared = CrawlKeys.for_spider(service), service_in(client, service)
    if declared is None or not declared.start_key:
        return keys
    return replace(keys, start_urls=prefixed(filled(declared.start_key, service), fleet_namespace()))
