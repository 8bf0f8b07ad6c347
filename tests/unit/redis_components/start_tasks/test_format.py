"""What a start task may say, and what is refused, by the field's name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response
from twisted.python.failure import Failure

from redis_components.errors import BadStartTask
from redis_components.spiders import RedisMixin, RedisSpider
from redis_components.start_tasks.feed import request_of
from redis_components.start_tasks.seeding import FIELDS, StartTask, encoded, read


class Books(RedisSpider):
    name = "books"
    redis_encoding = "utf-8"

    def parse_book(self, response: Response) -> None:
        """A callback."""

    def failed(self, failure: Failure) -> None:
        """An errback."""

    def _secret(self, response: Response) -> None:
        """Nobody's business."""

    def spider_idle(self) -> None:
        """An overridden method of the base class."""


BOOKS = Books()


def task(**fields: Any) -> bytes:
    return json.dumps({"url": "http://127.0.0.1/", **fields}).encode()


@pytest.mark.parametrize("data", [b"http://127.0.0.1/a?b=c", b" http://127.0.0.1/a?b=c\n", "http://127.0.0.1/a?b=c"])
def test_a_bare_url_is_a_start_task(data: Any) -> None:
    request = BOOKS.make_request_from_data(data)
    assert (request.url, request.method, request.dont_filter, request.callback) == ("http://127.0.0.1/a?b=c", "GET", True, None)


def test_a_task_that_is_filtered_once_passes_the_filter_of_sites() -> None:
    text, _ = encoded("http://elsewhere.example/", unique=True)
    request = BOOKS.make_request_from_data(text)
    assert (request.dont_filter, request.meta["allow_offsite"]) == (False, True)


def test_every_field_reaches_the_request() -> None:
    data = task(
        method="put",
        headers={"X-One": "1", "X-Two": ["a", "b"]},
        cookies=[{"name": "id", "value": "7", "domain": "127.0.0.1", "secure": False}],
        body="caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        meta={"depth": 3, "list": [1, None]},
        cb_kwargs={"page": 2},
        priority=-7,
        callback="parse_book",
        errback="failed",
        dont_filter=False,
        encoding="latin-1",
        flags=["slow"],
    )
    request = request_of(read(data), BOOKS)
    assert (request.url, request.method, request.body) == (
        "http://127.0.0.1/",
        "PUT",
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode("latin-1"),
    )
    assert request.headers.getlist("X-Two") == [b"a", b"b"]
    assert request.cookies == [{"name": "id", "value": "7", "domain": "127.0.0.1", "secure": False}]
    assert (request.meta, request.cb_kwargs, request.priority) == (
        {"allow_offsite": True, "depth": 3, "list": [1, None]},
        {"page": 2},
        -7,
    )
    assert (request.callback, request.errback) == (BOOKS.parse_book, BOOKS.failed)
    assert (request.dont_filter, request.encoding, request.flags) == (False, "latin-1", ["slow"])


def test_a_delay_is_a_time_before_which_the_request_is_not_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert request_of(read(task(delay_s=0.5, meta={"a": 1})), BOOKS).meta == {"not_before": 1000.5, "a": 1}
    assert request_of(read(task(delay_s=60, meta={"not_before": 7})), BOOKS).meta == {"not_before": 7}
    assert "not_before" not in request_of(read(task(delay_s=0)), BOOKS).meta


def test_data_of_a_form_is_sent_as_a_form() -> None:
    posted = request_of(read(task(formdata={"a": "1", "b": ["2", "3"]})), BOOKS)
    assert (posted.method, posted.body) == ("POST", b"a=1&b=2&b=3")
    assert posted.headers["Content-Type"] == b"application/x-www-form-urlencoded"
    asked = request_of(read(task(formdata={"a": "1"}, method="GET")), BOOKS)
    assert (asked.method, asked.url, asked.body) == ("GET", "http://127.0.0.1/?a=1", b"")


def test_json_is_sent_as_json() -> None:
    posted = request_of(read(task(json={"b": [1, None], "a": True})), BOOKS)
    assert (posted.method, json.loads(posted.body)) == ("POST", {"a": True, "b": [1, None]})
    assert posted.headers["Content-Type"] == b"application/json"
    assert request_of(read(task(json=[], method="PUT")), BOOKS).method == "PUT"


def test_a_task_in_another_encoding() -> None:
    data = '{"url": "http://127.0.0.1/", "meta": {"word": "é"}}'.encode("latin-1")
    assert read(data, "latin-1").meta == {"word": "é"}
    with pytest.raises(BadStartTask, match=r"not text in utf-8 .* see redis_encoding"):
        read(data)


@pytest.mark.parametrize("data", [b"", b"123", b"null", b"not a url", b'["http://127.0.0.1/"]', b'"http://127.0.0.1/"'])
def test_what_is_neither_url_nor_object_is_refused(data: bytes) -> None:
    with pytest.raises(BadStartTask, match="neither a URL with a scheme nor a JSON object"):
        read(data)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"colour": "red"},
            r"unknown field 'colour'; known are url, format, .*, flags \(data of a form goes into 'formdata'\)",
        ),
        ({"url": None}, "field 'url': expected `str`, got `null`"),
        ({"url": "127.0.0.1"}, "field 'url': '127.0.0.1' has no scheme, such as https://"),
        ({"delay_s": -1}, "field 'delay_s': expected `float` >= 0.0"),
        ({"priority": "5"}, "field 'priority': expected `int`, got `str`"),
        ({"priority": 0.5}, "field 'priority': expected `int`, got `float`"),
        ({"dont_filter": "yes"}, "field 'dont_filter': expected `bool`, got `str`"),
        ({"method": 1}, "field 'method': expected `str | null`, got `int`"),
        ({"method": "GET\r\nX: y"}, r"field 'method': 'GET\\r\\nX: y' is not an HTTP method"),
        ({"headers": {"X\r\nY": "1"}}, r"field 'headers': 'X\\r\\nY' is not the name of a header"),
        ({"headers": "X: 1"}, "field 'headers': expected `object`, got `str`"),
        ({"headers": {"X": 1}}, "a value in field 'headers': expected `str | array`, got `int`"),
        ({"formdata": {"page": 2}}, "a value in field 'formdata': expected `str | array`, got `int`"),
        ({"meta": [1]}, "field 'meta': expected `object`, got `array`"),
        ({"flags": "slow"}, "field 'flags': expected `array`, got `str`"),
        ({"body": "a", "formdata": {"b": "c"}}, "fields 'body' and 'formdata': a request has one body"),
        ({"body": "a", "json": {}}, "fields 'body' and 'json': a request has one body"),
    ],
)
def test_a_wrong_field_is_named_with_what_was_expected(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(BadStartTask, match=said.replace("|", r"\|")):
        read(task(**fields))


def test_a_task_without_url_is_refused() -> None:
    with pytest.raises(BadStartTask, match="field 'url' is missing"):
        read(b'{"method": "GET"}')


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"url": "http://127.0.0.1/", "json": %s}' % (b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
        (rb'{"url": "http://127.0.0.1/", "body": "\ud800"}', "half a surrogate pair is not text"),
    ],
    ids=["depth", "surrogate"],
)
def test_hostile_json_is_refused_with_its_reason(data: bytes, said: str) -> None:
    with pytest.raises(BadStartTask, match=said):
        read(data)


@pytest.mark.parametrize("field", ["callback", "errback"])
@pytest.mark.parametrize(
    "name", ["nothing", "name", "_secret", "__init__", "start", "spider_idle", "close", "setup_redis", "feed"]
)
def test_a_start_task_may_only_name_methods_that_are_made_to_be_called_so(field: str, name: str) -> None:
    with pytest.raises(BadStartTask, match=f"field '{field}': spider 'books' has no method '{name}' for it; it has .*parse_book"):
        request_of(read(task(**{field: name})), BOOKS)


def test_methods_of_the_base_classes_that_take_a_response_or_failure_may_be_named() -> None:
    request = request_of(read(task(callback="parse", errback="set_aside")), BOOKS)
    assert (request.callback, request.errback) == (BOOKS.parse, BOOKS.set_aside)


def test_the_reference_names_every_field(pytestconfig: pytest.Config) -> None:
    text = (pytestconfig.rootpath / "docs/start-tasks.md").read_text()
    assert [field for field in FIELDS if f"| `{field}` |" not in text] == []


def test_a_mixin_makes_requests_too() -> None:
    class Mixed(RedisMixin, Spider):
        name = "mixed"
        redis_encoding = "utf-8"

    assert StartTask(url="http://127.0.0.1/").dont_filter
    assert Mixed().make_request_from_data(b"http://127.0.0.1/").url == "http://127.0.0.1/"


@pytest.mark.parametrize(
    "url", ["http://", "http:///x", "https://:80/", "http://[::1", "http://a.example:99999/", "http://a.example:x/"]
)
def test_an_address_without_a_host_is_refused_where_it_is_queued(url: str) -> None:
    for one in (url, {"url": url}):
        with pytest.raises(BadStartTask, match="no host"):
            encoded(one)
    encoded("s3://bucket/x", schemes=["s3"])
    encoded("file:///x", schemes=["file"])


def test_unknown_fields_go_into_meta_where_that_is_asked_for() -> None:
    """The task of scrapy-redis's README."""
    text = '{"url": "http://a.example/", "meta": {"job-id": "1", "kept": 2}, "url_cookie_key": "x", "kept": 3}'
    with pytest.raises(BadStartTask, match="unknown field"):
        read(text)
    assert read(text, others_to_meta=True).meta == {"job-id": "1", "kept": 2, "url_cookie_key": "x"}
    with pytest.raises(BadStartTask, match="field 'priority': expected `int`"):
        read('{"url": "http://a.example/", "other": 1, "priority": "5"}', others_to_meta=True)
