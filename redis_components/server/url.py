"""The URL of Redis, in the forms beyond redis-py's own, and redis-py's clients of what it names.

    redis+sentinel://[user:password@]host[:port][,host[:port]...]/service[/db][?option=value&...]
    redis+cluster://[user:password@]host[:port][,host[:port]...][?option=value&...]

With `rediss+...` every connection is TLS. User and password are those of the servers; options are redis-py's. In a Sentinel URL
an option that begins with `sentinel_` is for the connections to the sentinels (`sentinel_username`, `sentinel_password`,
`sentinel_ssl=no`, ...), which otherwise get the servers' socket and TLS options, but not their password.

No client is connected before its first command, and none sends a command again whose reply got lost: whether it may be is for
the caller to know (`-- Retry:` in the Lua headers). A failover looks like a Redis that is away; the next try looks for the new
primary.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.cluster
import redis.retry
import redis.sentinel
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import RedisClusterException

from redis_components.errors import ConfigError

from .printable import masked

FORMS = (
    "redis://[user:password@]host:port/db, rediss://... (TLS), unix://[user:password@]/path?db=0, "
    "redis+sentinel://[user:password@]host:port,host:port/service/db or redis+cluster://[user:password@]host:port,host:port"
)
_OURS = re.compile(
    r"(?P<scheme>rediss?)\+(?P<kind>sentinel|cluster)://(?>(?:(?P<login>[^?#]*)@)?)(?P<nodes>[^/?#@]++)"
    r"(?:/(?P<path>[^?#]*+))?(?:\?(?P<options>.*))?"
)
_FOR_SENTINELS = "sentinel_"


class UrlKind(Enum):
    """The kind of server at a URL."""

    SERVER = "server"  # one server, by redis-py's own forms
    SENTINEL = "sentinel"  # sentinels, which know where the primary is
    CLUSTER = "cluster"  # some nodes of a cluster, which know the rest


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """A Sentinel or Cluster URL, taken apart. `params` and `sentinel_params` are those of a redis-py client."""

    kind: UrlKind
    nodes: tuple[tuple[str, int], ...]
    service: str
    params: dict[str, Any] = field(repr=False)
    sentinel_params: dict[str, Any] = field(repr=False)


def kind_of(url: str) -> UrlKind:
    """Return the form of this URL; a text that is not a URL counts as a server's."""
    ours = re.match(r"rediss?\+(sentinel|cluster)://", url)
    return UrlKind(ours[1]) if ours else UrlKind.SERVER


def address_of(url: str) -> ServerAddress:
    """Take a Sentinel or Cluster URL apart. Raises ConfigError, which shows no part of the password."""
    found = _OURS.fullmatch(url)
    if not found:
        raise refused(url)
    kind = UrlKind(found["kind"])
    options = parse_qsl(found["options"] or "", keep_blank_values=True)
    tls = {"ssl": True} if found["scheme"] == "rediss" else {}
    try:
        nodes = tuple(_node(text, 26379 if kind is UrlKind.SENTINEL else 6379) for text in found["nodes"].split(","))
        params = tls | _params(f"{found['login'] or ''}@", [one for one in options if not one[0].startswith(_FOR_SENTINELS)])
        for_sentinels = [(name.removeprefix(_FOR_SENTINELS), value) for name, value in options if name.startswith(_FOR_SENTINELS)]
        sentinel_params = {name: value for name, value in params.items() if name.startswith(("ssl", "socket_"))}
        sentinel_params |= _params("", for_sentinels)
    except ValueError:
        raise refused(url) from None
    service, _, db = (found["path"] or "").partition("/")
    if kind is UrlKind.CLUSTER:
        if (found["path"] or "0") != "0" or params.get("db"):
            raise ConfigError(
                f"{masked(url)}: a Redis Cluster has no databases; leave the number away, REDIS_NAMESPACE keeps jobs apart"
            )
        service = ""
    elif not service or not (db or "0").isdecimal():
        raise ConfigError(
            f"{masked(url)} names no service: write redis+sentinel://host:port,host:port/service, or .../service/db"
        )
    elif db:
        params["db"] = int(db)
    if str(sentinel_params.pop("ssl", False)).lower() in ("true", "yes", "1"):
        sentinel_params["ssl"] = True
    return ServerAddress(kind=kind, nodes=nodes, service=unquote(service), params=params, sentinel_params=sentinel_params)


_SERVER = re.compile(
    r"(?:rediss?://(?:[^@/?#]*@)?[^@/?#]*(?:/[^@?#]*)?|unix://[^?#]*)(?:\?[a-z_]+=[^#&]*(?:&[a-z_]+=[^#&]*)*)?", re.IGNORECASE
)
"""redis-py takes more: a password with an unquoted `@`, `/`, `?` or `#` for host, port or database."""


def check(url: str) -> None:
    """Raise ConfigError for the URL of one server where redis-py would read another place than was meant."""
    if kind_of(url) is UrlKind.SERVER and not _SERVER.fullmatch(url):
        raise refused(url)


def server_params(url: str) -> dict[str, Any]:
    """Return the parameters of a redis-py client of one server; `ssl` for a URL with TLS. Raises ConfigError."""
    check(url)
    try:
        params: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]  # redis-py has no types for it
    except ValueError:
        raise refused(url) from None
    params.pop("connection_class", None)
    return params | ({"ssl": True} if url.startswith("rediss:") else {})


def impatient(url: str, seconds: float) -> str:
    """Return the URL of a client that waits at most `seconds` for an answer; a timeout in the URL itself wins."""
    # Of two values for one option redis-py takes the first.
    return f"{url}{'&' if '?' in url else '?'}socket_timeout={seconds:g}&socket_connect_timeout={seconds:g}"


def with_login(url: str, user: str, password: str) -> str:
    """Return the URL for another user of the same Redis, in each of its forms."""
    scheme, _, rest = url.partition("://")
    hosts, slash, path = rest.partition("/")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{hosts.rpartition('@')[2]}{slash}{path}"


def _node(text: str, default_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host")
    return parts.hostname, parts.port or default_port


def _params(login: str, options: list[tuple[str, str]]) -> dict[str, Any]:
    """Return login and options as redis-py reads them: numbers and truth values in their types."""
    if "/" in login:  # it would become a part of the path, and the host a part of the login
        raise ValueError("a slash in the login has to be written as %2F")
    params: dict[str, Any] = parse_url(f"redis://{login}host?{urlencode(options)}")  # type: ignore[no-untyped-call]  # as above
    params.pop("host", None)
    return params


def refused(url: str) -> ConfigError:
    """Return the error for a text that is not a URL of these forms. It shows no part of the password, wherever that ended up."""
    return ConfigError(f"{masked(url)} is not a Redis URL: write {FORMS}, with %-codes for special characters (%40 for @)")


# A server that went silent is left for its successor after this; other clients wait for `defaults.REDIS_PARAMS`.
FAILOVER_PARAMS = {"socket_timeout": 5, "socket_connect_timeout": 2}  # s


def client_of(url: str, *, on_loop: bool = False, **params: Any) -> Any:
    """Return a client of a Sentinel or Cluster URL, whose options win over `params`: a synchronous one, or one for an event loop.
    Raises ConfigError.
    """
    place, kind = address_of(url), redis.asyncio if on_loop else redis
    retry = kind.retry.Retry(NoBackoff(), 0)
    if place.kind is UrlKind.CLUSTER:
        wanted = _cluster_params(place, {"retry": retry} | params)
        if not on_loop:
            return Cluster(place, **wanted)
        nodes = [redis.asyncio.cluster.ClusterNode(host, port) for host, port in place.nodes]
        return redis.asyncio.RedisCluster(startup_nodes=nodes, **wanted)
    sentinels = kind.sentinel.Sentinel(place.nodes, **_sentinel_arguments(place, params, retry))
    return sentinels.master_for(place.service, redis_class=_Primary if on_loop else redis.Redis)


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
