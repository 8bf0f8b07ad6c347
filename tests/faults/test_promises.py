"""The promises of `docs/guarantees.md`, in its order, each on real `scrapy crawl` processes, a real Redis and a site that counts.

The long form is `make deaths`: 3,000 pages, every case five times.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier.frontier import FrontierConfig
from tests.support.crawl import Crawl, crawl
from tests.support.fleet import program, toy_environment
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from workers.process.exit_kinds import ExitKind

PAGES = 300


def reach(run: Crawl, share: float) -> None:
    wait_until(lambda: len(run.hits()) >= share * run.pages, lambda: f"{share:.0%} of the pages are fetched\n{run.log()}", 60)


def fetched_again(run: Crawl) -> int:
    return sum(count - 1 for count in run.hits().values())


def nothing_is_missing(run: Crawl) -> None:
    assert run.missing() == ([], []), run.log()
    with run.client() as client:
        shot = snapshot(client, run.spider)
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners) == (0, 0, 0, 0)


@contextmanager
def behind_a_proxy(server: RedisServer, folder: Path, **proxy: float) -> Iterator[tuple[Crawl, Proxy]]:
    """A crawl whose processes reach Redis through the proxy; the test itself does not."""
    with Proxy(server.port, **proxy) as between, crawl(server.url, folder, pages=PAGES, latency_s=0.1) as run:
        run.seed()
        run.redis_url = server.url.replace(f":{server.port}/", f":{between.port}/")
        run.start()
        run.redis_url = server.url
        yield run, between


def owner_of_the_first(run: Crawl, client: redis.Redis) -> str:
    """The owner's name of the first process; it ends with its pid and a random part."""
    names = [owner.decode() for owner in client.zrange(run.keys.owners(), 0, 9)]
    return next(name for name in names if f"-{run.processes[0].pid}-" in name)


@pytest.mark.usefixtures("redis_client")
def test_kill_9_of_a_crawler_at_any_instant_any_number_of_times_loses_no_request_child_or_item(
    redis_url: str, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=PAGES, latency_s=0.02) as run:
        run.seed()
        leased = 0  # at a death: what was in flight, or finished and not acked yet, however slow the machine is
        for death in range(1, 5):
            victim = run.start()
            reach(run, 0.2 * death)
            victim.kill()
            victim.wait()
            with run.client() as client:
                leased += snapshot(client, run.spider).leased
                for owner in client.zrange(run.keys.owners(), 0, 9):  # as its supervisor does
                    expire_owner(client, run.keys, owner.decode())
        assert run.start().wait(60) == 0, run.log()
        nothing_is_missing(run)
        assert fetched_again(run) <= leased


def test_the_leases_of_a_killed_crawler_are_back_within_10_s(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=PAGES, latency_s=0.2) as run:
        run.seed()
        victim, survivor = run.start(), run.start()
        run.wait_for(2)
        reach(run, 0.1)
        owner = owner_of_the_first(run, redis_client)
        wait_until(lambda: redis_client.hlen(run.keys.leases(owner)), "it holds leases")
        victim.kill()
        expire_owner(redis_client, run.keys, owner)  # instead of waiting for the rest of its time to live
        wait_until(lambda: not redis_client.exists(run.keys.leases(owner)), lambda: f"they are taken back\n{run.log()}")
        assert FrontierConfig.ttl_s * 5 / 4 <= 10, "s: they end, and the survivor looks each quarter of that time"
        assert survivor.wait(60) == 0, run.log()
        nothing_is_missing(run)


@pytest.mark.usefixtures("redis_client")
def test_sigterm_of_a_crawler_finishes_what_is_in_flight_and_nothing_is_fetched_twice(redis_url: str, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=PAGES, latency_s=0.02) as run:
        run.seed()
        for share in (0.2, 0.4, 0.6):
            process = run.start()
            reach(run, share)
            process.terminate()
            assert process.wait(60) == 0, run.log()
        assert run.start().wait(60) == 0, run.log()
        nothing_is_missing(run)
        assert fetched_again(run) == 0


def test_a_redis_that_is_away_stops_nobody_and_is_told_in_one_line(
    redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with behind_a_proxy(redis_server, tmp_path) as (run, proxy):
        reach(run, 0.2)
        for _ in range(2):
            already = run.log().count("trying again")
            proxy.refuse = True
            wait_until(lambda already=already: run.log().count("trying again") > already, run.log)  # type: ignore[misc]
            proxy.refuse = False
            wait_until(lambda already=already: run.log().count("answers again") > already, run.log)  # type: ignore[misc]
        assert run.processes[0].wait(60) == 0, run.log()
        nothing_is_missing(run)
        assert fetched_again(run) == 0
        assert run.log().count("trying again") == run.log().count("answers again") == 2


def test_a_redis_with_aof_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    with RedisServer(aof=True) as server, behind_a_proxy(server, tmp_path) as (run, _):
        reach(run, 0.3)
        server.kill()
        server.start()
        assert run.processes[0].wait(60) == 0, run.log()
        nothing_is_missing(run)


def test_a_redis_that_comes_back_without_its_last_second_loses_nothing(tmp_path: Path) -> None:
    with RedisServer(aof=True) as server, behind_a_proxy(server, tmp_path) as (run, _):
        reach(run, 0.3)
        server.remember()
        reach(run, 0.5)
        known = snapshot(server.client(), run.spider).acked
        server.kill_and_forget()
        assert snapshot(server.client(), run.spider).acked < known, "it forgot something"
        assert run.processes[0].wait(60) == 0, run.log()
        nothing_is_missing(run)
        assert run.log().count("fenced: ") == 1
        assert fetched_again(run) <= 0.5 * PAGES


def test_a_redis_that_is_out_of_memory_starts_no_new_page_and_loses_nothing(tmp_path: Path) -> None:
    with RedisServer() as server, behind_a_proxy(server, tmp_path) as (run, _):
        client = server.client()
        reach(run, 0.3)
        client.config_set("maxmemory", 1)
        wait_until(lambda: "out of memory" in run.log(), run.log, 60)
        wait_until(lambda: snapshot(client, run.spider).acked == len(run.hits()), "what ran is stored", 60)
        fetched = run.hits()
        for _ in range(3):  # it goes on asking whether there is memory
            ((_, asked),) = client.zrange(run.keys.owners(), 0, 0, withscores=True)
            wait_until(
                lambda asked=asked: client.zrange(run.keys.owners(), 0, 0, withscores=True)[0][1] > asked,  # type: ignore[misc]
                "it asks again",
            )
        assert run.hits() == fetched
        client.config_set("maxmemory", 0)
        assert run.processes[0].wait(60) == 0, run.log()
        nothing_is_missing(run)
        assert fetched_again(run) == 0


def test_every_exchange_is_applied_once_though_replies_are_lost_and_connections_cut(
    redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with behind_a_proxy(redis_server, tmp_path, round_trip_s=0.01) as (run, proxy):
        for step in range(1, 8):
            reach(run, step / 10)
            if step % 2:
                proxy.cut()
                continue
            answered = run.log().count("answers again")
            proxy.swallow = True
            wait_until(lambda answered=answered: run.log().count("trying again") > answered, run.log)  # type: ignore[misc]
            proxy.swallow = False
        assert run.processes[0].wait(60) == 0, run.log()
        nothing_is_missing(run)
        assert fetched_again(run) == 0
        assert run.items() == list(range(1, PAGES + 1)), "each item is stored once"
        assert snapshot(redis_client, "links").acked == PAGES


def test_a_crawler_that_was_paused_and_comes_back_is_fenced_and_does_no_harm(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=PAGES, latency_s=0.2) as run:
        run.seed()
        paused, other = run.start(), run.start()
        run.wait_for(2)
        reach(run, 0.1)
        paused.send_signal(signal.SIGSTOP)
        wait_until(lambda: psutil.Process(paused.pid).status() == psutil.STATUS_STOPPED, "it stands still")
        owner = owner_of_the_first(run, redis_client)
        held = redis_client.hlen(run.keys.leases(owner))  # nobody adds to it: Redis has answered all that was sent
        expire_owner(redis_client, run.keys, owner)
        assert other.wait(60) == 0, run.log()
        assert run.missing() == ([], [])
        paused.send_signal(signal.SIGCONT)
        assert paused.wait(60) == 0, run.log()
        assert "fenced" in run.log()
        nothing_is_missing(run)
        assert fetched_again(run) <= held, "what it held, and each of that once"


def test_a_reactor_that_hangs_is_noticed_its_stacks_are_logged_and_its_process_ends(redis_url: str, tmp_path: Path) -> None:
    command = ["-m", "workers.crawler", "toy", "-a", "mode=hang", "-s", "WATCHDOG_TIMEOUT=4"]
    with program(command, toy_environment(redis_url, tmp_path), tmp_path / "log") as crawler:
        assert crawler.wait() == ExitKind.HUNG.exit_code, "its supervisor starts another one for this code"
        assert "tests/support/toy/spiders.py" in crawler.said()


def test_a_page_that_kills_its_process_each_time_is_set_aside_and_the_rest_is_crawled(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=40, spider="deadly") as run:
        run.seed()
        for _ in range(12):
            process = run.start(SCHEDULER_MAX_ATTEMPTS=3)
            if process.wait(60) == 0:
                break
            for owner in redis_client.zrange(run.keys.owners(), 0, 9):  # as its supervisor does
                expire_owner(redis_client, run.keys, owner.decode())
        assert process.returncode == 0, run.log()
        (dead,) = redis_client.lrange(run.keys.dead(), 0, 9)
        assert f"{run.site}/3".encode() in dead
        assert b"attempts spent: its crawler died 3 times" in dead
        below = {3, 6, 7, 12, 13, 14, 15, *range(24, 32)}
        assert set(run.items()) == set(range(1, 41)) - below, "only what hangs on the deadly page is not reached"


def test_a_bad_start_task_an_undecodable_request_and_a_bad_item_are_set_aside_and_their_neighbours_are_not_touched(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=9, spider="bad-item") as run:
        redis_client.zadd(run.keys.ready(), {b"\0" * 9 + b"\xc1 from another program": 0, b"short": 1})
        run.seed("{not json", f'{{"url": "{run.site}/1", "metod": "GET"}}', f"{run.site}/1", '{"url": "no scheme"}')
        assert run.start().wait(60) == 0, run.log()
        assert run.items() == [1, 2, 4, 5, 8, 9], "the item of page 3 is the bad one"
        entries = redis_client.lrange(run.keys.dead(), 0, 9)
        reasons = [json.loads(entry.split(b"\n")[0])["reason"] for entry in entries]
        for said in ("not valid JSON", "metod", "no scheme", "codec version", "no order and attempts", "serializable"):
            assert any(said in reason for reason in reasons), f"{said}: {reasons}"
        assert len(reasons) == 6
