"""Services as a file declares them: `services.toml` next to `scrapy.cfg`, or the file that TRAWL_SERVICES names.

[services.books]
project = "shop.settings"
spider = "books"
size = 2
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from redis_components.embedded import project_dir
from redis_components.errors import ConfigError, did_you_mean
from redis_components.server.names import check_groups, service_name
from redis_components.server.toml import toml_table
from workers.application import application
from workers.consumers.item_consumers import NO_CONSUMER
from workers.consumers.targets import FORMS, is_target, parse_target
from workers.environment.variables import Fleet
from workers.state.services import ServiceRecord

FILE = "services.toml"
_FIELDS = [one.name for one in fields(ServiceRecord)]
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def service_file() -> Path | None:
    """Return the file that declares services; None where there is none. Raises ConfigError where a named one is missing."""
    named = Fleet.read().services
    path = named.expanduser() if named else project_dir() / FILE
    if named and not path.is_file():
        raise ConfigError(f"TRAWL_SERVICES={str(named)!r}: there is no such file: correct the path, or unset the variable")
    return path if path.is_file() else None


def services_in_file() -> dict[str, ServiceRecord]:
    """Return the services that the file declares, by name; empty without a file. Raises ConfigError with file, key and fix."""
    path = service_file()
    return read_services(path) if path else {}


def read_services(path: Path) -> dict[str, ServiceRecord]:
    """Parse the services of a file. Raises ConfigError with the file, the key and the allowed values."""
    try:
        content = toml_table(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    for key in content:
        if key != "services":
            raise ConfigError(f"{path}: {key}: unknown; each service is a table [services.NAME]{did_you_mean(key, ['services'])}")
    declared = content.get("services", {})
    if not isinstance(declared, dict) or not all(isinstance(one, dict) for one in declared.values()):
        raise ConfigError(f"{path}: services: each service is a table [services.NAME]")
    return {name: check_service(name, values, f"{path}: services.{name}") for name, values in declared.items()}


def check_service(name: str, values: Mapping[str, Any], where: str) -> ServiceRecord:
    """Build a declaration from its fields. `where` begins each message. Raises ConfigError."""
    try:
        service_name(name)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    for key in values:
        if key not in _FIELDS:
            raise ConfigError(f"{where}.{key}: unknown; there are {', '.join(_FIELDS)}{did_you_mean(key, _FIELDS)}")
    try:
        record = msgspec.convert(dict(values), ServiceRecord)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise ConfigError(f"{where}{place.rstrip('`')}: {message[:1].lower()}{message[1:]}") from None
    _check_values(record, where)
    return record


def _check_values(record: ServiceRecord, where: str) -> None:
    if record.project and not _MODULE.fullmatch(record.project):
        raise ConfigError(f"{where}.project: {record.project!r} is not a module: write one such as shop.settings")
    for key, values in (("arguments", record.arguments), ("settings", record.settings)):
        for name, value in values.items():
            if not name or "=" in name or "\0" in f"{name}{value}":
                raise ConfigError(f"{where}.{key}: {name!r}: a name may not be empty or hold =")
    soft, hard = record.memory_soft_mb, record.memory_hard_mb
    if soft and hard and soft > hard:
        raise ConfigError(f"{where}.memory_soft_mb: {soft:g} is more than memory_hard_mb, {hard:g}: give it less")
    known = [NO_CONSUMER, *application().consumers()]
    if record.consumer not in ("", *known) and not is_target(record.consumer):
        raise ConfigError(
            f"{where}.consumer: {record.consumer!r} is not {', '.join(known)}, {FORMS}{did_you_mean(record.consumer, known)}"
        )
    _check_groups(record, where)


def _check_groups(record: ServiceRecord, where: str) -> None:
    check_groups(list(record.groups), f"{where}.groups")
    for group, target in record.groups.items():
        try:
            parse_target(target or "jsonl:-")  # empty: another program reads the group
        except ConfigError as error:
            raise ConfigError(f"{where}.groups.{group}: {error}; empty: another program reads the group") from None
    if record.groups and record.consumer not in ("", NO_CONSUMER):
        raise ConfigError(f"{where}.consumer: a service with groups has a consumer for each of them: leave consumer out")
    if record.groups and "REDIS_ITEMS_GROUPS" in record.settings:
        raise ConfigError(f"{where}.settings: REDIS_ITEMS_GROUPS follows from groups: leave it out")
