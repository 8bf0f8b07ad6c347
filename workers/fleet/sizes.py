"""The fleet's services and the desired size of each.

A service is a spider. `TRAWL_FLEET`, `trawl.toml` and `trawl services add` declare services and their initial size; a size set by
`trawl scale` is in Redis. Of several declarations of one name, the one at run time wins, then the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import redis

from redis_components.admin.crawl_records import CrawlRecords
from redis_components.errors import ConfigError, unknown_name
from redis_components.items.groups import tend
from redis_components.server.fleet_file import declared
from redis_components.server.names import MOST_SLOTS, is_name
from redis_components.server.variables import variable
from workers.environment.declaration import check_size
from workers.environment.variables import Fleet
from workers.process.config_digest import has_own_spiders
from workers.state.autoscaling import Autoscaling
from workers.state.jobs import Jobs, JobState
from workers.state.registry import Registry
from workers.state.services import MAX_WAITING, ServiceRecord, Services

from .service_file import services_in_file


class Declaration(NamedTuple):
    """The declaration of a service that is in effect, and its source."""

    record: ServiceRecord
    origin: str
    """`run time` (`trawl services add`), a file, `TRAWL_FLEET` or `default`."""


def declarations(client: redis.Redis | None = None) -> dict[str, Declaration]:
    """Return the declaration of each service by name: run time (in Redis) over the file over `TRAWL_FLEET`. Without a client:
    what a node knows without Redis. Where a file declares services, or the folder has its own project, `TRAWL_FLEET` has no
    default.

    Raises ConfigError and `redis.RedisError`.
    """
    found: dict[str, Declaration] = {}
    in_file, given = services_in_file(), variable("TRAWL_FLEET")
    if given or not (in_file or has_own_spiders()):
        short = Fleet.read().fleet
        found = {
            name: Declaration(ServiceRecord(size=n, max_waiting=MAX_WAITING), "TRAWL_FLEET" if given else "default")
            for name, n in short.items()
        }
    if in_file and (file := declared("services")):
        found |= {name: Declaration(record, str(file.file)) for name, record in in_file.items()}
    if client is not None:
        found |= {name: Declaration(record, "run time") for name, record in Services(client).all().items() if is_name(name)}
    return found


def default_fleet() -> dict[str, int]:
    """Return the services that each node knows without Redis, with their initial size. Raises ConfigError."""
    return {name: one.record.size for name, one in declarations().items()}


def declared_fleet(client: redis.Redis) -> dict[str, int]:
    """Return the declared services with their declared size, and the jobs that are not over. Raises ConfigError and
    `redis.RedisError`.
    """
    jobs = {name: one.crawlers if one.state is JobState.RUNNING else 0 for name, one in Jobs(client).open().items()}
    return {name: one.record.size for name, one in declarations(client).items()} | jobs


def service_records(client: redis.Redis) -> dict[str, ServiceRecord]:
    """Return the declaration of each service, and of the jobs that are not over. Raises ConfigError and `redis.RedisError`."""
    jobs = {name: one.declaration for name, one in Jobs(client).open().items()}
    return {name: one.record for name, one in declarations(client).items()} | jobs


def value_origins(client: redis.Redis, service: str, one: Declaration) -> dict[str, tuple[Any, str]]:
    """Return each value of a service that is set, and its source: a run-time change of the size over its declaration. Raises
    `redis.RedisError`.
    """
    unset = ServiceRecord(max_waiting=MAX_WAITING)
    values = {field.name: getattr(one.record, field.name) for field in fields(ServiceRecord)}
    found = {
        name: (value, one.origin if name == "size" or value != getattr(unset, name) else "default")
        for name, value in values.items()
    }
    if service in (scaled := Registry(client).desired()):
        found["size"] = scaled[service], "run time: trawl scale"
    if policy := Autoscaling(client).all().get(service):
        bounds = policy.policy
        found["size"] = found["size"][0], "run time: trawl autoscale"
        found["autoscale"] = f"{bounds.min} to {bounds.max}", "run time: trawl autoscale"
    return found


def service_in(client: redis.Redis, service: str) -> ServiceRecord | None:
    """Return the declaration of a service, or a job; None for one of `TRAWL_FLEET` alone. Raises ConfigError and
    `redis.RedisError`.
    """
    job = Jobs(client).of(service)
    return job.declaration if job else declaration_of(client, service)


def declaration_of(client: redis.Redis, service: str) -> ServiceRecord | None:
    """Return the declaration of a service that is not a job, as `service_in`."""
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
    return unknown_name("service", service, known)


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
