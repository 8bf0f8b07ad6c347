"""The namespace of a job: a prefix of every key of a crawl, so that several jobs of one spider run side by side in one Redis.

scrapy crawl forum -s REDIS_NAMESPACE=monday        monday:forum:requests, monday:forum:dupefilter, ...
TRAWL_NAMESPACE='{monday}' trawl up                 the fleet and the tools; braces make it the hash tag of a Redis Cluster
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from redis.crc import key_slot

from redis_components.errors import ConfigError

from .names import LONGEST, is_job_name
from .variables import variable

PREFIX = "trawl"
"""Of the keys of a fleet without a namespace."""


def fleet_namespace() -> str:
    """Return the namespace of fleet and tools: TRAWL_NAMESPACE, or none. Raises ConfigError, also for a namespace that lies in
    the keys of another one: users of Redis, backups and `trawl backup restore` take all keys that begin with a namespace for its
    fleet's.
    """
    namespace = _checked(variable("TRAWL_NAMESPACE") or "", "TRAWL_NAMESPACE")
    if ":" in namespace or namespace == PREFIX:
        why = "begins the keys of fleets without one" if namespace == PREFIX else "has a colon: its keys could be another fleet's"
        raise ConfigError(f"TRAWL_NAMESPACE = {namespace!r}: {why}; choose another one, as in job42 or {{job42}}")
    return namespace


class _Settings(Protocol):
    """Scrapy's; the core does not import Scrapy."""

    def get(self, name: str, /) -> Any: ...


def namespace_of(settings: _Settings) -> str:
    """Return the namespace of a crawl: REDIS_NAMESPACE, or none. Raises ConfigError."""
    return _checked(str(settings.get("REDIS_NAMESPACE") or ""), "REDIS_NAMESPACE")


def _checked(namespace: str, setting: str) -> str:
    """Return `namespace` if it can be a part of keys. Raises ConfigError that names `setting`."""
    if namespace and not is_job_name(namespace):
        raise ConfigError(
            f"{setting} = {namespace!r:.200}: must be without spaces and %, printable and of at most {LONGEST} characters,"
            " as in job42 or {job42}"
        )
    return namespace


def prefixed(key: str, namespace: str) -> str:
    """Return `key` in the namespace."""
    return f"{namespace}:{key}" if namespace else key


def check_one_slot(keys: Iterable[str], setting: str, example: str) -> None:
    """Raise ConfigError when a Redis Cluster would keep `keys` in more than one slot; `example` is what `setting` could be."""
    slots = {key_slot(key.encode()): key for key in keys}
    if len(slots) > 1:
        (one, two), *_ = zip(sorted(slots)[:-1], sorted(slots)[1:], strict=True)
        raise ConfigError(
            f"on a Redis Cluster all keys of a crawl must be in one slot, but {slots[one]} is in {one} and {slots[two]} in {two}:"
            f" set {setting} to a hash tag, such as {example}, and leave other hash tags out of key patterns"
        )


def literal(text: str) -> str:
    """Return a pattern that matches exactly the text."""
    return "".join(f"\\{sign}" if sign in "*?[]^-\\" else sign for sign in text)
