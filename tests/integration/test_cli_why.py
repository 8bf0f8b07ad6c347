"""`trawl why URL`: every state that a page can be in, without a crawler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy import Request, Spider

from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from forums.state.database_state import ThreadRecord, keep
from forums.state.keys import ForumState, ForumStates
from forums.storage import Database, parse
from redis_components.codec.requests import RequestCodec
from redis_components.keys import CrawlKeys
from tests.support.items import at, check, comment, post, scan, wire
from tests.support.trawl_command import Trawl, commands, one_line

BASE = "http://127.0.0.1:1"
DETAILS = CrawlKeys.for_spider("forum_detail")
SITE = f"""
base_url = "{BASE}"
forums = ["news"]
[pages.list]
url = "/list/{{forum}}/{{page}}"
rows = "li"
fields.id = "a::attr(href)"
[pages.thread]
url = "/post/{{thread}}"
fields.title = "h1"
fields.body = "p"
[pages.comments]
url = "/comment/{{thread}}/{{page}}"
rows = "li"
fields.id = "a::attr(id)"
fields.body = "p"
"""


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Run a command in this process, with a Redis, a data folder and one site of its own."""
    run = commands(redis_url, tmp_path, monkeypatch, capfd)
    (tmp_path / "sites" / "example.toml").write_text(SITE)
    return run


def member(url: str, **meta: Any) -> bytes:
    return b"\0" * 8 + b"\2" + RequestCodec(Spider("any")).encode(Request(url, meta=meta, dont_filter=True))


def states(trawl: Trawl, url: str) -> list[str]:
    said = json.loads(trawl("why", url, "--json").out)
    return [one["state"] for one in said["findings"]]


def test_a_page_that_nothing_holds_names_the_scan_that_should_show_it(trawl: Trawl, redis_client: redis.Redis) -> None:
    ForumStates(redis_client).write({"example/news": ForumState(scanned_at=1.0, gap_at=2.0, reason="limit")})
    ForumStates(redis_client).store_dues({"example/news": 1e10}, 1.0, whole=True)
    said = trawl("why", f"{BASE}/post/7")
    assert said.code == 1
    assert "thread 7" in said.out.splitlines()[0]
    assert "never seen: nothing in Redis or in the database holds thread 7" in said.out
    assert "board example/news" in said.out
    assert "list: it is a page of a board's list" in trawl("why", f"{BASE}/list/news/2").out


def test_where_its_request_is(trawl: Trawl, redis_client: redis.Redis) -> None:
    url, page = f"{BASE}/post/7", {"kind": "comments", "thread": "7"}
    redis_client.zadd(DETAILS.ready(), {member(f"{BASE}/post/1"): -1, member(url, site="example"): 0})
    redis_client.zadd(DETAILS.owners(), {"node-1": 10**15})
    lease = b"r0|" + member(f"{BASE}/comment/7/2", site="example", page=page)
    redis_client.hset(DETAILS.leases("node-1"), "1767225600000.1", lease)
    redis_client.hset(DETAILS.parked(), "requests:example", 1)
    redis_client.rpush(DETAILS.parked_lot("requests:example"), b"r0@example@|" + member(url, site="example"))
    key = DETAILS.start_urls
    redis_client.rpush(key, encode(PostTask(site="example", post="70")), encode(PostTask(site="example", post="7")))
    redis_client.hset(
        DETAILS.leases("node-1"), "1.2", f"l|{len(key)}|{key}".encode() + encode(PostTask(site="example", post="7"))
    )
    head = json.dumps({"at_ms": 1000, "kind": "r", "reason": "HTTP 503 \x1b[31m", "score": "0"})
    redis_client.rpush(DETAILS.dead(), head.encode() + b"\n" + member(url, site="example")[9:])
    assert states(trawl, url)[:6] == ["leased", "leased", "ready", "parked", "waiting", "dead"]
    said = trawl("why", url)
    assert said.code == 0
    assert "is ready; 2 crawlers died with it" in said.out
    assert "leased by node-1 since 2026-01-01 00:00:00Z (" in said.out
    assert "HTTP 503 \\x1b[31m (trawl dead replay)" in said.out
    assert "never seen" not in said.out
    assert "ready" not in states(trawl, f"{BASE}/post/77"), "another thread"


def test_what_was_stored_of_it(trawl: Trawl, redis_client: redis.Redis) -> None:
    named: dict[str, Any] = {"site": "example"}
    with Database.from_url() as database:
        shown = scan("news", started_at=at(0), finished_at=at(0.5), pages=2, **named)
        first = [shown, post(id="7", forum_id="news", url=f"{BASE}/post/7", body="as it was", fetched_at=at(1), **named)]
        later = [post(id="7", forum_id="news", url=f"{BASE}/post/7", body="edited", fetched_at=at(2), **named)]
        reply = comment(id="c1", post_id="7", url=f"{BASE}/comment/7/1", fetched_at=at(2), **named)
        report = check(id="7", post_id="7", started_at=at(3), finished_at=at(4), **named)
        missing = report | {"id": "8", "post_id": "8", "reason": "HTTP 404", "gone": True, "whole": False}
        for items in (first, [*later, reply], [report, missing]):
            assert database.write([parse(wire(item)) for item in items]) == []
    keep(redis_client, DETAILS, {"example/7": ThreadRecord(token="t", comments=1, hour=1)})
    said = trawl("why", f"{BASE}/post/7")
    assert said.code == 0
    assert "done: thread example/7 was read last" in said.out
    assert f"last reading (check) ended {at(4).replace('T', ' ')}: HTTP 200, whole; page 1 in 2 requests" in said.out
    assert ": HTTP 404, so it is gone; " in trawl("why", f"{BASE}/post/8").out
    assert "stored: post 7, version 2" in said.out
    assert "stored: comment c1" in trawl("why", f"{BASE}/comment/7/1").out


def test_what_no_site_file_names_is_refused(trawl: Trawl) -> None:
    said = trawl("why", "https://else.example/a")
    assert said.code == 1
    assert "no site: no site file has https://else.example" in said.out


@pytest.mark.parametrize("url", ["post/7", "ftp://x.example/", "http://", "http://[::1"])
def test_what_is_not_an_address_is_refused(trawl: Trawl, url: str) -> None:
    one_line(trawl("why", url), 2, "is not the address of a web page")


def test_foreign_keys_and_entries_are_passed_over(trawl: Trawl, redis_client: redis.Redis) -> None:
    url = f"{BASE}/post/7"
    for key in (DETAILS.ready(), DETAILS.dead(), DETAILS.start_urls):
        redis_client.set(key, url)
    redis_client.zadd(DETAILS.owners(), {b"\xff\xfe": 1, "a": 2})
    redis_client.hset(DETAILS.leases("a"), mapping={"1": f"r0|{url}", "2": f"l|99999|{url}", "3": url})
    assert trawl("why", url).code == 1
