"""Requests survive the way through Redis exactly, and no payload can name code."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.http.request import NO_CALLBACK

from redis_components.codec import values
from redis_components.codec.requests import RequestCodec
from redis_components.errors import Undecodable, Unserializable


class Books(Spider):
    name = "books"

    def parse(self, response: Any, **kwargs: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


class Special(Request):
    attributes = (*Request.attributes, "flavour")

    def __init__(self, *args: Any, flavour: str = "", **kwargs: Any) -> None:
        self.flavour = flavour
        super().__init__(*args, **kwargs)


SPIDER = Books()
CODEC = RequestCodec(SPIDER, [Special])


def fields(request: Request) -> dict[str, Any]:
    return {"class": type(request), **{name: getattr(request, name) for name in request.attributes}}


@pytest.mark.parametrize(
    "request_",
    [
        Request("http://a.example/"),
        Request(
            "http://a.example/?q=%C3%A4#f", callback=SPIDER.parse, errback=SPIDER.failed, priority=-(2**70), dont_filter=True
        ),
        Request("http://a.example/", method="POST", body=b"\x00\xff", encoding="latin-1", flags=["x"]),
        Request("http://a.example/", headers={"X": ["1", "2"], b"Y": b"\xff"}, cookies={"a": "b"}),
        Request("http://a.example/", cookies=[{"name": "a", "value": "b", "domain": "c", "secure": True}]),
        Request("http://a.example/", meta={"t": (1, {2}), "n": None, "depth": 3}, cb_kwargs={"page": 1, "b": b"x"}),
        Request("http://a.example/", callback=NO_CALLBACK),
        FormRequest("http://a.example/", formdata={"a": ["1", "2"]}, callback=SPIDER.parse),
        JsonRequest("http://a.example/", data={"a": 1}, dumps_kwargs={"sort_keys": True}),
        XmlRpcRequest("http://a.example/", methodname="m", params=(1,)),
        Special("http://a.example/", flavour="sour"),
    ],
    ids=lambda request: f"{type(request).__name__}-{request.method}",
)
def test_every_field_comes_back(request_: Request) -> None:
    assert fields(CODEC.decode(CODEC.encode(request_))) == fields(request_)


def test_a_callback_is_one_object_for_all_requests_until_the_spider_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = CODEC.encode(Request("http://a.example/", callback=SPIDER.parse))
    first = CODEC.decode(payload).callback
    assert CODEC.decode(payload).callback is first, "Scrapy reads the source of each that it does not know"
    monkeypatch.setattr(SPIDER, "parse", SPIDER.failed)
    assert CODEC.decode(payload).callback == SPIDER.failed


def test_a_plain_request_is_little_more_than_its_url() -> None:
    url = "http://a.example/list/f1/1"
    assert len(CODEC.encode(Request(url))) <= len(url) + 8


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request("http://a.example/", callback=lambda response: None), "callback"),
        (Request("http://a.example/", errback=Books.failed), "errback"),  # a function, bound to no spider
        (Request("http://a.example/", meta={"spider": SPIDER}), r"meta\['spider'\]"),
        (type("Mine", (Request,), {})("http://a.example/"), "class"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_the_field(request_: Request, field: str) -> None:
    with pytest.raises(Unserializable, match=f"^{field}:"):
        CODEC.encode(request_)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"u": "http://a.example/", "c": "renamed"}, "has no method 'renamed'"),
        ({"u": "http://a.example/", "c": "name"}, "has no method 'name'"),
        ({"u": "http://a.example/", "_": "subprocess.Popen"}, "'subprocess.Popen' is not allowed"),
        ({"u": "no scheme"}, "does not make a request"),
        ({"c": "parse"}, "missing required field `u`"),
    ],
)
def test_a_payload_that_does_not_fit_is_undecodable_with_the_reason(stored: dict[str, Any], reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        CODEC.decode(values.dumps(stored))
