"""`trawl deploy`: a version of a project for the crawlers of a service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import redis
import typer

from cli.access.redis import redis_client
from cli.commands.roll import watch
from cli.views.output import complain, say
from redis_components.errors import TrawlError
from workers.deploy.deploy import blame, install, is_new, nodes_of, resize, store, use
from workers.fleet.holds import who
from workers.fleet.roll import start_roll
from workers.state.registry import Registry
from workers.state.rolls import RollNote
from workers.state.versions import Deployments

LOOK_S = 0.5
INSTALL_S = 600.0


def deploy(
    project: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with the project's scrapy.cfg.")],
    service: Annotated[str, typer.Option("--service", metavar="NAME", help="The service that gets it.", show_default=False)],
    size: Annotated[int, typer.Option(metavar="N", min=0, help="Crawlers of a service that is not declared yet.")] = 1,
    activate: Annotated[bool, typer.Option("--use/--no-use", help="Give it to the crawlers, not only to the nodes.")] = True,
) -> int:
    """Bring a project to the crawlers of a service: build a wheel, install it on each node that serves it, check it there, and
    replace the crawlers one by one.

    Each version has its own Python environment on each node, with what the project requires; Trawl and Scrapy come from the
    node's. The wheel goes into the folder TRAWL_WHEELS_DIR, which all nodes need, and its digest through Redis. If a node
    cannot install or load it, nothing changes. If a new crawler does not stay well, all get the version before it again.

    **Examples:**

        trawl deploy . --service books
        trawl versions rollback books
    """
    with redis_client() as client:
        new = is_new(client, service)
        version = store(client, service, project.expanduser().absolute(), size=0 if activate else size, by=who())
        say(f"{service}: version {version.name} of {version.project}, {version.file}")
        if not activate:
            return 0 if installed(client, service, version.name) else 1
        return switch(client, service, version.name, size=size if new else None)


def installed(client: redis.Redis, service: str, version: str) -> bool:
    """Whether each node that serves the service has installed the version, and can load it; what is wrong is said."""
    from celery.exceptions import TimeoutError as NotYet

    from tasks import install_version
    from tasks.routing import node_queue

    nodes = nodes_of(client, service)
    sent = {}
    for node in nodes:
        sent[node] = install_version.apply_async((service, version), queue=node_queue(node), expires=INSTALL_S)
    wrong, until = {}, time.monotonic() + INSTALL_S
    for node, result in sent.items():
        try:
            wrong[node] = str(result.get(timeout=max(1.0, until - time.monotonic())))
        except NotYet:
            wrong[node] = f"it has not answered within {INSTALL_S:g} s"
    if not nodes:
        complain(f"no node serves {service} at the moment; it is checked on this machine")
        try:
            wrong["this machine"] = install(client, service, version)
        except TrawlError as error:
            wrong["this machine"] = str(error)
    bad = {node: why for node, why in wrong.items() if why}
    for node, why in bad.items():
        complain(f"{node}: {why}")
        blame(client, service, version, why)
    if not bad and nodes:
        say(f"{service}: installed and checked on {', '.join(nodes)}")
    return not bad


def switch(client: redis.Redis, service: str, version: str, *, size: int | None = None) -> int:
    """Give a version to the crawlers, and the one before it again where it does not go well; the exit code.

    `size`: of a service that has no crawlers before its first version; none of it runs with what the nodes have instead.
    """
    if version and not installed(client, service, version):
        complain(f"{service} stays as it is")
        return 1
    before = Deployments(client).of(service)
    use(client, service, version)
    if size is not None:
        resize(client, service, size)
    if (code := _roll(client, service)) == 0:
        say(f"{service}: {_name(version)} is what its crawlers have")
        return 0
    blame(client, service, version, "its crawlers did not stay well")
    complain(f"{service}: {_name(version)} does not go well; back to {_name(before.current)}")
    if size is not None:
        resize(client, service, 0)
    use(client, service, before.current, previous=before.previous)
    _roll(client, service)
    return code


def _roll(client: redis.Redis, service: str) -> int:

    begun = start_roll(Registry(client), RollNote(client), [service])
    return watch(client, begun, False) if begun.total else 0


def _name(version: str) -> str:
    return f"version {version}" if version else "what the nodes have installed themselves"
