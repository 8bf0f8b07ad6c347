"""`SCHEDULER_SERIALIZER`: requests through a serializer of the user's choice, beside payloads of the exact codec."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.settings import Settings

from redis_components import picklecompat
from redis_components.codec import values
from redis_components.codec.requests import RequestCodec, SerializerCodec, request_codec
from redis_components.errors import ConfigError, Undecodable, Unserializable
from redis_components.setting_values import object_of


class Books(Spider):
    name = "books"

    def parse(self, response: Any, **kwargs: Any) -> None: ...


class Mine(Request):
    """A class that nobody allowed."""


class Words:
    """A serializer of a user's, which counts its calls and writes text."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def dumps(self, obj: dict[str, Any]) -> str:
        self.calls.append("dumps")
        return json.dumps({name: value.decode() if isinstance(value, bytes) else value for name, value in obj.items()})

    def loads(self, payload: bytes) -> Any:
        self.calls.append("loads")
        return json.loads(payload)


SPIDER = Books()
REQUEST = FormRequest("http://a.example/", formdata={"a": "1"}, callback=SPIDER.parse, meta={"day": {1: (2, 3)}}, priority=7)


def same(one: Request, other: Request) -> bool:
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in one.attributes)


def test_a_pickled_request_comes_back() -> None:
    chosen = request_codec(SPIDER, picklecompat)
    payload = chosen.encode(REQUEST)
    assert pickle.loads(payload)["url"] == "http://a.example/"
    assert payload[1] == pickle.HIGHEST_PROTOCOL
    assert same(chosen.decode(payload), REQUEST)


def test_a_users_serializer_may_write_text_and_is_called_once_for_each_request() -> None:
    words = Words()
    chosen = request_codec(SPIDER, words)
    payload = chosen.encode(Request("http://a.example/", callback=SPIDER.parse))
    assert type(payload) is bytes
    assert chosen.decode(payload).callback == SPIDER.parse
    assert words.calls == ["dumps", "loads"]


@pytest.mark.parametrize("serializer", [picklecompat, Words()])
def test_payloads_from_before_the_choice_are_still_read(serializer: Any) -> None:
    payload = RequestCodec(SPIDER).encode(REQUEST)
    assert same(request_codec(SPIDER, serializer).decode(payload), REQUEST)


def test_a_pickle_is_never_read_without_being_chosen_and_the_reason_says_so() -> None:
    with pytest.raises(Undecodable, match=r"payload is a pickle.* can run code; .*SCHEDULER_SERIALIZER"):
        request_codec(SPIDER, None).decode(picklecompat.dumps(REQUEST.to_dict(spider=SPIDER)))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "cannot read the payload b''"),
        (b"junk", "cannot read the payload b'junk'"),
        (b"[1]", "it made list, not the fields of a request"),
        (b'{"url": "http://a.example/", "callback": "renamed"}', "renamed"),
        (b'{"url": "http://a.example/", "_class": "subprocess.Popen"}', "'subprocess.Popen' is not allowed"),
        (b'{"url": "no scheme"}', "does not make a request"),
        (b'{"method": "GET"}', "does not make a request"),
    ],
)
def test_a_payload_that_does_not_fit_is_undecodable_with_the_reason(payload: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        request_codec(SPIDER, Words()).decode(payload)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Mine("http://a.example/"), "^class: .*Mine' is not allowed; add it to SCHEDULER_REQUEST_CLASSES"),
        (Request("http://a.example/", callback=lambda response: None), "^request: cannot serialize it: ValueError"),
        (Request("http://a.example/", meta={"spider": SPIDER}), "^request: cannot serialize it: TypeError"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_the_reason(request_: Request, reason: str) -> None:
    with pytest.raises(Unserializable, match=reason):
        request_codec(SPIDER, Words()).encode(request_)


def test_a_class_of_the_users_may_be_stored_when_it_is_allowed_or_the_codec_is_used_alone() -> None:
    for chosen in (request_codec(SPIDER, picklecompat, [Mine]), SerializerCodec(SPIDER, picklecompat)):
        assert type(chosen.decode(chosen.encode(Mine("http://a.example/")))) is Mine


def test_something_that_is_no_serializer_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"SCHEDULER_SERIALIZER: .*json.*has no function 'loads'"):
        request_codec(SPIDER, object_of(Settings({"SCHEDULER_SERIALIZER": "json.encoder"}), "SCHEDULER_SERIALIZER"))


@pytest.mark.parametrize("value", ["redis_components.picklecompat", "pickle", picklecompat])
def test_a_setting_names_a_module_or_is_the_object_itself(value: Any) -> None:
    assert hasattr(object_of(Settings({"SCHEDULER_SERIALIZER": value}), "SCHEDULER_SERIALIZER"), "loads")


@pytest.mark.parametrize("value", ["no.such.module", "redis_components.nothing", "nothing", "redis_components.queue.Nothing", ""])
def test_a_setting_that_names_nothing_is_refused_with_its_name_and_value(value: str) -> None:
    settings = Settings({"SCHEDULER_SERIALIZER": value})
    if not value:
        assert object_of(settings, "SCHEDULER_SERIALIZER") is None
        return
    with pytest.raises(ConfigError, match=f"SCHEDULER_SERIALIZER = '{value}' cannot be loaded: "):
        object_of(settings, "SCHEDULER_SERIALIZER")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "payload is empty"),
        (b"\x00\x80", "codec version 0, this process knows 1: written by an older Trawl"),
        (b"\x02\x80", "codec version 2, this process knows 1: written by a newer Trawl"),
        (b'{"url": 1}', "another SCHEDULER_SERIALIZER"),
        (b"\x80\x04.", "payload is a pickle"),
    ],
)
def test_a_payload_of_another_codec_is_named(payload: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        values.loads(payload)
