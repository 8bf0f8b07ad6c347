"""Edits, removals, checks: what is stored is a function of what was seen, not of the order in which it arrived."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from forums.freshness import Rechecks, next_check
from forums.scheduling.rechecking import take_due
from forums.storage import Database, checks, comments, parse, posts, revisions, scans
from forums.storage.schema.tables import events, forums, metadata, sites
from forums.storage.write.changes import Change, changes_of
from tests.support.examples import examples
from tests.support.items import START, at, check, comment, forum, post, scan, wire


def write(database: Database, *items: dict[str, Any]) -> None:
    assert database.write([parse(wire(item)) for item in items]) == []


def rows(database: Database, table: Any) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in database.stream(table.select().order_by(*table.primary_key.columns))]


def one(database: Database, table: Any) -> dict[str, Any]:
    [row] = rows(database, table)
    return row


def minute(n: float) -> datetime:
    return START + timedelta(minutes=n)


def texts(database: Database) -> list[tuple[str, datetime, datetime]]:
    return sorted((row["body"], row["first_fetched_at"], row["last_fetched_at"]) for row in rows(database, revisions))


# --- edits


def test_an_edit_keeps_the_text_of_before(database: Database) -> None:
    write(database, comment(body="a", author="bob", fetched_at=at(1)))
    write(database, comment(body="a", author="bob (admin)", fetched_at=at(2)))
    write(database, comment(body="b", author="bob (admin)", edited_at=at(2.5), fetched_at=at(3)))
    now, before = one(database, comments), one(database, revisions)
    assert (now["body"], now["edited_at"], now["changed_at"], now["first_seen_at"]) == ("b", minute(2.5), minute(3), minute(1))
    assert (before["kind"], before["id"], before["body"], before["author"]) == ("comment", "c1", "a", "bob (admin)")
    assert (before["first_fetched_at"], before["last_fetched_at"]) == (minute(1), minute(2))


def test_other_fields_change_without_a_revision(database: Database) -> None:
    write(database, post(fetched_at=at(1)))
    write(database, post(fetched_at=at(2), views=99, author="ada II", body_html="<p>new</p>", forum_id="f2", sticky=True))
    now = one(database, posts)
    assert (now["views"], now["author"], now["body_html"], now["forum_id"], now["sticky"]) == (
        99,
        "ada II",
        "<p>new</p>",
        "f2",
        True,
    )
    assert (now["changed_at"], now["fetched_at"]) == (minute(1), minute(2))
    assert rows(database, revisions) == []


def test_a_new_title_is_an_edit(database: Database) -> None:
    write(database, post(title="a", fetched_at=at(1)), post(title="b", fetched_at=at(2)))
    assert one(database, revisions)["title"] == "a"


def test_the_text_of_before_again_is_no_revision_any_more(database: Database) -> None:
    write(database, *(comment(body=body, fetched_at=at(n)) for n, body in enumerate("abcb")))
    assert one(database, comments)["changed_at"] == minute(1)
    assert texts(database) == [("a", minute(0), minute(0)), ("c", minute(2), minute(2))]


def test_an_older_state_that_comes_late_is_a_revision(database: Database) -> None:
    write(database, comment(body="b", fetched_at=at(5)))
    write(database, comment(body="a", fetched_at=at(1)))
    write(database, comment(body="b", fetched_at=at(2)))
    now = one(database, comments)
    assert (now["body"], now["fetched_at"], now["first_seen_at"], now["changed_at"]) == ("b", minute(5), minute(1), minute(2))
    assert texts(database) == [("a", minute(1), minute(1))]


def test_a_better_reading_of_the_same_page_is_no_edit(database: Database) -> None:
    write(database, comment(body="menu a", fetched_at=at(1)), comment(body="menu b", fetched_at=at(2)))
    write(database, comment(body="a", fetched_at=at(1)), comment(body="b", fetched_at=at(2)))  # `trawl sites reparse`
    assert one(database, comments)["body"] == "b"
    assert one(database, comments)["changed_at"] == minute(2)
    assert texts(database) == [("a", minute(1), minute(1))]


# --- removals


def test_a_removed_state_keeps_the_text_and_a_later_one_brings_it_back(database: Database) -> None:
    write(database, comment(body="a", fetched_at=at(1)))
    write(database, comment(body="[removed]", author=None, deleted=True, fetched_at=at(2)))
    write(database, comment(body="[removed]", author=None, deleted=True, fetched_at=at(3)))
    gone = one(database, comments)
    assert (gone["body"], gone["author"], gone["deleted_at"], gone["fetched_at"]) == ("a", "bob", minute(2), minute(1))
    write(database, comment(body="a", fetched_at=at(4)))
    assert one(database, comments)["deleted_at"] is None
    assert rows(database, revisions) == []


def test_what_was_only_seen_removed_gets_its_text_from_any_other_state(database: Database) -> None:
    write(database, comment(body="[removed]", deleted=True, fetched_at=at(2)))
    assert (one(database, comments)["body"], one(database, comments)["content_hash"]) == ("[removed]", "")
    write(database, comment(body="a", fetched_at=at(1)))
    assert (one(database, comments)["body"], one(database, comments)["deleted_at"]) == ("a", minute(2))


def test_a_whole_reading_finds_what_is_missing(database: Database) -> None:
    write(database, post(fetched_at=at(1)), comment("c1", fetched_at=at(1)), comment("c2", fetched_at=at(1)))
    write(database, comment("other", post_id="p2", fetched_at=at(1)))
    write(database, comment("c2", fetched_at=at(10)), check(started_at=at(9), finished_at=at(11)))
    assert {row["id"]: row["deleted_at"] for row in rows(database, comments)} == {"c1": minute(9), "c2": None, "other": None}
    write(
        database, comment("c1", fetched_at=at(20)), comment("c2", fetched_at=at(20)), check(started_at=at(19), finished_at=at(21))
    )
    assert [row["deleted_at"] for row in rows(database, comments)] == [None] * 3


@pytest.mark.parametrize("changes", [{"whole": False}, {"consistent": False}])
def test_a_partial_or_disturbed_reading_removes_nothing(database: Database, changes: dict[str, Any]) -> None:
    write(database, comment(fetched_at=at(1)), check(started_at=at(9), **changes))
    assert one(database, comments)["deleted_at"] is None


def test_a_thread_that_is_gone_takes_its_comments_with_it(database: Database) -> None:
    write(database, post(fetched_at=at(1)), comment(fetched_at=at(1)), check(gone=True, whole=False, started_at=at(9)))
    assert (one(database, posts)["deleted_at"], one(database, comments)["deleted_at"]) == (minute(9), minute(9))
    write(database, post(fetched_at=at(20)))
    assert (one(database, posts)["deleted_at"], one(database, comments)["deleted_at"]) == (None, minute(9))


def test_a_comment_that_is_stored_after_the_check_that_missed_it_is_removed(database: Database) -> None:
    write(database, check(started_at=at(9)))
    write(database, comment("c1", fetched_at=at(8)), comment("c2", fetched_at=at(9)))
    assert [row["deleted_at"] for row in rows(database, comments)] == [minute(9), None]


# --- the next check


def due(at_min: float, *, age: float, changes: int = 0, pages: int = 1, **limits: float) -> datetime:
    """When a thread is due that was checked then, at this age (minutes)."""
    wait_s = next_check(age * 60, changes, requests=pages + 1, **({"recheck_s": 1e9} | limits))
    assert wait_s is not None
    return minute(at_min) + timedelta(seconds=wait_s)


def test_a_check_sets_when_to_look_again_by_the_age_of_the_thread(database: Database) -> None:
    day = 24 * 60
    write(database, post(created_at=at(0), last_reply_at=at(0), fetched_at=at(day)))
    assert (one(database, posts)["checked_at"], one(database, posts)["next_check_at"]) == (None, None)
    write(database, check(started_at=at(day), finished_at=at(day)))
    assert (one(database, posts)["checked_at"], one(database, posts)["next_check_at"]) == (minute(day), due(day, age=day))
    write(database, check(started_at=at(day - 60), finished_at=at(day - 60)))  # an older one that is late
    assert one(database, posts)["checked_at"] == minute(day)


def test_changes_shorten_the_time_to_the_next_check_also_when_it_is_told_twice(database: Database) -> None:
    day = 24 * 60
    quiet = [
        post(created_at=at(0), last_reply_at=at(0), fetched_at=at(1)),
        comment("c1", fetched_at=at(1)),
        comment("c2", fetched_at=at(1)),
    ]
    found = [comment("c2", body="edited", fetched_at=at(day)), check(started_at=at(day), finished_at=at(day))]
    write(database, *quiet)
    for _ in range(2):
        write(database, *found)
        assert one(database, posts)["next_check_at"] == due(day, age=day - 1, changes=2)  # one edit, one removal


def test_a_thread_that_got_new_comments_is_young_again(database: Database) -> None:
    day = 24 * 60
    write(database, post(created_at=at(0), last_reply_at=at(0), fetched_at=at(1)))
    write(database, comment("c1", created_at=at(day - 5), fetched_at=at(day)), check(started_at=at(day), finished_at=at(day)))
    assert one(database, posts)["next_check_at"] == due(day, age=5)
    later = {"started_at": at(2 * day), "finished_at": at(2 * day + 1), "first_page": 3, "last_page": 3, "whole": False}
    write(database, check(mode="changed", **later))
    assert one(database, posts)["next_check_at"] == due(2 * day + 1, age=1, pages=3), "as its list says"


def test_of_the_threads_that_are_due_those_come_first_that_wait_for_the_most_of_their_intervals(database: Database) -> None:
    hour = timedelta(hours=1)
    threads = (("day", 24, 22), ("hour", 2.5, 1), ("now", 1, 0), ("early", 1, 2))
    write(database, *(post(id_) for id_, _, _ in threads))
    with database.engine.begin() as connection:
        for id_, checked, wait in threads:
            times = {"checked_at": START - checked * hour, "next_check_at": START - checked * hour + wait * hour}
            connection.execute(update(posts).where(posts.c.id == id_).values(times))

    def due() -> list[str]:
        return [thread.id for thread in take_due(database, "demo", START, limit=2, lease=hour)]

    assert [due(), due(), due()] == [["now", "hour"], ["day"], []]


def test_old_threads_and_those_that_stay_gone_are_left_alone(database: Database) -> None:
    month = 31 * 24 * 60
    write(database, post("old", created_at=at(0), last_reply_at=at(0)), check("old", started_at=at(month), finished_at=at(month)))
    write(database, post("gone", created_at=at(0)), check("gone", gone=True, started_at=at(20), finished_at=at(20)))
    due = {row["id"]: row["next_check_at"] for row in rows(database, posts)}
    assert due["old"] is None
    assert due["gone"] is not None  # perhaps it comes back
    write(database, check("gone", gone=True, started_at=at(20.3), finished_at=at(20.3)))
    assert next(row for row in rows(database, posts) if row["id"] == "gone")["next_check_at"], "its request was repeated"
    write(database, check("gone", gone=True, started_at=at(90), finished_at=at(90)))
    assert [row["next_check_at"] for row in rows(database, posts)] == [None, None]


def test_a_sites_own_time_to_look_back_counts(database: Database) -> None:
    database.rechecks = {"demo": Rechecks(until_s=600, min_interval_s=1)}.__getitem__
    thread = post(created_at=at(0), last_reply_at=at(0))
    write(database, thread, check(started_at=at(0), finished_at=at(0)))
    assert one(database, posts)["next_check_at"] == due(0, age=0, min_interval_s=1, recheck_s=600)
    write(database, check(started_at=at(11), finished_at=at(11)))
    assert one(database, posts)["next_check_at"] is None


def test_a_page_that_does_not_name_the_forum_leaves_what_is_known_of_it(database: Database) -> None:
    write(database, post(forum_id=None, fetched_at=at(1)))
    assert one(database, posts)["forum_id"] == ""
    write(database, post(forum_id="f3", fetched_at=at(2)), post(forum_id=None, views=9, fetched_at=at(3)))
    assert (one(database, posts)["forum_id"], one(database, posts)["views"]) == ("f3", 9)
    write(database, post(forum_id=None, fetched_at=at(4)))
    assert one(database, posts)["forum_id"] == "f3"


# --- sites and forums


def test_everything_that_comes_names_its_site_and_forum(database: Database) -> None:
    write(
        database,
        post(site="b", forum_id="f7", fetched_at=at(5)),
        comment(site="c"),
        scan("f1", started_at=at(2)),
        forum("f1", parent_id="f0"),
    )
    write(database, scan("*", started_at=at(2)))  # of an index page
    assert [row["name"] for row in rows(database, sites)] == ["b", "c", "demo"]
    assert [(row["site"], row["id"], row["name"], row["first_seen_at"]) for row in rows(database, forums)] == [
        ("b", "f7", None, minute(5)),
        ("demo", "f1", "Name of f1", minute(2)),
    ]
    write(database, forum("f1", name="older", fetched_at=at(9)), forum("f1", name="newer", fetched_at=at(12)))
    assert rows(database, forums)[1]["name"] == "newer"


# --- any order, any batches, any number of times


def later(n: float, **changes: Any) -> dict[str, Any]:
    return scan(**{"started_at": at(n), "finished_at": at(n + 1), "stopped": "overlap", "newest_at": at(n)} | changes)


TABLES = (posts, comments, revisions, checks, scans, forums, sites)
TIMES = st.integers(0, 12)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What was seen of a small site: at one moment a thing is in one state, and the same moment is told the same way."""
    items: dict[tuple[Any, ...], dict[str, Any]] = {}
    for n in draw(st.lists(TIMES, max_size=8, unique=True)):
        body = draw(st.sampled_from("ab"))
        items["post", n] = post(body=body, views=n, deleted=draw(st.sampled_from([False, False, True])), fetched_at=at(n))
    for n, id_ in draw(st.lists(st.tuples(TIMES, st.sampled_from(["c1", "c2"])), max_size=10, unique=True)):
        items[id_, n] = comment(id_, body=draw(st.sampled_from("abc")), position=n, fetched_at=at(n))
    for n in draw(st.lists(TIMES, max_size=3, unique=True)):
        gone = draw(st.booleans())
        items["check", n] = check(started_at=at(n), finished_at=at(n + 0.5), gone=gone, whole=draw(st.booleans()))
    for n in draw(st.lists(TIMES, max_size=5, unique=True)):
        items["scan", n] = later(
            n,
            outcome=draw(st.sampled_from(["complete", "gap", "failed"])),
            stopped=draw(st.sampled_from(["overlap", "end", "limit"])),
            oldest_at=draw(st.none() | TIMES.map(at)),
            newest_at=draw(st.none() | TIMES.map(at)),
        )
    for n in draw(st.lists(TIMES, max_size=2, unique=True)):
        items["forum", n] = forum(name=str(n), fetched_at=at(n))
    return list(items.values())


def facts(database: Database) -> dict[str, list[dict[str, Any]]]:
    """Everything stored, but not what depends on the order: see `changes.py` on the time in `deleted_at`; the next check counts
    the changes that were found by then, and so does a row's version.
    """
    found = {table.name: rows(database, table) for table in TABLES}
    for row in found["posts"] + found["comments"]:
        row["deleted_at"] = row["deleted_at"] is not None
        row.pop("next_check_at", None)
        del row["version"]
    return found


def told_of(database: Database) -> list[Change]:
    """All events. What they say of a row last is its state, and its versions have no gap and no repetition."""
    found = [change for row in rows(database, events) for change in changes_of(row["changes"])]
    by_row: dict[tuple[str, str, str], list[Change]] = {}
    for change in found:
        by_row.setdefault((change.row, change.site, change.id), []).append(change)
    for table in (posts, comments):
        for row in rows(database, table):
            mine = by_row.pop((table.name[:-1], row["site"], row["id"]))
            assert [change.version for change in mine] == list(range(1, row["version"] + 1))
            assert mine[-1].hash == row["content_hash"]
            removals = [change.kind for change in mine if change.kind in ("deleted", "restored")]
            assert (removals[-1:] == ["deleted"]) == (row["deleted_at"] is not None)
    assert by_row == {}
    return found


def clear(database: Database) -> None:
    with database.engine.begin() as connection:
        for table in metadata.tables.values():
            if table.name != "trawl_schema":
                connection.execute(delete(table))


@settings(
    max_examples=examples(15),
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories(), seed=st.integers(0, 2**32))
def test_order_batches_and_repetition_do_not_matter(database: Database, history: list[dict[str, Any]], seed: int) -> None:
    generator = random.Random(seed)
    clear(database)
    in_order = sorted(history, key=lambda item: item.get("fetched_at") or item["finished_at"])
    for item in in_order:
        write(database, item)
    expected, told = facts(database), told_of(database)
    write(database, *in_order)
    assert facts(database) == expected
    assert told_of(database) == told
    clear(database)
    shuffled = generator.sample(history, len(history)) + generator.choices(history, k=len(history) // 2)
    while shuffled:
        cut = generator.randint(1, len(shuffled))
        write(database, *shuffled[:cut])
        shuffled = shuffled[cut:]
    assert facts(database) == expected
    told_of(database)


def test_a_page_that_does_not_know_a_comment_s_place_leaves_it(database: Database) -> None:
    write(database, comment(fetched_at=at(1), position=7))
    write(database, comment(fetched_at=at(2), body="edited", position=None))
    assert (one(database, comments)["position"], one(database, comments)["body"]) == (7, "edited")
    write(database, comment(fetched_at=at(3), body="edited", position=6))
    assert one(database, comments)["position"] == 6
