"""Whoever can write to Redis stores requests that are none: each is set aside with a reason, and harms no process."""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
import redis
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.http import JsonRequest
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider

from demo.forum.process import ForumProcess
from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from forums.spiders.forum_detail import ForumDetailSpider
from redis_components.admin.dead_letters import newest
from redis_components.admin.inspector import snapshot
from redis_components.codec import values
from redis_components.codec.requests import RequestCodec, SerializerCodec
from redis_components.errors import Undecodable, Unserializable
from redis_components.keys import CrawlKeys
from redis_components.spiders import RedisCrawlSpider, RedisSpider
from tests.support import warm_start
from tests.support.cpu_time import least_cpu_s
from tests.support.examples import examples
from tests.support.scrapy_command import crawl_command

ROOT = Path(__file__).parents[2]
Ext = msgspec.msgpack.Ext
URL = "http://a.example/"


class Books(Spider):
    name = "books"
    limit = 5
    rates = (1, 2)

    def parse(self, response: Any, **kwargs: Any) -> None: ...

    def _parse_item(self, response: Any) -> None: ...

    def _set_crawler(self, crawler: Any) -> None:
        """Overridden, and none the less not for responses."""
        super()._set_crawler(crawler)


class Mixin:
    def parse_page(self, response: Any) -> None: ...


class Mixed(Mixin, RedisSpider):
    name = "mixed"


class Followed(RedisCrawlSpider):
    name = "followed"
    rules = (Rule(callback="parse_item"),)

    def parse_item(self, response: Any) -> None: ...


class Mapped(SitemapSpider):
    name = "mapped"


class Fed(CSVFeedSpider):
    name = "fed"


SPIDER = Books()
CODEC = RequestCodec(SPIDER)


def pack(value: Any) -> bytes:
    return b"\x01" + msgspec.msgpack.encode(value)


def ext(code: int, value: Any) -> Any:
    return Ext(code, msgspec.msgpack.encode(value))


def nested(depth: int, code: int = 0) -> msgspec.Raw:
    """Lists within lists, or values of a tag that holds lists; msgspec writes neither so deep."""
    if not code:
        return msgspec.Raw(b"\x91" * depth + b"\x90")
    data = b"\x90"
    for _ in range(depth):
        data = b"\xc9" + (len(data) + 1).to_bytes(4) + bytes([code]) + b"\x91" + data
    return msgspec.Raw(data)


def colliding(number: int) -> list[Any]:
    """Different values of one hash, as many as you like."""
    return [ext(8, (5 + n * (2**61 - 1)).to_bytes(16)) for n in range(number)]


# callbacks

NOT_FOR_REQUESTS = [
    *(
        "__init__",
        "__class__",
        "__dict__",
        "__setattr__",
        "__getattribute__",
        "__reduce__",
        "__init_subclass__",
        "__class_getitem__",
    ),
    *("_set_crawler", "from_crawler", "update_settings", "handles_request", "close", "start", "log", "logger", "crawler"),
    *("name", "limit", "rates", "custom_settings", "no such", "", "parse.__func__", "parse\n"),
]


@pytest.mark.parametrize("cls", ["", "scrapy.http.request.json_request.JsonRequest"])
def test_a_stored_request_names_no_attribute_that_runs_the_crawl(cls: str) -> None:
    for name, role in product(NOT_FOR_REQUESTS, ("c", "e")):
        stored = {"u": URL, role: name, "w": {"parse": "x"}, **({"_": cls} if cls else {})}
        with pytest.raises(Undecodable, match="back: spider 'books' has no method"):
            CODEC.decode(pack(stored))


@pytest.mark.parametrize("name", NOT_FOR_REQUESTS[:-3])
def test_neither_does_one_that_a_serializer_of_the_users_reads(name: str) -> None:
    class AsJson:
        dumps = staticmethod(json.dumps)
        loads = staticmethod(json.loads)

    for reader in (SerializerCodec(SPIDER, AsJson, CODEC), SerializerCodec(SPIDER, AsJson)):
        for role in ("callback", "errback"):
            with pytest.raises(Undecodable):
                reader.decode(json.dumps({"url": URL, role: name}).encode())
        assert reader.decode(json.dumps({"url": URL, "callback": "_parse_item"}).encode()).callback == SPIDER._parse_item


@pytest.mark.parametrize(
    ("spider", "names"),
    [
        (SPIDER, ["parse", "_parse", "_parse_item"]),
        (Mixed(), ["parse", "parse_page", "set_aside"]),
        (Followed(), ["parse", "parse_item", "_callback", "_errback", "parse_start_url", "parse_with_rules", "_parse_response"]),
        (Mapped(), ["parse", "_parse_sitemap"]),
        (Fed(), ["parse", "_parse", "parse_rows"]),
        (ForumDetailSpider(), ["parse_thread", "set_aside"]),
        (CrawlSpider("crawls"), ["_callback", "_errback"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_method_for_responses_is_stored_and_comes_back(spider: Spider, names: list[str]) -> None:
    reader = RequestCodec(spider)
    for name in names:
        method = getattr(spider, name)
        back = reader.decode(reader.encode(Request(URL, callback=method, errback=method)))
        assert (back.callback, back.errback) == (method, method)


def test_a_method_that_a_spider_was_given_is_stored_and_comes_back() -> None:
    class Helper:
        def parse_more(self, response: Any) -> None: ...

    spider = Books()
    spider.parse_more = Helper().parse_more  # type: ignore[attr-defined]
    reader = RequestCodec(spider)
    assert reader.decode(reader.encode(Request(URL, callback=spider.parse_more))).callback == spider.parse_more  # type: ignore[attr-defined]


def test_what_could_not_be_read_again_is_not_stored() -> None:
    with pytest.raises(Unserializable, match=r"^callback: 'log' runs the crawl"):
        CODEC.encode(Request(URL, callback=SPIDER.log))


# values

BAD: dict[str, Any] = {
    "meta is text": {"u": URL, "t": "x"},
    "meta is a list": {"u": URL, "t": [1]},
    "meta is a tuple": {"u": URL, "t": ext(1, [])},
    "cb_kwargs are a list": {"u": URL, "w": []},
    "priority is a tuple": {"u": URL, "p": ext(1, [])},
    "priority is text": {"u": URL, "p": "1"},
    "priority is null": {"u": URL, "p": None},
    "priority is true": {"u": URL, "p": True},
    "priority is a float": {"u": URL, "p": 1e300},
    "body is a number": {"u": URL, "b": 5},
    "body is text": {"u": URL, "b": "x"},
    "headers are a map": {"u": URL, "h": {"a": "b"}},
    "header names are numbers": {"u": URL, "h": [[1, b"x"]]},
    "a header without a name": {"u": URL, "h": [[]]},
    "header values are lists": {"u": URL, "h": [[b"A", []]]},
    "no such encoding": {"u": URL, "n": "no such"},
    "encoding of bytes": {"u": URL, "n": "zlib_codec"},
    "encoding with a NUL": {"u": URL, "n": "\0"},
    "encoding is a number": {"u": URL, "n": 5},
    "dont_filter is text": {"u": URL, "d": "yes"},
    "flags are text": {"u": URL, "f": "x"},
    "cookies are text": {"u": URL, "k": "a=b"},
    "cookies are numbers": {"u": URL, "k": [1]},
    "method is a list": {"u": URL, "m": ["GET"]},
    "url is bytes": {"u": b"http://a.example/"},
    "url is null": {"u": None},
    "callback is a list": {"u": URL, "c": []},
    "class is a list": {"u": URL, "_": []},
    "arguments of a class are a list": {"u": URL, "_": "scrapy.http.request.json_request.JsonRequest", "x": [1]},
    "arguments of a class that it does not have": {
        "u": URL,
        "_": "scrapy.http.request.json_request.JsonRequest",
        "x": {"meta": {}},
    },
    "1,000 nested lists": {"u": URL, "t": {"a": nested(1000)}},
    "100,000 nested lists": b"\x01" + b"\x91" * 100_000,
    "1,000 nested tuples": {"u": URL, "t": {"a": nested(1000, code=1)}},
    "a bytearray of a number": {"u": URL, "t": {"a": ext(9, 2**63 - 1)}},
    "a bytearray of a list": {"u": URL, "t": {"a": ext(9, [1])}},
    "a number of a decimal": {"u": URL, "t": {"a": ext(8, ext(10, ext(7, "1e999999")))}},
    "a number of a float": {"u": URL, "t": {"a": ext(10, 1e300)}},
    "a number of many digits": {"u": URL, "t": {"a": ext(10, "9" * 100_000)}},
    "a set of lists": {"u": URL, "t": {"a": ext(2, [[1]])}},
    "a tuple of a text": {"u": URL, "t": {"a": ext(1, "abc")}},
    "a time of a number": {"u": URL, "t": {"a": ext(4, 5)}},
    "a duration beyond all": {"u": URL, "t": {"a": ext(6, [10**12, 0, 0])}},
    "a list of four billion": b"\x01\xdd\xff\xff\xff\xff",
    "a map of four billion": b"\x01\xdf\xff\xff\xff\xff",
    "a set of values of one hash": {"u": URL, "t": {"a": ext(2, colliding(5000))}},
    "a list of fields": [URL],
}


@pytest.mark.parametrize("name", BAD)
def test_a_payload_with_values_that_cannot_be_is_undecodable_at_once(name: str) -> None:
    payload = BAD[name] if isinstance(BAD[name], bytes) else pack(BAD[name])

    def decode() -> None:
        with pytest.raises(Undecodable) as told:
            CODEC.decode(payload)
        assert str(told.value)

    assert least_cpu_s(decode, 2) < 2, "CPU seconds of this process; a bomb takes many more"


def test_a_map_with_keys_of_one_hash_costs_no_more_than_its_size() -> None:
    keys = b"".join(msgspec.msgpack.encode(key) + b"\x01" for key in colliding(20_000))
    payload = b"\x01\x82\xa1u" + msgspec.msgpack.encode(URL) + b"\xa1t\xde\x4e\x20" + keys
    with pytest.raises(Undecodable, match="have one hash"):
        CODEC.decode(payload)


def test_many_values_of_different_hashes_or_all_alike_come_back() -> None:
    meta = {"ids": {UUID(int=n) for n in range(5000)}, "same": [UUID(int=7)] * 5000, "pairs": [(1, 2)] * 1000}
    for _ in range(2):
        assert CODEC.decode(CODEC.encode(Request(URL, meta=meta))).meta == meta


LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.tuples(st.integers(0, 14), inner).map(lambda both: ext(*both))
    ),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.sampled_from("uceмmhbktwpdfn_x?"), VALUES, max_size=6) | st.fixed_dictionaries(
    {"u": st.just(URL)}, optional=dict.fromkeys("mhbktwpdfn", VALUES)
)
GOOD = CODEC.encode(
    Request(
        URL, callback=SPIDER.parse, headers={"A": "b"}, meta={"t": (1, {2}), "id": UUID(int=1)}, cb_kwargs={"page": 1}, priority=3
    )
)
MUTATED = st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=6).map(
    lambda changes: bytes(dict(changes).get(at, byte) for at, byte in enumerate(GOOD))
)


@settings(max_examples=examples(500), deadline=None)
@given(FIELDS.map(pack) | VALUES.map(pack) | st.binary(max_size=60).map(b"\x01".__add__) | MUTATED)
@example(pack({"u": URL, "t": {"a": ext(9, 2**63 - 1)}}))
def test_every_payload_becomes_a_request_that_can_be_stored_again_or_is_undecodable(payload: bytes) -> None:
    try:
        request = CODEC.decode(payload)
    except Undecodable:
        return
    kinds = {
        name: type(getattr(request, name)) for name in ("url", "body", "method", "priority", "dont_filter", "meta", "cb_kwargs")
    }
    assert kinds == {
        "url": str,
        "body": bytes,
        "method": str,
        "priority": int,
        "dont_filter": bool,
        "meta": dict,
        "cb_kwargs": dict,
    }
    again = CODEC.decode(CODEC.encode(request))
    assert values.exact(again.meta, "meta") is not None


# a crawl

KEYS = CrawlKeys.for_spider("forum_detail")
ODD_META: list[dict[str, Any]] = [
    {"download_slot": []},
    {"depth": "deep"},
    {"proxy": 5},
    {"download_timeout": "long"},
    {"download_timeout": -1},
    {"cookiejar": []},
    {"retry_times": "many"},
    {"redirect_times": []},
    {"redirect_urls": 5},
    {"handle_httpstatus_list": 5},
    {"download_maxsize": "x"},
    {"bindaddress": 5},
    {"site": []},
    {"site": "../../etc"},
    {"depth": ext(7, "1e999999")},
    {"a": nested(400)},
]
ODD_HEADERS = [
    [b"\x80", b"x"],
    [b"", b"x"],
    [b"A\r\nB: c", b"x"],
    [b"A", b"x\r\nB: c", b"\xff"],
    [b"Host", b""],
    [b"Content-Length", b"x"],
]
ODD_URLS = [
    "http://a:b.example/",
    "http://[",
    "http://\n/",
    "://",
    "http://",
    "about:",
    "data:",
    "http://" + "a." * 100_000,
    "http://\x00",
]


def crawl(redis_url: str, forum: str) -> str:
    """Run the fleet's detail spider until the crawl is idle; returns its log."""
    done = warm_start.run(
        crawl_command("forum_detail", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1"),
        cwd=ROOT,
        env={
            **os.environ,
            "TRAWL_REDIS_URL": redis_url,
            "TRAWL_DEMO_URL": forum,
            "TRAWL_SITES_DIR": str(ROOT / "demo" / "sites"),
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    return done.stderr


def test_a_crawl_sets_all_of_them_aside_ends_their_leases_and_crawls_the_good_ones(
    redis_url: str, redis_client: redis.Redis
) -> None:
    payloads = [value if isinstance(value, bytes) else pack(value) for value in BAD.values()]
    payloads += [pack({"u": URL, "c": name, "w": {"parse_thread": "x", "name": "x"}}) for name in NOT_FOR_REQUESTS if name]
    with ForumProcess(seed=3, forums=1, threads=2, comments=1, rate=0) as forum:
        post = min(forum.truth()["posts"])
        for number, payload in enumerate(payloads):
            redis_client.zadd(KEYS.ready(), {number.to_bytes(8) + b"\0" + payload: 0})
        for number, meta in enumerate(ODD_META, start=1000):
            odd = pack(
                {"u": f"{forum.url}/post/{post}?{number}", "c": "parse_thread", "e": "set_aside", "t": {"site": "demo", **meta}}
            )
            redis_client.zadd(KEYS.ready(), {number.to_bytes(8) + b"\0" + odd: 0})
        odd_headers = [{"u": f"{forum.url}/post/{post}?h{number}", "h": [header]} for number, header in enumerate(ODD_HEADERS)]
        for number, fields in enumerate([*({"u": url} for url in ODD_URLS), *odd_headers], start=2000):
            odd = pack({**fields, "c": "parse_thread", "e": "set_aside", "t": {"site": "demo"}})
            redis_client.zadd(KEYS.ready(), {number.to_bytes(8) + b"\0" + odd: 0})
        redis_client.rpush(KEYS.start_tasks(), encode(PostTask(site="demo", post=post)))
        log = crawl(redis_url, forum.url)
    shot = snapshot(redis_client, "forum_detail", KEYS)
    assert (shot.ready, shot.leased, shot.start_tasks, shot.leased_tasks) == (0, 0, 0, 0), log[-8000:]
    entries, foreign = newest(redis_client, KEYS, 1000)
    assert foreign == 0
    assert {entry.payload for entry in entries} >= set(payloads)
    assert all(entry.reason for entry in entries)
    kinds = [json.loads(item)["kind"] for item in redis_client.lrange(KEYS.item_stream(), 0, 99)]
    assert "post" in kinds, "the good task among them is crawled"


def test_a_class_with_defaults_of_its_own_keeps_them() -> None:
    request = JsonRequest(URL, data={"a": 1})
    assert CODEC.decode(CODEC.encode(request)).method == request.method == "POST"
