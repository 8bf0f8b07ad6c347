"""A worker's broker, and the modules that tasks need.

Celery has its own URL forms for all Redis servers but a plain one. `load_ahead` imports the modules that tasks need once, in the
worker's main process, before the pool is forked. Beat, Flower and the commands import `tasks`, too, and need none of this. It is
two thirds of what a worker's start costs, so task modules import it in their functions.
"""

from __future__ import annotations

import gc
import ssl
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import quote

from redis_components.errors import ConfigError
from redis_components.server.printable import masked
from redis_components.server.url import ServerAddress, UrlKind, address_of, kind_of, server_params
from redis_components.server.variables import variable
from workers.application import application
from workers.environment.variables import Fleet

_TLS = {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname"}


@dataclass(frozen=True, kw_only=True)
class Broker:
    """The broker in Celery's settings, which has the results, too."""

    url: str = field(repr=False)
    options: dict[str, Any] = field(repr=False, default_factory=dict)
    """Options of both: the parameters of the URL."""
    tls: dict[str, Any] | None = None
    """TLS of both; None: without TLS."""

    @property
    def is_socket(self) -> bool:
        """A unix socket, which has no TCP options."""
        return self.url.startswith("redis+socket:")


def broker_of(redis_url: str) -> Broker:
    """Return the broker named by TRAWL_BROKER_URL, else that on the Redis at `redis_url`.

    Raises ConfigError for a cluster, and for any other server than Redis.
    """
    named = Fleet.read().broker_url
    url = named.get_secret_value() if named else redis_url
    match kind_of(url):
        case UrlKind.CLUSTER:
            raise ConfigError(
                f"{masked(url)} is a Redis Cluster, which Celery cannot use as its broker:"
                " set TRAWL_BROKER_URL to a separate Redis server"
            )
        case UrlKind.SENTINEL:
            return _sentinel(address_of(url))
    return _server(url)


def named_broker() -> Broker:
    """Return the broker that the environment names. By default it has the form of the project's own server, which is not
    started.

    Raises ConfigError.
    """
    return broker_of(variable("TRAWL_REDIS_URL") or "redis://127.0.0.1")


def _sentinel(place: ServerAddress) -> Broker:
    end = f"/{place.params.get('db', 0)}"
    url = ";".join(f"sentinel://{_login(place.params)}{_host(host)}:{port}{end}" for host, port in place.nodes)
    options = {"master_name": place.service, "sentinel_kwargs": place.sentinel_params | {"retry": None}}  # each is asked once
    return Broker(url=url, options=options, tls=_tls(place.params))


def _server(url: str) -> Broker:
    params = server_params(url)
    if "path" in params:
        ours = f"redis+socket://{_login(params)}{quote(params['path'])}?virtual_host={params.get('db', 0)}"
    else:
        scheme, host, port = "rediss" if "ssl" in params else "redis", params.get("host", "localhost"), params.get("port", 6379)
        ours = f"{scheme}://{_login(params)}{_host(host)}:{port}/{params.get('db', 0)}"
    return Broker(url=ours, tls=_tls(params))


def _login(params: dict[str, Any]) -> str:
    user, password = (quote(str(params.get(name, "")), safe="") for name in ("username", "password"))
    return f"{user}:{password}@" if user or password else ""


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _tls(params: dict[str, Any]) -> dict[str, Any] | None:
    if "ssl" not in params:
        return None
    needed = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL}.get(params.get("ssl_cert_reqs", ""), ssl.CERT_REQUIRED)
    return {"ssl_cert_reqs": needed, **{name: value for name, value in params.items() if name in _TLS}}


def load_ahead() -> None:
    """Call it before the pool is forked. Its processes share what is loaded, and never look through it for garbage."""
    gc.disable()  # the collector would look again and again at modules that stay
    try:
        # Each first connection imports `encodings.idna`: the thread of a heartbeat would, while processes are forked.
        for name in (*application().preload(), "encodings.idna"):
            import_module(name)
        # By cffi each process of the pool is tied to the worker: its parser takes 0.04 s to make.
        if cffi := sys.modules.get("cffi"):
            cffi.FFI().cdef("int prctl(int option, ...);")
    finally:
        gc.freeze()
        gc.enable()
