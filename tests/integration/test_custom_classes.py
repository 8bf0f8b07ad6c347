"""Queue, dupefilter and scheduler classes of a user's own, in real crawls that are killed and shared."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind
from tests.faults.test_held_crawls import falls_silent
from tests.support.crawl import Crawl, crawl
from tests.support.processes import wait_until

CLASSES = "tests.support.custom_classes"


def test_a_crawl_on_a_queue_and_a_dupefilter_of_the_users_own_loses_nothing_when_one_process_is_killed(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    own = {"SCHEDULER_QUEUE_CLASS": f"{CLASSES}.HighestPageFirst", "DUPEFILTER_CLASS": f"{CLASSES}.OwnFilter"}
    with crawl(redis_url, tmp_path, pages=200, latency_s=0.1) as run:
        first, _ = run.start(**own), run.start(**own)
        run.wait_for(2)
        run.seed()
        wait_until(lambda: len(run.hits()) > 40, lambda: f"the crawl is under way\n{run.log()}", 60)
        (killed, *_) = [owner for owner in redis_client.zrange(run.keys.owners(), 0, 9) if f"-{first.pid}-".encode() in owner]
        first.kill()
        first.wait()
        expire_owner(redis_client, run.keys, killed.decode())
        run.processes.remove(first)
        run.finish()
        assert run.missing() == ([], [])
    assert redis_client.scard("own-filter") == 199
    assert redis_client.exists("links:requests", "links:requests:ready", "links:dupefilter:notes", run.keys.dead()) == 0


def test_a_subclass_of_the_scheduler_with_own_payloads_and_own_decisions_crawls_every_page_once(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=60) as run:
        run.seed()
        run.start(
            SCHEDULER=f"{CLASSES}.PassingScheduler",
            SCHEDULER_QUEUE_CLASS=f"{CLASSES}.MarkingQueue",
            DUPEFILTER_CLASS=f"{CLASSES}.SeenByPath",
        )
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 61), 1)
    assert redis_client.scard("links:dupefilter") == 59  # page 1 is a start task, which is not filtered


def test_while_a_dupefilter_cannot_be_asked_what_is_found_waits(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=40, spider="counting") as run:
        run.seed()
        run.start(DUPEFILTER_CLASS=f"{CLASSES}.StumblingFilter", SCHEDULER_QUEUE_CLASS=f"{CLASSES}.ListQueue")
        run.finish()
        hits = run.hits()
        assert set(hits) == set(range(1, 41))
        assert sum(hits.values()) < 50  # where an answer was lost the request may have been new
        assert "cannot be asked, what is found waits: the connection is cut" in run.log()
        assert "Traceback" not in run.log()
    assert redis_client.exists("counting:requests", "counting:requests:ready", "counting:dupefilter:notes") == 0


@pytest.mark.parametrize(("queue", "persist"), [("redis_components.queue.PriorityQueue", True), (f"{CLASSES}.ListQueue", False)])
def test_classes_that_call_nothing_of_ours_crawl_every_page_and_their_filter_is_asked(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, queue: str, persist: bool
) -> None:
    with crawl(redis_url, tmp_path, pages=60) as run:
        run.seed()
        run.start(
            SCHEDULER=f"{CLASSES}.AddOnScheduler",
            DUPEFILTER_CLASS=f"{CLASSES}.AddOnFilter",
            SCHEDULER_QUEUE_CLASS=queue,
            SCHEDULER_PERSIST=persist,
        )
        run.finish()
        assert run.processes[0].returncode == 0, run.log()
        assert run.hits() == dict.fromkeys(range(1, 61), 1)
        assert run.items() == list(range(1, 61))
        assert "failed" not in run.log()
    assert redis_client.scard("links:bloomfilter") == (59 if persist else 0), "page 1 is a start task, which is not filtered"
    assert redis_client.exists("links:requests", "links:dupefilter") == 0


def test_a_crawl_whose_scheduler_fails_ends_with_another_exit_code_than_0(redis_url: str, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=3) as run:
        run.seed()
        assert run.start(SCHEDULER=f"{CLASSES}.FailingScheduler").wait(60) == 1, run.log()
        assert run.log().count("FailingScheduler.enqueue_request() failed (AttributeError: of a part that") == 1


def test_scrapys_own_dupefilter_is_used_when_it_is_named(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=40, spider="counting") as run:
        run.seed()
        run.start(DUPEFILTER_CLASS="scrapy.dupefilters.RFPDupeFilter", SCHEDULER_QUEUE_CLASS=f"{CLASSES}.LowestPageFirst")
        run.finish()
        assert run.hits() == {1: 2} | dict.fromkeys(range(2, 41), 1)  # page 1 is found again on every page, and filtered but once
    stats = snapshot(redis_client, "counting").stats
    assert stats["dupefilter/filtered"] == "42"  # page 1 found 40 times, pages 2 and 3 twice; Scrapy's dupefilter counts itself
    assert redis_client.exists("counting:dupefilter") == 0


def test_a_crawl_on_a_queue_of_the_users_own_is_held_and_goes_on(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    def hold(**fields: Hold | None) -> None:
        holds.change(redis_client, run.keys, fields)

    with crawl(redis_url, tmp_path, pages=100, latency_s=0.1) as run:
        site = f"site:{run.site.removeprefix('http://')}"
        run.seed()
        run.start(SCHEDULER_QUEUE_CLASS=f"{CLASSES}.HighestPageFirst", CONCURRENT_REQUESTS=2)
        wait_until(lambda: len(run.hits()) > 10, lambda: f"the crawl is under way\n{run.log()}", 60)
        hold(spider=Hold(word=HoldKind.PAUSE))
        wait_until(lambda: "held now: spider paused" in run.log(), lambda: f"it obeys\n{run.log()}")
        falls_silent(run)
        wait_until(lambda: not in_flight(run), lambda: f"its items are stored\n{run.log()}")
        silent = len(run.hits())
        hold(spider=None, **{site: Hold(word=HoldKind.PAUSE)})
        wait_until(lambda: snapshot(redis_client, "links").parked > 0, lambda: f"what is taken is set aside\n{run.log()}")
        assert len(run.hits()) == silent < 100
        hold(**{site: None})
        run.finish()
        assert run.missing() == ([], [])
        assert set(run.hits().values()) == {1}


def in_flight(run: Crawl) -> bool:
    """Whether items are still to come of the pages that were fetched."""
    return len(run.items()) < len(run.hits())
