"""Expiry of the keys of crawls that are over."""

from __future__ import annotations

from os.path import commonprefix

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.names import literal
from redis_components.server.untrusted_values import as_text, hash_at, number, readable
from workers.state.keys import FleetKeys

_SCAN = 1000


def _prefix(keys: CrawlKeys) -> str:
    return keys.requests.removesuffix(":requests")


def end(client: redis.Redis, keys: CrawlKeys, keep_s: float) -> None:
    """Let the keys of a crawl that is over expire after `keep_s` seconds, from the next `let_expire` on."""
    client.hset(FleetKeys().expiring(), _prefix(keys), repr(keep_s))


def keep(client: redis.Redis, keys: CrawlKeys) -> None:
    """Let the keys of a crawl stay after all."""
    client.hdel(FleetKeys().expiring(), _prefix(keys))
    with client.pipeline(transaction=False) as pipe:
        for key in client.scan_iter(match=f"{literal(_prefix(keys))}:*", count=_SCAN):
            pipe.persist(key)
        pipe.execute()


def let_expire(client: redis.Redis) -> None:
    """Let the keys of crawls that are over expire; not their items, which are the service's, nor what crawls share.

    One look through all keys for all of them: of a thousand jobs each would look through those of all others.
    """
    ended = readable(hash_at(client, FleetKeys().expiring()), lambda _, raw: number(raw, 0.0, 1e9))
    if not ended:
        return
    with client.pipeline(transaction=False) as pipe:
        for key in client.scan_iter(match=f"{literal(commonprefix(list(ended)))}*", count=_SCAN):  # noqa: RUF071 - characters
            parts = as_text(key).split(":")
            prefixes = (":".join(parts[:length]) for length in range(1, len(parts)))
            if (keep_s := next((ended[one] for one in prefixes if one in ended), None)) is not None:
                pipe.expire(key, int(keep_s))
        pipe.hdel(FleetKeys().expiring(), *ended)
        pipe.execute()
