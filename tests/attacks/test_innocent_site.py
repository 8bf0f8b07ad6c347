"""Each fault of a site, a message, a key or a file against a running fleet, while an innocent site publishes new threads: they
are read and stored as if nothing was. `make attacks` says how soon, in benchmarks/results/attacks.md.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from forums.state.keys import ForumFleetKeys
from redis_components.keys import CrawlKeys
from tests.attacks.attacked_fleet import AttackedFleet, Background, Delay, InnocentSite, json_site
from tests.attacks.figures import Figures
from tests.attacks.site_attacks import ATTACKS, attack, serve, threads
from tests.attacks.test_refusing_redis import REFUSALS
from tests.attacks.test_stored_requests import BAD
from tests.attacks.test_stored_requests import pack as stored
from tests.attacks.two_sites import SECRET
from tests.support import warm_start
from tests.support.broker_attack import raw, task
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page
from workers.node import health_check
from workers.state.beats import Schedules
from workers.state.nodes import Nodes

MEASURED = int(os.environ.get("ATTACKS_MEASURED", "2"))
"""Threads that the innocent site publishes during each attack."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedFleet]:
    with InnocentSite() as innocent:
        folder = tmp_path_factory.mktemp("fleet")
        environment = {"ATTACKED_TOKEN": SECRET, "TRAWL_PARSE_TIMEOUT_S": "1", "TRAWL_EVENTS_FILE": str(folder / "events.toml")}
        with AttackedFleet(folder, innocent, environment=environment) as fleet:
            yield fleet


@pytest.fixture(scope="module")
def figures() -> Iterator[Figures]:
    with Figures.of_environment() as kept:
        yield kept


# messages, keys, requests


@attack("messages that cannot be read or run", "3")
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    bad: tuple[Any, ...] = (b"{", b"[" * 5000, [], {"body": 5}, task("trawl.reconcile_fleet", timelimit=["a", "b"]))

    def send() -> None:
        for queue in ("control", "crawlers.forum_detail", "node.a@test"):
            fleet.client.lpush(queue, *map(raw, bad))

    stack.enter_context(Background(send))


def made_nothing(fleet: AttackedFleet) -> None:
    assert not list(fleet.folder.parent.glob("x*")), "a file outside of the data folder"
    assert "ERROR forged" not in fleet.fleet.said()


@attack("names that are paths", "4", made_nothing)
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    def send() -> None:
        for name in ("../../x", "a\n2026-01-01 00:00:00 ERROR forged", "-sADDONS=x", "x" * 1000):
            fleet.client.lpush("control", raw(task("trawl.run_crawler", [[name, 0], {}, {}])))

    stack.enter_context(Background(send))


@attack("stored requests that are none", "5")
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    pack = msgspec.msgpack.encode
    deep = b"\x91" * 1000 + b"\x90"
    bad = [pack({"url": fleet.innocent.url, "callback": one}) for one in ("__init__", "_set_crawler")]
    bad += [value if isinstance(value, bytes) else stored(value)[1:] for value in BAD.values()]
    bad += [deep, pack(msgspec.msgpack.Ext(9, b"\xd3" + (2**63 - 1).to_bytes(8))), pack({"url": 5}), b"\xff" * 100]
    keys = CrawlKeys.for_spider("forum_detail")

    def write() -> None:
        fleet.client.zadd(keys.requests, dict.fromkeys([*bad, *(b"\x01" + one for one in bad)], 0))
        fleet.client.rpush(keys.start_tasks(), b"[", b"{" * 5000, b'{"site": "evil", "post": 5}', b"\x00\xff")

    stack.enter_context(Background(write))


ELSEWHERE = (
    "file:///proc/self/environ",
    "data:,text",
    "ftp://127.0.0.1/x",
    "s3://bucket/x",
    "http://127.1.0.1/",
    "http://10.0.0.1/",
)


def are_set_aside(fleet: AttackedFleet) -> None:
    dead = b"".join(fleet.client.lrange(CrawlKeys.for_spider("forum_detail").dead(), 0, -1))
    assert all(url.encode() in dead for url in ELSEWHERE), dead


@attack("requests for files, other schemes and private addresses", "", are_set_aside)
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    requests = {stored({"url": url, "callback": "parse_thread"}): 0 for url in ELSEWHERE}
    stack.enter_context(Background(lambda: fleet.client.zadd(CrawlKeys.for_spider("forum_detail").requests, requests)))


@attack("foreign values in the fleet's records", "7")
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    desired = ForumFleetKeys(prefix="trawl:fleet").desired()
    fleet.client.hset(desired, mapping={"forum_detail": "abc", "\xff": "x" * 1000})
    stack.callback(lambda: fleet.client.hdel(desired, "forum_detail", "\xff"))


@attack("200 scrapes a second, and connections that say nothing", "10")
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    port = stack.enter_context(exporter(fleet))
    silent = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(600)]
    silent[0].sendall(b"GET / HTTP/1.1\r\n")

    def scrape() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while connection.recv(65_536):
                pass

    stack.enter_context(Background(scrape, every_s=0.005))


@contextmanager
def exporter(fleet: AttackedFleet) -> Iterator[int]:
    """The port of an exporter of this fleet."""
    command = [sys.executable, "-m", "monitoring.exporter", "--port=0"]
    process = warm_start.Popen(command, cwd=ROOT, env=fleet.fleet.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split("127.0.0.1:")[1].split()[0])
    finally:
        process.kill()
        process.communicate()


@attack("two workers of one name", "10")
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    twin = fleet.fleet.node("a", "--loglevel=INFO")
    stack.callback(twin.wait)
    stack.callback(twin.process.terminate)
    wait_until(lambda: Nodes(fleet.client).all()[0].rivals, lambda: f"both are heard\n{fleet.fleet.said()}", 60)


def other_database(fleet: AttackedFleet) -> Path:
    return fleet.folder / "another.sqlite"


def stored_nothing_elsewhere(fleet: AttackedFleet) -> None:
    assert not other_database(fleet).exists()


@attack("a worker with another database", "", stored_nothing_elsewhere)
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    url = f"sqlite:///{other_database(fleet)}"
    stranger = fleet.fleet.node("stranger", "-Q", "control", "--concurrency=2", TRAWL_DATABASE_URL=url)
    stack.callback(stranger.wait)
    stack.callback(stranger.process.terminate)
    wait_until(lambda: "trawl db move" in stranger.said(), lambda: f"it names the other one\n{stranger.said()}", 60)


def hung_is_ended(fleet: AttackedFleet) -> None:
    (file,) = (fleet.folder / "health").iterdir()
    _, rest = file.read_text().split(" ", 1)
    file.write_text(f"{time.time() - 61:.1f} {rest}")  # as after a minute
    with pytest.MonkeyPatch.context() as at_once:
        at_once.setattr(health_check, "AGAIN_S", 0.0)
        at_once.setattr(health_check, "_age_s", lambda _: 1000.0)
        assert health_check.main(f"{fleet.folder}/health/worker", end=True) == 1


@attack("a worker that hangs, with tasks that it has taken", "", hung_is_ended)
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    health = str(fleet.folder / "health")
    hung = fleet.fleet.node("hung", "-Q", "control", "--concurrency=2", "--loglevel=INFO", TRAWL_HEALTH_DIR=health)
    stack.callback(hung.wait)
    stack.callback(hung.process.kill)
    wait_until(lambda: "ready." in hung.said(), hung.said, 60)
    hung.process.send_signal(signal.SIGSTOP)


EVENTS = """rules = { slow = { match = "/(a|aa)+$/" } }
[outputs.slow]
kind = "file"
path = "FOLDER/slow"
rules = ["slow"]
[outputs.all]
kind = "file"
path = "FOLDER/all"
"""


def both_outputs_go_on(fleet: AttackedFleet) -> None:
    def told(name: str) -> str:
        return (fleet.folder / name).read_text() if (fleet.folder / name).exists() else ""

    last = f'"item":"t{len(fleet.innocent.threads)}"'
    wait_until(lambda: last in told("all"), lambda: f"all is told of it: {told('all')[-500:]}\n{fleet.fleet.said()}", 60)
    wait_until(lambda: '"undecided":["slow"]' in told("slow"), lambda: f"none is lost\n{fleet.fleet.said()}", 60)


@attack("an event rule without end, and texts that it is searched for", "", both_outputs_go_on)
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    rules = fleet.folder / "events.toml"
    rules.write_text(EVENTS.replace("FOLDER", str(fleet.folder)))
    stack.callback(rules.unlink)
    hostile = Page({"title": "t", "body": "a" * 5000 + "b", "replies": 0})
    threads(fleet, lambda path: Page("no", 404) if path == "/robots.txt" else hostile)
    wait_until(lambda: (fleet.folder / "slow").exists(), lambda: f"it is told\n{fleet.fleet.said()}", 60)


def is_as_before(fleet: AttackedFleet) -> None:
    wait_until(lambda: "seed_forums" in Schedules(fleet.client).stored(), lambda: f"it is put back\n{fleet.fleet.said()}", 60)


@attack("FLUSHALL", "10", is_as_before)
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    assert "seed_forums" in Schedules(fleet.client).stored()
    fleet.client.flushall()


# the last: what it has listed is looked at and left for a while after its file is gone
@attack("lists of 9,000 new threads without end", "")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    looks = iter(range(10**6))

    def answer(path: str) -> Page:
        if not path.startswith("/list/"):
            return Page("no", 404) if path == "/robots.txt" else Page({"title": "t", "body": "b", "replies": 0})
        look = next(looks)
        rows = [{"id": f"f{look}-{n}", "title": "t", "url": f"{fleet.evil.url}/x/{look}-{n}"} for n in range(9_000)]
        return Page({"threads": rows, "next": f"{fleet.evil.url}/list/f?{look}"})

    serve(fleet, answer, json_site(fleet.evil.url))


def script_without_end(server: RedisServer, _: redis.Redis) -> None:
    """BUSY: a script that one user has sent, and that another one kills."""
    client = server.client()
    threading.Thread(target=suppressed, args=(client, "EVAL", "while true do end", "0"), daemon=True).start()


def suppressed(client: redis.Redis, *command: str) -> None:
    with suppress(redis.RedisError):
        client.execute_command(*command)


REFUSES = {
    **{name: (begin, end) for name, (begin, end, _) in REFUSALS.items()},
    "OOM": (
        lambda _, client: client.config_set("maxmemory", 1),
        lambda _, client: client.config_set("maxmemory", 0),
    ),
    "BUSY": (script_without_end, lambda _, client: client.script_kill()),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("refusal", REFUSES)
def test_a_thread_that_was_published_while_redis_refused_to_write_is_read_once_it_does(
    fleet: AttackedFleet, figures: Figures, refusal: str
) -> None:
    def waiting() -> int:
        said = "".join(one.said() for one in fleet.fleet.running())
        return said.count("keeping everything, trying again") + said.count("no page is started")

    begin, end = REFUSES[refusal]
    fleet.wait_settled()
    before, client = waiting(), fleet.fleet.redis.client()
    client.ping()  # its connection lives through a change of the password
    begin(fleet.fleet.redis, client)
    try:
        wait_until(lambda: waiting() > before, fleet.fleet.said, 60)
    finally:
        end(fleet.fleet.redis, client)
    figures.add(f"Redis refused writes ({refusal}), from the end on", "8", [fleet.delay()])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["nothing", *ATTACKS])
def test_new_threads_of_the_innocent_site_are_read_during(fleet: AttackedFleet, figures: Figures, name: str) -> None:
    fault, begin, then = ATTACKS.get(name, ("", lambda *_: None, lambda _: None))
    found: list[Delay] = []
    with fleet.hostile_site(), ExitStack() as stack:
        begin(fleet, stack)
        found.extend(fleet.delay() for _ in range(MEASURED))
        then(fleet)
    figures.add(name, fault, found)
