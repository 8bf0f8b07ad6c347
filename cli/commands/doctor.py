"""`trawl doctor`: checks of this machine, of Redis and of the fleet; `trawl health`, as the help lists it."""

from __future__ import annotations

import platform
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any, Literal

import redis
import typer

from cli.access import redis_client, running_url
from cli.health import main as check_health
from cli.views.options import AsJson
from cli.views.output import counted, print_json
from cli.views.tables import echo_indented
from fleet_operations.overview import OverviewReader, calm, problems
from redis_components import __version__
from redis_components.embedded import data_dir
from redis_components.errors import TrawlError
from redis_components.server.printable import in_words, masked
from redis_components.server.untrusted_values import server_time
from redis_components.server.url import impatient
from workers.application import Finding, application
from workers.fleet.sizes import declared_fleet
from workers.node.heartbeat import clock_problem, disk_problems
from workers.node.worker_setup import broker_of
from workers.state.quarantine import find
from workers.state.registry import Registry

State = Literal["ok", "note", "bad"]
SHOWN = 20  # foreign values that are named


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check."""

    what: str
    state: State
    finding: str
    fix: str = ""


def show_verdicts(found: Sequence[Verdict], as_json: bool) -> int:
    """Print the outcomes; return the exit code, 1 where one of them is bad."""
    if as_json:
        print_json(found)
    else:
        for one in found:
            echo_indented(f"{ {'ok': 'ok  ', 'note': 'note', 'bad': 'BAD '}[one.state] }  {one.what:<12}  ", one.finding)
            if one.fix:
                echo_indented(" " * 20, one.fix)
    return int(any(one.state == "bad" for one in found))


def _disks() -> Iterator[Verdict]:
    found = list(disk_problems(data_dir()))
    for one in found:
        yield Verdict("disk", "bad" if one.grave else "note", one.what, one.fix)
    if not found:
        yield Verdict("disk", "ok", f"there is room for {data_dir()}")


def _permissions() -> Iterator[Verdict]:
    """Yield folders and files that other users may read: made by an older Trawl, or by hand."""
    open_ones = [path for path in (data_dir(), *application().data_files()) if path.exists() and path.stat().st_mode & 0o077]
    if open_ones:
        finding = f"other users of this machine may read {', '.join(map(str, open_ones))}"
        yield Verdict("permissions", "note", finding, fix=f"chmod go= {' '.join(map(str, open_ones))}")
    else:
        yield Verdict("permissions", "ok", "no other user may read the stored data")


def _versions() -> Iterator[Verdict]:
    """Yield the versions of what runs here."""
    names = ("Scrapy", "celery", "redis", "SQLAlchemy")
    finding = ", ".join(f"{name} {version(name)}" for name in names)
    finding = f"Trawl {__version__}, Python {platform.python_version()}, {finding}, SQLite {sqlite3.sqlite_version}"
    yield Verdict("versions", "ok", finding)


CHECKS: tuple[tuple[str, Callable[[], Iterable[Verdict]]], ...] = (
    ("versions", _versions),
    ("disk", _disks),
    ("permissions", _permissions),
)
"""Name and check, in the order in which they are shown; those of the application follow."""


def _of_application(what: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Verdict]:
    for one in check():
        yield Verdict(what, one.state, one.sentence, one.fix)


def of_redis() -> Iterator[Verdict]:
    """Yield all checks that need Redis; one verdict where there is none."""
    try:
        url = running_url()
        if url is None:
            yield Verdict("Redis", "note", "none runs here: `trawl up` starts one, or set TRAWL_REDIS_URL")
            return
        with redis_client(impatient(url, 5.0)) as client:
            yield from _server(client, masked(url))
            yield from _clock(client)
            yield from _foreign(client)
            yield from _fleet(client)
    except TrawlError as error:
        yield Verdict("Redis", "bad", str(error))
        return
    yield from _broker(url)


def _server(client: redis.Redis, name: str) -> Iterator[Verdict]:
    version = client.info("server").get("redis_version", "?")
    yield Verdict("Redis", "ok", f"{name} answers, version {version}")


def _clock(client: redis.Redis) -> Iterator[Verdict]:
    asked = time.time()
    if problem := clock_problem(server_time(client), asked, time.time()):
        yield Verdict("clock", "bad", problem.what)
    else:
        yield Verdict("clock", "ok", "this machine's clock agrees with Redis's")


def _foreign(client: redis.Redis) -> Iterator[Verdict]:
    services = dict.fromkeys((*declared_fleet(client), *Registry(client).desired()))
    found = find(client, services, threads=True)
    if not found:
        yield Verdict("data", "ok", "everything in the fleet's keys can be read")
        return
    for one in found[:SHOWN]:
        yield Verdict("data", "bad", str(one), one.fix)
    if len(found) > SHOWN:
        yield Verdict("data", "bad", f"and {len(found) - SHOWN} more foreign values")


def _fleet(client: redis.Redis) -> Iterator[Verdict]:
    """Yield the problems of `trawl status`; of a fleet that does not run only those that do not depend on it."""
    view = replace(OverviewReader(client).read(), foreign=())  # those are named above
    nodes = [one for one in view.nodes if one.alive(view.now)]
    if not nodes:
        yield Verdict("node", "note", "no node has reported lately", fix="trawl up, or celery -A tasks worker")
        view = replace(view, services=(), beats=None)
    else:
        versions = Counter(one.version for one in nodes if one.version)
        mixed = f", of {len(versions)} versions ({', '.join(sorted(versions))})" if len(versions) > 1 else ""
        yield Verdict("node", "ok", f"up: {counted(len(nodes), 'node')}{mixed}")
    found = problems(view)
    for one in found:
        yield Verdict("fleet", "bad" if one.grave else "note", one.what, one.fix)
    if not found:
        yield Verdict("fleet", "ok", calm(view))


def _broker(redis_url: str) -> Iterable[Verdict]:
    from kombu.connection import Connection

    try:
        broker = broker_of(redis_url)
        made: Any = Connection
        with made(broker.url, ssl=broker.tls or False, transport_options=broker.options, connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.0, timeout=5)
    except TrawlError as error:
        return [Verdict("broker", "bad", str(error))]
    except Exception as error:  # each transport has its own error classes
        return [Verdict("broker", "bad", in_words(error), fix="check TRAWL_BROKER_URL, and that it runs")]
    return [Verdict("broker", "ok", "takes a connection")]


def doctor(as_json: AsJson = False) -> int:
    """Check Redis, its data, the broker, clocks, the database, disks, permissions and site files; show what to do.

    The command is read-only. **bad**: something does not work, or is not safe (exit code 1). **note**: something works, but may
    fail later. A foreign value in Trawl's keys is named with the command of `redis-cli` that removes it.

    **Examples:**

        trawl doctor
        trawl doctor --json | jq '.[] | select(.state == "bad")'
    """
    own = [(what, partial(_of_application, what, check)) for what, check in application().checks().items()]
    return show_verdicts([*of_redis(), *each([*CHECKS, *own])], as_json)


def each(checks: Iterable[tuple[str, Callable[[], Iterable[Verdict]]]]) -> Iterable[Verdict]:
    """Run the checks; a check that fails becomes a finding and does not stop the others."""
    for what, check in checks:
        try:
            yield from check()
        except (TrawlError, OSError) as error:
            yield Verdict(what, "bad", " ".join(str(error).split()))


def health(
    target: Annotated[str, typer.Argument(metavar="worker|beat|URL", help="The process on this machine.")] = "worker",
) -> None:
    """Check that the worker of this machine does its job, or waits for a known reason; for containers and systemd.

    Exit code 0, else 1, and a line. Neither Redis nor Celery is asked: it reads the status files in TRAWL_HEALTH_DIR. Flower
    and the exporter are asked at http://127.0.0.1:5555/healthcheck and http://127.0.0.1:9410/livez.
    """
    raise typer.Exit(check_health([target]))
