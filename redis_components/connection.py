"""Clients of Redis: Trawl's own `connect`, and scrapy-redis's functions for users' Scrapy settings.

`connect` shares one pool per URL and process. `get_redis` and `from_settings` make exactly the client that the settings
describe, with nothing added, as projects written for scrapy-redis expect.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import unquote

import redis
import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from . import defaults
from .errors import ConfigError, RedisUnavailable

# Settings of their own that end up in the client's parameters. An empty or zero value does not count: REDIS_PARAMS can say those.
SETTINGS_PARAMS_MAP = {
    "REDIS_URL": "url",
    "REDIS_HOST": "host",
    "REDIS_PORT": "port",
    "REDIS_DB": "db",
    "REDIS_ENCODING": "encoding",
    "REDIS_DECODE_RESPONSES": "decode_responses",
}


class Settings(Protocol):
    """What is needed of Scrapy's settings; the core does not import Scrapy."""

    def get(self, name: str, /) -> Any: ...

    def getdict(self, name: str, /) -> dict[str, Any]: ...


_pools: dict[tuple[int, str], redis.ConnectionPool] = {}


def connect(url: str | None = None) -> redis.Redis:
    """A client of `url` (redis://, rediss:// or unix://), else of TRAWL_REDIS_URL or the embedded server; replies are bytes.

    Clients of one URL share a pool within a process; a forked child gets a pool of its own. Nothing is sent yet. A command
    whose reply got lost is *not* sent again: whether it may be is for the caller to know (`-- Retry:` in the Lua headers).
    Options can be given in the URL, as in `?socket_timeout=5`. Raises ConfigError for a URL of another form, RedisUnavailable
    when no embedded server can be started.
    """
    if url is None:
        from . import embedded  # here, because it needs a Unix, and users with a REDIS_URL do not

        url = embedded.redis_url()
    key = (os.getpid(), url)
    if key not in _pools:
        for other in [k for k in _pools if k[0] != key[0]]:  # of the process that we were forked from
            del _pools[other]
        _pools[key] = _pool(url)
    return redis.Redis(connection_pool=_pools[key])


def _pool(url: str) -> redis.ConnectionPool:
    try:
        return redis.ConnectionPool.from_url(url, **defaults.REDIS_PARAMS)
    except ValueError:
        form = "redis://[user:password@]host:port/db, rediss://... (TLS) or unix://[user:password@]/path"
        # Without the text of `exc`, and not as its cause: it may quote a part of the password.
        raise ConfigError(f"{masked(url)} is no Redis URL: write {form}, with %-codes for special characters") from None


def get_redis(**kwargs: Any) -> redis.Redis:
    """A client made by `redis_cls(**kwargs)`, or by `redis_cls.from_url(url, **kwargs)` where `url` is given.

    `redis_cls` is `defaults.REDIS_CLS` unless it is given, as a class.
    """
    redis_cls = kwargs.pop("redis_cls", defaults.REDIS_CLS)
    url = kwargs.pop("url", None)
    client: redis.Redis = redis_cls.from_url(url, **kwargs) if url else redis_cls(**kwargs)
    return client


def get_redis_from_settings(settings: Settings) -> redis.Redis:
    """The client that Scrapy's settings describe: `defaults.REDIS_PARAMS`, then REDIS_PARAMS, then REDIS_URL, REDIS_HOST, ...

    REDIS_URL wins over host, port and the like. `redis_cls` in REDIS_PARAMS may be a class or its dotted path. Raises
    ConfigError when that path leads nowhere.
    """
    return get_redis(**_params(settings))


from_settings = get_redis_from_settings  # the name by which scrapy-redis's users call it


def _params(settings: Settings) -> dict[str, Any]:
    params = {**defaults.REDIS_PARAMS, **settings.getdict("REDIS_PARAMS")}
    params.update({param: value for name, param in SETTINGS_PARAMS_MAP.items() if (value := settings.get(name))})
    if isinstance(path := params.get("redis_cls"), str):
        params["redis_cls"] = _load_class(path)
    return params


def asyncio_client(settings: Settings) -> redis.asyncio.Redis | None:
    """The same client for an event loop, or None where the settings name what redis-py's asyncio client does not share: a class
    of the user's, a pool, or an object among the parameters.

    It never sends a command again by itself: its user, the transport, does that.
    """
    params = _params(settings)
    url = params.pop("url", None)
    if params.pop("redis_cls", redis.Redis) is not redis.Redis or not all(map(_is_plain, params.values())):
        return None
    params["retry"] = Retry(NoBackoff(), 0)
    try:
        return redis.asyncio.Redis.from_url(url, **params) if url else redis.asyncio.Redis(**params)
    except TypeError:  # a parameter that only the synchronous client has
        return None


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
    """The one-line error for an operator: what happened, at which server (never with its password), and how to mend it.

    except redis.RedisError as exc:
        raise explain(exc, url) from exc
    """
    said = " ".join(str(exc).split())
    if secret := re.search(r"://[^:@/]*:(.+)@", url):
        said = said.replace(secret[1], "***").replace(unquote(secret[1]), "***")
    what, fix = _diagnosis(exc, said)
    return RedisUnavailable(f"Redis at {masked(url)} {what}: {fix}")


_URL = "the URL (TRAWL_REDIS_URL, or the setting REDIS_URL)"


def _diagnosis(exc: Exception, said: str) -> tuple[str, str]:
    """What happened and how to mend it. The narrow classes come first: most of them are ConnectionErrors, too."""
    match exc:
        case exceptions.BusyLoadingError():
            return "is still loading its data", "wait a little and try again"
        case exceptions.NoPermissionError() | exceptions.AuthorizationError():
            return (
                f"refuses a command to this user ({said})",
                "give the user that permission with ACL SETUSER, or name another user",
            )
        case exceptions.AuthenticationError() | exceptions.AuthenticationWrongNumberOfArgsError():
            return f"does not accept the password ({said})", f"correct user and password in {_URL}"
        case exceptions.ReadOnlyError():
            return "is a read-only replica", f"name the primary in {_URL}"
        case exceptions.OutOfMemoryError():
            return "is out of memory", "raise its maxmemory, or drain queues and purge what is dead"
        case exceptions.TimeoutError():
            return "does not answer in time", f"check host and port in {_URL}, firewalls, and whether it is overloaded"
        case exceptions.ConnectionError() if "refused" in said or "No such file" in said:
            return "is not running (nothing listens there)", f"start it, correct {_URL}, or unset it to use the embedded server"
        case exceptions.ConnectionError() if "SSL" in said or "TLS" in said:
            return (
                f"cannot agree on TLS ({said})",
                "use rediss:// for a server with TLS and redis:// for one without, and check the certificate",
            )
        case exceptions.ConnectionError():
            return f"cannot be reached ({said})", f"check host and port in {_URL} and that it runs"
    return f"answered with an error ({said})", f"check its version (6.2 or newer) and the database number in {_URL}"


def masked(url: str) -> str:
    """The URL as it may be shown: without password and options, also where it is malformed."""
    # Up to the last @, before anything is parsed: an unquoted / or ? in a password would end up in another part of the URL.
    return re.sub(r"^(\w+://)?([^:@/]*):.*@", r"\1\2:***@", url).partition("?")[0]
