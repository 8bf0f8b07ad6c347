"""Detection of crawlers of scrapy-redis that still work. They leave no trace in Redis while they wait, so their commands are
looked for: an idle one looks for requests every five seconds.
"""

from __future__ import annotations

import threading
from typing import Any

import redis
from redis.cluster import RedisCluster
from redis.exceptions import NoPermissionError, ResponseError

from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys

ENOUGH = "trawl: looked long enough"
# Commands by which scrapy-redis stores, pops or filters; others may look at the sizes.
_AT_WORK = frozenset(
    ["ZADD", "ZREMRANGEBYRANK", "ZPOPMIN", "BZPOPMIN", "SADD", "LPUSH", "RPUSH", "LPOP", "RPOP", "BLPOP", "BRPOP"],
)


def seen_at_work(client: redis.Redis, keys: CrawlKeys, seconds: float) -> str | None:
    """Return address and command of a client that works with the queue or the dupefilter, if one does so within `seconds`.

    Redis reports each of its commands meanwhile (MONITOR). Raises ConfigError for a user who may not ask for that.
    """
    server: object = client  # redis-py's two classes have no common base
    if isinstance(server, RedisCluster):
        raise ConfigError("crawlers of scrapy-redis are not looked for in a Cluster: stop all of them, then add --watch 0")
    db = int(client.get_connection_kwargs().get("db") or 0)
    watched = {keys.requests, keys.dupefilter}
    end = threading.Timer(seconds, client.echo, (ENOUGH,))
    try:
        with client.monitor() as monitor:  # type: ignore[no-untyped-call]  # redis-py has no types for it
            end.start()
            for entry in monitor.listen():
                name, *operands = _words(entry)
                if name == "ECHO" and operands == [ENOUGH]:
                    return None
                if (
                    name in _AT_WORK
                    and watched.intersection(operands[:1])
                    and entry["db"] == db
                    and entry["client_type"] != "lua"
                ):
                    return f"{entry['client_address']}:{entry['client_port']} ({name})"
    except (NoPermissionError, ResponseError) as exc:
        raise ConfigError(
            f"cannot look for crawlers of scrapy-redis, MONITOR is refused ({exc}): stop all of them, then add --watch 0"
        ) from exc
    finally:
        end.cancel()
    return None


def _words(entry: dict[str, Any]) -> list[str]:
    name, *operands = str(entry["command"]).split(" ")
    if name.upper() == "ECHO":
        return ["ECHO", " ".join(operands)]
    return [name.upper(), *operands]
