"""The HTTP API: tokens and scopes, the audit, wrong values."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import redis

from monitoring.api.__main__ import main
from monitoring.api.access import Scope, Tokens
from monitoring.api.routes import create_api
from redis_components.errors import ConfigError
from tests.support.fleet import program
from tests.support.processes import wait_until
from workers.state.jobs import Jobs
from workers.state.reports import latest

READ, ACT = "r" * 24, "a" * 24


@dataclass(frozen=True, kw_only=True)
class Answer:
    code: int
    body: Any


class Api:
    """Asks the ASGI application, without a socket."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(
        self,
        method: str,
        target: str,
        *,
        token: str = "",
        body: Any = None,
        client: str = "192.0.2.9",
        **more: str,
    ) -> Answer:
        path, _, query = target.partition("?")
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        headers = {"host": "localhost", "content-type": "application/json", **more}
        if token:
            headers["authorization"] = token if " " in token else f"Bearer {token}"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (client, 5),
            "server": ("localhost", 80),
            "scheme": "http",
            "root_path": "",
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        text = b"".join(one.get("body", b"") for one in sent[1:])
        kind = dict(sent[0]["headers"])[b"content-type"]
        return Answer(code=sent[0]["status"], body=json.loads(text) if kind == b"application/json" else text.decode())


@pytest.fixture
def api(redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "tests.support.toy.settings")
    return Api(create_api(redis_client, Tokens(read=READ, act=ACT), redis_url))


ACTS = [
    ("POST", "/api/v1/jobs"),
    ("POST", "/api/v1/jobs/one/cancel"),
    ("POST", "/api/v1/services/books/urls"),
]


def test_every_route_needs_a_token_and_each_act_that_of_acting(api: Api, redis_client: redis.Redis) -> None:
    told = api("GET", "/openapi.json", token=READ).body["paths"]
    looks = [("GET", path) for path, how in told.items() if "get" in how and "{" not in path]
    looks.append(("GET", "/openapi.json"))
    acts = ACTS + [("POST", path) for path, how in told.items() if "post" in how]
    assert len(looks) > 4
    assert len(acts) > 8
    for method, path in looks + acts:
        for wrong in ("", "x" * 24, READ[:-1], "Bearer ", "Basic !", f"Digest {ACT}"):
            assert api(method, path, token=wrong).code == 401, (path, wrong)
    for method, path in acts:
        assert api(method, path, token=READ).code == 403, path
        assert api(method, path, token=ACT, **{"sec-fetch-site": "cross-site"}).code == 403, path
    for method, path in looks:
        assert api(method, path, token=READ).code == 200, path
    assert not Jobs(redis_client).all()
    assert not latest(redis_client, 10), "what was not let in acted on nothing"


def test_runs_and_who_did_it(api: Api, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trawl.toml").write_text('[groups.toys]\nspiders = ["*"]\narguments = {password = "marked"}\n')
    monkeypatch.setenv("TRAWL_CONFIG", str(tmp_path / "trawl.toml"))
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    assert [one["group"] for one in api("GET", "/api/v1/groups", token=READ).body] == ["toys"]
    assert api("POST", "/api/v1/runs", token=ACT, body={"group": "toy"}).code == 400
    started = api("POST", "/api/v1/runs", token=ACT, body={"group": "toys"})
    assert (started.code, started.body["state"], started.body["arguments"]) == (201, "running", {"password": "***"})
    run = started.body["run"]
    assert [one["run"] for one in api("GET", "/api/v1/runs?group=toys", token=READ).body] == [run]
    members = api("GET", "/api/v1/runs/latest", token=READ).body["members"]
    assert {one["state"] for one in members} == {"waiting"}
    assert len(members) == started.body["members"]
    for word, state in (("pause", "paused"), ("resume", "running"), ("cancel", "ending")):
        assert api("POST", f"/api/v1/runs/{run}/{word}", token=ACT).body["state"] == state
    assert api("POST", f"/api/v1/runs/{run}/rerun", token=ACT, body={"failed": True}).code == 400, "it is not over"
    acts = [" ".join(act.what) for act in latest(redis_client, 20)][::-1]
    assert acts[1:3] == ["run start --group toys", f"run pause {run}"]


def test_jobs_and_services_and_who_did_it(api: Api, redis_client: redis.Redis) -> None:
    started = api(
        "POST", "/api/v1/jobs", token=ACT, body={"service": "books", "arguments": {"password": "marked"}, "crawlers": 2}
    )
    assert (started.code, started.body["state"], started.body["crawlers"]) == (201, "running", 2)
    name = started.body["job"]
    assert [one["job"] for one in api("GET", "/api/v1/jobs?service=books", token=READ).body] == [name]
    shown = {one["service"]: one for one in api("GET", "/api/v1/services", token=READ).body}
    assert shown[name]["desired"] == 2
    assert api("POST", f"/api/v1/jobs/{name}/cancel", token=ACT).body["state"] == "ending"
    urls = api("POST", "/api/v1/services/books/urls", token=ACT, body={"urls": ["http://a.example/", "file:///x"]}).body
    assert (urls["queued"], list(urls["refused"])) == (1, ["2"])
    assert urls["refused"]["2"].startswith("'file:///x': its crawlers fetch http, https, not file")
    acts = [(" ".join(act.what), act.outcome, act.origin) for act in latest(redis_client, 20)][::-1]
    assert acts[0] == ("start job books crawlers=2 password=***", "done", "192.0.2.9")
    assert len(acts) == 3


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/v1/jobs", {"service": "../x"}, "cannot be the name of a service"),
        ("/api/v1/jobs", {"service": "books", "settings": {"ITEM_PIPELINES": {"os.system": 1}}}, "cannot be set by a task"),
        ("/api/v1/jobs/none/cancel", {}, "there is no job 'none'"),
    ],
)
def test_what_cannot_be_is_one_line_and_in_the_audit(
    api: Api, redis_client: redis.Redis, path: str, body: dict[str, Any], words: str
) -> None:
    answer = api("POST", path, token=ACT, body=body)
    assert answer.code == 400
    assert words in answer.body["error"]
    assert latest(redis_client, 1)[0].outcome == "failed"
    assert not Jobs(redis_client).all()


def test_trawl_api_serves_it_with_the_port_that_is_named(redis_url: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TRAWL_REDIS_URL": redis_url, "TRAWL_API_READ_TOKEN": READ}
    with program(["-m", "cli.main", "api", "--port=0"], environment, tmp_path / "api.log") as api:
        wait_until(lambda: "(/api/v1" in api.said(), api.said)
        address = api.said().split("API at ")[1].split()[0]
        request = Request(f"{address}/api/v1/jobs", headers={"Authorization": f"Bearer {READ}"})
        with urlopen(request, timeout=60) as answer:
            assert answer.status == 200
        api.process.terminate()
        assert api.wait() == 0


def test_without_a_token_or_with_one_that_can_be_guessed_nothing_is_served(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("TRAWL_API_READ_TOKEN", "TRAWL_API_ACT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 1
    assert "the API is off: set TRAWL_API_ACT_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("TRAWL_API_ACT_TOKEN", "short")
    with pytest.raises(ConfigError, match="at least 16"):
        Tokens.from_environment()
    monkeypatch.setenv("TRAWL_API_ACT_TOKEN", READ)
    monkeypatch.setenv("TRAWL_API_READ_TOKEN", READ)
    with pytest.raises(ConfigError, match="are the same"):
        Tokens.from_environment()
    assert Tokens(act=ACT).scope_of("Bearer ") is Scope.NOTHING, "a token that is not set opens nothing"


HUGE, DEEP = 10**400, [[[[{"a": [float("inf")]}]]]]
BY_TYPE: dict[str, list[Any]] = {
    "integer": [True, "1", 1.5, float("nan"), float("inf"), -1, HUGE, 2**63, [], {}],
    "number": [True, "1", float("nan"), float("inf"), -1.0, HUGE, [], {}],
    "boolean": ["true", 1, 0.0, [], {}],
    "string": [True, 1, float("inf"), [], {}, "x" * 2_000_000],
    "array": [
        "x",
        {},
        True,
        1,
        [1],
        [float("nan")],
        [{"url": "http://a/", "meta": DEEP}],
        [{"url": "http://a/", "priority": HUGE}],
    ],
    "object": ["x", [], True, 1, {"a": float("inf")}, {"a": HUGE}, {"a": DEEP}],
}
WELL: dict[str, Any] = {"service": "books", "urls": ["http://a/"]}
NAMES = {"service": "nope", "job": "nope", "run": "nope"}
BODIES: dict[str, Any] = {"urls": {"urls": []}}


def wrong_bodies(described: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """For each value of a body that is well, what cannot be in its place."""
    known = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
    for name, one in known.items():
        kinds = {kind["type"] for kind in one.get("anyOf", [one])} - {"null"}
        for wrong in [wrong for kind in kinds for wrong in BY_TYPE[kind]]:
            yield name, {key: value for key, value in WELL.items() if key in known} | {name: wrong}
    yield "nope", {key: value for key, value in WELL.items() if key in known} | {"nope": 1}


def test_every_value_that_cannot_be_is_refused_at_the_door_of_every_route(api: Api, redis_client: redis.Redis) -> None:
    described = api("GET", "/openapi.json", token=READ).body
    asked = 0

    def refused(method: str, path: str, body: Any, name: str) -> None:
        nonlocal asked
        before, answer = redis_client.keys(), api(method, path, token=ACT, body=json.dumps(body).encode())
        said = (path, name, str(body)[:100], answer)
        assert 400 <= answer.code < 500, said
        line = str(answer.body.get("error") or answer.body["detail"])
        assert len(line.splitlines()) == 1, said
        assert name in line or answer.code in (404, 413), said
        assert {*redis_client.keys()} <= {*before, b"trawl:fleet:audit"}, said
        asked += 1

    for path, methods in described["paths"].items():
        known = path.format(service="books", job="books.1", run="books-1")
        for method, route in methods.items():
            if "{" in path:
                name = path.partition("{")[2].partition("}")[0]
                body = next((one for word, one in BODIES.items() if word in path), {})
                refused(method.upper(), path.replace("{" + name + "}", NAMES[name]), body, NAMES[name].rpartition("/")[2])
            if "requestBody" in route:
                schema = route["requestBody"]["content"]["application/json"]["schema"]
                for name, body in wrong_bodies(described, schema):
                    refused(method.upper(), known, body, name)
    assert asked > 80
    for name in ("nope", "../x"):
        refused("POST", "/api/v1/jobs", {"service": name}, name)
    for wrong in ("1e999", "nan", "-inf", None, [1], {"a": 1}):
        refused("POST", "/api/v1/jobs", {"service": "books", "settings": {"DOWNLOAD_DELAY": wrong}}, "DOWNLOAD_DELAY")
