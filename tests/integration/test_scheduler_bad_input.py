"""Whatever somebody else has put into Redis or the settings: set aside or refused with a line that names it; the rest goes on."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
import redis
from scrapy import Request

from redis_components.admin.inspector import snapshot
from redis_components.codec import values
from redis_components.queue import PriorityQueue
from tests.support.crawl import Crawl, crawl
from tests.support.link_spiders import LinksSpider

FOREIGN_REQUESTS = {
    "older codec": (b"\x00\x80", "codec version 0, this process knows 1: written by an older Trawl"),
    "newer codec": (b"\x02\x80", "codec version 2, this process knows 1: written by a newer Trawl"),
    "newer type": (b"\x01\x81\xa1t\xd4\x63\xc0", "unknown type code 99 in a payload: written by a newer Trawl?"),
    "pickle": (pickle.dumps({"url": "http://127.0.0.1/"}), "payload is a pickle"),
    "scrapy-redis with JSON": (b'{"url": "http://127.0.0.1/"}', "written with another SCHEDULER_SERIALIZER"),
    "cut off": (values.dumps({"u": "http://127.0.0.1/"})[:-1], "payload is corrupt"),
    "missing callback": (values.dumps({"u": "http://127.0.0.1/", "c": "old"}), "no method 'old'; was it renamed by a deploy?"),
    "unknown class": (values.dumps({"u": "http://127.0.0.1/", "_": "os.system"}), "request class 'os.system' is not allowed"),
    "empty": (b"", "payload is empty"),
}


@pytest.fixture
def run(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> object:
    """A crawl of five pages whose start task waits."""
    with crawl(redis_url, tmp_path, pages=5) as begun:
        begun.seed()
        yield begun


def finished(run: Crawl, **settings: object) -> str:
    """Crawl to the end; nothing of the site may be missing. Returns the log."""
    assert run.start(**settings).wait(60) == 0, run.log()
    assert run.missing() == ([], []), run.log()
    return run.log()


@pytest.mark.parametrize("what", FOREIGN_REQUESTS)
def test_a_request_that_cannot_be_read_is_set_aside_with_the_reason(run: Crawl, redis_client: redis.Redis, what: str) -> None:
    payload, reason = FOREIGN_REQUESTS[what]
    redis_client.zadd(run.keys.ready(), {bytes(9) + payload: 0})
    log = finished(run)
    assert "a request is set aside in links:requests:dead: " in log
    assert reason in log
    (dead,) = redis_client.lrange(run.keys.dead(), 0, 9)
    assert dead.partition(b"\n")[2] == payload
    assert reason in json.loads(dead.partition(b"\n")[0])["reason"]


def test_a_start_key_of_a_foreign_type_is_named_and_ends_the_crawl(run: Crawl, redis_client: redis.Redis) -> None:
    redis_client.delete(run.keys.start_tasks())
    redis_client.set(run.keys.start_tasks(), "http://127.0.0.1/")
    assert run.start().wait(60) == 1, run.log()
    assert run.log().count("WRONGTYPE links:start_urls is a string that Trawl did not write") == 1
    assert "Traceback" not in run.log()
    assert run.hits() == {}


@pytest.mark.parametrize(
    ("pattern", "instead", "fix"),
    [
        ("//.*@", "//:not-this-one@", "correct user and password in REDIS_URL or REDIS_PARAMS"),
        ("//.*@", "//mouse:not-this-one@", "give the user of REDIS_URL the rights that docs/security.md names"),
        (r"/\d+$", "/9999", "choose a database that this Redis has"),
    ],
)
def test_a_redis_that_will_never_take_the_exchange_ends_the_crawl(
    run: Crawl, redis_client: redis.Redis, pattern: str, instead: str, fix: str
) -> None:
    redis_client.acl_setuser("mouse", enabled=True, passwords=["+not-this-one"], commands=["+ping"])
    assert run.start(REDIS_URL=re.sub(pattern, instead, run.redis_url)).wait(60) == 1, run.log()
    (line,) = [line for line in run.log().splitlines() if "ERROR" in line]
    assert fix in line
    assert "not-this-one" not in line


def test_a_spider_with_start_requests_alone_is_named(redis_url: str, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=1, spider="old-start") as begun:
        assert begun.start().wait(60) == 0
        (line,) = [line for line in begun.log().splitlines() if "start_requests()" in line]
    assert "does not call it: rename it `async def start(self)`" in line


BAD_TASKS = [b'{"url": ', b'{"url": "http://127.0.0.1/", "colour": "red"}', b"[1]", b"\xff\xfe", b"", b'{"url": null}']


@pytest.mark.parametrize("task", BAD_TASKS)
def test_a_start_task_that_cannot_be_read_is_set_aside_and_its_neighbours_are_crawled(
    run: Crawl, redis_client: redis.Redis, task: bytes
) -> None:
    redis_client.lpush(run.keys.start_tasks(), task)
    log = finished(run)
    assert f"start task {task!r} is set aside in links:requests:dead" in log
    (dead,) = redis_client.lrange(run.keys.dead(), 0, 9)
    assert dead.partition(b"\n")[2] == task


def test_a_foreign_value_in_the_shared_stats_is_replaced_and_the_crawl_goes_on(run: Crawl, redis_client: redis.Redis) -> None:
    redis_client.hset(run.keys.stats_hash(), "downloader/response_count", "many")
    redis_client.hset(run.keys.stats_hash(), b"\xff", b"\xfe")
    redis_client.hset(run.keys.stats_hash(), "request_depth_max", "deep")
    finished(run)
    stats = redis_client.hgetall(run.keys.stats_hash())
    assert stats[b"downloader/response_count"].isdigit()
    assert stats[b"request_depth_max"] == b"2"


def test_a_layout_from_the_future_is_refused(run: Crawl, redis_client: redis.Redis) -> None:
    redis_client.hset(run.keys.counters(), "layout", 99)
    assert run.start().wait(60) == 1
    assert "layout version 99, this process knows 1: upgrade it" in run.log()
    assert "Traceback" not in run.log()
    assert run.hits() == {}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("SCHEDULER_QUEUE_CLASS", "redis_components.queue.NoQueue"),
        ("SCHEDULER_QUEUE_CLASS", "collections.OrderedDict"),
        ("DUPEFILTER_CLASS", "no.such.Filter"),
        ("SCHEDULER_SERIALIZER", "no.such.serializer"),
        ("SCHEDULER_SERIALIZER", "json.encoder"),
        ("SCHEDULER_REQUEST_CLASSES", "no.such.Request"),
        ("REDIS_ITEMS_SERIALIZER", "no.such.function"),
        ("SCHEDULER_MAX_PREFETCH", "0"),
        ("REDIS_PARAMS", '{"redis_cls": "no.such.Class"}'),
    ],
)
def test_a_setting_that_cannot_be_meant_ends_the_crawl_with_one_line_and_touches_nothing(
    run: Crawl, redis_client: redis.Redis, setting: str, value: str
) -> None:
    assert run.start(**{setting: value}).wait(60) == 1
    lines = [line for line in run.log().splitlines() if "ERROR" in line]
    assert len(lines) == 1, run.log()
    assert setting in lines[0]
    assert value in lines[0] or value.rpartition(".")[2].strip('"}') in lines[0]
    assert "Traceback" not in run.log()
    assert "Spider closed (refused)" in run.log()
    assert run.hits() == {}
    assert redis_client.llen(run.keys.start_tasks()) == 1


def test_pickles_are_read_and_written_when_they_were_chosen_and_so_is_what_was_there_before(
    run: Crawl, redis_client: redis.Redis
) -> None:
    request = Request(f"{run.site}/1", dont_filter=True)
    PriorityQueue(redis_client, LinksSpider(), "%(spider)s:requests").push(request)
    redis_client.zadd(run.keys.ready(), {bytes(8) + b"\x00" + pickle.dumps({"url": f"{run.site}/1", "dont_filter": True}): 0})
    redis_client.delete(run.keys.start_tasks())
    finished(run, SCHEDULER_SERIALIZER="redis_components.picklecompat")
    assert run.hits()[1] == 2
    assert snapshot(redis_client, "links").dead == 0
