"""Faults in Redis that `trawl status` shows: wrong site files, outputs of events that take nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.untrusted_values import as_text, hash_at, is_foreign

RULES_FILE = "the rules file"
"""Used in place of an output's name, which has no blanks: the rules file is wrong, so no output gets events."""


def wrong_files(client: redis.Redis) -> dict[str, str]:
    """Return the errors of site files, by site, as of the last round of seeding."""
    return _faults_at(client, ForumFleetKeys().wrong_sites())


def output_troubles(client: redis.Redis) -> dict[str, str]:
    """Return the errors of outputs by name. Raises `redis.RedisError`."""
    return _faults_at(client, ForumFleetKeys().output_troubles())


def _faults_at(client: redis.Redis, key: str) -> dict[str, str]:
    return {as_text(name): as_text(why) for name, why in sorted(hash_at(client, key).items())}


def note_faults(client: redis.Redis, key: str, now: Mapping[str, str], kept: Collection[str] = ()) -> dict[str, str]:
    """Replace the faults of a hash, but those of the names in `kept`; return the former ones."""
    known = _faults_at(client, key)  # nearly always none
    try:
        if new := {name: why for name, why in now.items() if known.get(name) != why}:
            client.hset(key, mapping=cast("dict[Any, Any]", new))
        if over := known.keys() - now.keys() - {*kept}:
            client.hdel(key, *over)
    except redis.ResponseError as error:
        if not is_foreign(error):  # a key of another type is reported elsewhere; the round goes on
            raise
    return known
