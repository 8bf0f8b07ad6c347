"""Requests of scrapy-redis as payloads of ours, and its fingerprints."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from scrapy import FormRequest, Request
from scrapy.http import JsonRequest

from redis_components.codec.requests import RequestCodec
from redis_components.errors import CodecError
from redis_components.fingerprint import OldScrapyFingerprinter, ScrapyRedisFingerprinter
from redis_components.migration.queue import payload_of
from tests.support.scrapy_redis_data import SPIDER

REQUESTS = {
    "plain": Request("http://a.example/1"),
    "full": Request(
        "http://a.example/2?a=b",
        callback=SPIDER.parse_post,
        errback=SPIDER.failed,
        method="PUT",
        headers={"X": ["1", "2"]},
        body="é",
        cookies=[{"name": "n", "value": "v"}],
        meta={"tuple": (1, {2}), "depth": 3},
        encoding="latin-1",
        priority=-7,
        dont_filter=True,
        flags=["f"],
        cb_kwargs={"bytes": b"\xff"},
    ),
    "form": FormRequest("http://a.example/3", formdata={"a": "b"}),
    "json": JsonRequest("http://a.example/4", data={"a": [1]}, dumps_kwargs={"sort_keys": True}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_an_imported_request_is_the_one_that_was_stored(name: str) -> None:
    request = REQUESTS[name]
    back = RequestCodec(SPIDER).decode(payload_of(request.to_dict(spider=SPIDER)))
    assert type(back) is type(request)
    assert back.to_dict(spider=SPIDER) == request.to_dict(spider=SPIDER)


def test_a_request_of_an_older_scrapy_is_read() -> None:
    fields = Request("http://a.example/1", encoding="latin-1").to_dict(spider=SPIDER)
    fields["_encoding"] = fields.pop("encoding")
    del fields["cb_kwargs"]
    assert RequestCodec(SPIDER).decode(payload_of(fields)).encoding == "latin-1"


def test_a_request_class_of_the_project_is_named_and_found_when_it_is_crawled() -> None:
    class Rendered(Request):
        attributes = (*Request.attributes, "wait")

        def __init__(self, url: str, wait: Any = None, **options: Any) -> None:
            self.wait = wait
            super().__init__(url, **options)

    Rendered.__module__, Rendered.__qualname__ = "project.requests", "Rendered"
    codec = RequestCodec(SPIDER)
    codec._classes["project.requests.Rendered"] = Rendered
    back = codec.decode(payload_of(Rendered("http://a.example/", wait=(1, 2)).to_dict(spider=SPIDER)))
    assert isinstance(back, Rendered)
    assert back.wait == (1, 2)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ([], "list, not the fields"),
        ({}, "url"),
        ({"url": 5}, "url"),
        ({"url": "no scheme"}, "scheme"),
        ({"url": "http://a/", "meta": 5}, "does not make a request"),
        ({"url": "http://a/", "callback": "not a name"}, "callback: not the name"),
        ({"url": "http://a/", "errback": b"x"}, "errback: not the name"),
        ({"url": "http://a/", "_class": 5}, "_class"),
        ({"url": "http://a/", "surprise": 5}, "unknown field 'surprise'"),
        ({"url": "http://a/", "meta": {"a": OrderedDict()}}, "meta['a']"),
        ({"url": "http://a/", "priority": "high"}, "request"),
        ({1: 2}, "fields of a request"),
    ],
)
def test_what_makes_no_request_is_refused_with_the_reason(fields: Any, word: str) -> None:
    with pytest.raises(CodecError) as refused:
        payload_of(fields)
    assert word in str(refused.value)


FORMS = [
    Request("http://a.example/x?b=2&a=1#f"),
    Request("http://a.example/é?q=ü", method="POST", body=b"\x00\xff"),
    Request("http://b/", headers={"A": "b"}, method="put"),
]


def test_fingerprints_are_those_of_scrapy_redis() -> None:
    """What scrapy-redis 0.9.1 said for the same requests."""
    assert [ScrapyRedisFingerprinter().fingerprint(request).hex() for request in FORMS] == [
        "69261acdcbefca9cf8190a0a01ab34d233da8d72",
        "58af05ff35927023f33cbc8559a5a6bc7fc19e58",
        "2f4027f1b2b26fc6240c25e21705dfce321f5778",
    ]


def test_fingerprints_of_older_versions_differ_in_method_url_and_body_only() -> None:
    old = OldScrapyFingerprinter().fingerprint
    assert len({old(request) for request in FORMS}) == 3
    assert old(Request("http://a.example/x?a=1&b=2", headers={"A": "b"})) == old(FORMS[0])
