"""Who reaches the HTTP API without a token costs it nothing, and who has one gets an answer to everything that he sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring.api.access import Tokens
from monitoring.api.entrance import MOST_BYTES
from monitoring.api.routes import create_api
from redis_components.errors import ConfigError
from tests.support.examples import examples
from workers.crawler.orders import check_settings
from workers.state.jobs import Jobs

READ, ACT = "r" * 24, "a" * 24
ACTS = ("/api/v1/jobs", "/api/v1/jobs/books.1/cancel", "/api/v1/services/books/urls", "/api/v1/runs")
Ask = Callable[..., tuple[int, int]]


@pytest.fixture
def ask(redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Sends parts of a body, and gives the status and how many parts were read."""
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "tests.support.toy.settings")
    app: Any = create_api(redis_client, Tokens(read=READ, act=ACT), redis_url)

    def asked(method: str, path: str, parts: Iterator[bytes], token: str = "", headers: Any = ()) -> tuple[int, int]:
        given = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode()), *headers]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "replace"),
            "query_string": b"",
            "root_path": "",
            "headers": given,
            "client": ("192.0.2.9", 5),
            "server": ("localhost", 80),
        }
        read, sent = 0, []

        async def receive() -> dict[str, Any]:
            nonlocal read
            part = next(parts, None)
            read += part is not None
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(app(scope, receive, send))
        return sent[0]["status"], read

    return asked


def endless() -> Iterator[bytes]:
    for _ in range(10_000):
        yield b"[" * 65_536
    raise AssertionError("it reads on for ever")


@pytest.mark.parametrize("path", ACTS)
@pytest.mark.parametrize("kind", [b"application/json", b"application/x-www-form-urlencoded"])
def test_of_a_body_nothing_is_read_without_a_token_and_a_mebibyte_with_one(ask: Ask, path: str, kind: bytes) -> None:
    headers = [(b"content-type", kind)]
    assert ask("POST", path, endless(), headers=headers) == (401, 0)
    assert ask("POST", path, endless(), READ, headers)[1] == 0, "this token must not act"
    code, read = ask("POST", path, endless(), ACT, headers)
    assert (code, read <= MOST_BYTES // 65_536 + 1) == (413, True)
    said = [(b"content-length", str(10**12).encode()), *headers]
    assert ask("POST", path, endless(), ACT, said) == (413, 0)


UNREADABLE = [b"1" * 5000, b"[" * 500_000, b'{"a":' * 100_000, b'{"service": 1e999}', b"\xff", b'{"service":"\\ud800"}', b"NaN"]


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_body_that_cannot_be_read_is_the_callers_fault(ask: Ask, body: bytes) -> None:
    for path in ACTS[:3]:
        assert ask("POST", path, iter([body]), ACT, [(b"content-type", b"application/json")])[0] in (400, 422), path


TEXT = st.text(max_size=12) | st.sampled_from(
    ["books", "../x", "a\n\x1b[31m", "\ud800", "\0", "-a", "--parent=1", "file:///etc/passwd"]
)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
BODY = (
    st.fixed_dictionaries(
        {},
        optional={
            "service": st.just("books") | VALUE,
            "arguments": st.dictionaries(TEXT, VALUE, max_size=3) | VALUE,
            "settings": st.dictionaries(st.sampled_from(["DOWNLOAD_DELAY", "FEEDS"]) | TEXT, VALUE, max_size=2) | VALUE,
            "crawlers": st.just(1) | VALUE,
            "urls": st.lists(st.just("http://example.org/") | VALUE, max_size=3) | VALUE,
            "id": TEXT | VALUE,
            "group": st.just("books") | VALUE,
            "failed": st.booleans() | st.just(10**400) | VALUE,
            "unique": st.booleans() | VALUE,
        },
    )
    | VALUE
)
ROUTES = [
    *("/api/v1/jobs", "/api/v1/jobs/{}/cancel", "/api/v1/services/{}/urls"),
    *("/api/v1/runs", "/api/v1/runs/{}/pause", "/api/v1/runs/{}/rerun"),
]


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(ROUTES), st.just("books") | TEXT, BODY)
def test_any_body_and_any_name_get_an_answer(ask: Ask, route: str, name: str, body: Any) -> None:
    raw = json.dumps(body).encode()
    code, _ = ask("POST", route.replace("{}", name.replace("/", "")), iter([raw]), ACT, [(b"content-type", b"application/json")])
    assert code < 500


WRONG_SETTINGS = {
    "CONCURRENT_REQUESTS": [True, False, 0, -1, 1.5, 10**12, "abc", "", "true", "9" * 4000],
    "DOWNLOAD_DELAY": [True, -1, 1e19, "nan", "1e999", "-inf", "soon"],
    "ROBOTSTXT_OBEY": ["perhaps", 2, -1, 0.5, ""],
    "USER_AGENT": [True, 5, "a\r\nCookie: b", "a\0"],
}


@pytest.mark.parametrize("name", WRONG_SETTINGS)
def test_a_value_that_a_setting_of_a_job_cannot_have_is_refused_and_named(ask: Ask, redis_client: redis.Redis, name: str) -> None:
    for value in WRONG_SETTINGS[name]:
        body = json.dumps({"service": "toy", "settings": {name: value}}).encode()
        assert ask("POST", "/api/v1/jobs", iter([body]), ACT, [(b"content-type", b"application/json")])[0] in (400, 422), value
        with pytest.raises(ConfigError, match=name):
            check_settings({name: value})
    assert not Jobs(redis_client).all()


def test_values_that_settings_of_a_job_may_have_also_as_texts_of_a_command() -> None:
    check_settings({"CONCURRENT_REQUESTS": 8, "DOWNLOAD_DELAY": 0.5, "ROBOTSTXT_OBEY": True, "USER_AGENT": "mine/1.0 (+x)"})
    check_settings({"CONCURRENT_REQUESTS": "8", "DOWNLOAD_DELAY": "2", "ROBOTSTXT_OBEY": "False", "DEPTH_PRIORITY": "-1"})
