"""The writer under fire: killed, doubled, cut off, without its database, without Redis. Nothing is lost or there twice."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from forums.storage import Database, StorageError, posts
from forums.writer.store import Outcome, drain
from redis_components.items.stream import ItemStream, Settled, newest
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.items import post, scan, wire
from tests.support.postgres_server import PostgresServer
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

KEYS = CrawlKeys.for_spider("forum_detail")

WRITER = """
import os, signal, sys, redis
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from forums.storage import Database
from forums.writer.store import drain

class DiesBeforeSettling(ItemStream):
    def settle(self, *batch):
        os.kill(os.getpid(), signal.SIGKILL)

how, redis_url, database_url = sys.argv[1:]
kind = DiesBeforeSettling if how == "dies" else ItemStream
with Database.from_url(database_url) as database:
    drain(kind(redis.Redis.from_url(redis_url), CrawlKeys.for_spider("forum_detail")), database, batch=50)
"""


def fill(client: redis.Redis, n: int) -> list[str]:
    """`n` posts, every tenth one bad, and a scan at the end; returns the ids of the good ones."""
    items = [post(f"p{i:05}", views="many" if i % 10 == 9 else i) for i in range(n)]
    pipe = client.pipeline(transaction=False)
    for item in [*items, scan("f1")]:
        pipe.rpush(KEYS.item_stream(), wire(item))
    pipe.hset(KEYS.pending(), "demo/f1", 1)
    pipe.execute()
    return [item["id"] for item in items if item["views"] != "many"]


def stored(database: Database) -> list[str]:
    return [row.id for row in database.stream(posts.select().order_by(posts.c.id))]


def bad_ids(client: redis.Redis) -> list[str]:
    return sorted(json.loads(one.payload)["id"] for one in newest(client, KEYS, 100_000)[0])


def assert_complete(client: redis.Redis, database: Database, n: int, good: list[str]) -> None:
    """Each good item is in the database once, each bad one in the list once, and nothing else is left."""
    assert stored(database) == good
    assert bad_ids(client) == [f"p{i:05}" for i in range(n) if i % 10 == 9]
    assert client.keys() == [KEYS.bad_items().encode()]


def expire_lock(client: redis.Redis) -> None:
    """What the lock's time to live does after the death of its holder."""
    client.delete(KEYS.writer())


def kill_after_settling(process: subprocess.Popen[bytes], client: redis.Redis) -> None:
    """SIGKILL somewhere in the writer's work: as soon as the stream is seen to be shorter."""
    before = client.llen(KEYS.item_stream())
    wait_until(lambda: client.llen(KEYS.item_stream()) < before or process.poll() is not None, "the writer settles", 60)
    process.kill()
    process.wait(60)


def writer(how: str, redis_url: str, database_url: str) -> subprocess.Popen[bytes]:
    return warm_start.Popen([sys.executable, "-c", WRITER, how, redis_url, database_url], family="storage")


def test_killed_between_commit_and_settling_nothing_is_missing_or_doubled(
    redis_client: redis.Redis, redis_url: str, database_url: str
) -> None:
    good = fill(redis_client, 40)
    assert writer("dies", redis_url, database_url).wait(60) == -signal.SIGKILL
    with Database.from_url(database_url) as database:
        # The batch is committed and still in the stream, and the dead writer's lock keeps others away.
        assert (stored(database), redis_client.llen(KEYS.item_stream())) == (good, 41)
        assert redis_client.exists(KEYS.bad_items()) == 0
        stream = ItemStream(redis_client, KEYS)
        assert drain(stream, database).outcome is Outcome.BUSY
        expire_lock(redis_client)
        assert drain(stream, database).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, 40, good)


def test_killed_at_any_instant_nothing_is_missing_or_doubled(
    redis_client: redis.Redis, redis_url: str, database_url: str
) -> None:
    good = fill(redis_client, 1_500)
    for _ in range(4):
        kill_after_settling(writer("lives", redis_url, database_url), redis_client)
        expire_lock(redis_client)
    with Database.from_url(database_url) as database:
        assert drain(ItemStream(redis_client, KEYS), database).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, 1_500, good)


def test_two_writers_at_once_even_when_the_lock_keeps_vanishing(
    redis_server: RedisServer, redis_client: redis.Redis, database_url: str
) -> None:
    good = fill(redis_client, 1_000)
    failures: list[BaseException] = []
    outcomes: set[Outcome] = set()
    finished = threading.Event()

    def write() -> None:
        try:
            with Database.from_url(database_url) as database:
                stream = ItemStream(redis_server.client(), KEYS)
                while len(stream):
                    outcomes.add(drain(stream, database, batch=20).outcome)
        except BaseException as error:
            failures.append(error)

    def steal() -> None:
        client = redis_server.client()
        left = len(good) * 2
        while not finished.wait(0.003):
            if (waiting := client.llen(KEYS.item_stream())) < left:  # however slow the machine is, they get somewhere
                left = waiting
                expire_lock(client)

    thief = threading.Thread(target=steal)
    writers = [threading.Thread(target=write) for _ in range(2)]
    for thread in (thief, *writers):
        thread.start()
    for thread in writers:
        thread.join(60)
    finished.set()
    thief.join(60)
    assert failures == []
    assert Outcome.LOCK_LOST in outcomes
    with Database.from_url(database_url) as database:
        expire_lock(redis_client)
        assert_complete(redis_client, database, 1_000, good)


def test_two_writers_take_turns(redis_server: RedisServer, redis_client: redis.Redis, database_url: str) -> None:
    good = fill(redis_client, 1_000)
    with Database.from_url(database_url) as one, Database.from_url(database_url) as other:

        class AsksTheOther(ItemStream):
            """While one writer is between commit and settling, the other one tries."""

            def settle(self, *batch: Any) -> Settled:
                assert drain(ItemStream(redis_server.client(), KEYS), other).outcome is Outcome.BUSY
                return super().settle(*batch)

        assert drain(AsksTheOther(redis_client, KEYS), one, batch=300).outcome is Outcome.EMPTY
        assert_complete(redis_client, one, 1_000, good)


def test_a_database_server_that_goes_away_costs_nothing(redis_client: redis.Redis, postgres_server: PostgresServer) -> None:
    good = fill(redis_client, 100)
    stream = ItemStream(redis_client, KEYS)
    with Database.from_url(postgres_server.new_database()) as database:
        drain(ItemStream(redis_client, CrawlKeys.for_spider("another")), database)  # there is a connection in the pool
        postgres_server.stop()
        try:
            for _ in range(2):
                with pytest.raises(StorageError, match="check that the server runs") as caught:
                    drain(stream, database)
                assert "\n" not in str(caught.value)
                assert (len(stream), redis_client.exists(KEYS.bad_items(), KEYS.writer())) == (101, 0)
        finally:
            postgres_server.start()
        assert drain(stream, database).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, 100, good)


def test_a_database_server_that_stops_in_mid_transaction_costs_nothing(
    redis_client: redis.Redis, postgres_server: PostgresServer
) -> None:
    good = fill(redis_client, 100)
    stream = ItemStream(redis_client, KEYS)
    with Database.from_url(postgres_server.new_database()) as database:
        name = str(database.engine.url.database)
        with postgres_server.holding_a_lock("posts", database=name), ThreadPoolExecutor(1) as pool:
            drained = pool.submit(drain, stream, database)
            wait_until(lambda: postgres_server.waiting_for_locks(name), "the writer waits for the table")
            postgres_server.stop()
        try:
            with pytest.raises(StorageError, match="check that the server runs"):
                drained.result(60)
            assert (len(stream), redis_client.exists(KEYS.bad_items(), KEYS.writer())) == (101, 0)
        finally:
            postgres_server.start()
        assert drain(stream, database).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, 100, good)


def test_a_locked_database_file_costs_nothing(redis_client: redis.Redis, tmp_path: Path) -> None:
    good = fill(redis_client, 100)
    stream = ItemStream(redis_client, KEYS)
    with Database.from_url(f"sqlite:///{tmp_path}/trawl.sqlite?timeout=0.2") as database:
        holder = sqlite3.connect(tmp_path / "trawl.sqlite", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="database is locked; another process holds a lock"):
            drain(stream, database)
        assert (len(stream), redis_client.exists(KEYS.bad_items(), KEYS.writer())) == (101, 0)
        holder.close()
        assert drain(stream, database).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, 100, good)


def test_a_redis_that_goes_away_before_settling_costs_nothing(database: Database) -> None:
    with RedisServer(aof=True) as server:
        client = server.client()
        client.config_set("appendfsync", "always")
        good = fill(client, 100)

        class LosesRedis(ItemStream):
            def settle(self, *batch: Any) -> Settled:
                server.kill()
                return super().settle(*batch)

        with pytest.raises(redis.ConnectionError):
            drain(LosesRedis(client, KEYS), database)
        assert stored(database) == good
        server.start()
        assert client.llen(KEYS.item_stream()) == 101
        expire_lock(client)
        assert drain(ItemStream(client, KEYS), database).outcome is Outcome.EMPTY
        assert_complete(client, database, 100, good)


def test_a_reply_that_is_lost_settles_its_batch_once(
    redis_server: RedisServer, redis_client: redis.Redis, database: Database
) -> None:
    good = fill(redis_client, 100)
    with LosesReplies.in_front_of(redis_server.port) as proxy:
        client = redis.Redis(port=proxy.port, password=redis_server.password)

        class LosesTheReply(ItemStream):
            def settle(self, *batch: Any) -> Settled:
                proxy.lose_next_reply = True
                return super().settle(*batch)

        report = drain(LosesTheReply(client, KEYS), database, batch=30)
        client.close()
    assert (report.outcome, report.items + report.refused, proxy.lost) == (Outcome.EMPTY, 101, 4)
    assert_complete(redis_client, database, 100, good)


class LosesReplies:
    """A TCP proxy that, when told so, passes the next request on, swallows the reply and cuts the connection."""

    def __init__(self, target: int) -> None:
        self.lose_next_reply = False
        self.lost = 0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    @classmethod
    @contextmanager
    def in_front_of(cls, port: int) -> Iterator[LosesReplies]:
        proxy = cls(port)
        proxy._thread.start()
        try:
            yield proxy
        finally:
            proxy._listener.shutdown(socket.SHUT_RDWR)
            proxy._thread.join(60)
            proxy._listener.close()

    def _serve(self) -> None:
        """One connection after the other: the client under test has one at a time."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # the test is over
                return
            with client, socket.create_connection(("127.0.0.1", self._target)) as server:
                self._relay(client, server)

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        while request := client.recv(1 << 20):
            losing, self.lose_next_reply = self.lose_next_reply, False
            server.sendall(request)
            reply = server.recv(1 << 20)
            if losing:
                self.lost += 1
                return
            client.sendall(reply)


def test_a_redis_that_refuses_writes_in_the_midst_of_a_batch_stops_the_next_writer_for_no_longer(
    database: Database, redis_client: redis.Redis
) -> None:
    good = fill(redis_client, 50)
    stream = ItemStream(redis_client, KEYS)

    def refuse(_: object) -> None:
        redis_client.config_set("min-replicas-to-write", 1)

    try:
        with pytest.raises(redis.RedisError, match=r"(?i)not enough good replicas"):
            drain(stream, database, after=refuse)
        assert drain(stream, database).outcome is Outcome.BUSY, "the lock cannot be given back yet"
    finally:
        redis_client.config_set("min-replicas-to-write", 0)
    # Without a next drain in this process: the next round of the task is another process's.
    wait_until(lambda: not redis_client.exists(KEYS.writer()), "the lock is given back before its 30 s are over", 15)
    assert drain(stream, database).outcome is Outcome.EMPTY
    assert_complete(redis_client, database, 50, good)
