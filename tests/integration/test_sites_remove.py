"""`trawl sites remove`: nothing in Redis, the database or the folders names the site afterwards, and nothing comes back."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from scrapy import Request, Spider

from forums.records.stored import NEWEST_FIELDS, PostTask
from forums.records.tasks_and_items import encode
from forums.scheduling.seeding import OutcomeKind, seed
from forums.state.alerts import Alert, Alerts
from forums.state.database_state import PublicationDelays, ThreadRecord, keep, removed_sites
from forums.state.keys import ForumCrawlKeys, ForumFleetKeys, ForumState, ForumStates, Ledger, Purpose, Spending
from forums.storage import Database
from forums.tasks import prune_raw_pages
from forums.writer.store import store
from redis_components.admin.inspector import snapshot
from redis_components.codec.requests import RequestCodec
from redis_components.frontier import holds
from redis_components.keys import CrawlKeys
from redis_components.politeness.limits import LaneLimits, change
from redis_components.start_tasks.seeding import NamedTask, push_named
from tests.support.items import check, comment, post, scan, wire
from tests.support.trawl_command import SITE, Trawl, commands, one_line
from workers.state.holds import Breaker, BreakerState, FleetHolds

LIST, DETAIL = CrawlKeys.for_spider("forum_list"), CrawlKeys.for_spider("forum_detail")
FLEET = ForumFleetKeys()
SITES = ("example", "other")


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    run = commands(redis_url, tmp_path, monkeypatch, capfd)
    (tmp_path / "sites/other.toml").write_text(SITE.replace(":1", ":2"))
    return run


def member(number: int, site: str) -> bytes:
    request = Request(f"http://127.0.0.1/{site}/{number}", meta={"site": site}, dont_filter=True)
    return struct.pack(">QB", number, 0) + RequestCodec(Spider("any")).encode(request)


def items(site: str) -> list[bytes]:
    of: dict[str, Any] = {"site": site}
    return [wire(one) for one in (scan("news", **of), post(**of), comment(**of), check(id="p1", post_id="p1", token="t", **of))]


def fill(client: redis.Redis, site: str, data: Path) -> None:
    """Bring each kind of thing that the fleet keeps of a site to its place."""
    client.rpush(DETAIL.item_stream(), *items(site))
    store(client, ("forum_list", "forum_detail"))
    seed(client, ["news", "help"], site)
    tasks = [NamedTask(f"{site}/{n}", encode(PostTask(site=site, post=str(n)))) for n in range(3)]
    push_named(client, DETAIL, tasks, NEWEST_FIELDS)
    client.zadd(DETAIL.ready(), {member(1, site): 0})
    client.zadd(DETAIL.lane(site), {member(2, site): 0})
    client.zadd(DETAIL.lanes(), {site: 0})
    client.zadd(DETAIL.later_requests(), {b"0@" + site.encode() + b"|" + member(3, site): 9e12})
    for lot, value in ((f"requests:{site}", b"r0|" + member(4, site)), (f"tasks:{site}", b"l|1|k" + encode(PostTask(site, "9")))):
        client.rpush(DETAIL.parked_lot(lot), value)
        client.hset(DETAIL.parked(), lot, 1)
    client.hincrby(DETAIL.counters(), "parked", 1)
    client.hincrby(DETAIL.counters(), "parked_tasks", 1)
    client.rpush(DETAIL.backlog(), encode(PostTask(site=site, post="5")))
    client.rpush(DETAIL.later_tasks(), encode(PostTask(site=site, post="6")))
    client.hset(DETAIL.overflow(), f"{site}/7", msgspec.msgpack.encode([0, 1, encode(PostTask(site=site, post="7"))]))
    client.zadd(DETAIL.fed_turns, {f"{site}\0".encode() + bytes(8) + encode(PostTask(site=site, post="8")): 0})
    head = json.dumps({"at_ms": 1000, "kind": "r", "reason": "HTTP 503", "score": "0"}).encode()
    client.rpush(DETAIL.dead(), head + b"\n" + member(8, site)[9:])
    client.rpush(DETAIL.bad_items(), json.dumps({"at": 1.0, "reason": "x"}).encode() + b"\n" + items(site)[1])
    keep(client, DETAIL, {f"{site}/1": ThreadRecord(token="t", comments=1, hour=1)})
    ForumStates(client).write({f"{site}/news": ForumState(scanned_at=1.0)})
    client.hset(ForumCrawlKeys(LIST).marks(), f"{site}/news", b"{}")
    PublicationDelays(client).add({site: [1.0]})
    client.hset(FLEET.wrong_sites(), site, b"wrong")
    Ledger(client).add([Spending(site=site, name="x", purpose=Purpose.SCAN, ended_at=2e9, requests=1)])
    client.hset(
        FLEET.breakers(), site, msgspec.json.encode(Breaker(state=BreakerState.OPEN, cause="wall", reason="x", since=1.0))
    )
    FleetHolds(client).change({f"breaker:{site}": holds.Hold(word=holds.HoldKind.PAUSE, by="breaker")})
    change(client, LIST.all_limits(), site, LaneLimits(rate=1.0))
    Alerts(client).put(1, Alert(match="x", to="stdout", site=site))
    day = data / "raw" / site / "2026-01-01"
    day.mkdir(parents=True)
    (day / "a.warc.gz").write_bytes(b"page")


def keys_that_name(client: redis.Redis, site: str) -> set[str]:
    """The keys whose name or content has the site as a word."""
    word, found = site.encode(), set[str]()
    for key in client.scan_iter("*"):
        dump = {b"hash": client.hgetall, b"list": lambda k: client.lrange(k, 0, -1), b"set": client.smembers}
        read = dump.get(client.type(key), lambda k: client.zrange(k, 0, -1) if client.type(k) == b"zset" else client.get(k))
        kind = client.type(key)
        content = client.xrange(key) if kind == b"stream" else read(key)
        if word in key or word in repr(content).encode():
            found.add(key.decode())
    return found


@pytest.fixture
def filled(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> Trawl:
    for site in SITES:
        fill(redis_client, site, tmp_path / "data")
    return trawl


def test_without_a_terminal_it_shows_what_there_is_and_changes_nothing(filled: Trawl, tmp_path: Path) -> None:
    what = f"for good: {tmp_path}/sites/example.toml, 1 post, 1 comment, "
    one_line(filled("sites", "remove", "example"), 2, what, "requests and start tasks in Redis, 1 alert, ", "add --yes")
    assert (tmp_path / "sites/example.toml").exists()
    one_line(filled("sites", "remove", "exmple"), 2, "unknown site 'exmple'", "example")
    one_line(filled("sites", "remove", "../x"), 2, "is not the name of a site")


def test_nothing_names_the_site_afterwards(filled: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    others = keys_that_name(redis_client, "other")
    mine = keys_that_name(redis_client, "example")
    assert {key.replace("other", "example") for key in others} == mine, "each kind of key has both sites"
    said = filled("sites", "remove", "example", "--yes")
    assert said.code == 0, said
    assert sorted(path.name for path in (tmp_path / "sites").iterdir()) == ["other.toml"]
    left = keys_that_name(redis_client, "example")
    # the hold with its copies for crawlers, and what the fleet keeps of acts
    acts = {FLEET.holds(), LIST.holds(), DETAIL.holds(), FLEET.audit(), FLEET.notes(), FLEET.errors()}
    assert left - acts - {DETAIL.lanes()} == set(), "an empty lane goes when a crawler looks"
    assert keys_that_name(redis_client, "other") >= others
    assert not (tmp_path / "data/raw/example").exists()
    assert (tmp_path / "data/raw/other").exists()
    shot = snapshot(redis_client, "forum_detail")
    assert (shot.parked, shot.parked_tasks) == (1, 1), "those of the other site"
    with Database.from_url() as database:
        assert "example" not in json.dumps(filled("sql", "select site from posts", "--json").out)
        assert database.engine.name == "sqlite"
    assert "site example" not in filled("status").out


def test_what_was_under_way_is_dropped_until_a_new_file_comes(filled: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    file = tmp_path / "sites/example.toml"
    text = file.read_text()
    assert filled("sites", "remove", "example", "--yes").code == 0
    redis_client.rpush(DETAIL.item_stream(), *items("example"), *items("other"))
    (report,) = [one for name, one in store(redis_client, ("forum_detail",)).items() if name == "forum_detail"]
    assert report.refused == 0
    assert "1" in filled("sql", "select count(*) from posts where site = 'other'").out
    assert "0" in filled("sql", "select count(*) from posts where site = 'example'").out
    assert not redis_client.hexists(DETAIL.threads(), "example/p1")
    (day := tmp_path / "data/raw/example/2026-01-02").mkdir(parents=True)
    (day / "b.warc.gz").write_bytes(b"late")
    assert str(day) in prune_raw_pages()

    file.write_text(text)
    os.utime(file, (1.0, 1.0))  # as a copy that keeps the time of the old file, on another machine
    outcomes = seed(redis_client, site="example", force=True)
    assert {one.kind for one in outcomes.values()} == {OutcomeKind.HELD}
    assert "removed by" in next(iter(outcomes.values())).sentence
    assert "site example" in filled("status").out, "an operator has to decide"
    late = removed_sites(redis_client)["example"] + 60
    redis_client.hset(DETAIL.start_tokens(), "example/1", "t")
    redis_client.rpush(DETAIL.parked_lot("tasks:example"), b"l|1|k" + encode(PostTask(site="example", post="9")))
    os.utime(file, (late, late))
    assert {one.kind for one in seed(redis_client, site="example", force=True).values()} == {OutcomeKind.SEEDED}
    assert not redis_client.hexists(DETAIL.start_tokens(), "example/1"), "its thread is read again"
    assert not redis_client.exists(DETAIL.parked_lot("tasks:example"))
    assert holds.read(redis_client, DETAIL) == {
        name: one for name, one in holds.read(redis_client, DETAIL).items() if "other" in name
    }
    redis_client.rpush(DETAIL.item_stream(), *items("example"))
    store(redis_client, ("forum_detail",))
    assert filled("sql", "select site from posts", "--json").out.count("example") == 1


def test_what_a_wrong_file_stored_is_taken_out_and_read_again(filled: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    one_line(filled("sites", "forget-rows", "example"), 2, "example will be removed for good: 1 post, 1 comment", "add --yes")
    FleetHolds(redis_client).change({"site:example": holds.Hold(word=holds.HoldKind.PAUSE, by="me")})
    redis_client.rpush(DETAIL.item_stream(), *items("example"))  # was read by the wrong file and is not stored yet
    assert filled("sites", "forget-rows", "example", "--yes").code == 0
    assert filled("sql", "select site from posts", "--json").out.count("example") == 0
    assert not redis_client.hexists(DETAIL.threads(), "example/p1"), "each thread is read again"
    assert not redis_client.hexists(ForumCrawlKeys(LIST).marks(), "example/news")
    assert (tmp_path / "sites/example.toml").exists()
    assert (tmp_path / "data/raw/example").exists(), "kept pages can be read again by the corrected file"
    assert "example" in {alert.site for alert in Alerts(redis_client).all().values()}
    assert FleetHolds(redis_client).fields()["site:example"].by == "me"
    assert redis_client.hexists(DETAIL.threads(), "other/1")
    redis_client.rpush(DETAIL.item_stream(), *items("example"))
    assert store(redis_client, ("forum_detail",))["forum_detail"].items == 4, "those of before were dropped"
    assert filled("sql", "select site from posts", "--json").out.count("example") == 1, "it is let in again"
