"""redis-py's clients of a Sentinel's primary and of a Cluster: synchronous ones, and those for an event loop.

None is connected before its first command, and none sends a command again whose reply got lost: whether it may be is for the
caller to know (`-- Retry:` in the Lua headers). A failover looks like a Redis that is away; the next try looks for the new
primary.
"""

from __future__ import annotations

import threading
from typing import Any, cast

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.cluster
import redis.retry
import redis.sentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException

from redis_components.errors import ConfigError

from .url import ServerAddress, UrlKind, address_of

# A server that went silent is left for its successor after this; other clients wait for `defaults.REDIS_PARAMS`.
FAILOVER_PARAMS = {"socket_timeout": 5, "socket_connect_timeout": 2}  # s


def client_of(url: str, **params: Any) -> redis.Redis:
    """Return a synchronous client of a Sentinel or Cluster URL, whose options win over `params`. Raises ConfigError."""
    place = address_of(url)
    retry = redis.retry.Retry(NoBackoff(), 0)
    if place.kind is UrlKind.CLUSTER:
        return cast("redis.Redis", Cluster(place, **_cluster_params(place, {"retry": retry} | params)))
    sentinels = redis.sentinel.Sentinel(  # type: ignore[no-untyped-call]  # redis-py has no types for it
        place.nodes, **_sentinel_arguments(place, params, retry)
    )
    return cast("redis.Redis", sentinels.master_for(place.service))  # type: ignore[no-untyped-call]


def asyncio_client_of(url: str, **params: Any) -> redis.asyncio.Redis:
    """Return the same client for an event loop."""
    place = address_of(url)
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    if place.kind is UrlKind.CLUSTER:
        nodes = [redis.asyncio.cluster.ClusterNode(host, port) for host, port in place.nodes]
        cluster = redis.asyncio.RedisCluster(startup_nodes=nodes, **_cluster_params(place, {"retry": retry} | params))
        return cast("redis.asyncio.Redis", cluster)
    sentinels = redis.asyncio.sentinel.Sentinel(  # type: ignore[no-untyped-call]  # redis-py has no types for it
        place.nodes, **_sentinel_arguments(place, params, retry)
    )
    return cast("redis.asyncio.Redis", sentinels.master_for(place.service, redis_class=_Primary))


def _server_params(place: ServerAddress, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the connections to servers, without a host."""
    return {name: value for name, value in (params | place.params).items() if name not in ("host", "port")}


def _cluster_params(place: ServerAddress, params: dict[str, Any]) -> dict[str, Any]:
    if params.get("db"):
        raise ConfigError(
            f"a Redis Cluster has no databases: leave REDIS_DB = {params['db']!r} away, REDIS_NAMESPACE keeps jobs apart"
        )
    return {name: value for name, value in _server_params(place, params).items() if name != "db"}


def _sentinel_arguments(place: ServerAddress, params: dict[str, Any], retry: object) -> dict[str, Any]:
    """Return the parameters of the connections to the primary and to the sentinels: each is asked once, the next one may know."""
    shared = {name: value for name, value in params.items() if name.startswith(("ssl_", "socket_"))}
    to_sentinels = shared | place.sentinel_params | {"retry": retry}
    return {"sentinel_kwargs": to_sentinels, **_server_params(place, {"retry": retry} | params)}


class _Primary(redis.asyncio.Redis):
    """Its sentinels' connections end with it."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close all connections."""
        await super().aclose(close_connection_pool)
        await cast("Any", self.connection_pool).sentinel_manager.aclose()


class Cluster(redis.RedisCluster):
    """redis-py's cluster client, which asks the cluster for its layout at the first command, not when it is made, and raises
    redis-py's usual errors when no node answers.
    """

    def __init__(self, place: ServerAddress, **params: Any) -> None:
        self._to_make: tuple[ServerAddress, dict[str, Any]] | None = (place, params)
        self._making = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        """Return a missing attribute: all that redis-py's constructor sets."""
        if name.startswith("__"):
            raise AttributeError(name)
        with self.__dict__["_making"]:
            if name in self.__dict__:  # another thread has made it meanwhile
                return self.__dict__[name]
            if self._to_make is None:
                raise AttributeError(name)
            self._make(*self._to_make)
        return getattr(self, name)

    def _make(self, place: ServerAddress, params: dict[str, Any]) -> None:
        self._to_make = None  # the constructor looks for attributes, too
        try:
            nodes = [redis.cluster.ClusterNode(host, port) for host, port in place.nodes]  # type: ignore[no-untyped-call]
            super().__init__(startup_nodes=nodes, **params)
        except BaseException as exc:
            self._to_make = (place, params)
            if isinstance(exc, RedisClusterException):
                raise redis.ConnectionError(str(exc)) from exc
            raise

    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command as redis-py does."""
        try:
            return super().execute_command(*args, **kwargs)  # type: ignore[no-untyped-call]
        except RedisClusterException as exc:  # none of redis-py's other errors: callers would have to know two families
            raise redis.ConnectionError(str(exc)) from exc

    def close(self) -> None:
        """Close all connections, if there are any."""
        if self._to_make is None:
            super().close()
