"""What MySQL and MariaDB do otherwise: ids, long texts, statements that commit, a server that is killed under load."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import warnings
from collections.abc import Iterator

import pytest
import redis
from sqlalchemy import event, inspect, text

from fleet_operations.consumers.consume import Item, SinkUnavailable, consume
from fleet_operations.consumers.database_rows import DatabaseRows
from forums.storage import Database, StorageError, comments, parse, posts
from forums.storage.read.event_reader import EventLog
from forums.storage.schema.tables import metadata
from forums.storage.write.changes import BEGINNING
from forums.writer.store import Outcome, drain
from redis_components.items.stream import ItemStream, newest, replay
from redis_components.keys import CrawlKeys
from tests.integration.storage.test_migrations import differences, make_old
from tests.integration.storage.test_writer_faults import KEYS, assert_complete, expire_lock, fill, writer
from tests.support.items import at, comment, post, wire
from tests.support.mariadb_server import MariadbServer
from tests.support.prepared_databases import PreparedDatabases
from tests.support.processes import wait_until

IDS = [
    "a",
    "A",
    "a ",
    " a",
    "ss",
    "ß",
    "\N{LATIN SMALL LETTER A WITH ACUTE}",
    "\U0001f600",
    "\U0001f601",
    "\\",
    "'",
    "%s",
    "x" * 255,
]


class Dying(Exception):
    """The end of a process, as far as the database sees it: what it committed stays."""


@pytest.fixture
def mysql(prepared_mariadb: PreparedDatabases) -> Iterator[Database]:
    url = prepared_mariadb.take()
    yield prepared_mariadb.database(url)
    prepared_mariadb.give_back(url)


def test_ids_that_a_usual_collation_takes_for_one_are_several(mysql: Database) -> None:
    for _ in range(2):
        assert mysql.write([parse(wire(post(id_, site="ß" * 255))) for id_ in IDS]) == []
    stored = [row.id for row in mysql.stream(posts.select().order_by(posts.c.site, posts.c.id))]
    assert stored == sorted(IDS, key=str.encode)
    assert len(EventLog(mysql).read(BEGINNING)) == len(IDS), "the second time nothing changed"


def test_a_text_of_megabytes_with_any_characters_comes_back_as_it_was(mysql: Database) -> None:
    body = "\U0001f600 \\ ' \" %s %(x)s \0 \r\n" * 100_000
    assert mysql.write([parse(wire(comment(body=body)))]) == []
    [row] = mysql.stream(comments.select())
    assert row.body == body
    with mysql.engine.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        assert connection.execute(text("SELECT @@time_zone")).scalar() == "+00:00"


def test_an_item_that_the_server_takes_in_no_statement_is_refused_and_its_neighbours_are_stored(mysql: Database) -> None:
    with mysql.engine.connect() as connection:
        most = connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
    fits = "x" * (most - 100_000)
    bodies = ["small", fits, fits + "'" * 50_000, "😀" * (most // 4), "also small"]
    refused = mysql.write([parse(wire(comment(f"c{number}", body=body))) for number, body in enumerate(bodies)])
    assert [one.place for one in refused] == [2, 3]
    assert "max_allowed_packet" in refused[0].reason
    assert {row.id for row in mysql.stream(comments.select())} == {"c0", "c1", "c4"}
    edited = [parse(wire(comment(id_, body=body, fetched_at=at(99)))) for id_, body in (("c1", fits[1:]), ("c0", fits))]
    assert mysql.write(edited) == []
    assert {row.id: len(row.body) for row in mysql.stream(comments.select())} == {"c0": len(fits), "c1": len(fits) - 1, "c4": 10}


@pytest.mark.parametrize(("after", "is_old"), [(1, False), (4, False), (16, False), (22, False), (1, True), (3, True), (7, True)])
def test_a_migration_that_dies_half_way_is_finished_by_the_next(mariadb_server: MariadbServer, after: int, is_old: bool) -> None:
    url = mariadb_server.new_database()
    if is_old:
        make_old(url)
    dying, done = Database.from_url(url), 0

    def die(*call: object) -> None:
        nonlocal done
        done += str(call[2]).lstrip().startswith(("CREATE", "ALTER"))
        if done > after:
            raise Dying

    event.listen(dying.engine, "before_cursor_execute", die)
    with pytest.raises(Dying):
        dying.open()
    event.remove(dying.engine, "before_cursor_execute", die)
    assert inspect(dying.engine).get_table_names()
    dying.close()
    with Database.from_url(url) as database:
        assert differences(database) == []
        assert database.write([parse(wire(post()))]) == []


def test_a_stream_that_is_left_early_reads_no_more(mysql: Database) -> None:
    assert mysql.write([parse(wire(post(f"p{n:04}"))) for n in range(2500)]) == []
    rows = mysql.stream(posts.select().order_by(posts.c.id))
    assert next(rows).id == "p0000"
    rows.close()
    assert len(list(mysql.stream(posts.select()))) == 2500


def test_wrong_password_database_and_server_are_one_line(mariadb_server: MariadbServer) -> None:
    for url, said in (
        (mariadb_server.url("test", password="wr0ng-w0rd"), "user and password"),
        (mariadb_server.url("nowhere"), "create it first"),
        ("mysql://ada:w0rd@127.0.0.1:1/db", "check that the server runs"),
    ):
        with pytest.raises(StorageError, match=said) as caught:
            Database.from_url(url).open()
        assert "\n" not in str(caught.value)
        assert "w0rd" not in str(caught.value)


def test_a_server_that_is_killed_under_a_writer_costs_nothing(
    redis_client: redis.Redis, redis_url: str, mariadb_server: MariadbServer
) -> None:
    url = mariadb_server.new_database()
    Database.from_url(url).open().close()
    kills = 1 if os.environ.get("SHORT_TESTS") else 3
    good = fill(redis_client, 1_400 * kills)
    for _ in range(kills):
        process = writer("lives", redis_url, url)
        before = redis_client.llen(KEYS.item_stream())
        _wait_for_less(redis_client, before, process)
        mariadb_server.kill()
        assert process.wait(60) != 0 or redis_client.llen(KEYS.item_stream()) == 0
        mariadb_server.start()
        expire_lock(redis_client)
    with Database.from_url(url) as database:
        assert drain(ItemStream(redis_client, KEYS), database).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, 1_400 * kills, good)
        told = [one.item for one in EventLog(database).read(BEGINNING, 10_000)]
        assert sorted(told) == good, "each is told of once"


def test_items_of_any_spider_get_a_table_and_one_row_for_each_key(mariadb_server: MariadbServer) -> None:
    url = mariadb_server.new_database()
    rows = DatabaseRows(url.replace("mysql+pymysql:", "mariadb:"), "books", "url")
    books = [
        {"url": "A", "title": "x" * 70_000 + "\U0001f600", "price": 1.123456789012, "n": 2**40},
        {"url": "a", "title": "another"},
        {"url": "z" * 501, "title": "a key that is too long"},
        {"url": "a ", "n": "not a number"},
    ]
    assert set(rows.write([Item(place, book) for place, book in enumerate(books)])) == {2, 3}
    assert rows.write([Item(0, {"url": "a", "title": "changed", "author": "ada"})]) == {}
    mariadb_server.kill()
    with warnings.catch_warnings(), pytest.raises(SinkUnavailable):
        warnings.simplefilter("ignore", ResourceWarning)  # PyMySQL leaves a socket that it could not connect to the collector
        rows.write([Item(0, {"url": "b"})])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    mariadb_server.start()
    for _ in range(2):
        assert rows.write([Item(0, {"url": "b", "price": 2.5})]) == {}
    rows.close()
    database = url.split("?")[0].rsplit("/", 1)[1]
    stored = mariadb_server.execute("SELECT url, CHAR_LENGTH(title), price, n, author FROM books ORDER BY url", database=database)
    assert stored == [
        ("A", 70_001, 1.123456789012, 2**40, None),
        ("a", 7, None, None, "ada"),
        ("b", None, 2.5, None, None),
    ]


def test_every_table_is_of_innodb(mysql: Database, mariadb_server: MariadbServer) -> None:
    found = mariadb_server.execute(
        f"SELECT table_name, engine FROM information_schema.tables WHERE table_schema = '{mysql.engine.url.database}'"
    )
    assert {name for name, _ in found} >= set(metadata.tables)
    assert {engine for _, engine in found} == {"InnoDB"}


def _wait_for_less(client: redis.Redis, before: int, process: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: client.llen(KEYS.item_stream()) < before or process.poll() is not None, "the writer settles", 60)


def test_an_item_of_any_spider_that_no_statement_holds_is_set_aside_and_replayed_when_the_server_takes_it(
    mariadb_server: MariadbServer, redis_client: redis.Redis
) -> None:
    url = mariadb_server.new_database()
    usual = mariadb_server.execute("SELECT @@global.max_allowed_packet")[0][0]
    mariadb_server.execute("SET GLOBAL max_allowed_packet = 1048576")
    try:
        fits, large = "'" * 450_000, "\U0001f600" * 300_000
        items = [{"url": f"u{n}", "text": text} for n, text in enumerate(["first", fits, large, fits, fits, "last"])]
        redis_client.rpush("books:items", *(json.dumps(item) for item in items))
        books = CrawlKeys.for_spider("books")
        done = consume(ItemStream(redis_client, books), DatabaseRows(url, "books", "url"), stopped=lambda: False, once=True)
        assert (done.items, done.refused, redis_client.llen("books:items")) == (5, 1, 0)
        [refused], _ = newest(redis_client, books, 10)
        assert ("max_allowed_packet" in refused.reason, json.loads(refused.payload)) == (True, items[2])
    finally:
        mariadb_server.execute(f"SET GLOBAL max_allowed_packet = {usual}")
    assert replay(redis_client, books).done == 1
    done = consume(ItemStream(redis_client, books), DatabaseRows(url, "books", "url"), stopped=lambda: False, once=True)
    assert (done.items, done.refused) == (1, 0)
    database = url.split("?")[0].rsplit("/", 1)[1]
    stored = mariadb_server.execute("SELECT url, CHAR_LENGTH(text) FROM books ORDER BY url", database=database)
    assert stored == [(item["url"], len(item["text"])) for item in items]
