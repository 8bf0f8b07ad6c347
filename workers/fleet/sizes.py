"""The fleet's services and the desired size of each.

A service is a spider. `TRAWL_FLEET`, a file of services and `trawl services add` declare services and their initial size; a size
set by `trawl scale` is in Redis. Of several declarations of one name, the one at run time wins, then the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import redis

from redis_components.admin.crawl_records import CrawlRecords
from redis_components.errors import ConfigError, did_you_mean
from redis_components.items.groups import tend
from redis_components.server.names import MOST_SLOTS, is_name
from redis_components.server.variables import variable
from workers.environment.values import check_size
from workers.environment.variables import Fleet
from workers.state.autoscaling import Autoscaling
from workers.state.jobs import Jobs, JobState
from workers.state.registry import Registry
from workers.state.services import ServiceRecord, Services

from .service_file import services_in_file


def default_fleet() -> dict[str, int]:
    """Return the services that each node knows without Redis, with their initial size. Raises ConfigError.

    They are the services of `TRAWL_FLEET` and of the file; where there is a file, `TRAWL_FLEET` has no default.
    """
    in_file = {name: one.size for name, one in services_in_file().items()}
    short = Fleet.read().fleet
    return {**short, **in_file} if variable("TRAWL_FLEET") or not in_file else in_file


def declared_fleet(client: redis.Redis) -> dict[str, int]:
    """Return the default fleet with the services that were declared at run time, and the jobs that are not over. Raises
    ConfigError and `redis.RedisError`.
    """
    of_services = {name: one.size for name, one in Services(client).all().items() if is_name(name)}
    jobs = {name: one.crawlers if one.state is JobState.RUNNING else 0 for name, one in Jobs(client).open().items()}
    return default_fleet() | of_services | jobs


def service_in(client: redis.Redis, service: str) -> ServiceRecord | None:
    """Return the declaration of a service, or a job; None for one of `TRAWL_FLEET` alone. Raises ConfigError and
    `redis.RedisError`.
    """
    if job := Jobs(client).of(service):
        return job.declaration
    return Services(client).of(service) or services_in_file().get(service)


def node_crawlers() -> int:
    """Return the number of crawlers that one node may host, from `TRAWL_NODE_CRAWLERS`; else as many as the machine's cores and
    memory allow (`workers.environment.machine`), or the whole default fleet if that is more.

    Each takes a pool process of the worker (30 MB) and, while it runs, a crawler process. Raises ConfigError.
    """
    crawlers = Fleet.read().node_crawlers
    return crawlers if variable("TRAWL_NODE_CRAWLERS") else min(max(crawlers, sum(default_fleet().values())), MOST_SLOTS)


def desired_fleet(registry: Registry) -> dict[str, int]:
    """Return the desired size of each declared service: the declared size, or the one set by `trawl scale`."""
    scaled = registry.desired()
    return {service: scaled.get(service, n) for service, n in declared_fleet(registry.client).items()}


def unknown_service(service: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a service that the fleet does not have."""
    names = sorted(known)
    return ConfigError(f"unknown service {service!r}; the fleet has {', '.join(names)}{did_you_mean(service, names)}")


def largest_fleet(desired: Mapping[str, int], autoscaling: Autoscaling) -> dict[str, int]:
    """Return the size of each service with every autoscaled one grown to its upper bound."""
    bounds = {service: one.policy.max for service, one in autoscaling.all().items()}
    return {service: max(size, bounds.get(service, 0)) for service, size in desired.items()}


def scale(registry: Registry, autoscaling: Autoscaling, sizes: Mapping[str, int]) -> dict[str, int]:
    """Set the desired size of some services; return that of all. Checks everything before anything is set.

    Raises ConfigError, also for a service that sizes itself: it would undo what was set.
    """
    services = declared_fleet(registry.client)
    for service, size in sizes.items():
        if service not in services:
            raise unknown_service(service, services)
        check_size(service, size)
    for service in autoscaling.all().keys() & sizes.keys():
        raise ConfigError(f"{service} is autoscaled: turn that off first with trawl autoscale {service} --off")
    for service, size in sizes.items():
        registry.set_desired(service, size)
    return desired_fleet(registry)


def tend_streams(client: redis.Redis) -> None:
    """Tend the stream of each crawl that was recorded with groups in this Redis. Raises `redis.RedisError`."""
    crawls = {one.keys.items: one.keys for one in CrawlRecords(client).all().values() if one.keys.item_groups and not one.redis}
    for keys in crawls.values():
        tend(client, keys)
