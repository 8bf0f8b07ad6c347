"""Brings a version of a project to the crawlers of a service: checked, stored, installed on each node, rolled, and rolled back.

Steps of `trawl deploy`, each of which may be repeated: `store` the wheel, have every node `prepare` it (a task), `use` it. A
service is checked in a child process: importing a project may do anything, and must not do it here.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import redis

from redis_components.embedded.child_process import ChildProcess
from redis_components.errors import ConfigError, did_you_mean
from redis_components.server.names import service_name
from redis_components.server.untrusted_values import as_text, server_time
from workers.fleet.sizes import as_declared, declared_fleet, largest_fleet
from workers.process.options import CrawlerOptions, handed_over
from workers.process.run_module import own_module
from workers.state.nodes import Nodes
from workers.state.registry import Registry
from workers.state.services import MAX_WAITING, Autoscaling, Deployment, Deployments, ServiceRecord, Services, Version

from .environments import as_deployed, digest_of, keep, prepare, wheel_of
from .folder import FOLDER
from .project_wheel import build, content_of, settings_module

MOST_VERSIONS = 20
"""Of a service; of more the oldest that its crawlers neither have nor had before go."""


def store(client: redis.Redis, service: str, project: Path, *, size: int, by: str) -> Version:
    """Build the project, put its wheel into the folder of wheels and note it; a service that is not declared is, with `size`.

    Nothing is launched with it yet. Raises ConfigError, BuildFailed.
    """
    service, module = service_name(service), settings_module(project)
    package = project / module.partition(".")[0]
    content = content_of(package) if package.is_dir() else ""
    with tempfile.TemporaryDirectory() as made:
        wheel = build(project, Path(made), module)
        digest = digest_of(wheel)
        version = Version(
            name=digest[:12], file=wheel.name, digest=digest, project=module, at=server_time(client), by=by, content=content
        )
        keep(service, version, wheel)
    dropped: list[Version] = []

    def added(now: Deployment) -> Deployment:
        others = [one for one in now.versions if one.name != version.name]
        unused = [one for one in others if one.name not in (now.current, now.previous)]
        dropped[:] = unused[: max(0, len(others) + 1 - MOST_VERSIONS)]
        return replace(now, versions=(*(one for one in others if one not in dropped), version))

    Deployments(client).edit(service, added)
    for one in dropped:  # nodes delete its environment when they install another
        shutil.rmtree(wheel_of(service, one).parent, ignore_errors=True)
    if service not in declared_fleet(client):
        Services(client).declare(service, ServiceRecord(size=size, max_waiting=MAX_WAITING))
    return version


def is_new(client: redis.Redis, service: str) -> bool:
    """Return True if the service has no first version yet: it is undeclared, or only a first deploy that failed has
    declared it.
    """
    known, declared = Deployments(client).of(service), Services(client).get(service)
    deployed = [one for one in known.versions if one.by != FOLDER]
    failed = bool(deployed) and not known.current and declared == ServiceRecord(size=0, max_waiting=MAX_WAITING)
    return failed or service not in declared_fleet(client)


def resize(client: redis.Redis, service: str, size: int) -> None:
    """Declare how many crawlers a service has that was declared by its first deploy."""
    Services(client).declare(service, replace(Services(client).get(service) or ServiceRecord(), size=size))


def install(client: redis.Redis, service: str, name: str) -> str:
    """Install a version here and check it, as a node does; return the fault in one line, "" for none."""
    version = find(client, service, name)
    python = prepare(client, service, version)
    return check(client, service, python=python, project=version.project).wrong


def use(client: redis.Redis, service: str, name: str, *, previous: str | None = None) -> None:
    """Have crawlers launched with this version from now on; those that run go on until they are rolled. Raises ConfigError.

    `previous`: what a rollback leads to then; None: the present one.
    """
    if name:
        find(client, service, name)

    def switched(now: Deployment) -> Deployment:
        return (
            now
            if now.current == name
            else replace(now, current=name, previous=now.before(name) if previous is None else previous)
        )

    Deployments(client).edit(service, switched)
    registry = Registry(client)  # slots that were given up may work with this one
    registry.forget(one.name for one in registry.crawlers() if one.spider == service and one.state.given_up)


def blame(client: redis.Redis, service: str, name: str, why: str) -> None:
    """Keep why a version was not taken, or not kept."""

    def noted(now: Deployment) -> Deployment:
        return replace(now, versions=tuple(replace(one, note=why[:300]) if one.name == name else one for one in now.versions))

    Deployments(client).edit(service, noted)


def find(client: redis.Redis, service: str, name: str) -> Version:
    """Return a version by its name, or the first digits of it. Raises ConfigError."""
    known = Deployments(client).of(service).versions
    fitting = [one for one in known if name and one.name.startswith(name)]
    if len(fitting) != 1:
        names = ", ".join(one.name for one in known) or "none: trawl deploy makes them"
        hint = did_you_mean(name, [one.name for one in known])
        raise ConfigError(f"{service} has {len(fitting) or 'no'} versions {name!r:.50}; there are {names}{hint}")
    return fitting[0]


def nodes_of(client: redis.Redis, service: str) -> list[str]:
    """Return the nodes that serve the service and are open."""
    now = server_time(client)
    return [node.name for node in Nodes(client).all() if node.is_open(now) and service in node.services]


CHECK_S = 90.0
"""Within so long a project is imported and its spider made, on a busy machine."""
_MOST_OUTPUT = 1_000_000
"""Bytes that are read of what a project prints."""


class Findings(msgspec.Struct):
    """Result of a service's check, as `fleet_operations.deploy.check_service` prints it: a line for each fault, with its fix."""

    wrong: str = ""
    """It cannot crawl, or fetches nothing."""
    faults: list[str] = []
    """It crawls, and not as a service should."""
    shared: list[str] = []
    """Faults of a service that has several crawlers."""
    ends: str = ""
    """A fault of a service that has crawlers; a job ends."""
    warnings: list[str] = []
    """Features of the fleet that it does without."""


def check(
    client: redis.Redis, service: str, *, python: str = "", project: str = "", arguments: Mapping[str, str] | None = None
) -> Findings:
    """Load project and spider as a crawler would. `python` and `project`: of a version that the service does not have yet;
    `arguments`: of a job, besides those of the service.

    Raises ConfigError and `redis.RedisError`.
    """
    options = CrawlerOptions(spider=service)
    options = as_declared(client, options, lambda _: (python, project)) if python else as_deployed(client, options, install=True)
    if arguments:
        options = replace(options, arguments={**options.arguments, **arguments})
    most = largest_fleet(declared_fleet(client) | Registry(client).desired(), Autoscaling(client)).get(service, 0)
    code, output = run_apart("fleet_operations.deploy.check_service", options, CHECK_S, _MOST_OUTPUT)
    for line in reversed(output.splitlines()):
        with suppress(msgspec.DecodeError):
            found = msgspec.json.decode(line, type=Findings)
            found.faults += [*(found.shared if most > 1 else ()), *(filter(None, [found.ends]) if most else ())]
            return found
    last = as_text(output).strip().splitlines()[-1:] or ["it printed nothing"]
    if code is None:
        return Findings(wrong=f"importing its project, or making its spider, takes longer than {CHECK_S:g} s")
    return Findings(wrong=f"its project ended the process that loaded it (exit code {code}): {last[0]}")


def run_apart(module: str, options: CrawlerOptions, seconds: float, most: int) -> tuple[int | None, bytes]:
    """Run a module with a crawler's options in a separate process, with a bound of time, and end all that it has started.

    Returns exit code, None after that time, and the last bytes of its output, `most` of them.
    """
    environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": options.project} if options.project else {})}
    with handed_over(options) as (line, given_fd), tempfile.TemporaryFile() as output:
        command = own_module(module, *line, python=options.python)
        code = ChildProcess(command, env=environment, stdout=output, stderr=output, pass_fds=(given_fd,)).end(seconds)
        output.seek(-min(output.tell(), most), os.SEEK_END)
        return code, output.read()
