"""The operator's state survives a Redis that lost everything: copied into the database when it changes, put back when it is gone.

It is put back without being asked. Of the two mistakes that are possible, crawling a site that somebody has paused is worse than
bringing back a size that somebody flushed on purpose, and the fleet's errors say what was done.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

import redis

from forums.storage import Database
from forums.storage import operator_states as copies
from redis_components.backup.operator_state import DEAD, Found, look, mark_copied, put_back
from redis_components.fleet.registry import Registry
from redis_components.server.namespace import fleet_namespace

logger = logging.getLogger(__name__)


def keep_operator_state(client: redis.Redis, database: Database, services: Sequence[str]) -> None:
    """Copy the state into the database if it is another one; put it back if Redis has lost it.

    Raises StorageError, `redis.RedisError`. Two processes may do this at once: what is there already is never overwritten.
    """
    found = look(client, services)
    if found.marked:
        _copy(database, found)
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    kept = copies.read(database, fleet_namespace())
    if not kept:
        _copy(database, found)
        mark_copied(client, now)
        return
    if parts := put_back(client, services, kept, now):
        what = f"Redis had lost what operators have said; put back from the database: {', '.join(parts)}"
        if lost := kept.get(DEAD):
            what += f"; dead letters are gone: {', '.join(f'{service} {told}' for service, told in sorted(lost.items()))}"
        logger.error("%s", what)
        Registry(client).report_error("operator's state", what)


def _copy(database: Database, found: Found) -> None:
    # Compared with the database, not with what this process knows: other processes of the worker write, too.
    if copies.read(database, fleet_namespace()) != found.state:
        copies.write(database, fleet_namespace(), found.state)
