"""What `trawl doctor` finds on this machine: database, disks, permissions, secrets, ports, site files."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import redis
import typer

from cli.access.database import NoData, existing
from cli.access.redis import redis_client, running_url
from cli.views.output import counted, print_json, say_indented
from forums.overview import OverviewReader, problems
from forums.sites import load_all
from forums.sites.load import sites_dir
from forums.storage import Database
from forums.storage.engine import sqlite_file
from forums.storage.schema.version import mismatch
from redis_components import __version__
from redis_components.embedded import data_dir, redis_url
from redis_components.embedded.server import is_free
from redis_components.errors import TrawlError
from redis_components.keys import FleetKeys
from redis_components.server.replies import server_time
from redis_components.server.url import impatient, masked
from redis_components.server.variables import example_secrets
from workers.fleet.sizes import declared_fleet
from workers.node.broker import broker_of
from workers.node.machine import clock_problem, disk_problems
from workers.state.quarantine import Foreign, find, set_aside
from workers.state.registry import Registry

PORTS = {"Flower": 5555, "the exporter": 9410}


def _database() -> Iterator[Verdict]:

    try:
        database = existing()
    except NoData:
        yield Verdict(what="database", state="note", said="there is none yet: the fleet makes it when it first stores items")
        return
    version = database.version()
    problem = None if version is None else mismatch(version)
    if problem:
        yield Verdict(what="database", state="bad", said=f"{database.name}: {problem}")
    else:
        yield Verdict(what="database", state="ok", said=f"{database.name} answers")


def _disks() -> Iterator[Verdict]:

    found = list(disk_problems(data_dir()))
    for one in found:
        yield Verdict(what="disk", state="bad" if one.grave else "note", said=one.what, fix=one.fix)
    if not found:
        yield Verdict(what="disk", state="ok", said=f"there is room for {data_dir()}")


def _permissions() -> Iterator[Verdict]:
    """Folders and files that others on this machine may read: made by an older Trawl, or by hand."""
    file = sqlite_file(Database.from_url().engine.url)
    names = [data_dir(), *(Path(f"{file}{end}") for end in ("", "-wal", "-shm") if file)]
    open_ones = [path for path in names if path.exists() and path.stat().st_mode & 0o077]
    if open_ones:
        said = f"other users of this machine may read {', '.join(map(str, open_ones))}"
        yield Verdict(what="permissions", state="note", said=said, fix=f"chmod go= {' '.join(map(str, open_ones))}")
    else:
        yield Verdict(what="permissions", state="ok", said="nobody else may read what is stored")


def _secrets() -> Iterator[Verdict]:

    for name in example_secrets(os.environ):
        fix = "write a secret of your own, for example from: openssl rand -hex 24"
        yield Verdict(what="secrets", state="bad", said=f"{name} is the example's password, which everybody knows", fix=fix)


def _ports() -> Iterator[Verdict]:

    taken = [f"{port} ({of})" for of, port in PORTS.items() if not is_free(port)]
    if taken:
        said = f"in use: {', '.join(taken)}: by a fleet that runs here, or by another program"
        yield Verdict(what="ports", state="note", said=said, fix="for a second fleet: trawl up --port-flower 0 --port-exporter 0")
    else:
        yield Verdict(what="ports", state="ok", said=f"{', '.join(map(str, PORTS.values()))} are free")


def _sites() -> Iterator[Verdict]:

    known, errors = load_all()
    for name, error in errors.items():
        for line in str(error).splitlines():
            yield Verdict(what="sites", state="bad", said=line, fix=f"trawl sites check {name}")
    if not known and not errors:
        yield Verdict(what="sites", state="note", said=f"no site file in {sites_dir()}", fix="trawl sites new URL writes one")
    elif not errors:
        yield Verdict(what="sites", state="ok", said=f"right: {counted(len(known), 'site file')}")


def _versions() -> Iterator[Verdict]:
    """What runs here, and whether it is what Trawl was tested with."""
    names = ("Scrapy", "celery", "redis", "SQLAlchemy")
    said = ", ".join(f"{name} {version(name)}" for name in names)
    said = f"Trawl {__version__}, Python {platform.python_version()}, {said}, SQLite {sqlite3.sqlite_version}"
    yield Verdict(what="versions", state="ok", said=said)


CHECKS: tuple[tuple[str, Callable[[], Iterable[Verdict]]], ...] = (
    ("versions", _versions),
    ("database", _database),
    ("disk", _disks),
    ("permissions", _permissions),
    ("secrets", _secrets),
    ("ports", _ports),
    ("sites", _sites),
)
"""Name and check, in the order in which they are shown."""


State = Literal["ok", "note", "bad"]
SHOWN = 20  # foreign values that are named
ROUND_TRIPS = 21
SLOW_S = 0.02


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One thing that was looked at."""

    what: str
    state: State
    said: str
    fix: str = ""


def of_redis(*, repair: bool) -> Iterator[Verdict]:
    """Everything that needs Redis; one verdict where there is none."""
    try:
        url = running_url()
        if url is None and not repair:
            yield Verdict(what="Redis", state="note", said="none runs here: `trawl up` starts one, or set TRAWL_REDIS_URL")
            return
        url = url or redis_url()
        with redis_client(impatient(url, 5.0)) as client:
            yield from _server(client, masked(url))
            yield from _latency(client)
            yield from _clock(client)
            yield from _foreign(client, repair=repair)
            yield from _fleet(client)
    except TrawlError as error:
        yield Verdict(what="Redis", state="bad", said=str(error))
        return
    yield from _broker(url)


def _server(client: redis.Redis, name: str) -> Iterator[Verdict]:
    version = client.info("server").get("redis_version", "?")
    yield Verdict(what="Redis", state="ok", said=f"{name} answers, version {version}")


def _latency(client: redis.Redis) -> Iterator[Verdict]:
    """The time of one round trip, the median of some."""
    times = []
    for _ in range(ROUND_TRIPS):
        asked = time.perf_counter()
        client.ping()
        times.append(time.perf_counter() - asked)
    took = sorted(times)[ROUND_TRIPS // 2]
    said = f"a round trip takes {took * 1000:.1f} ms"
    if took > SLOW_S:
        fix = "crawlers do not wait for it, but commands and recoveries do: run it nearer, or look at SLOWLOG GET"
        yield Verdict(what="latency", state="note", said=said, fix=fix)
    else:
        yield Verdict(what="latency", state="ok", said=said)


def _clock(client: redis.Redis) -> Iterator[Verdict]:

    asked = time.time()
    if problem := clock_problem(server_time(client), asked, time.time()):
        yield Verdict(what="clock", state="bad", said=problem.what)
    else:
        yield Verdict(what="clock", state="ok", said="this machine's clock agrees with Redis's")


def _foreign(client: redis.Redis, *, repair: bool) -> Iterator[Verdict]:

    services = dict.fromkeys((*declared_fleet(client), *Registry(client).desired()))
    found = find(client, services, threads=True)
    if not found:
        yield Verdict(what="data", state="ok", said="everything in the fleet's keys can be read")
        return
    if not repair:
        yield from _named(found)
        return
    done = [one for one in found if set_aside(client, one)]
    kept = f"{FleetKeys().aside()} (HGETALL) and the keys that begin with {FleetKeys().aside_key('')}"
    yield Verdict(what="data", state="ok", said=f"{len(done)} foreign values were set aside, into {kept}")
    yield from _named(find(client, services, threads=True))


def _named(found: list[Foreign]) -> Iterator[Verdict]:
    fix = "trawl doctor --repair sets it aside; nothing is deleted"
    for one in found[:SHOWN]:
        yield Verdict(what="data", state="bad", said=str(one), fix=fix)
    if len(found) > SHOWN:
        yield Verdict(what="data", state="bad", said=f"and {len(found) - SHOWN} more foreign values", fix=fix)


def _fleet(client: redis.Redis) -> Iterator[Verdict]:
    """What `trawl status` has to say; of a fleet that does not run only what is wrong all the same."""
    view = replace(OverviewReader(client).read(), foreign=())  # those are named above
    nodes = [one for one in view.nodes if one.alive(view.now)]
    if not nodes:
        yield Verdict(what="node", state="note", said="no node was heard lately", fix="trawl up, or celery -A tasks worker")
        view = replace(view, services=(), beats=None)
    else:
        versions = Counter(one.version for one in nodes if one.version)
        mixed = f", of {len(versions)} versions ({', '.join(sorted(versions))})" if len(versions) > 1 else ""
        yield Verdict(what="node", state="ok", said=f"up: {counted(len(nodes), 'node')}{mixed}")
    found = problems(view)
    for one in found:
        yield Verdict(what="fleet", state="bad" if one.grave else "note", said=one.what, fix=one.fix)
    if not found:
        yield Verdict(what="fleet", state="ok", said="all is well")


def _broker(redis_url: str) -> Iterable[Verdict]:
    from kombu.connection import Connection

    try:
        broker = broker_of(redis_url)
        made: Any = Connection
        with made(broker.url, ssl=broker.tls or False, transport_options=broker.options, connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.0, timeout=5)
    except TrawlError as error:
        return [Verdict(what="broker", state="bad", said=str(error))]
    except Exception as error:  # each transport has its own error classes
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return [Verdict(what="broker", state="bad", said=said, fix="check TRAWL_BROKER_URL, and that it runs")]
    return [Verdict(what="broker", state="ok", said="takes a connection")]


_MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Set foreign values in Trawl's Redis keys aside; nothing is deleted.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Check Redis, its data, the broker, clocks, the database, disks, permissions, ports and site files; say what to do.

    Without `--repair` the command is read-only. **bad**: something does not work, or is not safe (exit code 1). **note**:
    something works, but may fail later. `--repair` moves foreign values in Trawl's keys into `trawl:fleet:aside`, and renames
    keys of a wrong type to names below it.

    **Examples:**

        trawl doctor
        trawl doctor --repair
        trawl doctor --json | jq '.[] | select(.state == "bad")'
    """

    found = [*of_redis(repair=repair), *_each(CHECKS)]
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            say_indented(f"{_MARKS[one.state]}  {one.what:<12}  ", one.said)
            if one.fix:
                say_indented(" " * 20, one.fix)
    return 1 if any(one.state == "bad" for one in found) else 0


def _each(checks: Iterable[tuple[str, Callable[[], Iterable[Verdict]]]]) -> Iterable[Verdict]:
    """Run the checks; a check that fails becomes a finding and does not stop the others."""

    for what, check in checks:
        try:
            yield from check()
        except (TrawlError, OSError) as error:
            yield Verdict(what=what, state="bad", said=" ".join(str(error).split()))
