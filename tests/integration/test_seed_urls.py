"""URLs for any service, by the command and by the task, into the key that its crawlers read."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from redis_components.admin.crawl_records import CrawlRecord, CrawlRecords
from redis_components.keys import CrawlKeys
from redis_components.start_tasks.seeding import CHUNK, push_urls
from tests.support.plain_project import plain_fleet
from tests.support.processes import wait_until
from tests.support.trawl_command import Trawl, commands, one_line

KEYS = CrawlKeys.for_spider("books")
WITH_META = '{"url": "http://a.example/3", "meta": {"x": 1}}'


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Trawl]:
    run = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1,notes=1")
    return run


def test_lines_are_queued_in_order_and_wrong_ones_are_named(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    lines = ["\ufeffhttp://a.example/1", "", "# old ones", "http://a.example/2  ", WITH_META, "/4", '{"ulr": 1}', ""]
    file.write_text("\n".join(lines))
    said = trawl("seed-urls", "books", str(file))
    assert said.code == 1
    assert said.out == "3 URLs queued for books\n"
    assert [line.split(": ")[1] for line in said.err.splitlines()] == [f"{file}, line 6", f"{file}, line 7"]
    assert redis_client.lrange("books:start_urls", 0, -1) == [
        b"http://a.example/1",
        b"http://a.example/2",
        WITH_META.encode(),
    ]


def test_many_lines_go_on_where_they_were_interrupted(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    file.write_text("".join(f"http://a.example/{n}\n" for n in range(3 * CHUNK + 7)))
    said = trawl("seed-urls", "books", str(file), "--skip", str(2 * CHUNK), "--json")
    assert json.loads(said.out) == {"queued": CHUNK + 7, "refused": {}}
    assert redis_client.lrange("books:start_urls", 0, 0) == [f"http://a.example/{2 * CHUNK}".encode()]


def test_a_service_that_is_not_there_a_file_that_is_not_and_another_redis(trawl: Trawl, redis_client: redis.Redis) -> None:
    one_line(trawl("seed-urls", "boks", "/dev/null"), 2, "did you mean 'books'?")
    one_line(trawl("seed-urls", "books", "no-such-file"), 2, "no-such-file: cannot be read")
    CrawlRecords(redis_client).write(CrawlRecord(spider="books", keys=KEYS, redis="redis://elsewhere:6379/0"))
    one_line(trawl("seed-urls", "books", "/dev/null"), 2, "redis://elsewhere:6379/0")
    assert not redis_client.exists(KEYS.start_urls)


CLOSED = ["file:///proc/self/environ", "data:,text", "ftp://a.example/1", '{"url": "s3://bucket/1"}', "about:blank"]


def test_a_scheme_that_its_crawlers_do_not_fetch_is_refused_by_its_url(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path
) -> None:
    file = tmp_path / "urls.txt"
    file.write_text("\n".join(["http://a.example/1", *CLOSED]))
    said = trawl("seed-urls", "books", str(file))
    assert (said.code, said.out) == (1, "1 URL queued for books\n")
    refused = "'file:///proc/self/environ': its crawlers fetch http, https, not file; DOWNLOAD_HANDLERS opens it"
    assert said.err.splitlines()[0] == f"trawl: {file}, line 2: {refused}"
    assert len(said.err.splitlines()) == len(CLOSED)
    one_line(trawl("job", "start", "books", "--urls", str(file)), 2, "file:///proc/self/environ", "not file")
    CrawlRecords(redis_client).write(CrawlRecord(spider="books", keys=KEYS, schemes=("file",)))
    file.write_text("file:///srv/pages/1.html\n")
    assert trawl("seed-urls", "books", str(file)).code == 0, "its crawlers have recorded that they fetch files"
    named = 'DOWNLOAD_HANDLERS={"file": "shop.files.Handler"}'
    assert trawl("services", "add", "late", "-s", named).code == 0
    assert trawl("seed-urls", "late", str(file)).code == 0, "its declaration names the handler"


def test_what_is_being_drained_gets_no_urls(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    file.write_text("http://a.example/1\n")
    assert trawl("drain", "books").code == 0
    one_line(trawl("seed-urls", "books", str(file)), 1, "books", "trawl resume")
    assert not redis_client.exists(KEYS.start_urls)


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_the_start_key_stays_what_it_is(kind: str, redis_client: redis.Redis) -> None:
    first = "http://a.example/0"
    {
        "list": lambda: redis_client.rpush(KEYS.start_urls, first),
        "set": lambda: redis_client.sadd(KEYS.start_urls, first),
        "zset": lambda: redis_client.zadd(KEYS.start_urls, {first: 5}),
    }[kind]()
    *_, done = push_urls(redis_client, KEYS, ["http://a.example/1", {"url": "http://a.example/2", "priority": 9}])
    assert (done.queued, done.waiting, redis_client.type(KEYS.start_urls)) == (2, 3, kind.encode())
    if kind == "zset":
        assert [score for _, score in redis_client.zrange(KEYS.start_urls, 0, -1, withscores=True)] == [0.0, 5.0, 9.0]


@pytest.mark.usefixtures("no_process_left")
def test_the_task_feeds_a_spider_with_its_own_key_and_unique_ones_are_fetched_once(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "notes=1", settings="", pages=30) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("notes/0")
        wait_until(lambda: "notes" in CrawlRecords(fleet.redis.client()).all(), fleet.said)
        page = f"{fleet.site}/1"
        urls = [page, {"url": page, "meta": {"a": 1}}, "/x", page]
        outcome = ast.literal_eval(fleet.ask(f"seed_urls.delay('notes', {urls!r}, unique=True).get(timeout=60)"))
        assert (outcome["queued"], list(outcome["refused"])) == (3, ["3"])
        fleet.wait_count("notes.results", 30)
        wait_until(lambda: not fleet.redis.client().exists("notes.taskqueue"), fleet.said)
        fetched = [json.loads(item)["url"] for item in fleet.redis.client().lrange("notes.results", 0, -1)]
        assert len(set(fetched)) == len(fetched) == 30


def test_a_service_that_has_not_begun_is_seeded_by_its_declared_start_key(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path
) -> None:
    assert trawl("services", "add", "late", "--start-key", "feed:%(name)s").code == 0
    file = tmp_path / "urls.txt"
    file.write_text("http://a.example/1\n")
    assert trawl("seed-urls", "late", str(file)).code == 0
    said = trawl("seed-urls", "late", str(file), "--unique").out
    assert said == "1 URL queued for late; its crawlers leave out URLs in their dupefilter\n"
    plain, unique = redis_client.lrange("feed:late", 0, -1)
    assert (plain, json.loads(unique)) == (b"http://a.example/1", {"url": "http://a.example/1", "dont_filter": False})


def test_lines_in_a_format_of_the_spider_are_queued_as_they_are(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_bytes(b"10017\r\n\n# a line \nSTOP\n\xff\n")
    assert trawl("seed-urls", "books", str(file), "--raw").out == "4 URLs queued for books\n"
    assert redis_client.lrange("books:start_urls", 0, -1) == [b"10017", b"# a line ", b"STOP", b"\xff"]
    one_line(trawl("seed-urls", "books", str(file), "--raw", "--unique"), 2, "--raw", "--unique")
