"""The log of events: each change of a row once, in order, with the text of its version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from forums.storage import Database, StorageError, parse, posts
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.schema.tables import events
from forums.storage.write.changes import BEGINNING, Position
from redis_components.errors import ConfigError
from tests.support.items import at, check, comment, post, wire


def write(database: Database, *items: dict[str, Any]) -> None:
    assert database.write([parse(wire(item)) for item in items]) == []


def told(database: Database, after: Position = BEGINNING) -> list[tuple[str, str]]:
    return [(event.id.partition("/")[2], event.type) for event in EventLog(database).read(after)]


def test_each_change_of_a_row_is_told_once_with_its_version(database: Database) -> None:
    write(database, comment(fetched_at=at(1)), post(fetched_at=at(1)))
    write(database, post(fetched_at=at(2), views=99), comment(fetched_at=at(2)))  # seen again: nothing happened
    write(database, comment(body="edited", fetched_at=at(3)), post(fetched_at=at(3), forum_id="f2"))
    write(database, check(started_at=at(4), finished_at=at(4.5)))
    write(database, comment(body="edited again", fetched_at=at(5)))
    expected = [
        ("post/p1@1", "new"),
        ("comment/c1@1", "new"),
        ("post/p1@2", "moved"),
        ("comment/c1@2", "edited"),
        ("comment/c1@3", "deleted"),
        ("comment/c1@4", "restored"),
        ("comment/c1@5", "edited"),
    ]
    assert told(database) == expected
    write(database, comment(body="edited again", fetched_at=at(5)), check(started_at=at(4), finished_at=at(4.5)))
    assert told(database) == expected  # a batch that is stored again, as after a writer's death


def test_an_event_has_the_text_of_its_version_however_late_it_is_read(database: Database) -> None:
    write(database, post(title="first title", body="first", author="ann", fetched_at=at(1)))
    write(database, post(title="second title", body="second", author="bob", fetched_at=at(2)))
    write(database, comment(body="reply", fetched_at=at(2)))
    first, second, reply = EventLog(database).read(BEGINNING)
    assert (first.title, first.text, first.author) == ("first title", "first", "ann")
    assert (second.title, second.text, second.author) == ("second title", "second", "bob")
    assert (reply.title, reply.text, reply.forum, reply.thread) == ("second title", "reply", "f1", "p1")


def test_a_better_reading_of_the_same_page_is_not_an_edit(database: Database) -> None:
    write(database, comment(body="hal", fetched_at=at(1)))
    write(database, comment(body="hallo", fetched_at=at(1)))
    assert told(database) == [("comment/c1@1", "new"), ("comment/c1@2", "corrected")]


def test_a_thread_that_is_gone_is_deleted_once_with_its_comments(database: Database) -> None:
    write(database, post(fetched_at=at(1)), comment(fetched_at=at(1)), comment(id="c2", fetched_at=at(1)))
    gone = check(started_at=at(4), finished_at=at(4.5), gone=True, whole=False)
    write(database, gone, check(started_at=at(5), finished_at=at(5.5), gone=True, whole=False))
    write(database, gone)
    deleted = [("comment/c1@2", "deleted"), ("comment/c2@2", "deleted"), ("post/p1@2", "deleted")]
    assert told(database)[3:] == deleted
    assert EventLog(database).read(BEGINNING)[-1].deleted_at is not None


def test_what_the_database_refuses_is_not_told(database: Database) -> None:
    bad = comment(id="c9", position=2**70)
    refused = database.write([parse(wire(one)) for one in (comment(), post())] + [_unstorable(bad)])
    assert len(refused) == 1
    assert told(database) == [("post/p1@1", "new"), ("comment/c1@1", "new")]


def _unstorable(item: dict[str, Any]) -> Any:
    import msgspec

    good = parse(wire(item | {"position": 1}))
    return msgspec.structs.replace(good, position=item["position"])


def test_what_an_older_trawl_wrote_is_told_from_its_next_change_on(database: Database) -> None:
    write(database, post(body="old", fetched_at=at(1)))
    with database.engine.begin() as connection:
        connection.execute(update(posts).values(version=0, content_hash=None))
        connection.execute(delete(events))
    write(database, post(body="old", fetched_at=at(2)))
    assert told(database) == []
    with database.engine.begin() as connection:
        connection.execute(update(posts).values(content_hash=None))
    write(database, post(body="new", fetched_at=at(3)))
    assert told(database) == [("post/p1@1", "edited")]


def test_reading_goes_on_from_any_position(database: Database) -> None:
    for minute in range(3):
        write(database, *[comment(id=f"c{minute}-{n}", fetched_at=at(minute)) for n in range(3)])
    log = EventLog(database)
    everything = log.read(BEGINNING)
    assert len(everything) == 9
    by_steps: list[Event] = []
    while step := log.read(by_steps[-1].at if by_steps else BEGINNING, most=2):
        by_steps += step
    assert by_steps == everything
    assert [log.waiting(one.at) for one in everything] == list(range(8, -1, -1))
    assert log.at([everything[7].at, everything[1].at, Position(99, 0)]) == [everything[1], everything[7]]
    assert log.read(log.end()) == []
    write(database, comment(id="later", fetched_at=at(9)))
    assert [event.item for event in log.read(everything[-1].at)] == ["later"]


def test_a_number_is_not_used_again_when_all_events_were_dropped(database: Database) -> None:
    write(database, comment(fetched_at=at(1)))
    log = EventLog(database)
    [first] = log.read(BEGINNING)
    later = datetime.now(UTC) + timedelta(days=8)
    assert log.prune(7) == 0
    assert log.prune(7, now=later) == 1
    write(database, comment(id="c2", fetched_at=at(2)))
    [second] = log.read(first.at)
    assert second.at > first.at
    assert log.since(datetime.now(UTC) - timedelta(hours=1)) < second.at
    assert log.since(later) == log.end()


@pytest.mark.parametrize("text", ["", "x", "-1", "1-x", "1-", "٣", "1-2-3", "9" * 30])
def test_a_position_that_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="position in the event log"):
        Position.parse(text)


def test_the_log_of_a_database_that_is_away_is_a_storage_error(tmp_path: Any) -> None:
    with pytest.raises(StorageError):
        EventLog(Database.from_url(f"sqlite:///{tmp_path / 'none' / 'x.sqlite'}")).end()
