"""Services as `trawl.toml` declares them.

[services.books]
project = "shop.settings"
spider = "books"
size = 2
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import redis

from redis_components.errors import ConfigError, did_you_mean
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_CONFIG, FROM_FILES, LaneLimits
from redis_components.server.fleet_file import declared, faulty, record_of
from redis_components.server.names import check_groups, service_name
from workers.application import application
from workers.consumers.item_consumers import NO_CONSUMER
from workers.consumers.targets import FORMS, is_target, parse_target
from workers.state.services import MAX_WAITING, ServiceRecord

_FIELDS = [one.name for one in fields(ServiceRecord)]
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def services_in_file() -> dict[str, ServiceRecord]:
    """Return the services that the file declares, by name; empty without a file. Raises ConfigError with file, key and fix."""
    found = declared("services")
    return read_services(found.tables.get("services", {}), found.file) if found else {}


def read_services(table: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, ServiceRecord]:
    """Parse the services of a file. Raises ConfigError with a line for each fault: file, key and the allowed values."""
    records, faults = {}, []
    for name, values in table.items():
        try:
            records[name] = check_service(name, values, f"services.{name}")
        except ConfigError as error:
            faults += str(error).splitlines()
    if faults:
        raise faulty(path, faults)
    return records


def check_service(name: str, values: Mapping[str, Any], where: str) -> ServiceRecord:
    """Build a declaration from its fields. `where` begins each line. Raises ConfigError with a line for each fault."""
    faults = []
    try:
        service_name(name)
    except ConfigError as error:
        faults.append(f"{where}: {error}")
    record, wrong = record_of({"max_waiting": MAX_WAITING} | dict(values), ServiceRecord, where, _FIELDS)
    faults += wrong if record is None else _faults_of(record, where)
    if record is None or faults:
        raise ConfigError("\n".join(faults))
    return record


def _faults_of(record: ServiceRecord, where: str) -> Iterator[str]:
    if record.project and not _MODULE.fullmatch(record.project):
        yield f"{where}.project: {record.project!r} is not a module: write one such as shop.settings"
    for key, values in (("arguments", record.arguments), ("settings", record.settings)):
        for name, value in values.items():
            if not name or "=" in name or "\0" in f"{name}{value}":
                yield f"{where}.{key}: {name!r}: a name may not be empty or hold ="
    soft, hard = record.memory_soft_mb, record.memory_hard_mb
    if soft and hard and soft > hard:
        yield f"{where}.memory_soft_mb: {soft:g} is more than memory_hard_mb, {hard:g}: give it less"
    known = [NO_CONSUMER, *application().consumers()]
    if record.consumer not in ("", *known) and not is_target(record.consumer):
        yield (f"{where}.consumer: {record.consumer!r} is not {', '.join(known)}, {FORMS}{did_you_mean(record.consumer, known)}")
    yield from _faults_of_groups(record, where)


def _faults_of_groups(record: ServiceRecord, where: str) -> Iterator[str]:
    try:
        check_groups(list(record.groups), f"{where}.groups")
    except ConfigError as error:
        yield str(error)
    for group, target in record.groups.items():
        try:
            parse_target(target or "jsonl:-")  # empty: another program reads the group
        except ConfigError as error:
            yield f"{where}.groups.{group}: {error}; empty: another program reads the group"
    if record.groups and record.consumer not in ("", NO_CONSUMER):
        yield f"{where}.consumer: a service with groups has a consumer for each of them: leave consumer out"
    if record.groups and "REDIS_ITEMS_GROUPS" in record.settings:
        yield f"{where}.settings: REDIS_ITEMS_GROUPS follows from groups: leave it out"


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of [limits.SITE]: the options of `trawl limit`."""

    rate: float | None = None
    burst: int = 1
    concurrency: int | None = None
    weight: int = 1
    per_hour: int | None = None
    per_day: int | None = None
    quiet: str | None = None


def limits_in_file() -> dict[str, LaneLimits]:
    """Return the limits that the file declares, by site. Raises ConfigError with a line for each fault."""
    found = declared("limits")
    return read_limits(found.tables["limits"], found.file) if found else {}


def read_limits(table: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, LaneLimits]:
    """Parse the limits of a file. Raises ConfigError with a line for each fault."""
    lanes, faults = {}, []
    for lane, values in table.items():
        given, wrong = record_of(values, _Table, f"limits.{lane}", _Table.__struct_fields__)
        faults += wrong
        try:
            limits.check_name(lane)
            lanes[lane] = LaneLimits.of(**msgspec.structs.asdict(given or _Table()), by=BY_CONFIG)
        except ConfigError as error:
            faults.append(f"limits.{lane}: {error}")
    if faults:
        raise faulty(path, faults)
    return lanes


def write_file_limits(client: redis.Redis, more: Mapping[str, LaneLimits] = MappingProxyType({})) -> list[str]:
    """Write the limits of the file, and `more` of its lanes; return the changed lanes. Limits that an operator set at run time
    stay; those of a site file do not. Raises ConfigError and `redis.RedisError`.
    """
    wanted, known = {**limits_in_file(), **more}, limits.read(client, limits_key())
    gone = dict.fromkeys(lane for lane, one in known.items() if one.by == BY_CONFIG)
    return limits.write(client, known, {**gone, **wanted}, FROM_FILES)
