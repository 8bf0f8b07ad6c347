"""Clients of Redis: Trawl's own `connect`, and scrapy-redis's functions for users' Scrapy settings.

`get_redis` and `from_settings` make exactly the client that the settings describe, with nothing added, as projects written for
scrapy-redis expect. Equal calls return the same client: a process has one pool per server and set of parameters.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from operator import itemgetter
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary, finalize

import redis
import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.sentinel import MasterNotFoundError

from . import defaults
from .errors import ConfigError, RedisUnavailable
from .keys import NamespaceKeys, limits_key
from .server.names import Settings, check_one_slot
from .server.printable import masked
from .server.url import FAILOVER_PARAMS, UrlKind, check, client_of, kind_of, refused

# Separate settings that end up in the client's parameters. An empty or zero value does not count: set it in REDIS_PARAMS.
SETTINGS_PARAMS_MAP = {
    "REDIS_URL": "url",
    "REDIS_HOST": "host",
    "REDIS_PORT": "port",
    "REDIS_DB": "db",
    "REDIS_ENCODING": "encoding",
    "REDIS_DECODE_RESPONSES": "decode_responses",
}


_clients: WeakValueDictionary[tuple[int, str], redis.Redis] = WeakValueDictionary()
_kept: dict[tuple[int, str], redis.Redis] = {}


def connect(url: str | None = None) -> redis.Redis:
    """Return a client of `url` (see `server.url.FORMS`), else of TRAWL_REDIS_URL or the embedded server; replies are bytes.

    Equal URLs return the same client within a process; a forked child gets its own. Nothing is sent yet. A command whose reply
    got lost is *not* sent again: that is the caller's decision (`-- Retry:` in the Lua headers). Options can be given in the
    URL, as in `?socket_timeout=5`. Raises ConfigError for a URL of another form, RedisUnavailable when no embedded server can be
    started.
    """
    if url is None:
        from . import embedded  # here, because it needs a Unix, and users with a REDIS_URL do not

        url = embedded.redis_url()
    key = (os.getpid(), url)
    if key not in _kept:
        for other in [k for k in _kept if k[0] != key[0]]:  # of the process that we were forked from
            del _kept[other]
        if kind_of(url) is UrlKind.CLUSTER:
            check_one_slot((NamespaceKeys().crawls(), limits_key()), "TRAWL_NAMESPACE", "'{trawl}'")
        _kept[key] = _shared({**_defaults_for(url), "url": url})
    return _kept[key]


def _shared(params: dict[str, Any]) -> redis.Redis:
    """Return the client of these parameters. A redis-py client of plain values is shared in the process while it is
    referenced.
    """
    if not (params.get("redis_cls", redis.Redis) is redis.Redis and _is_plain({**params, "redis_cls": None})):
        return get_redis(**params)
    key = (os.getpid(), repr(sorted(params.items(), key=itemgetter(0))))
    client = _clients.get(key)
    if client is None:
        try:
            client = get_redis(**params)
            _check_options(client)
            client.auto_close_connection_pool = False  # `close` would disconnect its other holders in the middle of a command
            if (pool := client.__dict__.get("connection_pool")) is not None:  # a cluster's is not made yet
                finalize(client, pool.disconnect).atexit = False  # when no holder is left
            _clients[key] = client
        except TypeError as exc:  # the message has the parameter's name, not its value
            where = f"an option of {masked(params['url'])}, or a parameter" if "url" in params else "a parameter"
            raise ConfigError(f"redis-py does not know {where} of REDIS_PARAMS: {exc}") from exc
        except ValueError:
            if "url" not in params:
                raise
            # Without the text of the ValueError, and not as its cause: it may quote a part of the password.
            raise refused(params["url"]) from None
    return client


def _check_options(client: redis.Redis) -> None:
    """Raise TypeError for a parameter that redis-py would refuse at the first command only, and then at each."""
    pool = client.__dict__.get("connection_pool")  # a cluster's is not made yet
    if pool is not None:
        pool.connection_class(**pool.connection_kwargs)


def _defaults_for(url: str | None) -> dict[str, Any]:
    return dict(defaults.REDIS_PARAMS) if kind_of(url or "") is UrlKind.SERVER else defaults.REDIS_PARAMS | FAILOVER_PARAMS


def get_redis(**kwargs: Any) -> redis.Redis:
    """Return a client made by `redis_cls(**kwargs)`, or by `redis_cls.from_url(url, **kwargs)` where `url` is given.

    `redis_cls` is `defaults.REDIS_CLS` unless a class is given. For a Sentinel or Cluster URL the scheme determines the client.
    """
    redis_cls = kwargs.pop("redis_cls", defaults.REDIS_CLS)
    url = kwargs.pop("url", None)
    if url and redis_cls is defaults.REDIS_CLS and kind_of(url) is not UrlKind.SERVER:
        return client_of(url, **kwargs)  # type: ignore[no-any-return]
    if url:
        check(url)
    client: redis.Redis = redis_cls.from_url(url, **kwargs) if url else redis_cls(**kwargs)
    return client


def get_redis_from_settings(settings: Settings) -> redis.Redis:
    """Return the client for Scrapy's settings: `defaults.REDIS_PARAMS`, then REDIS_PARAMS, then REDIS_URL, REDIS_HOST, ...

    REDIS_URL wins over host, port and the like. `redis_cls` in REDIS_PARAMS may be a class or its dotted path. Equal settings
    give the same client within a process, unless they name a class or hold an object. Raises ConfigError for a path that cannot
    be imported and for an invalid URL.
    """
    return _shared(_params(settings))


from_settings = get_redis_from_settings  # the name by which scrapy-redis's users call it


def _params(settings: Settings) -> dict[str, Any]:
    own = settings.getdict("REDIS_PARAMS")
    params = {**_defaults_for(settings.get("REDIS_URL") or own.get("url")), **own}
    params.update({param: value for name, param in SETTINGS_PARAMS_MAP.items() if (value := settings.get(name))})
    if isinstance(path := params.get("redis_cls"), str):
        params["redis_cls"] = _load_class(path)
    return params


_ADDRESS = frozenset({"url", "host", "port", "db", "unix_socket_path", "path", "connection_pool", "startup_nodes"})


def names_redis(settings: Settings) -> bool:
    """Return True if the settings name the Redis server, or a part of its address; the default is localhost:6379."""
    if any(settings.get(name) for name in ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB")):
        return True
    params = _params(settings)
    redis_cls = params.pop("redis_cls", redis.Redis)
    knows_urls = isinstance(redis_cls, type) and issubclass(redis_cls, redis.Redis)
    return not knows_urls or any(params.get(name) for name in _ADDRESS)


def name_of(settings: Settings) -> str:
    """Return the Redis of these settings for display: a URL without password and options."""
    params = _params(settings)
    if url := params.get("url"):
        return masked(str(url))
    db = params.get("db") or 0
    if path := params.get("unix_socket_path"):
        return f"unix://{path}, database {db}"
    return f"redis://{params.get('host') or 'localhost'}:{params.get('port') or 6379}/{db}"


def is_cluster(settings: Settings) -> bool:
    """Return True if the settings describe a Redis Cluster."""
    params = _params(settings)
    redis_cls = params.get("redis_cls", redis.Redis)
    return kind_of(params.get("url") or "") is UrlKind.CLUSTER or (
        isinstance(redis_cls, type) and issubclass(redis_cls, redis.RedisCluster)
    )


def asyncio_client(settings: Settings) -> redis.asyncio.Redis | None:
    """Return the same client for an event loop, or None where the settings have something that redis-py's asyncio client does
    not share: a class of the user's, a pool, or an object among the parameters.

    It never sends a command again: its user, the transport, does that.
    """
    params = _params(settings)
    url = params.pop("url", None)
    redis_cls = _ON_THE_LOOP.get(params.pop("redis_cls", redis.Redis))
    if redis_cls is None or not _is_plain(params):
        return None
    try:
        if url and kind_of(url) is not UrlKind.SERVER:
            return client_of(url, on_loop=True, **params)  # type: ignore[no-any-return]
        params["retry"] = Retry(NoBackoff(), 0)
        client: redis.asyncio.Redis = redis_cls.from_url(url, **params) if url else redis_cls(**params)
        return client
    except TypeError:  # a parameter that only the synchronous client has
        return None


_ON_THE_LOOP: dict[Any, Any] = {redis.Redis: redis.asyncio.Redis, redis.RedisCluster: redis.asyncio.RedisCluster}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, bytes, int, float))


def _load_class(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as exc:
        raise ConfigError(f"REDIS_PARAMS['redis_cls'] = {path!r} names no class that can be imported ({exc})") from exc


def explain(exc: Exception, url: str) -> RedisUnavailable:
    """Return the one-line error for an operator: the fault, the server (never with its password), and the fix.

    except redis.RedisError as exc:
        raise explain(exc, url) from exc
    """
    text = " ".join(str(exc).split())
    if secret := re.search(r"//?[^:@/]*:(.+)", url.rpartition("@")[0], re.DOTALL):
        text = text.replace(secret[1], "***").replace(unquote(secret[1]), "***")
    what, fix = _diagnosis(exc, text)
    return RedisUnavailable(f"Redis at {masked(url)} {what}: {fix}")


_URL = "the URL (TRAWL_REDIS_URL, or the setting REDIS_URL)"


_DIAGNOSES: tuple[tuple[Any, str, str, str], ...] = (
    (MasterNotFoundError, "", "has no primary that its sentinels know",
     f"check the service's name, the sentinels and their password in {_URL}, or wait for a failover"),
    (exceptions.ClusterDownError, "", "does not serve all its slots ({text})", "wait for a failover, or mend the cluster"),
    (exceptions.BusyLoadingError, "", "is still loading its data", "wait a little and try again"),
    ((exceptions.NoPermissionError, exceptions.AuthorizationError), "", "refuses a command to this user ({text})",
     "give the user that permission with ACL SETUSER, or name another user"),
    ((exceptions.AuthenticationError, exceptions.AuthenticationWrongNumberOfArgsError), "",
     "does not accept the password ({text})", f"correct user and password in {_URL}"),
    (exceptions.ReadOnlyError, "", "is a read-only replica", f"name the primary in {_URL}"),
    (exceptions.OutOfMemoryError, "", "is out of memory", "raise its maxmemory, or drain queues and purge what is dead"),
    (exceptions.TimeoutError, "", "does not answer in time",
     f"check host and port in {_URL}, firewalls, and whether it is overloaded"),
    (exceptions.ConnectionError, "refused|No such file", "is not running (nothing listens there)",
     f"start it, correct {_URL}, or unset it to use the embedded server"),
    (exceptions.ConnectionError, "SSL|TLS", "cannot agree on TLS ({text})",
     "use rediss:// for a server with TLS and redis:// for one without, and check the certificate"),
    (exceptions.ConnectionError, "", "cannot be reached ({text})", f"check host and port in {_URL} and that it runs"),
    (exceptions.ResponseError, "MISCONF", "takes no writes, because it cannot write to its disk",
     "make room there (df), and look at its log"),
    (exceptions.ResponseError, "NOREPLICAS", "takes no writes, because too few replicas follow it",
     "start its replicas, or lower min-replicas-to-write"),
    (exceptions.ResponseError, "(^|of pipeline caused error: )BUSY", "is busy with a running script",
     "wait, or end it with SCRIPT KILL"),
    (exceptions.ResponseError, "WRONGTYPE", "holds something else under one of Trawl's keys ({text})",
     "trawl doctor names it, and the command that renames it (all names: docs/reference/redis-keys.md)"),
    (Exception, "", "answered with an error ({text})", f"check its version (6.2 or newer) and the database number in {_URL}"),
)  # fmt: skip
"""Kind of error, words of the server, fault, fix. The narrow kinds come first: most of them are ConnectionErrors, too."""


def _diagnosis(exc: Exception, text: str) -> tuple[str, str]:
    """Return the fault and the fix."""
    fault, fix = next(one[2:] for one in _DIAGNOSES if isinstance(exc, one[0]) and re.search(one[1], text))
    return fault.format(text=text), fix
