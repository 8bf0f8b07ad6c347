"""Looks back through the newest messages: which threads are checked at once for what a page does not show."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from forums.records.stored import parse, text_digest
from forums.storage import Database
from forums.storage.read.site_figures import depth_of
from forums.storage.schema.tables import posts
from tests.support.items import at, check, comment, post, scan


def write(database: Database, *items: dict[str, Any]) -> None:
    assert database.write([parse(json.dumps(one).encode()) for one in items]) == []


def a_forum(database: Database) -> None:
    """Two threads, read at minute 60; in the first, comments c1 to c9 of minutes 1 to 9, in the second one of minute 5."""
    of_first = [comment(f"c{n}", created_at=at(n), fetched_at=at(60)) for n in range(1, 10)]
    write(
        database,
        *(post(name, created_at=at(0), fetched_at=at(60)) for name in ("p1", "p2")),
        *of_first,
        comment("d1", post_id="p2", created_at=at(5), fetched_at=at(60)),
        *(check(name, started_at=at(60), finished_at=at(60), mode="new") for name in ("p1", "p2")),
    )


def seen(*ids: str, opening: str | None = None) -> list[Any]:
    """Messages of the first thread as a page shows them, the newest first; `opening`: the text of its opening post."""
    rows = [[name, "p1", at(int(name[1:])), None] for name in ids]
    return rows if opening is None else [*rows, ["p1", "p1", at(0), text_digest(opening)]]


def look(*windows: list[Any], minutes: float = 500) -> dict[str, Any]:
    return scan("+", mode="back", started_at=at(minutes), finished_at=at(minutes), pages=len(windows), seen=windows)


def doubted(database: Database) -> set[str]:
    """The threads that are to be checked before all others."""
    with database.engine.connect() as connection:
        rows = connection.execute(select(posts.c.id).where(posts.c.next_check_at == posts.c.checked_at))
        return {row.id for row in rows}


def test_a_thread_is_checked_whose_comment_is_missing_between_its_neighbours(database: Database) -> None:
    a_forum(database)
    write(database, look(seen("c9", "c8", "c7", "c6")))
    assert doubted(database) == set(), "what is older than the page is on another one"
    write(database, look(seen("c9", "c8", "c6", "c5"), minutes=501))
    assert doubted(database) == {"p1"}


def test_an_opening_post_with_another_text_has_its_thread_checked(database: Database) -> None:
    a_forum(database)
    text = post("p1")["body"]
    write(database, look(seen("c2", "c1", opening=text)))
    assert doubted(database) == set()
    write(database, look(seen("c2", "c1", opening=text + "!"), minutes=501))
    assert doubted(database) == {"p1"}


def test_a_thread_that_was_checked_just_now_is_not_doubted_nor_is_one_of_which_half_is_missing(database: Database) -> None:
    a_forum(database)
    write(database, look(seen("c9", "c1")))
    assert doubted(database) == set(), "such a page shows something else"
    write(database, check("p1", started_at=at(490), finished_at=at(490), mode="check", whole=False))
    write(database, look(seen("c9", "c8", "c6", "c5")))
    assert doubted(database) == set(), "a check has seen that it is there"
    write(database, look(seen("c9", "c8", "c6", "c5"), minutes=1000))
    assert doubted(database) == {"p1"}


def test_the_depth_follows_from_what_is_stored_and_what_a_page_shows(database: Database) -> None:
    a_forum(database)
    assert depth_of(database, "demo", 200) == 0, "nobody has looked yet"
    write(database, scan("+", mode="recent", pages=1, threads=5), scan("+", mode="recent", pages=1, threads=0, started_at=at(2)))
    assert (depth_of(database, "demo", 200), depth_of(database, "demo", 2), depth_of(database, "other", 9)) == (3, 2, 0)


def test_a_look_back_counts_as_no_scan_of_a_list(database: Database) -> None:
    a_forum(database)
    write(database, look(seen("c9")))
    assert depth_of(database, "demo", 200) == 0
