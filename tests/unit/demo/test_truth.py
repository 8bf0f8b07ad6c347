"""The demo's verdict: it must see every way in which a database can differ from the forum."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo.command import print_coverage
from demo.compare import Coverage, Piece, compare, judge
from demo.forum.content import comment_hash, post_hash
from demo.forum.world import Mix, Size, World
from demo.processes import DemoOptions
from forums.records.stored import Comment, Post
from forums.storage import Database, comments, posts
from redis_components.errors import ConfigError

FETCHED = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture
def world() -> World:
    return World(seed=3, size=Size(forums=2, threads=6, comments=4.0))


@pytest.fixture
def database(tmp_path: Path, world: World) -> Iterator[Database]:
    """Everything that the world has, stored."""
    with Database.from_url(f"sqlite:///{tmp_path}/trawl.sqlite") as database:
        assert not database.write([*stored_posts(world), *stored_comments(world)])
        yield database


def stored_posts(world: World) -> list[Post]:
    names = ("id", "forum_id", "title", "body", "author")
    return [
        Post(
            site="demo",
            **{name: getattr(thread.post, name) for name in names},
            created_at=datetime.fromisoformat(thread.post.created_at),
            views=1,
            reply_count=thread.reply_count,
            last_reply_at=None,
            url="http://forum/p",
            fetched_at=FETCHED,
        )
        for thread in world.threads.values()
    ]


def stored_comments(world: World) -> list[Comment]:
    names = ("id", "post_id", "parent_id", "author", "body")
    return [
        Comment(
            site="demo",
            **{name: getattr(comment, name) for name in names},
            created_at=datetime.fromisoformat(comment.created_at),
            url="http://forum/c",
            fetched_at=FETCHED,
        )
        for thread in world.threads.values()
        for comment in thread.comments
    ]


def truth(world: World) -> dict[str, Any]:
    return {"posts": dict(world.post_hashes), "comments": dict(world.comment_hashes), **vars(world.history)}


def shown(world: World, kind: str) -> dict[str, Piece]:
    """What a perfect crawl has stored of it."""
    hashes = world.post_hashes if kind == "posts" else world.comment_hashes
    return {piece: Piece(piece, content, False) for piece, content in hashes.items()}


def test_a_database_that_has_everything_is_complete(database: Database, world: World) -> None:
    of_posts, of_comments = compare(database, truth(world), "demo")
    assert of_posts.complete
    assert of_comments.complete
    assert (of_posts.expected, of_posts.stored, of_posts.share) == (12, 12, 1.0)
    assert of_comments.expected == of_comments.stored == len(world.comment_hashes) > 12


def test_what_the_forum_has_and_the_database_has_not_is_missing(database: Database, world: World) -> None:
    while len(world.post_hashes) == 12:
        world.advance()
    of_posts, of_comments = compare(database, truth(world), "demo")
    assert of_posts.missing == ("p13",)
    assert not of_posts.complete
    assert len(of_comments.missing) == world.revision - 1
    assert of_posts.share == pytest.approx(12 / 13)


def test_a_row_with_other_content_is_wrong(database: Database, world: World) -> None:
    with database.engine.begin() as connection:
        connection.execute(posts.update().where(posts.c.id == "p3").values(title="edited by somebody"))
        connection.execute(comments.update().where(comments.c.id == "c5").values(parent_id="c999"))
    of_posts, of_comments = compare(database, truth(world), "demo")
    assert (of_posts.wrong, of_comments.wrong) == (("p3",), ("c5",))
    assert not of_posts.complete
    assert not of_comments.complete


def test_a_row_that_the_forum_never_had_is_unknown_and_one_of_another_site_does_not_count(
    database: Database, world: World
) -> None:
    one = stored_posts(world)[0]
    invented = Post(**{**{f: getattr(one, f) for f in one.__struct_fields__}, "id": "p999"})
    elsewhere = Post(**{**{f: getattr(one, f) for f in one.__struct_fields__}, "id": "p998", "site": "other"})
    assert not database.write([invented, elsewhere])
    of_posts, _ = compare(database, truth(world), "demo")
    assert of_posts.unknown == ("p999",)
    assert not of_posts.complete


CHANGES = Mix(edit=0.3, delete=0.3)


@pytest.fixture
def changed(world: World) -> tuple[dict[str, Piece], World]:
    """Comments as they were stored at some time, of a forum that has changed meanwhile: each edit and deletion was noticed."""
    stored = shown(world, "comments")
    for _ in range(60):
        world.advance(CHANGES)
        stored |= shown(world, "comments")
    for piece in world.history.deleted["comments"]:
        stored[piece] = stored[piece]._replace(deleted=True)
    return stored, world


def test_edits_and_deletions_that_were_noticed_are_complete(changed: tuple[dict[str, Piece], World]) -> None:
    stored, world = changed
    verdict = judge("comments", stored.values(), truth(world))
    assert verdict.complete, verdict
    assert verdict.edited > 3
    assert verdict.deleted == len(world.history.deleted["comments"]) > 3


def test_a_deletion_that_was_not_noticed_a_wrong_tombstone_and_a_body_that_was_not_kept_are_faults(
    changed: tuple[dict[str, Piece], World],
) -> None:
    stored, world = changed
    gone, emptied = sorted(world.history.deleted["comments"])[:2]
    alive = min(world.comment_hashes)
    stored[gone] = stored[gone]._replace(deleted=False)
    stored[emptied] = stored[emptied]._replace(hash="of [deleted]")
    stored[alive] = stored[alive]._replace(deleted=True)
    verdict = judge("comments", stored.values(), truth(world))
    assert (verdict.undeleted, verdict.spoilt, verdict.buried) == ((gone,), (emptied,), (alive,))
    assert not verdict.complete
    assert verdict.share == pytest.approx(1 - 1 / verdict.expected)


def test_an_edit_that_was_not_noticed_is_wrong_content_and_what_was_deleted_before_it_was_read_is_no_fault(
    changed: tuple[dict[str, Piece], World],
) -> None:
    stored, world = changed
    edited, versions = next(
        (one, v) for one, v in sorted(world.history.edited["comments"].items()) if one in world.comment_hashes
    )
    stored[edited] = stored[edited]._replace(hash=versions[0][1])
    del stored[min(world.history.deleted["comments"])]
    verdict = judge("comments", stored.values(), truth(world))
    assert verdict.faults == {edited} == set(verdict.wrong)


def test_hashes_are_those_of_the_forum(world: World) -> None:
    thread = next(thread for thread in world.threads.values() if thread.comments)
    assert world.post_hashes[thread.post.id] == post_hash(thread.post)
    assert world.comment_hashes[thread.comments[0].id] == comment_hash(thread.comments[0])


def test_the_report_never_rounds_up_to_a_hundred_and_names_what_is_missing() -> None:
    coverage = Coverage(
        table="posts",
        expected=1_000_000,
        stored=999_992,
        missing=tuple(f"p{n}" for n in range(8)),
        duplicates=0,
        wrong=(),
        unknown=(),
    )
    console = Console(file=io.StringIO(), width=100)
    print_coverage(console, (coverage,))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "99.99 %" in text
    assert "missing posts: p0, p1, p2, p3, p4 and 3 more" in text


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"TRAWL_DEMO_THREADS": "20", "TRAWL_DEMO_LIVE_S": "2.5", "KEEP": "1"}.items():
        monkeypatch.setenv(name, text)
    options = DemoOptions.read()
    assert (options.demo_threads, options.demo_live_s, options.demo_seed, options.keep) == (20, 2.5, 1, True)
    monkeypatch.setenv("KEEP", "0")
    assert not DemoOptions.read().keep


@pytest.mark.parametrize(("name", "text"), [("THREADS", "many"), ("THREADS", "1.5"), ("RATE", "-1"), ("SEED", "1e9")])
def test_an_option_that_is_no_number_is_refused_by_its_name(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"TRAWL_DEMO_{name}", text)
    with pytest.raises(ConfigError, match=f"TRAWL_DEMO_{name}='{text}'"):
        DemoOptions.read()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_result_is_whole_on_a_narrow_terminal(width: int) -> None:
    one = Coverage(
        table="comments", expected=15_497, stored=15_512, missing=(), duplicates=0, wrong=(), unknown=(), edited=12, deleted=15
    )
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_coverage(console, (one,))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "comments: 15,497 shown, 100 % stored as they are shown, 0 twice; 12 edited, 15 deleted\n"
