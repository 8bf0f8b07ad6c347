"""Names that become parts of files, queues, keys and log lines: checked at every entrance, and again where a path is made.

A name is of ASCII letters, digits and `. _ -`, begins with a letter, a digit or `_`, and has at most 128 characters: so it names
no other folder, is not taken for an option of a command, and breaks no line. Services and sites have such names. Those of nodes
may hold `@`, as Celery's do. Those of jobs (namespaces) are parts of keys alone and may hold all that can be printed, for hash
tags.

    service_name("forum_detail")    -> "forum_detail"
    service_name("../../x")         -> ConfigError, which names the value and the fix
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from redis_components.errors import ConfigError

LONGEST = 128
"""Characters of a name."""
MOST_SLOTS = 1000
"""Slots of one service: more is a typing error."""
MOST_GROUPS = 16
"""Consumer groups of one item stream: every exchange asks about each."""
RULE = f"letters, digits and . _ - are what it may hold, a letter, a digit or _ comes first, at most {LONGEST} characters"

_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{LONGEST - 1}}}", re.ASCII)
_NODE = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._@-]{{0,{2 * LONGEST - 1}}}", re.ASCII)
_JOB = re.compile(rf"[^\s%]{{1,{LONGEST}}}")


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
    if not is_name(value):
        raise ConfigError(
            f"{value!r:.100} cannot be the name of a service: {RULE}; a spider of another name runs as a service by a subclass"
            ' that has one: class News(TheSpider): name = "news"'
        )
    return str(value)


def site_name(value: object) -> str:
    """Return `value` if it is a valid name of a site. Raises ConfigError."""
    if not is_name(value):
        raise ConfigError(f"{value!r:.100} cannot be the name of a site: {RULE}; name its file otherwise")
    return str(value)


def node_name(value: object) -> str:
    """Return `value` if it is a valid name of a node. Raises ConfigError."""
    if not is_node_name(value):
        raise ConfigError(f"{value!r:.100} cannot be the name of a node: {RULE}, with @ in it; see option -n of celery worker")
    return str(value)


def slot_number(value: object) -> int:
    """Return `value` if it is a valid number of a slot. Raises ConfigError."""
    if not is_slot_number(value):
        raise ConfigError(f"{value!r:.100} cannot be the number of a slot: those are whole numbers from 0 to {MOST_SLOTS - 1}")
    assert isinstance(value, int)
    return value


def below(folder: Path, *parts: str) -> Path:
    """Return the path of `parts` below `folder`, each the name of one file or folder. Raises ConfigError for an invalid name."""
    for part in parts:
        if not part or part in (".", "..") or "/" in part or "\\" in part or not part.isprintable():
            raise ConfigError(f"{part!r:.100} cannot be the name of a file in {folder}")
    return folder.joinpath(*parts)


def check_groups(names: Sequence[object], where: str) -> tuple[str, ...]:
    """Return the names of consumer groups, each once. Raises ConfigError, which begins with `where`."""
    for one in names:
        if not is_name(one):
            raise ConfigError(f"{where}: {one!r:.100} cannot name a consumer group: {RULE}")
    if len(names) > MOST_GROUPS:
        raise ConfigError(f"{where} has {len(names)} consumer groups: at most {MOST_GROUPS}")
    return tuple(dict.fromkeys(str(one) for one in names))
