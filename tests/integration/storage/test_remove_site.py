"""All rows of a site go, in each kind of database; those of others and their places in the log stay."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import inspect, text

from forums.storage import Database, parse
from forums.storage.read.event_reader import EventLog
from forums.storage.read.search import Wanted, find
from forums.storage.write import remove_site
from forums.storage.write.changes import BEGINNING, Change
from forums.storage.write.remove_site import remove_rows, rows_of_site
from forums.storage.write.upsert import append
from tests.support.items import at, check, comment, post, scan, wire


def items(site: str) -> list[dict[str, Any]]:
    of: dict[str, Any] = {"site": site}
    return [
        scan(outcome="gap", **of),
        *(post(f"p{n}", body=f"garlic {site}", **of) for n in range(4)),
        *(comment(f"c{n}", body="spelt", **of) for n in range(7)),
        check(id="p1", post_id="p1", **of),
    ]


@pytest.fixture
def filled(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr(remove_site, "_AT_ONCE", 3)
    mixed = [one for pair in zip(items("demo"), items("demo2"), strict=True) for one in pair]
    later = [post("p1", site=site, body="edited", fetched_at=at(20)) for site in ("demo", "demo2")]
    for batch in (mixed, later, items("demo")):
        assert database.write([parse(wire(item)) for item in batch]) == []
    with database.engine.begin() as connection:
        at_s = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
        append(connection, [Change("breaker", site, "1", "", 1, "opened", "", at=at_s) for site in ("demo", "demo2")])
        connection.execute(text("CREATE TABLE gaps (site VARCHAR(100))"))  # as a database of version 4 has it
        connection.execute(text("INSERT INTO gaps VALUES ('demo'), ('demo2')"))
    return database


def everything(database: Database) -> dict[str, list[str]]:
    with database.engine.connect() as connection:
        names = [name for name in inspect(connection).get_table_names() if not name.startswith("search_words")]
        return {name: [repr(tuple(row)) for row in connection.execute(text(f"SELECT * FROM {name}"))] for name in sorted(names)}


def test_nothing_names_the_site_afterwards_and_the_other_one_is_as_it_was(filled: Database) -> None:
    before, log = everything(filled), EventLog(filled)
    events = [one for one in log.read(BEGINNING, fleet=True) if one.site == "demo2"]
    assert any("'demo'" in row or '"demo"' in row for rows in before.values() for row in rows)
    counted = rows_of_site(filled, "demo")
    assert (counted["posts"], counted["comments"], counted["revisions"]) == (4, 7, 1)
    assert remove_rows(filled, "demo") == counted
    after = everything(filled)
    assert not [row for rows in after.values() for row in rows if "'demo'" in row or '"demo"' in row]
    for name, rows in before.items():
        if name not in ("events", "search_rows"):  # these change their numbers
            assert after[name] == [row for row in rows if "'demo'" not in row], name
    assert log.read(BEGINNING, fleet=True) == events, "with their positions"
    assert log.latest(9, of_fleet=True)[0].site == "demo2"
    assert find(filled, Wanted(text="garlic")).number == 4 - 1, "of the other site, one of whose posts was edited"
    assert remove_rows(filled, "demo") == {}, "repeatable"


def test_the_words_of_the_larger_part_are_not_kept(filled: Database) -> None:
    with filled.engine.connect() as connection:
        if connection.dialect.name != "sqlite":
            pytest.skip("only SQLite keeps words without a row")
    more = [post(f"q{n}", site="demo", body="unheardof") for n in range(5)]
    assert filled.write([parse(wire(item)) for item in more]) == []
    remove_rows(filled, "demo")
    with filled.engine.connect() as connection:
        match = "SELECT count(*) FROM search_words WHERE search_words MATCH :word"
        assert connection.execute(text(match), {"word": "wunheardof"}).scalar() == 0
        assert connection.execute(text(match), {"word": "wspelt"}).scalar() == 7


def test_items_that_come_later_are_dropped(filled: Database) -> None:
    filled.removed = lambda: {"demo"}
    remove_rows(filled, "demo")
    late = [*items("demo"), *items("demo2")]
    assert filled.write([parse(wire(item)) for item in late]) == []
    assert rows_of_site(filled, "demo") == {}
    assert rows_of_site(filled, "demo2")["comments"] == 7
