"""Faults in Redis that `trawl status` shows: wrong site files, outputs of events that take nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.untrusted_values import as_text, hash_at, is_foreign


def wrong_files(client: redis.Redis) -> dict[str, str]:
    """Return the errors of site files, by site, as of the last round of seeding."""
    found = hash_at(client, ForumFleetKeys().wrong_sites())
    return {as_text(site): as_text(reason) for site, reason in sorted(found.items())}


def note_wrong_files(client: redis.Redis, known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Replace the errors of site files: `known` are the stored ones, `now` the present ones."""
    key = ForumFleetKeys().wrong_sites()
    if new := {site: reason for site, reason in now.items() if known.get(site) != reason}:
        client.hset(key, mapping=cast("dict[Any, Any]", new))
    if right := known.keys() - now.keys():
        client.hdel(key, *right)


RULES_FILE = "the rules file"
"""Used in place of an output's name, which has no blanks: the rules file is wrong, so no output gets events."""
_MOST = 100  # shown


def note_troubles(
    client: redis.Redis, troubles: Mapping[str, str], *, handled: Collection[str], outputs: Collection[str]
) -> None:
    """Store the `troubles` (name -> why) of the `handled` outputs, and delete those of names that are not in `outputs`."""
    key = ForumFleetKeys().output_troubles()
    known = [as_text(name) for name in hash_at(client, key)]  # nearly always none
    over = [name for name in known if name not in outputs or (name in handled and name not in troubles)]
    if not troubles and not over:
        return
    pipeline = client.pipeline(transaction=True)
    if over:
        pipeline.hdel(key, *over)
    for name, why in troubles.items():
        pipeline.hset(key, name, why)
    try:
        pipeline.execute()
    except redis.ResponseError as error:
        if not is_foreign(error):  # a key of another type is reported elsewhere; events are sent all the same
            raise


def output_troubles(client: redis.Redis) -> dict[str, str]:
    """Return the errors by the output's name. Raises `redis.RedisError`."""
    found = cast("dict[bytes, bytes]", client.hscan(ForumFleetKeys().output_troubles(), count=_MOST)[1])
    return {name.decode("utf-8", "replace"): why.decode("utf-8", "replace") for name, why in list(found.items())[:_MOST]}
