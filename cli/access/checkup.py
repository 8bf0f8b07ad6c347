"""What `trawl doctor` finds in Redis: the server, its data, the broker, the beats and the nodes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import redis

from cli.views.output import counted
from redis_components.errors import TrawlError

if TYPE_CHECKING:
    from forums.state.foreign_values import Foreign

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
    from redis_components.embedded import redis_url
    from redis_components.server.url import impatient, masked

    from .redis import redis_client, running_url

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
    from redis_components.server.replies import server_time
    from workers.node.machine import clock_problem

    asked = time.time()
    if problem := clock_problem(server_time(client), asked, time.time()):
        yield Verdict(what="clock", state="bad", said=problem.what)
    else:
        yield Verdict(what="clock", state="ok", said="this machine's clock agrees with Redis's")


def _foreign(client: redis.Redis, *, repair: bool) -> Iterator[Verdict]:
    from forums.state.foreign_values import find, set_aside
    from redis_components.fleet.registry import Registry
    from redis_components.keys import FleetKeys
    from workers.fleet.sizes import declared_fleet

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
    from forums.overview import OverviewReader, problems

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

    from workers.node.broker import broker_of

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
