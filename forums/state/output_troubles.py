"""Outputs of events that take nothing now: noted by the publisher, shown by `trawl status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import redis

from .keys import ForumFleetKeys

_MOST = 100  # shown


def note_troubles(client: redis.Redis, troubles: Mapping[str, str]) -> None:
    """Replace what is noted. `troubles`: the output's name -> why."""
    key = ForumFleetKeys().output_troubles()
    if not troubles and not client.exists(key):
        return  # nearly always
    pipeline = client.pipeline(transaction=True)
    pipeline.delete(key)
    for name, why in troubles.items():
        pipeline.hset(key, name, why)
    pipeline.execute()


def output_troubles(client: redis.Redis) -> dict[str, str]:
    """By the output's name. Raises `redis.RedisError`."""
    found = cast("dict[bytes, bytes]", client.hscan(ForumFleetKeys().output_troubles(), count=_MOST)[1])
    return {name.decode("utf-8", "replace"): why.decode("utf-8", "replace") for name, why in list(found.items())[:_MOST]}
