"""`trawl migrate scrapy-redis` on a real Redis: what scrapy-redis leaves is made as it makes it, without it."""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy import Request
from scrapy.settings import Settings

from cli.main import main
from redis_components import dupefilter, picklecompat
from redis_components import filters as filter_access
from redis_components.admin.dead_letters import newest, replay
from redis_components.filters import PlainSet
from redis_components.fingerprint import ScrapyRedisFingerprinter
from redis_components.keys import CrawlKeys
from redis_components.migration import Options, fingerprints, project_of, run
from redis_components.migration.members import BothKeys
from redis_components.queue import FifoQueue, LifoQueue, PriorityQueue
from tests.support import warm_start
from tests.support.contents import contents
from tests.support.owner import Owner
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.scrapy_redis_data import SPIDER, pickled, put_fingerprints, put_list, put_zset

KEYS = CrawlKeys.for_spider("forum")
ASIDE, FILTER_ASIDE = KEYS.foreign_requests(), KEYS.foreign_fingerprints()
REQUESTS = [Request(f"http://a.example/{n}", callback=SPIDER.parse_post, priority=n % 3, meta={"n": (n,)}) for n in range(50)]


class Said(dict[str, Any]):
    """What the command printed with --json of the spider `forum`, and its exit code and errors."""

    code: int
    err: str


Migrate = Callable[..., Said]


@pytest.fixture
def migrate(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Migrate:
    """The command in this process, in the folder of no project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "")  # so that what the command sets is taken back
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*arguments: str, watch: str = "0") -> Said:
        code = main(["migrate", "scrapy-redis", "forum", "--json", "--watch", watch, *arguments])
        out, err = capfd.readouterr()
        said = Said(json.loads(out)["forum"] if out else {})
        said.code, said.err = code, err
        return said

    return run


def urls(client: redis.Redis, queue: type[PriorityQueue | FifoQueue | LifoQueue] = PriorityQueue) -> list[str]:
    """The queue, popped in its order by the class that crawlers would have."""
    popped = queue(client, SPIDER, "%(spider)s:requests")
    return [request.url for request in iter(popped.pop, None)]


def expected(requests: list[Request]) -> list[str]:
    """Highest priority first; scrapy-redis pops equal ones in the order of their bytes."""
    return [one.url for one in sorted(requests, key=lambda one: (-one.priority, pickled(one)))]


def test_queue_and_dupefilter_are_imported_and_a_second_run_does_nothing(migrate: Migrate, redis_client: redis.Redis) -> None:
    put_zset(redis_client, KEYS.requests, REQUESTS)
    put_fingerprints(redis_client, KEYS.dupefilter, [*REQUESTS, Request("http://a.example/done")])
    said = migrate("--allow-pickle")
    assert said.code == 0
    assert (said["requests"]["imported"], said["requests"]["dead"], said["fingerprints"]["imported"]) == (50, {}, 51)
    assert {len(member) for member in redis_client.smembers(KEYS.dupefilter)} == {20}
    assert redis_client.exists(ASIDE, FILTER_ASIDE) == 0
    before = contents(redis_client)
    again = migrate("--allow-pickle")
    assert (again.code, again["requests"]["found"], again["fingerprints"]["found"]) == (0, 0, 0)
    assert contents(redis_client) == before
    assert urls(redis_client) == expected(REQUESTS)


@pytest.mark.parametrize(("order", "queue"), [("fifo", FifoQueue), ("lifo", LifoQueue)])
def test_a_list_is_imported_in_the_order_of_its_queue_class(
    order: str, queue: type[FifoQueue | LifoQueue], migrate: Migrate, redis_client: redis.Redis
) -> None:
    put_list(redis_client, KEYS.requests, REQUESTS)
    assert migrate("--allow-pickle", "--order", order).code == 0
    in_order = [one.url for one in REQUESTS]
    assert urls(redis_client, queue) == (in_order if order == "fifo" else in_order[::-1])


def test_a_list_needs_to_be_told_which_order_it_has(migrate: Migrate, redis_client: redis.Redis) -> None:
    put_list(redis_client, KEYS.requests, REQUESTS)
    before = contents(redis_client)
    said = migrate("--allow-pickle")
    assert said.code == 2
    assert "--order fifo" in said.err
    assert contents(redis_client) == before


def test_pickles_are_not_read_unless_that_is_allowed(migrate: Migrate, redis_client: redis.Redis) -> None:
    put_zset(redis_client, KEYS.requests, REQUESTS)
    before = contents(redis_client)
    said = migrate()
    assert said.code == 2
    assert "--allow-pickle" in said.err
    assert contents(redis_client) == before


class Attack:
    """A pickle that reports to `port` and leaves a file, if it is run."""

    def __init__(self, port: int, trace: Path) -> None:
        self._script = f"import socket; open({str(trace)!r}, 'w'); socket.create_connection(('127.0.0.1', {port}))"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, (self._script,)


def test_a_hostile_pickle_is_not_run_reaches_no_network_and_is_kept_with_the_reason(
    migrate: Migrate, redis_client: redis.Redis, redis_server: Any, tmp_path: Path
) -> None:
    trace = tmp_path / "ran"
    hostile = pickle.dumps({**REQUESTS[0].to_dict(spider=SPIDER), "meta": {"a": Attack(redis_server.port, trace)}})
    put_zset(redis_client, KEYS.requests, REQUESTS)
    redis_client.zadd(KEYS.requests, {hostile: -9})
    connections = redis_client.info("stats")["total_connections_received"]
    said = migrate("--allow-pickle")
    assert said.code == 0
    assert said["requests"]["imported"] == 50
    assert not trace.exists()
    assert redis_client.info("stats")["total_connections_received"] <= connections + 2, "the command's own"
    (entry,), _ = newest(redis_client, KEYS, 10)
    assert "builtins.exec" in entry.reason
    assert entry.payload == hostile
    assert entry.score == "-9"


def test_what_could_not_be_read_goes_back_for_crawlers_that_have_a_serializer(
    migrate: Migrate, redis_client: redis.Redis
) -> None:
    put_zset(redis_client, KEYS.requests, REQUESTS[:1])
    strange = pickle.dumps({**REQUESTS[1].to_dict(spider=SPIDER), "meta": {"a": 1j}}, -1)
    redis_client.zadd(KEYS.requests, {strange: 4})
    migrate("--allow-pickle")
    assert replay(redis_client, KEYS, reason="complex").done == 1
    assert redis_client.zrange(KEYS.ready(), 1, 1)[0][9:] == strange
    assert redis_client.zscore(KEYS.ready(), redis_client.zrange(KEYS.ready(), 1, 1)[0]) == 4


@pytest.fixture
def pickling_settings(tmp_path: Path) -> str:
    """Settings of a project whose crawlers go on with pickles."""
    (tmp_path / "pickling_settings.py").write_text("SCHEDULER_SERIALIZER = 'redis_components.picklecompat'\n")
    return "pickling_settings"


def test_payloads_stay_as_they_are_for_a_project_with_a_serializer(
    migrate: Migrate, redis_client: redis.Redis, pickling_settings: str
) -> None:
    redis_client.zadd(KEYS.requests, {b'{"url": "http://a.example/1"}': 2, b'{"url": "http://a.example/2"}': -1})
    refused = migrate("--allow-pickle")
    assert refused.code == 2
    assert "SCHEDULER_SERIALIZER" in refused.err
    assert migrate("--settings", pickling_settings).code == 0
    assert [member[9:] for member in redis_client.zrange(KEYS.ready(), 0, -1)] == [
        b'{"url": "http://a.example/2"}',
        b'{"url": "http://a.example/1"}',
    ]


def test_pickles_that_stay_as_they_are_are_read_by_crawlers_that_pickle(
    migrate: Migrate, redis_client: redis.Redis, pickling_settings: str
) -> None:
    put_zset(redis_client, KEYS.requests, REQUESTS)
    said = migrate("--settings", pickling_settings)
    assert (said.code, said["requests"]["imported"]) == (0, 50)
    popped = PriorityQueue(redis_client, SPIDER, "%(spider)s:requests", picklecompat)
    back = [request.to_dict(spider=SPIDER) for request in iter(popped.pop, None)]
    assert back == [one.to_dict(spider=SPIDER) for one in sorted(REQUESTS, key=lambda one: (-one.priority, pickled(one)))]


def test_a_crawler_of_scrapy_redis_that_works_there_is_noticed_and_nothing_is_changed(
    migrate: Migrate, redis_client: redis.Redis, redis_url: str
) -> None:
    put_zset(redis_client, KEYS.requests, REQUESTS)
    before = contents(redis_client)
    over = threading.Event()

    def idle_crawler() -> None:
        with redis.Redis.from_url(redis_url) as client:
            while not over.wait(0.05):
                client.pipeline().zrange("other:requests", 0, 0).zremrangebyrank("other:requests", 0, 0).execute()
                client.zrange(KEYS.requests, 0, 0)
                client.zremrangebyrank(KEYS.requests, 99, 99)

    thread = threading.Thread(target=idle_crawler)
    thread.start()
    try:
        said = migrate("--allow-pickle", watch="5")
    finally:
        over.set()
        thread.join()
    assert said.code == 1
    assert "ZREMRANGEBYRANK" in said.err
    assert contents(redis_client) == before
    assert migrate("--allow-pickle", watch="0.2").code == 0, "now it is gone"


def test_nothing_is_imported_under_a_crawler_of_ours(migrate: Migrate, redis_client: redis.Redis) -> None:
    owner = Owner(redis_client, "one", keys=KEYS).open()
    owner.advance()
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS)
    said = migrate("--allow-pickle")
    assert said.code == 1
    assert "a Trawl crawler" in said.err


@pytest.mark.parametrize("kind", ["zset", "list"])
def test_what_an_old_crawler_wrote_after_the_import_is_imported_by_the_next_run(
    kind: str, migrate: Migrate, redis_client: redis.Redis
) -> None:
    put = put_zset if kind == "zset" else put_list
    put(redis_client, KEYS.requests, REQUESTS[:10])
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS[:10])
    migrate("--allow-pickle", "--order", "fifo")
    if kind == "list":
        redis_client.rename(KEYS.requests, "ours")  # where a zset of ours is, LPUSH fails
    put(redis_client, KEYS.requests, REQUESTS[10:])
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS[10:])
    said = migrate("--allow-pickle", "--order", "fifo")
    assert (said.code, said["requests"]["imported"], said["fingerprints"]["imported"]) == (0, 40, 40)
    if kind == "list":
        redis_client.zunionstore(KEYS.requests, [KEYS.requests, "ours"])
    assert sorted(urls(redis_client)) == sorted(one.url for one in REQUESTS)
    assert redis_client.scard(KEYS.dupefilter) == 50


def test_a_few_foreign_fingerprints_among_thousands_of_ours_leave_ours_where_they_are(redis_client: redis.Redis) -> None:
    ours = {n.to_bytes(20, "big") for n in range(1, 5001)}
    redis_client.sadd(KEYS.dupefilter, *ours, bytes(range(20)).hex())
    found = fingerprints.FingerprintsFound(foreign=5001, aside=0, mixed=True)
    both = BothKeys(theirs=KEYS, ours=KEYS)
    report = fingerprints.import_fingerprints(redis_client, both, found, PlainSet(), progress=lambda done, total: None)
    assert (report.imported, redis_client.smembers(KEYS.dupefilter)) == (1, ours | {bytes(range(20))})


@pytest.mark.usefixtures("migrate")  # its folder and environment
def test_two_imports_at_once_lose_and_double_nothing(redis_client: redis.Redis) -> None:
    many = [Request(f"http://a.example/{n}", callback=SPIDER.parse_post) for n in range(1500)]
    put_zset(redis_client, KEYS.requests, many)
    put_fingerprints(redis_client, KEYS.dupefilter, many)
    options = Options(allow_pickle=True, watch_s=0)
    project = project_of("forum")
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: run.migrate(redis_client, "forum", project, options, lambda *_: None), range(2)))
    assert sum(report.requests.imported for report in reports) == 1500
    assert sorted(urls(redis_client)) == sorted(one.url for one in many)
    assert redis_client.scard(KEYS.dupefilter) == 1500


def test_an_import_that_is_killed_goes_on_where_it_was(
    migrate: Migrate, redis_server: RedisServer, redis_client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    many = [Request(f"http://a.example/{n}", callback=SPIDER.parse_post) for n in range(4000)]
    put_zset(redis_client, KEYS.requests, many)
    put_fingerprints(redis_client, KEYS.dupefilter, many)
    states = [
        lambda: 0 < redis_client.scard(FILTER_ASIDE) < 4000,
        lambda: 0 < redis_client.zcard(ASIDE) < 4000,
    ]
    for in_the_middle in states:
        # Each round trip takes a while: however busy the machine is, the middle is seen before it is over.
        with Proxy(redis_server.port, round_trip_s=0.1) as slow:
            process = warm_start.Popen(
                [sys.executable, "-m", "cli.main", "migrate", "scrapy-redis", "forum", "--allow-pickle", "--watch", "0"],
                cwd=tmp_path,
                env={**os.environ, "TRAWL_REDIS_URL": redis_url.replace(f":{redis_server.port}/", f":{slow.port}/")},
            )
            try:
                wait_until(in_the_middle, "the import is in the middle", 60, every_s=0.001)
            finally:
                process.kill()
                process.wait()
        assert redis_client.zcard(ASIDE) + redis_client.zcard(KEYS.ready()) == 4000
    assert redis_client.zcard(ASIDE) > 0
    assert migrate("--allow-pickle").code == 0
    assert sorted(urls(redis_client)) == sorted(one.url for one in many)
    assert redis_client.scard(KEYS.dupefilter) == 4000
    assert redis_client.exists(ASIDE, FILTER_ASIDE) == 0


def test_a_key_that_scrapy_redis_cannot_have_written_is_named(migrate: Migrate, redis_client: redis.Redis) -> None:
    redis_client.set(KEYS.requests, "?")
    said = migrate("--allow-pickle")
    assert said.code == 2
    assert KEYS.requests in said.err


def test_without_a_redis_to_look_at_it_says_how_to_name_one(migrate: Migrate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_REDIS_URL")
    said = migrate("--allow-pickle")
    assert said.code == 2
    assert "TRAWL_REDIS_URL" in said.err


def test_under_a_namespace_the_crawl_moves_into_it(
    migrate: Migrate, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job_settings.py").write_text(
        "REDIS_NAMESPACE = 'job1'\nSCHEDULER_QUEUE_CLASS = 'redis_components.queue.FifoQueue'\n"
    )
    put_list(redis_client, KEYS.requests, REQUESTS)
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS)
    redis_client.rpush(KEYS.start_urls, "http://a.example/")
    said = migrate("--allow-pickle", "--settings", "job_settings")
    assert (said.code, said["requests"]["imported"], said["fingerprints"]["imported"]) == (0, 50, 50)
    job = CrawlKeys.for_spider("forum", namespace="job1")
    assert {key.decode() for key in contents(redis_client)} == {
        job.requests,
        job.counters(),
        job.dupefilter,
        job.start_urls,
    }


def test_what_came_after_an_interruption_is_imported_with_what_was_set_aside(
    migrate: Migrate, redis_client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "other_job_settings.py").write_text("REDIS_NAMESPACE = 'job2'\n")
    put_zset(redis_client, ASIDE, REQUESTS[:10])
    put_zset(redis_client, KEYS.requests, REQUESTS[10:])
    put_fingerprints(redis_client, FILTER_ASIDE, REQUESTS[:10])
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS[10:])
    said = migrate("--allow-pickle", "--settings", "other_job_settings")
    assert (said.code, said["late"], said["requests"]["imported"], said["fingerprints"]["imported"]) == (0, 0, 50, 50)


def test_the_redis_of_the_project_is_read_in_bytes_whatever_the_project_wants(
    migrate: Migrate, redis_client: redis.Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRAWL_REDIS_URL")
    (tmp_path / "text_settings.py").write_text(
        f"REDIS_URL = {redis_url!r}\nREDIS_DECODE_RESPONSES = True\nREDIS_PARAMS = {{'decode_responses': True}}\n"
    )
    put_zset(redis_client, KEYS.requests, REQUESTS)
    said = migrate("--allow-pickle", "--settings", "text_settings")
    assert (said.code, said["requests"]["imported"]) == (0, 50)


def test_settings_that_cannot_be_loaded_are_named(migrate: Migrate) -> None:
    said = migrate("--settings", "no_such_settings")
    assert said.code == 2
    assert "no_such_settings" in said.err


def test_a_user_who_may_not_monitor_is_told_to_stop_the_crawlers_himself(
    migrate: Migrate, redis_client: redis.Redis, redis_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_zset(redis_client, KEYS.requests, REQUESTS)
    redis_client.execute_command("ACL", "SETUSER", "operator", "on", ">secret", "~*", "&*", "+@all", "-monitor")
    monkeypatch.setenv("TRAWL_REDIS_URL", f"redis://operator:secret@127.0.0.1:{redis_server.port}")
    said = migrate("--allow-pickle", watch="1")
    redis_client.execute_command("ACL", "DELUSER", "operator")
    assert said.code == 2
    assert "--watch 0" in said.err


@pytest.mark.parametrize("kind", ["Exact", "Rolling", "Bloom"])
def test_fingerprints_go_into_the_dupefilter_that_the_project_names(
    kind: str, migrate: Migrate, redis_client: redis.Redis, tmp_path: Path
) -> None:
    module = f"{kind.lower()}_settings"  # a name of its own, since modules stay loaded
    (tmp_path / f"{module}.py").write_text(
        f"DUPEFILTER_CLASS = 'redis_components.dupefilter.{kind}DupeFilter'\nDUPEFILTER_MAX_ENTRIES = 10_000\n"
    )
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS)
    redis_client.sadd(KEYS.dupefilter, "a text of a project's own")
    assert migrate("--settings", module)["fingerprints"]["imported"] == 51
    before = contents(redis_client)
    assert migrate("--settings", module)["fingerprints"]["imported"] == 0
    assert contents(redis_client) == before
    settings = Settings({"DUPEFILTER_MAX_ENTRIES": 10_000})
    filter = getattr(dupefilter, f"{kind}DupeFilter").filter_from_settings(settings)
    fingerprints = [ScrapyRedisFingerprinter().fingerprint(request) for request in REQUESTS]
    fingerprints += [b"a text of a project's own", b"something new"]
    known = filter_access.seen(redis_client, KEYS.dupefilter, filter, [filter.entry(one) for one in fingerprints])
    assert known == [True] * 51 + [False]


OWN_CLASSES = """
from redis_components.dupefilter import RFPDupeFilter
from redis_components.queue import PriorityQueue

class Queue(PriorityQueue):
    def push(self, request): ...

class Filter(RFPDupeFilter):
    def request_seen(self, request): ...

SCHEDULER_QUEUE_CLASS, DUPEFILTER_CLASS = Queue, Filter
"""


def test_what_classes_of_the_project_have_stored_is_left_to_them(
    migrate: Migrate, redis_client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "own_settings.py").write_text(OWN_CLASSES)
    put_zset(redis_client, KEYS.requests, REQUESTS)
    put_fingerprints(redis_client, KEYS.dupefilter, REQUESTS)
    before = contents(redis_client)
    said = migrate("--settings", "own_settings")
    assert (said.code, said["requests"]["found"], said["fingerprints"]["found"]) == (0, 0, 0)
    assert contents(redis_client) == before
