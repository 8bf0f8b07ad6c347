"""URLs for any service, by the command and by the task, into the key that its crawlers read."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from redis_components.start_tasks.seeding import CHUNK, Pushed, push_urls
from tasks.jobs import seed_urls as seed_urls_task
from tests.support.plain_project import plain_fleet
from tests.support.processes import wait_until
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.keys import FleetKeys
from workers.state.services import Services

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
    assert json.loads(said.out) == {"queued": CHUNK + 7, "known": 0, "refused": {}, "no_room": 0}
    assert redis_client.lrange("books:start_urls", 0, 0) == [f"http://a.example/{2 * CHUNK}".encode()]


def test_a_service_that_is_not_there_and_a_file_that_is_not(trawl: Trawl, redis_client: redis.Redis) -> None:
    one_line(trawl("seed-urls", "boks", "/dev/null"), 2, "did you mean 'books'?")
    one_line(trawl("seed-urls", "books", "no-such-file"), 2, "no-such-file: No such file or directory")
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


FIRST = [f"http://a.example/{n}" for n in range(5)]


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_seeders_at_the_same_time_do_not_exceed_the_bound_in_any_kind_of_start_key(kind: str, redis_client: redis.Redis) -> None:
    keys = replace(KEYS, more_start_urls=("books:urgent",))
    redis_client.rpush("books:urgent", "http://a.example/urgent")
    {
        "list": lambda: redis_client.rpush(KEYS.start_urls, *FIRST),
        "set": lambda: redis_client.sadd(KEYS.start_urls, *FIRST),
        "zset": lambda: redis_client.zadd(KEYS.start_urls, dict.fromkeys(FIRST, 5)),
    }[kind]()

    def seeder(name: int) -> Pushed:
        tasks = [{"url": f"http://{name}.example/{n}", "meta": {"page": n}} for n in range(2 * CHUNK)]
        return [*push_urls(redis_client, keys, tasks, max_waiting=CHUNK + 100)][-1]

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(seeder, range(4)))
    assert sum(one.queued for one in done) == CHUNK + 100 - 6, "the other start key counts, too"
    assert {one.queued + one.no_room for one in done} == {2 * CHUNK}
    assert redis_client.hgetall(KEYS.stats_hash()) == {
        b"start_tasks/queued": str(CHUNK + 94).encode(),
        b"start_tasks/refused": str(8 * CHUNK - CHUNK - 94).encode(),
    }
    if kind != "list":  # what waits already takes no new room
        assert [*push_urls(redis_client, keys, FIRST, max_waiting=CHUNK + 100)][-1].no_room == 0


def test_the_rest_is_refused_by_position_and_wrong_ones_with_their_own_reasons(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.stats_hash(), "start_tasks/refused", "a text")
    done = [*push_urls(redis_client, KEYS, [FIRST[0], "/x", *FIRST[1:], "/y"], max_waiting=2)][-1]
    assert (done.queued, done.no_room) == (2, 3)
    assert {place: reason[:13] for place, reason in done.reasons().items()} == {
        "2": "it is neither",
        "7": "it is neither",
        "4-7": "no room for 3",
    }


def test_a_task_queues_what_fits_and_returns_the_rest_as_refused_with_one_line(
    trawl: Trawl, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    assert trawl("services", "add", "books", "--max-waiting", "3").code == 0
    outcome = seed_urls_task("books", FIRST)
    reason = "no room for 2: 3 start tasks wait, max_waiting = 3"
    assert outcome == {"queued": 3, "known": 0, "waiting": 3, "refused": {"4-5": reason}}
    assert seed_urls_task("books", FIRST)["queued"] == 0
    assert caplog.records[0].getMessage() == f"seed_urls: books: {reason}"
    assert len(caplog.records) == 2
    assert trawl("services", "add", "books", "--max-waiting", "0").code == 0
    assert seed_urls_task("books", FIRST)["waiting"] == 8, "0 is no bound"


def test_a_declaration_from_before_has_no_bound_and_a_new_one_has_it(redis_client: redis.Redis, trawl: Trawl) -> None:
    redis_client.hset(FleetKeys().services(), "old", '{"size": 1}')
    assert Services(redis_client).all()["old"].max_waiting == 0
    assert trawl("services", "add", "late").code == 0
    shown = json.loads(trawl("services", "show", "late", "--json").out)
    assert (shown["max_waiting"], shown["origins"]["max_waiting"]) == (100_000, "default")
    assert json.loads(trawl("services", "show", "books", "--json").out)["max_waiting"] == 100_000, "of TRAWL_FLEET"


def test_the_command_refuses_what_has_no_room_and_names_how_many(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    file.write_text("\n".join(["# five", *FIRST, ""]))
    assert trawl("services", "add", "books", "--max-waiting", "3").code == 0
    said = trawl("seed-urls", "books", str(file), "--no-wait")
    assert (said.code, said.out) == (1, "3 URLs queued for books\n")
    assert said.err == ("trawl: books: no room for 2: 3 start tasks wait, max_waiting = 3; line 5 is the first of them\n")
    assert redis_client.lrange(KEYS.start_urls, 0, -1) == [one.encode() for one in FIRST[:3]]


def test_the_command_waits_for_room_and_an_interruption_names_the_line(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "urls.txt"
    file.write_text("\n".join(["# five", *FIRST]))
    assert trawl("services", "add", "books", "--max-waiting", "2").code == 0
    taken: list[bytes] = []

    def crawler(_seconds: float) -> None:
        taken.extend(redis_client.lpop(KEYS.start_urls, 2) or ())

    monkeypatch.setattr("cli.commands.seed_urls.time.sleep", crawler)
    said = trawl("seed-urls", "books", str(file))
    assert (said.code, said.out) == (0, "5 URLs queued for books\n")
    assert len(said.err.splitlines()) == 1, "it reports once that it waits"
    assert "max_waiting = 2" in said.err
    assert [*taken, *redis_client.lrange(KEYS.start_urls, 0, -1)] == [one.encode() for one in FIRST]

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    redis_client.delete(KEYS.start_urls)
    monkeypatch.setattr("cli.commands.seed_urls.time.sleep", interrupt)
    assert "2 URLs of the lines up to 3 are queued; to go on: --skip 3" in trawl("seed-urls", "books", str(file)).err


@pytest.mark.usefixtures("no_process_left")
def test_an_entry_of_beat_stops_at_the_bound_without_a_crawler_and_goes_on_with_one(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=0", settings="", pages=30) as fleet:
        client = fleet.redis.client()
        fleet.trawl("services", "add", "books", "--size", "0", "--max-waiting", "5")
        given = json.dumps({"service": "books", "urls": [f"{fleet.site}/{page}" for page in (1, 2, 3)]})
        fleet.trawl("schedule", "set", "grow", "--task", "trawl.seed_urls", "--every", "2s", "--kwargs", given)
        fleet.beat()
        fleet.node()

        def figure(name: str) -> int:
            return int(float(client.hget(KEYS.stats_hash(), f"start_tasks/{name}") or 0))

        wait_until(lambda: figure("refused") >= 4, fleet.said)  # one of the second round, and all of the third
        assert (client.llen(KEYS.start_urls), figure("queued")) == (5, 5)
        assert "has no room for start tasks: 5 wait, max_waiting = 5" in fleet.trawl("status")
        assert 'trawl_start_tasks_refused_total{service="books",spider="books"}' in fleet.metrics()
        fleet.trawl("scale", "books=1")
        wait_until(lambda: figure("taken") >= 8, fleet.said)
