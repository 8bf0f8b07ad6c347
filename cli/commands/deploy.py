"""`trawl roll`, `trawl deploy` and `trawl services versions`: new code for the crawlers of a service, one after the other."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import redis
import typer

from cli.access import redis_client
from cli.names import check_spiders
from cli.views.options import AsJson, Service, Services, command_group
from cli.views.output import complain, echo, in_plain_json, report
from cli.views.tables import Columns, show
from fleet_operations.deploy.deploy import blame, find, install, is_new, nodes_of, resize, store, use
from fleet_operations.deploy.project_wheel import pip_command
from fleet_operations.deploy.rehearsal import rehearse
from redis_components.errors import ConfigError, TrawlError
from workers.fleet.holds import who
from workers.fleet.roll import abort_roll, start_roll, work_of
from workers.state.registry import Registry
from workers.state.rolls import Roll, RollNote, RollState, Work
from workers.state.services import Deployments

LOOK_S = 0.5
STUCK_S = 30.0  # without a step of `reconcile_fleet`
INSTALL_S = 600.0

versions = command_group(help="List and use deployed versions (trawl deploy).")
Version = Annotated[str, typer.Argument(metavar="VERSION", help="The version, or its first digits.")]


def roll(
    services: Services = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end and show progress.")] = True,
    abort: Annotated[bool, typer.Option("--abort", help="Stop the running roll, or clear a failed one.")] = False,
    as_json: AsJson = False,
) -> int:
    """Replace running crawlers by new processes, one after the other, for example to use new code or settings.

    Each crawler finishes its pages and returns its leases. The next crawler is replaced when the new process is healthy: its
    reactor answers, and it has fetched a page or run for 3 s. So at most one crawler is missing at a time, and nothing is lost
    or fetched twice. When a new process crashes, is refused, or is not healthy within two minutes, the roll fails with
    exit code 1, and the other crawlers keep running. The task `reconcile_fleet` does the work: Ctrl-C only ends the waiting.

    **Examples:**

        trawl roll
        trawl roll forum_detail --no-wait
        trawl roll --abort
    """
    if abort and services:
        raise ConfigError("--abort cannot be combined with services: it stops the running roll")
    with redis_client() as client:
        note = RollNote(client)
        if abort:
            stopped = abort_roll(note)
            _show(stopped, as_json, "aborted" if stopped else "no roll is running")
            return 0
        begun = start_roll(Registry(client), note, services or [])
        if not wait or not begun.total:
            _show(begun, as_json, f"begun: {begun.total} crawlers to replace" if begun.total else "no crawler runs there")
            return 0
        return 0 if _is_done(watch(client, begun, as_json)) else 1


def _is_done(roll: Roll | None) -> bool:
    return roll is not None and roll.state is RollState.DONE


def watch(client: redis.Redis, begun: Roll, as_json: bool) -> Roll | None:
    """Wait for the end of this roll, and return it; None where it is lost."""
    note, registry, shown = RollNote(client), Registry(client), ""
    now: Roll | None = begun
    while now and now.id == begun.id and now.state is RollState.ROLLING:
        if registry.now() - now.seen_at > STUCK_S:
            raise TrawlError(f"the roll has not advanced for {STUCK_S:.0f} s: start beat, and a worker on the queue control")
        if not as_json and (line := now.sentence()) != shown:
            complain(shown := line)
        time.sleep(LOOK_S)
        now = note.read()
    if now is None or now.id != begun.id:
        _show(now, as_json, "another roll has begun meanwhile" if now else "Redis has no roll any more: it has lost its data")
        return None
    _show(now, as_json, now.sentence())
    return now


def roll_json(roll: Roll) -> dict[str, Any]:
    """Return a roll as `--json` shows it."""
    names = {field: [step.name for step in getattr(roll, field)] for field in ("waiting", "replaced")}
    fields = {field: getattr(roll, field) for field in ("id", "services", "state", "started_at", "left_out", "reason")}
    return {**fields, **names, "current": roll.current.name if roll.current else None}


def _show(roll: Roll | None, as_json: bool, line: str) -> None:
    report(as_json, roll_json(roll) if roll else None, line)


def deploy(
    project: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with the project's scrapy.cfg.")],
    service: Annotated[str, typer.Option("--service", metavar="NAME", help="The service that gets it.")],
    size: Annotated[int, typer.Option(metavar="N", min=0, help="Crawlers of a service that is not declared yet.")] = 1,
    activate: Annotated[bool, typer.Option("--use/--no-use", help="Give it to the crawlers, not only to the nodes.")] = True,
    rehearsed: Annotated[bool, typer.Option("--rehearse", help="First run it on the pages kept of the last crawl.")] = False,
) -> int:
    """Bring a project to the crawlers of a service: build a wheel, install it on each node that serves it, check it there, and
    replace the crawlers one by one.

    Each version has its own Python environment on each node, with what the project requires; Trawl and Scrapy come from the
    node's. The wheel goes into the folder TRAWL_WHEELS_DIR, which all nodes need, and its digest through Redis. If a node
    cannot install or load it, nothing changes. If a new crawler does not stay well, its callbacks raise or its items stop, all
    get the version before it again, except where that one does the same now. To skip this comparison: --no-use, then trawl
    services versions use.

    With --rehearse the present and the new version crawl the pages that this machine has kept (RAW_PAGES_KEEP_DAYS), without
    network and without pipelines. Items before and after, fields that change and crashes are shown; where the new version
    is worse, its crawlers do not get it, and the exit code is 1.

    **Examples:**

        trawl deploy . --service books
        trawl deploy . --service books --rehearse
        trawl services versions rollback books
    """
    pip_command(sys.executable)  # a container has none; nothing is stored or declared then
    with redis_client() as client:
        new = is_new(client, service)
        version = store(client, service, project.expanduser().absolute(), size=0 if activate else size, by=who())
        echo(f"{service}: version {version.name} of {version.project}, {version.file}")
        if rehearsed and not is_well_rehearsed(client, service, version.name):
            return 1
        if not activate:
            return 0 if installed(client, service, version.name) else 1
        return switch(client, service, version.name, size=size if new else None, compare=True)


def is_well_rehearsed(client: redis.Redis, service: str, version: str) -> bool:
    """Run a version on kept pages and show what changes; return True unless it is worse than the present one."""
    found = rehearse(client, service, version)
    for line in found.lines():
        echo(line)
    worse = list(found.worse())
    for line in worse[:20]:
        complain(f"{service}: {version}: {line}")
    if worse:
        blame(client, service, version, f"rehearsed: {worse[0]}")
        complain(f"{service} stays as it is; trawl services versions use {service} {version} gives it to the crawlers")
    return not worse


def installed(client: redis.Redis, service: str, version: str) -> bool:
    """Return True if each node that serves the service has installed the version and can load it; print faults."""
    from celery.exceptions import TimeoutError as NotYet

    from tasks import install_version
    from tasks.base import node_queue

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
        echo(f"{service}: installed and checked on {', '.join(nodes)}")
    return not bad


def switch(client: redis.Redis, service: str, version: str, *, size: int | None = None, compare: bool = False) -> int:
    """Give a version to the crawlers, and the version before it again if they do not stay well; return the exit code.

    `size`: of a service that has no crawlers before its first version: none of them shall run what the nodes have instead.
    `compare`: also if they work worse than those of the version before.
    """
    if version and not installed(client, service, version):
        complain(f"{service} stays as it is")
        return 1
    before, work = Deployments(client).of(service), work_of(Registry(client), service) if compare else None
    use(client, service, version)
    if size is not None:
        resize(client, service, size)
    rolled = _roll(client, service, work)
    if _is_done(rolled):
        echo(f"{service}: {_name(version)} is what its crawlers have")
        return 0
    why = f"worse than the version before: {rolled.reason}" if rolled and rolled.worse else "its crawlers did not stay well"
    blame(client, service, version, why)
    back_to = before.before(version)
    if back_to != before.current and not installed(client, service, back_to):
        back_to = before.current
    complain(f"{service}: {_name(version)}: {why}; back to {_name(back_to)}")
    if size is not None:
        resize(client, service, 0)
    use(client, service, back_to, previous=before.previous)
    back = _roll(client, service, work if rolled and rolled.worse else None)
    if back is None or not back.worse:
        return 1
    complain(f"{service}: {_name(back_to)} does the same now ({back.reason}): it is the site; {_name(version)} stays")
    blame(client, service, version, "")
    use(client, service, version)
    return 0 if _is_done(_roll(client, service)) else 1


def _roll(client: redis.Redis, service: str, work: Work | None = None) -> Roll | None:
    begun = start_roll(Registry(client), RollNote(client), [service], before=work)
    return watch(client, begun, False) if begun.total else begun


def _name(version: str) -> str:
    return f"version {version}" if version else "what the nodes have installed themselves"


@versions.command("list")
def list_versions(service: Service, as_json: AsJson = False) -> int:
    """List the versions of a service, the newest last; * marks the version of its crawlers."""
    with redis_client() as client:
        known = Deployments(client).of(service)
        if not known.versions:
            check_spiders(client, [service])
    rows = [in_plain_json(one) | {"current": one.name == known.current} for one in known.versions]
    columns: Columns = {
        "": lambda row: "*" if row["current"] else "",
        "VERSION": "name",
        "DEPLOYED": lambda row: (row["at"] or "")[:16],
        "BY": "by",
        "NOTE": "note",
    }
    show(rows, columns, as_json)
    return 0


@versions.command("use")
def use_version(service: Service, version: Version) -> int:
    """Pin a version: install it where it is missing, and replace the crawlers one by one. `none`: what the nodes have."""
    with redis_client() as client:
        return switch(client, service, "" if version == "none" else find(client, service, version).name)


@versions.command()
def rollback(service: Service) -> int:
    """Give the crawlers the version before the present one."""
    with redis_client() as client:
        known = Deployments(client).of(service)
        if not known.current:
            raise ConfigError(f"{service} has no deployed version: trawl deploy gives it one")
        if not known.previous:
            folder = "what its nodes have: a project's folder there, as it is now, also edited"
            complain(f"before its first version {service} ran {folder}")
        return switch(client, service, known.previous)
