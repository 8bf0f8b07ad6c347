"""Checks once, when a process starts, that Redis answers: a wrong URL or password becomes a one-line error."""

from __future__ import annotations

import redis

from redis_components.connection import connect, explain, get_redis
from redis_components.embedded import redis_url
from workers.state.registry import Registry

QUICK_S = 3.0


def reach_redis() -> Registry:
    """Return the registry, once Redis has answered. Raises RedisUnavailable, ConfigError."""
    url = redis_url()
    try:
        registry = Registry(connect(url))
        registry.now()
    except redis.RedisError as error:
        raise explain(error, url) from error
    return registry


def check_login(url: str) -> str:
    """Return `url`, unless a Redis there refuses the password: trying again, as workers do, would not help.

    A Redis that is not there may still come. Raises RedisUnavailable, and ConfigError for an invalid URL.
    """
    connect(url)  # checks its form
    client = get_redis(url=url, socket_connect_timeout=QUICK_S, socket_timeout=QUICK_S)
    try:
        client.ping()
    except redis.AuthenticationError as error:
        raise explain(error, url) from error
    except redis.RedisError:
        pass
    finally:
        client.close()
    return url
