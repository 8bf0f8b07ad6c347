"""`trawl query` and `trawl sql`, on both kinds of database."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from cli.main import main
from forums.storage import Database, parse, posts
from forums.storage.search import excerpt, read_sql, search
from redis_components.errors import ConfigError, TrawlError
from tests.support.items import at, comment, post, wire


@pytest.fixture
def filled(database: Database) -> Database:
    items = [
        post("p1", site="a", title="Redis 超时", body="连接队列的时候超时了。100% reproducible", created_at=at(1)),
        post("p2", site="b", title="Cooking", body="A queue of REDIS_tasks\nwaits", created_at=at(2)),
        comment("c1", site="a", post_id="p1", body="the Redis timeout is 5 s", created_at=at(3)),
    ]
    database.write([parse(wire(item)) for item in items])
    return database


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("redis", ["c1", "p2", "p1"]),
        ("redis queue", ["p2"]),
        ("队列 超时", ["p1"]),
        ("100%", ["p1"]),
        ("redis_", ["p2"]),
        ("%", ["p1"]),
        ("nothing", []),
        ("'; DROP TABLE posts; --", []),
    ],
)
def test_every_word_has_to_be_there_and_signs_mean_themselves(filled: Database, text: str, found: list[str]) -> None:
    assert [hit.id for hit in search(filled, text)] == found


def test_of_one_site_and_not_more_than_asked_for(filled: Database) -> None:
    assert [hit.id for hit in search(filled, "redis", site="a")] == ["c1", "p1"]
    assert [hit.id for hit in search(filled, "redis", limit=1)] == ["c1"]
    with pytest.raises(ConfigError, match="nothing to look for"):
        search(filled, "  ")


def test_of_one_author_the_newest_first_with_and_without_words(filled: Database) -> None:
    items = [
        post("p3", site="a", title="Later", author="Łukasz_Otter", created_at=at(9)),
        comment("c2", site="a", post_id="p3", body="redis again", author="łukasz_otter2", created_at=at(8)),
        comment("c3", site="a", post_id="p3", body="redis again", author="Łukasz_otter", created_at=at(7)),
    ]
    filled.write([parse(wire(item)) for item in items])
    assert [hit.id for hit in search(filled, "", author="Łukasz_Otter")] == ["p3", "c3"], "not whose name begins so"
    assert [hit.id for hit in search(filled, "redis", author="Łukasz_OTTER")] == ["c3"]
    assert search(filled, "", author="%") == []


def test_an_excerpt_is_one_line_around_the_word() -> None:
    assert excerpt("a\nb " * 100 + "Redis" + " c" * 100, ["redis"]).count("…") == 2
    assert excerpt("Redis\nis  here", ["redis"]) == "Redis is here"


def test_sql_reads(filled: Database) -> None:
    assert read_sql(filled, "SELECT id, title FROM posts WHERE title LIKE '%ook%'", limit=5) == (
        ["id", "title"],
        [("p2", "Cooking")],
    )
    assert len(read_sql(filled, "SELECT id FROM posts", limit=1)[1]) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM posts",
        "DROP TABLE posts",
        "UPDATE posts SET title = 'x' RETURNING id",
        "SELECT 1; DELETE FROM posts",
        "COMMIT; DELETE FROM posts",
        "ATTACH DATABASE 'other.sqlite' AS other",
        "PRAGMA writable_schema = 1",
        "COMMIT",
        "SELECT FROM WHERE",
        "",
    ],
)
def test_sql_that_would_do_more_is_an_error_and_does_nothing(
    filled: Database, statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(TrawlError):
        read_sql(filled, statement, limit=10)
    assert {path.name for path in tmp_path.iterdir()} == before
    with filled.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(posts)).scalar() == 2


def test_the_commands(filled: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", filled.engine.url.render_as_string(hide_password=False))
    assert main(["query", "队列"]) == 0
    assert "Redis 超时" in capsys.readouterr().out
    assert main(["query", "nothing"]) == 1
    assert main(["sql", "SELECT id, author FROM posts ORDER BY id", "--limit", "1"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0] == "id\tauthor"
    assert "more than 1 rows" in told.err
    assert main(["sql", "SELECT nope FROM posts"]) == 2
    assert "docs/database.md" in capsys.readouterr().err
