"""Writes the limits of `trawl.toml` to Redis, where every crawler reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_CONFIG, FROM_FILES, LaneLimits
from redis_components.server.fleet_file import declared, faulty, record_of


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


def write_file_limits(client: redis.Redis) -> list[str]:
    """Write the limits of the file; return the changed sites. Limits that an operator set at run time stay; those of a site file
    do not. Raises ConfigError and `redis.RedisError`.
    """
    wanted, known = limits_in_file(), limits.read(client, limits_key())
    gone = dict.fromkeys(lane for lane, one in known.items() if one.by == BY_CONFIG)
    return limits.write(client, known, {**gone, **wanted}, FROM_FILES)
