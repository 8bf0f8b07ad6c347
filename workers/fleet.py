"""The fleet's services and the size that each should have.

A service is a spider. `TRAWL_FLEET` names the services and their size until somebody scales them; what was scaled is in Redis.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from redis_components import defaults
from redis_components.autoscaling import Autoscaling
from redis_components.errors import ConfigError
from redis_components.registry import Registry

DEFAULT_FLEET = defaults.FLEET
MAX_CRAWLERS = 1000  # of one service: more is a typing error
_SERVICE = re.compile(r"([A-Za-z_][\w.-]*)=(\d+)", re.ASCII)


def default_fleet() -> dict[str, int]:
    """The services with their size until somebody scales them, from `TRAWL_FLEET`. Raises ConfigError."""
    return parse_fleet(os.environ.get("TRAWL_FLEET", DEFAULT_FLEET))


def parse_fleet(text: str) -> dict[str, int]:
    """`{"forum_list": 1, "forum_detail": 2}` for `forum_list=1,forum_detail=2`. Raises ConfigError."""
    fleet: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        if not (m := _SERVICE.fullmatch(part)):
            raise ConfigError(f"TRAWL_FLEET: {part!r} is not of the form spider=number; an example: {DEFAULT_FLEET}")
        if m[1] in fleet:
            raise ConfigError(f"TRAWL_FLEET: {m[1]} is named twice; name each spider once")
        fleet[m[1]] = check_size(m[1], int(m[2]))
    if not fleet:
        raise ConfigError(f"TRAWL_FLEET is empty; name at least one service, such as {DEFAULT_FLEET}")
    return fleet


def node_crawlers() -> int:
    """How many crawlers one node may host, from `TRAWL_NODE_CRAWLERS`; else 4, or the whole default fleet if that is more.

    Each takes a pool process of the worker (30 MB) and, once it runs, a process of its own. Raises ConfigError.
    """
    text = os.environ.get("TRAWL_NODE_CRAWLERS")
    if text is None:
        return max(4, sum(default_fleet().values()))  # some room to scale without a restart
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MAX_CRAWLERS):
        raise ConfigError(f"TRAWL_NODE_CRAWLERS={text!r}: the crawlers of one node are a whole number from 1 to {MAX_CRAWLERS}")
    return int(text)


def check_size(service: str, size: object) -> int:
    """`size` if it can be the size of a service. Raises ConfigError."""
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_CRAWLERS:
        raise ConfigError(f"{service}={size!r}: the number of crawlers is a whole number from 0 to {MAX_CRAWLERS}")
    return size


def desired_fleet(registry: Registry) -> dict[str, int]:
    """What is desired now: the default, over it what somebody has scaled. A service that `TRAWL_FLEET` does not name has none."""
    scaled = registry.desired()
    return {service: scaled.get(service, n) for service, n in default_fleet().items()}


def scale(registry: Registry, autoscaling: Autoscaling, sizes: Mapping[str, int]) -> dict[str, int]:
    """Set the desired size of some services; return that of all. Checks everything before anything is set.

    Raises ConfigError, also for a service that sizes itself: it would undo what was set.
    """
    services = default_fleet()
    for service, size in sizes.items():
        if service not in services:
            raise ConfigError(f"unknown service {service!r}; TRAWL_FLEET names {', '.join(sorted(services))}")
        check_size(service, size)
    for service in autoscaling.all().keys() & sizes.keys():
        raise ConfigError(f"{service} sizes itself: end that first with trawl autoscale {service} --off")
    for service, size in sizes.items():
        registry.set_desired(service, size)
    return desired_fleet(registry)
