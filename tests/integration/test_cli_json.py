"""`--json` has one form: a line of JSON, names in snake_case, and each time as ISO 8601 with its zone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from cli.views.output import in_plain_json
from redis_components.keys import CrawlKeys
from tests.support.trawl_command import Trawl, commands
from workers.state.jobs import Job, Jobs
from workers.state.nodes import NodeRecord, Nodes

SNAKE_CASE = re.compile(r"[a-z0-9_]+")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
ROWS = [  # an array, with an object for each row
    *("job list", "limit", "autoscale", "audit", "services list", "history", "config show"),
    *("services versions list forum_list", "doctor"),
]
WHOLE = ["status", "forums", "dead", "dead items", "dead messages", "schedule list", "sites list"]
"""More than the rows of a list: an object that has them."""
BY_NAME = {"counts", "foreign", "unreadable", "kwargs", "arguments", "settings", "wrong_files", "no_room"}
"""Objects whose keys are names that users have given."""


@pytest.fixture
def trawl(
    redis_url: str, tmp_path: Path, empty_sqlite: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Trawl:
    (tmp_path / "data").mkdir(0o700)
    shutil.copy(empty_sqlite, tmp_path / "data")
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each field with its value, also those of objects within it."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield ("" if name in BY_NAME else key), one
            yield from fields(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from fields(one, name)


def some_fleet(client: redis.Redis) -> None:
    """Write records with times of each kind."""
    now = datetime.now(UTC).timestamp()
    client.rpush(CrawlKeys.for_spider("forum_list").items, b'{"kind": "post"}')
    Nodes(client).beat(NodeRecord(name="a@host", services=("forum_list",), capacity=4, beat_at=now, started_at=now - 9.5))
    Jobs(client).add(Job(id="books.one", service="books", started_at=now - 5))


@pytest.mark.parametrize("line", [*ROWS, *WHOLE])
def test_json_of_a_list_has_the_one_form(line: str, trawl: Trawl, redis_client: redis.Redis) -> None:
    some_fleet(redis_client)
    trawl("scale", "forum_list=1")
    trawl("limit", "example", "--rate", "2")
    said = trawl(*line.split(), "--json").out
    assert said.count("\n") == 1
    found = json.loads(said)
    assert isinstance(found, list if line in ROWS else dict), said
    assert all(isinstance(row, dict) for row in found) if line in ROWS else True
    for name, value in fields(found):
        assert not name or SNAKE_CASE.fullmatch(name), name
        if name == "at" or name.endswith("_at"):
            assert value is None or MOMENT.fullmatch(value), (name, value)
    if line in ("job list", "limit", "audit", "config show"):
        assert found, "there is something to look at"


class Row(msgspec.Struct):
    """A record with times."""

    at: float
    seen_at: float
    pages: float


@dataclass
class Kept:
    """A record that has one."""

    made: datetime
    rows: tuple[Row, ...]


def test_times_and_records_become_texts_and_objects() -> None:
    made = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    assert in_plain_json(Kept(made=made, rows=(Row(at=0.0, seen_at=1_800_000_000.0, pages=2.0),))) == {
        "made": "2026-01-31T10:00:00Z",
        "rows": [{"at": None, "seen_at": "2027-01-15T08:00:00Z", "pages": 2.0}],
    }
    assert in_plain_json({"look_at": 3, "at": "12:00"}) == {"look_at": 3, "at": "12:00"}, "counts and texts are left alone"
