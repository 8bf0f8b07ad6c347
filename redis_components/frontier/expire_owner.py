"""Lets a dead process count as dead at once: its supervisor has seen it end. The next exchange of any process gives its leases
back (`lua/lib/reclaim_leases.lua`).
"""

from __future__ import annotations

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script


def expire_owner(client: redis.Redis, keys: CrawlKeys, owner: str, why: str = "") -> bool:
    """Let an owner count as dead at once, because its process was seen to end; True if the frontier knew it.

    `owner` is the first name of the process; the names it took after being fenced end too. `why` it
    ended stands with what is given up over that.
    """
    named = {"owners": keys.owners(), "numbers": keys.numbers(), "own_stats": keys.own_stats(owner)}
    return bool(script("expire_owner")(client, named, {"owner": owner, "why": " ".join(why.split())[:600]}))
