"""Checks once, when a process starts: Redis answers (a wrong URL or password becomes one line), and enough files may be open."""

from __future__ import annotations

import resource

import redis

from redis_components.connection import connect, explain, get_redis
from redis_components.embedded import redis_url
from redis_components.errors import ConfigError
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


ENOUGH = 65_536
CRAWLER = 128
"""Files of a crawler: some 40 before its first page, and one for each page in flight."""
_EACH_CRAWLER, _ALONE = 9, 100  # descriptors of a worker's main process: pipes, events and queues of each pool process


def require_for_worker(crawlers: int) -> None:
    """Raise the limit of this process to what the main process of a worker opens at its start. Raises ConfigError."""
    require(_EACH_CRAWLER * crawlers + _ALONE, f"a worker with {crawlers} crawlers")


def require(needed: int, by: str) -> None:
    """Raise the limit of this process. Raises ConfigError where it stays too low for what `by` needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < needed:
        raise ConfigError(
            f"{soft:,} files may be open (ulimit -n), {by} needs {needed:,}: raise the limit (ulimit -Hn, LimitNOFILE)"
        )
