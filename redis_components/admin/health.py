"""The state of a Redis: is it set up and able to keep a frontier (by INFO alone, which managed servers allow, too).

Each finding names the problem, its consequence, and the fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import redis

OLDEST = (6, 2)
NEARLY_FULL = 0.9  # of maxmemory


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong in a fleet, whichever part of it found that."""

    what: str  # one line
    fix: str = ""  # what to do next, one line; "" where it is part of `what`
    grave: bool = True  # something does not work, or data will be lost; else it works, and will not always

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.what}: {self.fix}" if self.fix else self.what


@dataclass(frozen=True, kw_only=True)
class Finding(Problem):
    """One thing that is wrong with the server."""

    name: str  # for metrics: `eviction`, `no_aof`, `cannot_save`, `memory`, `version`, `replica`, `loading`


NAMES = ("eviction", "no_aof", "cannot_save", "memory", "version", "replica", "loading")
"""Of all findings that there can be."""


def look(client: redis.Redis) -> list[Finding]:
    """Return the problems of the server now. Raises `redis.RedisError`."""
    found: Any = client.info()
    if found and all(isinstance(value, dict) for value in found.values()):  # of a Cluster: by node
        return list({one.name: one for info in found.values() for one in findings(info)}.values())
    return findings(found)


def findings(info: Mapping[str, Any]) -> list[Finding]:
    """Return the problems in INFO that an operator has to mend, the worst first."""
    return sorted(_found(info), key=lambda one: not one.grave)


_WRITES = {"append-only file": "aof_last_write_status", "snapshot": "rdb_last_bgsave_status"}


def _found(info: Mapping[str, Any]) -> Iterator[Finding]:
    policy, version = str(info.get("maxmemory_policy", "noeviction")), str(info.get("redis_version", ""))
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    if policy != "noeviction":
        yield Finding(
            name="eviction",
            what=f"Redis may evict keys (maxmemory-policy {policy}): queues vanish without a word",
            fix="CONFIG SET maxmemory-policy noeviction, and in its configuration",
            grave=limit > 0,
        )
    if limit and used > limit * NEARLY_FULL:
        yield Finding(
            name="memory",
            what=f"Redis uses {used / limit:.0%} of its maxmemory ({used / 2**20:,.0f} of {limit / 2**20:,.0f} MiB)",
            fix="raise maxmemory, drain queues, or purge what is dead (trawl dead purge)",
            grave=used >= limit,
        )
    if not int(info.get("aof_enabled", 1)) and info.get("role", "master") == "master":
        yield Finding(
            name="no_aof",
            what="Redis has no append-only file: what was queued since the last snapshot is gone when it ends",
            fix="CONFIG SET appendonly yes, and in its configuration",
            grave=False,
        )
    if failing := [name for name, field in _WRITES.items() if str(info.get(field, "ok")) != "ok"]:
        yield Finding(
            name="cannot_save",
            what=f"Redis cannot write its {' and '.join(failing)} to disk",
            fix="make room on its disk (df), and look at its log; it goes on without a restart then",
        )
    if () < tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        yield Finding(name="version", what=f"Redis {version} is too old", fix="install 6.2 or newer")
    if info.get("role") == "slave":
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        yield Finding(name="replica", what=f"this Redis is a replica of {primary} and takes no writes", fix="name the primary")
    if int(info.get("loading", 0)):
        yield Finding(name="loading", what="Redis is still loading its data", fix="wait", grave=False)


@dataclass(frozen=True, kw_only=True)
class RedisMemory:
    """Bytes of one server, or of all primaries of a cluster."""

    used: int = 0
    limit: int = 0  # maxmemory; 0: none


def memory_of(client: redis.Redis) -> RedisMemory:
    """Return the memory in use and its limit. Raises `redis.RedisError`."""
    found: Any = client.info("memory")
    nodes = found.values() if found and all(isinstance(one, dict) for one in found.values()) else [found]
    used, limit = (sum(int(one.get(name, 0)) for one in nodes) for name in ("used_memory", "maxmemory"))
    return RedisMemory(used=used, limit=limit)
