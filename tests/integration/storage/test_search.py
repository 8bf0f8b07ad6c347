"""`trawl search` and `trawl sql`, on both kinds of database."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select, text

from cli.main import main
from forums.storage import Database, StorageError, parse
from forums.storage.read.read_sql import TakesTooLong, limited
from forums.storage.read.search import MOST_WORDS, excerpt, search
from redis_components.errors import ConfigError
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


def test_so_many_different_words_and_no_more(filled: Database) -> None:
    assert [hit.id for hit in search(filled, "redis Redis " * 500)] == ["c1", "p2", "p1"]
    words = " ".join(f"w{n}" for n in range(MOST_WORDS))
    assert search(filled, f"{words} {words.upper()}") == []
    with pytest.raises(ConfigError, match="17 different words are looked for, at most 16 can be"):
        search(filled, f"{words} É")
    assert search(filled, "É é") == [], "letters that are not ASCII have a case"


ENDLESS = text("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c")


def test_a_statement_ends_with_its_time_or_its_client_and_the_next_one_runs(database: Database) -> None:
    if database.engine.dialect.name == "mysql":
        pytest.skip("its recursion is bounded")
    gone = threading.Event()
    gone.set()
    for seconds, given, why in ((0.0, None, "more than 0 s"), (3600.0, gone, "client is gone")):
        with (
            pytest.raises(TakesTooLong, match=why),
            limited(database.engine, seconds, given),
            database.translated(),
            database.engine.connect() as connection,
        ):
            connection.execute(ENDLESS).all()
    with limited(database.engine, 3600), database.translated(), database.engine.connect() as connection:
        assert connection.execute(select(1)).scalar() == 1
    with (
        pytest.raises(StorageError),
        limited(database.engine, 3600),
        database.translated(),
        database.engine.connect() as connection,
    ):
        connection.execute(text("SELECT x FROM nothing"))


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


def test_the_commands(filled: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", filled.engine.url.render_as_string(hide_password=False))
    assert main(["search", "队列"]) == 0
    assert "Redis 超时" in capsys.readouterr().out
    assert main(["search", "nothing"]) == 1
