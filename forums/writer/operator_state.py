"""Copy of the operators' state in the database, written when it changes, and restored when Redis has lost everything.

It is restored automatically. Crawling a site that an operator has paused would be worse than restoring a size that an operator
flushed on purpose, and the fleet's errors report the restore.
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
    """Copy the state into the database if it changed; restore it if Redis has lost it.

    Raises StorageError, `redis.RedisError`. Safe to run concurrently: existing values are never overwritten.
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
        what = f"Redis had lost the operators' state; put back from the database: {', '.join(parts)}"
        if lost := kept.get(DEAD):
            what += f"; dead letters are gone: {', '.join(f'{service} {number}' for service, number in sorted(lost.items()))}"
        logger.error("%s", what)
        Registry(client).report_error("operator's state", what)


def _copy(database: Database, found: Found) -> None:
    # Compared with the database, not with this process's memory: other processes of the worker write, too.
    if copies.read(database, fleet_namespace()) != found.state:
        copies.write(database, fleet_namespace(), found.state)
