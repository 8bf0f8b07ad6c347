"""The fleet's services: how `trawl.toml` declares them, the desired size of each, and the launch options of their crawlers.

A service is a spider. `TRAWL_FLEET`, `trawl.toml` and `trawl services add` declare services and their initial size; a size set by
`trawl scale` is in Redis. Of several declarations of one name, the one at run time wins, then the file.

[services.books]
project = "shop.settings"
spider = "books"
size = 2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import redis

from redis_components.errors import ConfigError, TrawlError, did_you_mean, unknown_name
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_CONFIG, FROM_FILES, LaneLimits
from redis_components.server.fleet_file import declared, faulty, record_of
from redis_components.server.names import MOST_SLOTS, is_name, service_name
from redis_components.server.printable import masked
from redis_components.server.variables import variable
from workers.application import application
from workers.environment.declaration import check_size, has_own_spiders
from workers.environment.variables import Fleet
from workers.state.jobs import Jobs, JobState
from workers.state.registry import Registry
from workers.state.services import MAX_WAITING, Autoscaling, ServiceRecord, Services, as_texts
from workers.targets import FORMS, NO_CONSUMER, is_target

if TYPE_CHECKING:
    from workers.process.options import CrawlerOptions

_FIELDS = [one.name for one in fields(ServiceRecord)]
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def services_in_file() -> dict[str, ServiceRecord]:
    """Return the services that the file declares, by name; empty without a file. Raises ConfigError with file, key and fix."""
    found = declared("services")
    return read_services(found.tables.get("services", {}), found.file) if found else {}


def read_services(table: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, ServiceRecord]:
    """Parse the services of a file. Raises ConfigError with a line for each fault: file, key and the allowed values."""
    records, faults = {}, []
    for name, values in table.items():
        try:
            records[name] = check_service(name, values, f"services.{name}")
        except ConfigError as error:
            faults += str(error).splitlines()
    if faults:
        raise faulty(path, faults)
    return records


def check_service(name: str, values: Mapping[str, Any], where: str) -> ServiceRecord:
    """Build a declaration from its fields. `where` begins each line. Raises ConfigError with a line for each fault."""
    faults = []
    try:
        service_name(name)
    except ConfigError as error:
        faults.append(f"{where}: {error}")
    record, wrong = record_of({"max_waiting": MAX_WAITING} | dict(values), ServiceRecord, where, _FIELDS)
    faults += wrong if record is None else _faults_of(record, where)
    if record is None or faults:
        raise ConfigError("\n".join(faults))
    return record


def _faults_of(record: ServiceRecord, where: str) -> Iterator[str]:
    if record.project and not _MODULE.fullmatch(record.project):
        yield f"{where}.project: {record.project!r} is not a module: write one such as shop.settings"
    for key, values in (("arguments", record.arguments), ("settings", record.settings)):
        for name, value in values.items():
            if not name or "=" in name or "\0" in f"{name}{value}":
                yield f"{where}.{key}: {name!r}: a name may not be empty or hold ="
    soft, hard = record.memory_soft_mb, record.memory_hard_mb
    if soft and hard and soft > hard:
        yield f"{where}.memory_soft_mb: {soft:g} is more than memory_hard_mb, {hard:g}: give it less"
    known = [NO_CONSUMER, *application().consumers()]
    if record.consumer not in ("", *known) and not is_target(record.consumer):
        shown = masked(record.consumer)  # it may hold a password
        yield f"{where}.consumer: {shown!r} is not {', '.join(known)}, {FORMS}{did_you_mean(record.consumer, known)}"


class _LimitsTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of [limits.SITE]: the options of `trawl limit`."""

    rate: float | None = None
    burst: int = 1
    concurrency: int | None = None
    weight: int = 1
    per_hour: int | None = None
    per_day: int | None = None
    quiet: str | None = None


def limits_in_file() -> dict[str, LaneLimits]:
    """Return the limits that the file declares, by site. Raises ConfigError with a line for each fault."""
    found = declared("limits")
    return read_limits(found.tables["limits"], found.file) if found else {}


def read_limits(table: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, LaneLimits]:
    """Parse the limits of a file. Raises ConfigError with a line for each fault."""
    lanes, faults = {}, []
    for lane, values in table.items():
        given, wrong = record_of(values, _LimitsTable, f"limits.{lane}", _LimitsTable.__struct_fields__)
        faults += wrong
        try:
            limits.check_name(lane)
            lanes[lane] = LaneLimits.of(**msgspec.structs.asdict(given or _LimitsTable()), by=BY_CONFIG)
        except ConfigError as error:
            faults.append(f"limits.{lane}: {error}")
    if faults:
        raise faulty(path, faults)
    return lanes


def write_file_limits(client: redis.Redis, more: Mapping[str, LaneLimits] = MappingProxyType({})) -> list[str]:
    """Write the limits of the file, and `more` of its lanes; return the changed lanes. Limits that an operator set at run time
    stay; those of a site file do not. Raises ConfigError and `redis.RedisError`.
    """
    wanted, known = {**limits_in_file(), **more}, limits.read(client, limits_key())
    gone = dict.fromkeys(lane for lane, one in known.items() if one.by == BY_CONFIG)
    return limits.write(client, known, {**gone, **wanted}, FROM_FILES)


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
    job = Jobs(client).get(service)
    return job.declaration if job else declaration_of(client, service)


def declaration_of(client: redis.Redis, service: str) -> ServiceRecord | None:
    """Return the declaration of a service that is not a job, as `service_in`."""
    return Services(client).get(service) or services_in_file().get(service)


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
            raise unknown_name("service", service, services)
        check_size(service, size)
    for service in autoscaling.all().keys() & sizes.keys():
        raise ConfigError(f"{service} is autoscaled: turn that off first with trawl autoscale {service} --off")
    for service, size in sizes.items():
        registry.set_desired(service, size)
    return desired_fleet(registry)


def is_wanted(client: redis.Redis, name: str, number: int) -> bool:
    """Return False for the slot of a job that is over, or whose crawler has come to its end: a late launch arrives after that."""
    jobs = Jobs(client)
    if job := jobs.get(name):
        return job.state is JobState.RUNNING and number not in jobs.ends(name)
    return "." not in name or name in declared_fleet(client)


class NotInstalled(TrawlError):
    """The version of a service cannot be installed on this machine; another one may have it."""


def as_declared(
    client: redis.Redis, options: CrawlerOptions, version: Callable[[str], tuple[str, str]] = lambda _: ("", "")
) -> CrawlerOptions:
    """Return the options of a crawler of `options.spider`, a service or a job. `version` returns the interpreter and the settings
    module of a service's version; "" for both: this process's interpreter, and the declared module.

    Raises ConfigError and `redis.RedisError`.
    """
    job = Jobs(client).get(options.spider)
    record = (job.declaration if job else declaration_of(client, options.spider)) or ServiceRecord()
    python, deployed = version(job.service if job else options.spider)
    return replace(
        options,
        python=python,
        job_of=job.service if job else "",
        arguments=as_texts(record.arguments),
        settings=record.scrapy_settings(),
        loads=record.spider if record.spider != options.spider else "",
        project=deployed or record.project,
        consumer=consumer_word(record),
    )


def consumer_word(record: ServiceRecord) -> str:
    """Return the crawler's `consumer`: a consumer of the fleet, or `NO_CONSUMER`, after which none may touch the items; "": the
    spider decides.
    """
    return record.consumer if record.consumer in ("", *application().consumers()) else NO_CONSUMER
