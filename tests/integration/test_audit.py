"""Every command that changes something is in the audit, without secrets; what only looks is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from cli.command_table import _CHANGING, is_changing
from cli.main import program
from redis_components.server import untrusted_values
from redis_components.server.printable import without_secrets
from tasks.guard.worker import Mailbox, Node
from tests.support.trawl_command import Trawl, commands
from workers.state.keys import FleetKeys
from workers.state.reports import Act, latest


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Commands with a Redis and a data folder of their own."""
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def test_who_changed_what_is_kept_and_a_refused_attempt_too(
    trawl: Trawl, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_CLIENT", "192.0.2.7 50000 22")
    assert trawl("audit").out == "nothing was changed yet\n"
    assert trawl("scale", "forum_detail=4").code == 0
    assert trawl("scale", "nobody=4").code == 2
    for look in (("status", "--json"), ("limit", "--json"), ("doctor", "--json"), ("scale", "--help")):
        trawl(*look)
    acts = json.loads(trawl("audit", "--json").out)
    assert [(act["what"], act["outcome"], act["origin"]) for act in acts] == [
        (["scale", "nobody=4"], "exit code 2", "192.0.2.7"),
        (["scale", "forum_detail=4"], "done", "192.0.2.7"),
    ]
    assert "@" in acts[0]["by"]
    redis_client.xadd(FleetKeys().audit(), {"act": "no act"})
    assert "forum_detail=4" in trawl("audit").out, "one entry that cannot be read hides no other"


def test_what_flower_tells_a_worker_is_in_the_audit(
    redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    heard: list[str] = []
    named = ("revoke", "ping", "enable_events", "shutdown")
    handlers = {name: lambda _state, name=name, **_: heard.append(name) for name in named}
    node = Node("a@test", mailbox=Mailbox("x"), handlers=handlers, state=object())
    for method, arguments, destination in (
        ("ping", {}, None),
        ("enable_events", {}, None),
        ("revoke", {"task_id": "abc", "terminate": True, "signal": "SIGTERM"}, None),
        ("shutdown", {}, ["b@test"]),
        ("shutdown", {"msg": "token=marked"}, ["a@test"]),
    ):
        node.handle_message({"method": method, "arguments": arguments, "destination": destination})
    assert heard == ["ping", "enable_events", "revoke", "shutdown"]
    assert [act.what for act in latest(redis_client, 9)] == [
        ("shutdown", "msg=token=***", "worker=a@test"),
        ("revoke", "task_id=abc", "terminate=True", "signal=SIGTERM", "worker=a@test"),
    ]


def test_what_is_kept_of_the_audit_is_bounded(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_values, "MOST_ENTRIES", 100)
    for _ in range(300):
        Act(at=1.0, by="a@b", what=("scale",)).add_to(redis_client, FleetKeys().audit())
    assert 100 <= redis_client.xlen(FleetKeys().audit()) < 250, "whole nodes of the stream go"


def test_secrets_are_masked_and_lines_stay_lines() -> None:
    given = (
        "redis://u:marked@h/0",
        "password=marked",
        "api_key=marked",
        "--auth-token=marked",
        "Cookie: marked",
        "a\nb",
        *("--token", "marked", "--author", "Ann"),
        *("--PASSWORD", "--yes", "--api-key", "marked"),
        {"user": "ann", "password": "marked"},
        '{"secret" : "marked"}',
        "https://h/?sig=1&access_token=marked",
        "plain=1",
    )
    kept = without_secrets(given)
    assert "marked" not in " ".join(kept)
    assert kept[-1] == "plain=1"
    assert {"Ann", "--yes"} <= set(kept), "the value of another option, and an option, are none"
    assert "\n" not in "".join(kept)


SHOWING = {
    *("api", "audit", "config acl", "config check", "config convert", "config show", "config systemd", "doctor"),
    *("events list", "events refused", "run groups", "run list", "run show"),
    *("events tail", "export", "forums list", "health", "history", "init", "job list", "job show", "logs"),
    *(
        "mcp",
        "read",
        "schedule list",
        "search",
        "services check",
    ),
    *(
        "services list",
        "services show",
        "services versions list",
        "sites check",
    ),
    *("sites list", "sites new", "sql", "status", "why"),
    *("dead list", "dead items list", "dead messages list"),
}
"""They change nothing of the fleet, its Redis or its database; those who use the API are audited with each act."""


def all_words(command: Any, path: str = "") -> Iterator[str]:
    """Yield the words of each command below a group."""
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from all_words(one, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def test_every_changing_command_exists() -> None:
    known = set(all_words(program()))
    assert _CHANGING - known == set()
    assert known - _CHANGING == SHOWING, "a new command stands in `_CHANGING`, or here"
    assert is_changing(["scale", "a=1"])
    assert is_changing(["dead", "purge", "--yes"])
    assert is_changing(["dead", "items", "replay"])
    assert not is_changing([])
    assert not is_changing(["schedule", "list"])
    assert not is_changing(["limit", "--json"])
