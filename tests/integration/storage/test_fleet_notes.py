"""What operators, breakers and the fleet did, from Redis into the log of events."""

from __future__ import annotations

import pytest
import redis

from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.breaker.state import open_breaker
from forums.storage import Database, StorageError, history
from forums.storage.history import log_fleet_notes, log_stream, stream_position
from forums.storage.read.event_reader import EventLog
from forums.storage.write.changes import BEGINNING, Position
from workers.breaker.state import close_breaker
from workers.state.keys import FleetKeys
from workers.state.registry import Registry
from workers.state.reports import Act, Note, note


def told(database: Database) -> list[tuple[str, str, str, str | None]]:
    return [(one.row, one.type, one.site, one.text) for one in EventLog(database).read(BEGINNING, fleet=True)]


def act(client: redis.Redis, *what: str) -> None:
    Act(at=1_700_000_000.0, by="ada@ops", what=what, outcome="done").add_to(client, FleetKeys().audit())


def test_acts_and_breakers_become_events_once_from_when_the_database_knows_the_fleet(
    redis_client: redis.Redis, database: Database
) -> None:
    act(redis_client, "scale", "books=1")  # long ago
    assert log_fleet_notes(redis_client, database) == 0
    act(redis_client, "scale", "books=3")
    act(redis_client, "pause", "--reason", "a quiet night")
    verdict = BlockVerdict(cause=Cause.CHALLENGE, reason="a challenge", excerpt="are you human\x1b[2J")
    assert open_breaker(redis_client, "demo", verdict, BreakerOptions(), url="https://x.test/", kind="list", by="books/0")
    assert not open_breaker(redis_client, "demo", verdict, BreakerOptions(), url="https://x.test/", kind="list", by="books/1")
    assert close_breaker(redis_client, "demo", "a page of the site")
    redis_client.xadd(FleetKeys().notes(), {"note": "{}"})  # somebody else's
    note(redis_client, Note(about="weather", type="changed", said="rain", at=1.0))
    assert log_fleet_notes(redis_client, database) == 4
    assert log_fleet_notes(redis_client, database) == 0
    found = told(database)
    assert found[:2] == [
        ("fleet", "changed", "", "scale books=3 by ada@ops: done"),
        ("fleet", "changed", "", "pause --reason 'a quiet night' by ada@ops: done"),
    ]
    assert [one[:3] for one in found[2:]] == [("breaker", "opened", "demo"), ("breaker", "closed", "demo")]
    assert "a challenge" in str(found[2][3])
    assert "\x1b" not in str(found[2][3])
    assert len({one.id for one in EventLog(database).read(BEGINNING, fleet=True)}) == 4


def test_of_two_writers_one_moves_on_and_a_failed_transaction_moves_nothing(
    redis_client: redis.Redis, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_fleet_notes(redis_client, database)
    act(redis_client, "roll")
    key = FleetKeys().audit()
    before = stream_position(database, key)

    def failing(*_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("forums.storage.history.append", failing)
        with pytest.raises(StorageError):
            log_fleet_notes(redis_client, database)
    assert stream_position(database, key) == before
    assert log_fleet_notes(redis_client, database) == 1
    assert not log_stream(database, key, before, Position(9, 9), []), "somebody else was quicker"
    assert [one[3] for one in told(database)] == ["roll by ada@ops: done"]


def test_a_key_of_another_type_stops_nothing(redis_client: redis.Redis, database: Database) -> None:
    log_fleet_notes(redis_client, database)
    redis_client.set(FleetKeys().errors(), "not a list")
    verdict = BlockVerdict(cause=Cause.CHALLENGE, reason="a challenge")
    assert open_breaker(redis_client, "demo", verdict, BreakerOptions(), url="https://x.test/", kind="list", by="books/0")
    assert log_fleet_notes(redis_client, database) == 1, "it is told, though not among the errors"
    redis_client.set(FleetKeys().audit(), "not a stream")
    note(redis_client, Note(about="fleet", type="changed", said="books sized itself from 1 to 2 crawlers", at=1.0))
    assert log_fleet_notes(redis_client, database) == 1


@pytest.mark.parametrize("id_", ["18446744073709551614-1", "1-18446744073709551614", "1-2147483648"])
def test_an_entry_with_an_id_beyond_all_bounds_stops_neither_the_writer_nor_the_other_stream(
    redis_client: redis.Redis, database: Database, id_: str
) -> None:
    log_fleet_notes(redis_client, database)
    redis_client.xadd(FleetKeys().audit(), {"act": "somebody else's"}, id=id_)
    note(redis_client, Note(about="fleet", type="changed", said="books sized itself from 1 to 2 crawlers", at=1.0))
    assert log_fleet_notes(redis_client, database) == 1
    assert log_fleet_notes(redis_client, database) == 0
    (said,) = Registry(redis_client).errors()
    assert (said.where, "is not a position" in said.what) == (FleetKeys().audit(), True)


def test_a_stream_that_grows_without_end_takes_a_round_so_long_and_no_longer(
    redis_client: redis.Redis, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_AT_ONCE", 2)
    monkeypatch.setattr(history, "_MOST_STEPS", 3)
    log_fleet_notes(redis_client, database)
    for number in range(9):
        note(redis_client, Note(about="fleet", type="changed", said=f"{number}", at=1.0))
    assert [log_fleet_notes(redis_client, database) for _ in range(3)] == [6, 3, 0]
    assert [one[3] for one in told(database)] == [f"{number}" for number in range(9)]
