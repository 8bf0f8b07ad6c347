"""Taking what scrapy-redis wrote out of the way of our own keys, before anything of it is read."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from redis_components.errors import TrawlError
from redis_components.server.scripts import script


def set_aside(client: redis.Redis, source: str, aside: str, *, owners: str, members: Sequence[bytes] | None = None) -> int:
    """Move `members` of the key `source`, or all of it where None are named, under the name `aside`; return their number.

    A list of which an earlier run has set something aside is moved in parts, the oldest first; repeat it until 0. Raises
    TrawlError while a Trawl crawler works there (`owners` is the key of its heartbeat), or where `aside` is of another type.
    """
    outcome, moved = script("set_aside")(
        client,
        {"source": source, "aside": aside, "owners": owners},
        {"whole": int(members is None), "members": members or []},
    )
    if outcome == b"crawling":
        raise TrawlError(f"a Trawl crawler works with {source}: stop it, import, and start it again")
    if outcome == b"kinds":
        raise TrawlError(f"{source} has become of another type than {aside}: look at it again")
    return int(moved)
