"""The fleet's services and the size that each should have.

A service is a spider. `TRAWL_FLEET` names the services and their size until somebody scales them; what was scaled is in Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from redis_components.errors import ConfigError, did_you_mean
from redis_components.fleet.autoscaling import Autoscaling
from redis_components.fleet.registry import Registry
from workers.environment.values import check_size
from workers.environment.variables import Fleet


def default_fleet() -> dict[str, int]:
    """The services with their size until somebody scales them, from `TRAWL_FLEET`. Raises ConfigError."""
    return dict(Fleet.read().fleet)


def node_crawlers() -> int:
    """How many crawlers one node may host, from `TRAWL_NODE_CRAWLERS`; else as many as the machine's cores and memory allow
    (`workers.environment.machine`), or the whole default fleet if that is more.

    Each takes a pool process of the worker (30 MB) and, while it runs, a crawler process. Raises ConfigError.
    """
    return Fleet.read().node_crawlers


def desired_fleet(registry: Registry) -> dict[str, int]:
    """What is desired now: the default, over it what somebody has scaled. A service that `TRAWL_FLEET` does not name has none."""
    scaled = registry.desired()
    return {service: scaled.get(service, n) for service, n in default_fleet().items()}


def unknown_service(service: str, known: Iterable[str]) -> ConfigError:
    """The error for a service that the fleet does not have."""
    names = sorted(known)
    return ConfigError(f"unknown service {service!r}; TRAWL_FLEET names {', '.join(names)}{did_you_mean(service, names)}")


def largest_fleet(desired: Mapping[str, int], autoscaling: Autoscaling) -> dict[str, int]:
    """The size of each service when every autoscaled one has grown to its upper bound."""
    bounds = {service: one.policy.max for service, one in autoscaling.all().items()}
    return {service: max(size, bounds.get(service, 0)) for service, size in desired.items()}


def scale(registry: Registry, autoscaling: Autoscaling, sizes: Mapping[str, int]) -> dict[str, int]:
    """Set the desired size of some services; return that of all. Checks everything before anything is set.

    Raises ConfigError, also for a service that sizes itself: it would undo what was set.
    """
    services = default_fleet()
    for service, size in sizes.items():
        if service not in services:
            raise unknown_service(service, services)
        check_size(service, size)
    for service in autoscaling.all().keys() & sizes.keys():
        raise ConfigError(f"{service} is autoscaled: turn that off first with trawl autoscale {service} --off")
    for service, size in sizes.items():
        registry.set_desired(service, size)
    return desired_fleet(registry)
