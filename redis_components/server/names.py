"""Names that become parts of files, queues, keys and log lines: checked at every entrance, and again where a path is made.

A name is of ASCII letters, digits and `. _ -`, begins with a letter, a digit or `_`, and has at most 128 characters: so it names
no other folder, is not taken for an option of a command, and breaks no line. Services and sites have such names. Those of nodes
may hold `@`, as Celery's do. Those of jobs (namespaces) are parts of keys alone and may hold all that can be printed, for hash
tags.

    service_name("forum_detail")    -> "forum_detail"
    service_name("../../x")         -> ConfigError, which names the value and the fix

The namespace of a job is a prefix of every key of a crawl, so that several jobs of one spider run side by side in one Redis:

    scrapy crawl forum -s REDIS_NAMESPACE=monday        monday:forum:requests, monday:forum:dupefilter, ...
    TRAWL_NAMESPACE='{monday}' trawl up                 the fleet and the tools; braces make it the hash tag of a Redis Cluster
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from redis_components.errors import ConfigError

from .variables import variable

LONGEST = 128
"""Characters of a name."""
MOST_SLOTS = 1000
"""Slots of one service: more is a typing error."""
RULE = f"letters, digits and . _ - are what it may hold, a letter, a digit or _ comes first, at most {LONGEST} characters"

_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{LONGEST - 1}}}", re.ASCII)
_NODE = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._@-]{{0,{2 * LONGEST - 1}}}", re.ASCII)
_JOB = re.compile(rf"[^\s%]{{1,{LONGEST}}}")


def crawl_name(spider: object) -> str:
    """Return the name in the keys of the crawl of a spider, or of a class of spiders: that of its job, else the spider's."""
    kind = spider if isinstance(spider, type) else type(spider)
    return getattr(kind, "trawl_crawl_name", "") or getattr(spider, "name", None) or ""


def is_name(value: object) -> bool:
    """Return True if the value is a valid name of a service or a site."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_node_name(value: object) -> bool:
    """Return True if the value is a valid Celery name of a worker."""
    return isinstance(value, str) and _NODE.fullmatch(value) is not None


def is_job_name(value: object) -> bool:
    """Return True if the value is a valid namespace of a job."""
    return isinstance(value, str) and value.isprintable() and _JOB.fullmatch(value) is not None


def is_slot_number(value: object) -> bool:
    """Return True if the value is a valid number of a slot."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_SLOTS


def service_name(value: object) -> str:
    """Return `value` if it is a valid name of a service. Raises ConfigError."""
    by_a_subclass = 'a spider of another name runs as a service by a subclass that has one: class News(TheSpider): name = "news"'
    return _valid(value, is_name, f"name of a service: {RULE}; {by_a_subclass}")


def site_name(value: object) -> str:
    """Return `value` if it is a valid name of a site. Raises ConfigError."""
    return _valid(value, is_name, f"name of a site: {RULE}; name its file otherwise")


def node_name(value: object) -> str:
    """Return `value` if it is a valid name of a node. Raises ConfigError."""
    return _valid(value, is_node_name, f"name of a node: {RULE}, with @ in it; see option -n of celery worker")


def slot_number(value: object) -> int:
    """Return `value` if it is a valid number of a slot. Raises ConfigError."""
    return int(_valid(value, is_slot_number, f"number of a slot: those are whole numbers from 0 to {MOST_SLOTS - 1}"))


def _valid(value: object, is_valid: Callable[[object], bool], rule: str) -> str:
    if not is_valid(value):
        raise ConfigError(f"{value!r:.100} cannot be the {rule}")
    return str(value)


def below(folder: Path, *parts: str) -> Path:
    """Return the path of `parts` below `folder`, each the name of one file or folder. Raises ConfigError for an invalid name."""
    for part in parts:
        if not part or part in (".", "..") or "/" in part or "\\" in part or not part.isprintable():
            raise ConfigError(f"{part!r:.100} cannot be the name of a file in {folder}")
    return folder.joinpath(*parts)


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


class Settings(Protocol):
    """The methods of Scrapy's settings used here; the core does not import Scrapy."""

    def get(self, name: str, /) -> Any: ...

    def getdict(self, name: str, /) -> dict[str, Any]: ...


def namespace_of(settings: Settings) -> str:
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
    from redis.crc import key_slot  # redis takes 0.2 s to import, and commands without a server name things, too

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
