"""`trawl search` and `trawl sql`, on both kinds of database."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from cli.main import main
from forums.storage import Database, StorageError, parse
from forums.storage.read import search as search_module
from forums.storage.read.read_sql import TakesTooLong, limited
from forums.storage.read.search import MOST_WORDS, Hit, Wanted, excerpt, find, newest
from forums.storage.schema import search_index
from redis_components.errors import ConfigError
from tests.support.items import START, at, comment, post, wire


def search(database: Database, text: str, *, limit: int = 20, **of: Any) -> list[Hit]:
    return find(database, Wanted(text=text, **of), limit=limit).hits


@pytest.fixture
def filled(database: Database) -> Database:
    items = [
        post("p1", site="a", title="Redis 超时", body="连接队列的时候超时了。100% reproducible", created_at=at(1)),
        post("p2", site="b", title="Cooking", body="A queue of REDIS_tasks\nwaits", created_at=at(2)),
        comment("c1", site="a", post_id="p1", body="the Redis timeout is 5 s", created_at=at(3)),
    ]
    database.write([parse(wire(item)) for item in items])
    return database


def test_every_word_has_to_be_there_and_signs_mean_themselves(filled: Database) -> None:
    wanted = {
        "redis": ["c1", "p2", "p1"],
        "redis queue": ["p2"],
        "队列 超时": ["p1"],
        "100%": ["p1"],
        "redis_": ["p2"],
        "%": ["p1"],
        "nothing": [],
        "'; DROP TABLE posts; --": [],
    }
    assert {text: [hit.id for hit in search(filled, text)] for text in wanted} == wanted


def test_of_one_site_and_not_more_than_asked_for(filled: Database) -> None:
    assert [hit.id for hit in search(filled, "redis", site="a")] == ["c1", "p1"]
    assert [hit.id for hit in search(filled, "redis", limit=1)] == ["c1"]


def test_so_many_different_words_and_no_more(filled: Database) -> None:
    assert [hit.id for hit in search(filled, "redis Redis " * 500)] == ["c1", "p2", "p1"]
    words = " ".join(f"w{n}" for n in range(MOST_WORDS))
    assert search(filled, f"{words} {words.upper()}") == []
    with pytest.raises(ConfigError, match="17 different words are looked for, at most 16 can be"):
        search(filled, f"{words} É")
    assert search(filled, "É é") == [], "letters that are not ASCII have a case"


def at_moment(minute: float) -> float:
    return (START + timedelta(minutes=minute)).timestamp()


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


def test_by_board_and_time_in_pages_and_in_both_orders(filled: Database) -> None:
    items = [
        post("p3", site="a", forum_id="f2", title="Other", body="redis", created_at=at(4)),
        comment("c2", site="a", post_id="p3", body="redis too", created_at=at(5)),
        comment("c9", site="a", post_id="away", body="redis of no stored post", created_at=at(6)),
    ]
    assert filled.write([parse(wire(item)) for item in items]) == []
    found = find(filled, Wanted(text="redis", site="a", board="f2"))
    assert ([hit.id for hit in found.hits], found.number, found.is_cut) == (["c2", "p3"], 2, False)
    assert [(hit.thread_title, hit.board) for hit in found.hits] == [("Other", "f2")] * 2
    between = Wanted(text="redis", since=START + timedelta(minutes=2), until=START + timedelta(minutes=5), oldest_first=True)
    assert [hit.id for hit in find(filled, between).hits] == ["p2", "c1", "p3"]
    pages = [find(filled, Wanted(text="redis"), limit=4, offset=offset) for offset in (0, 4, 8)]
    assert [[hit.id for hit in page.hits] for page in pages] == [["c9", "c2", "p3", "c1"], ["p2", "p1"], []]
    assert [page.number for page in pages] == [6, 6, 0]


def test_the_last_published_are_first_whatever_was_stored_last(filled: Database) -> None:
    """A first reading stores old posts after new ones; a date after the first sight is wrong, and none counts as that sight."""
    items = [
        *(post(f"old{n}", site="a", created_at=at(-n), fetched_at=at(60)) for n in range(1, 30)),
        post("future", site="b", created_at=at(9_000_000), fetched_at=at(2.5)),
        comment("undated", site="a", post_id="p1", created_at=None, fetched_at=at(1.5)),
        post("gone", site="b", created_at=at(50), fetched_at=at(50)),
        comment("c2", site="a", post_id="away", created_at=at(49), fetched_at=at(70)),
    ]
    assert filled.write([parse(wire(item)) for item in items]) == []
    filled.write([parse(wire(post("gone", site="b", deleted=True, fetched_at=at(80))))])
    last = ["c2", "c1", "future", "p2", "undated", "p1", "old1", "old2"]
    hits, of_hour = newest(filled, at_moment(62), limit=8)
    assert ([hit.id for hit in hits], of_hour) == (last, 4)
    assert [hit.published_at for hit in hits][2:5] == [START + timedelta(minutes=n) for n in (2.5, 2, 1.5)]
    everything = find(filled, Wanted(), limit=6, offset=2)
    assert ([hit.id for hit in everything.hits], everything.number, everything.is_cut) == (last[2:], 35, False)
    of_time = find(filled, Wanted(since=START + timedelta(minutes=1), until=START + timedelta(minutes=3), oldest_first=True))
    assert [hit.id for hit in of_time.hits] == ["p1", "undated", "p2", "future"]
    assert [hit.id for hit in find(filled, Wanted(site="b")).hits] == ["future", "p2"]
    assert [hit.id for hit in find(filled, Wanted(text="body", site="b"), limit=1).hits] == ["future"], "by words, too"
    assert find(filled, Wanted(board="f1"), limit=1).number == 34, "comments of posts that are not stored have no board"


def test_of_a_time_the_rows_published_last_are_looked_at(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "MOST_LOOKED_AT", 2)
    found = find(filled, Wanted(since=START))
    assert (found.number, found.is_cut, [hit.id for hit in found.hits][:2]) == (2, True, ["c1", "p2"])


def test_another_text_another_author_and_a_removed_row(filled: Database) -> None:
    edited = post("p1", site="a", title="Redis 超时", body="完全不同", author="Eve", created_at=at(1), fetched_at=at(30))
    gone = comment("c1", site="a", post_id="p1", deleted=True, fetched_at=at(30))
    assert filled.write([parse(wire(item)) for item in (edited, gone)]) == []
    assert search(filled, "队列") == []
    assert [hit.id for hit in search(filled, "不同")] == [hit.id for hit in search(filled, "", author="eve")] == ["p1"]
    assert [hit.id for hit in search(filled, "redis")] == ["p2", "p1"]


def test_words_of_many_scripts_and_shapes(database: Database) -> None:
    bodies = {  # by a text that finds it and no other one
        "5090": "an RTX5090ti",
        "rtx40": "an RTX4080ti",
        "*karte": "Grafikkarte",
        "tastatur": "TASTATUR",
        "c++": "in C++.",
        "显卡价格": "新显卡价格表",
        "価": "高い価格",
        "สวัสดี": "โลกสวัสดีครับ",
        "हिन्दी": "यह हिन्दी है",
        "☕": "tea or ☕?",
        "x" * 300: "x" * 300,
        "end": "word " * 18_000 + "end",
    }
    others = post("p2", title="", body="rt 5 40 cc x 价显 格卡 grafik หวัด दी"), comment("c1", body=".")
    items = [*(post(f"of {n}", title="", body=body) for n, body in enumerate(bodies.values())), *others]
    assert database.write([parse(wire(item)) for item in items]) == []
    found = {text: [hit.id for hit in search(database, text)] for text in bodies}
    assert found == {text: [f"of {n}"] for n, text in enumerate(bodies)}


def test_texts_of_any_size_are_stored_and_found(database: Database) -> None:
    bodies = ["a1" * 60_000, "".join(chr(0x20000 + n % 40_000) for n in range(150_000)), "ß" * 200_000, "\ufdfa" * 50_000]
    assert database.write([parse(wire(post(f"p{n}", body=body))) for n, body in enumerate(bodies)]) == []
    assert [hit.id for hit in search(database, "a1a1")] == ["p0"]
    assert [hit.id for hit in search(database, bodies[1][7:12])] == ["p1"]


def test_of_common_words_the_rows_stored_last_are_looked_at(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if filled.engine.dialect.name == "mysql":
        pytest.skip("it has no index: every row is read")
    monkeypatch.setattr(search_module, "MOST_LOOKED_AT", 2)
    found = find(filled, Wanted(text="redis"))
    assert found.is_cut
    assert [hit.id for hit in found.hits] == ["c1", "p2", "p1"], "one more, by which it is noticed"


def test_the_index_has_each_row_once_and_is_what_a_search_reads(filled: Database) -> None:
    if filled.engine.dialect.name == "mysql":
        pytest.skip("it has no index")
    filled.write([parse(wire(post("p2", site="b", title="Cooking", body="other words", fetched_at=at(40))))])
    with filled.engine.connect() as connection:
        known = connection.exec_driver_sql(f"SELECT kind, site, id FROM {search_index.ROWS}").all()
        assert sorted(known) == [("comment", "a", "c1"), ("post", "a", "p1"), ("post", "b", "p2")]
        connection.exec_driver_sql(f"DELETE FROM {search_index.ROWS} WHERE id = 'c1'")
        connection.commit()
    assert [hit.id for hit in search(filled, "redis")] == ["p1"]


def test_an_excerpt_is_one_line_around_the_word() -> None:
    assert excerpt("a\nb " * 100 + "Redis" + " c" * 100, ["redis"]).count("…") == 2
    assert "Redis" in excerpt("İ" * 500 + " Redis" + " c" * 300, ["redis"]), "lower-casing may lengthen a text"
    assert excerpt("Redis\nis  here", ["redis"]) == "Redis is here"


def test_the_commands(filled: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", filled.engine.url.render_as_string(hide_password=False))
    assert main(["search", "队列"]) == 0
    assert "Redis 超时" in capsys.readouterr().out
    assert main(["search", "nothing"]) == 1
