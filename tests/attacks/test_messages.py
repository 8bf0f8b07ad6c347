"""Whoever can write to the broker sends messages that cannot be run. No worker ends of one; each is kept with its reason."""

from __future__ import annotations

import base64
import gzip
import json
import signal
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.broker_attack import QUEUES, AttackedWorker, body, container, raw, task
from tests.support.examples import examples
from workers.state import dead_messages
from workers.state.keys import FleetKeys

DEEP = b"[" * 100_000


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedWorker]:
    with AttackedWorker(tmp_path_factory.mktemp("attacked")) as worker:
        yield worker


def without(message: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in names}


def with_properties(**changed: Any) -> dict[str, Any]:
    message = task()
    message["properties"] |= changed
    return message


UNREADABLE: dict[str, Any] = {
    "no JSON": b"hello",
    "no text": b"\xff\xfe\x00",
    "empty": b"",
    "a list": [],
    "a number": 5,
    "null": b"null",
    "a deep list": DEEP,
    "a deep object": b'{"a":' * 5000,
    "infinite": b'{"properties": {"priority": 1e999, "delivery_tag": "x", "delivery_info": {}}}',
    "body only": {"body": 5},
    "no properties": without(task(), "properties"),
    "properties are text": {**task(), "properties": "x"},
    "headers are a list": {**task(), "headers": ["task"]},
    "body is a list": {**task(), "body": [1]},
    "body is no base64": {**task(), "body": "!"},
    "body is null": {**task(), "body": None},
    "no body": without(task(), "body"),
    "pickle": {**task(), "content-type": "application/x-python-serialize"},
    "content type is a number": {**task(), "content-type": 5},
    "odd encoding": {**task(), "content-encoding": "zlib_codec"},
    "encoding is a list": {**task(), "content-encoding": []},
    "no delivery tag": with_properties(delivery_tag=None),
    "delivery tag is a list": with_properties(delivery_tag=[]),
    "delivery info is text": with_properties(delivery_info="x"),
    "consumer tag is a list": with_properties(delivery_info={"consumer_tag": []}),
    "body encoding": with_properties(body_encoding="rot13"),
    "priority": with_properties(priority="high"),
    "correlation id": with_properties(correlation_id={"a": 1}),
    "a bomb": {
        **task(compression="application/x-gzip"),
        "body": base64.b64encode(gzip.compress(b" " * 1_000_000)).decode(),
    },
    "compression is a list": task(compression=[]),
}
UNRUNNABLE: dict[str, Any] = {
    "time limit is text": task(timelimit=["a", "b"]),
    "time limit is one": task(timelimit=[5]),
    "time limit is a number": task(timelimit=5),
    "time limit is not a number": raw(task(timelimit=[1, 2])).replace(b"[1, 2]", b"[NaN, NaN]"),
    "time limit is endless": raw(task(timelimit=[1, 2])).replace(b"[1, 2]", b"[1e999, null]"),
    "time limit is a list": task(timelimit=[[], {}]),
    "time limit in the past": task(timelimit=[-1, -1]),
    "no id": container(body(), {"task": "own.note"}),
    "id is a list": task(id=[]),
    "id is null": task(id=None),
    "id has lines": task(id="a\nb"),
    "id is long": task(id="x" * 100_000),
    "task is a list": task(name=[]),  # type: ignore[arg-type]
    "task is null": task(name=None),  # type: ignore[arg-type]
    "unknown task": task(name="trawl.no_such"),
    "eta is a number": task(eta=5),
    "eta is text": task(eta="soon"),
    "eta is far": task(eta="9999-12-31T23:59:59-12:00"),
    "expires is a list": task(expires=[]),
    "expires is text": task(expires="soon"),
    "expires is early": task(expires="0001-01-01T00:00:00+14:00"),
    "retries": task(retries="many"),
    "argsrepr": task(argsrepr={"a": 1}),
    "shadow": task(shadow=[1]),
    "root": task(root_id={}),
    "stamps": task(stamped_headers=5, stamps=5),
    "header of a method": task(get=5, update=6),
    "errbacks in headers": task(errbacks=5, expires="2000-01-01T00:00:00+00:00"),
    "body is an object": task(content={"args": 5}),
    "body is a protocol 1 message in a list": task(content=["args", {}, {}]),
    "body is short": task(content=[[]]),
    "body is deep": task(content="[" * 5000 + "]" * 5000),
    "body is no JSON": task(content="{"),
    "arguments are text": task(content=["good", {}, {}]),
    "named arguments are a list": task(content=[[], [], {}]),
    "followed by a number": task(content=[["x"], {}, 5]),
    "followed by odd tasks": task(content=[["x"], {}, {"callbacks": 5, "errbacks": [5], "chain": "x", "chord": []}]),
    "expired, with an odd chord": task(content=[["x"], {}, {"chord": 5}], expires="2000-01-01T00:00:00+00:00"),
    "protocol 1": container({"task": "own.note", "id": "1", "args": ["x"], "kwargs": {}, "timelimit": ["a", "b"]}, {}),
    "no headers": container(body(), {}),
}


@pytest.mark.parametrize("name", [*UNREADABLE, *UNRUNNABLE])
def test_a_message_that_is_no_task_is_set_aside_and_ends_no_worker(attacked: AttackedWorker, name: str) -> None:
    message = {**UNREADABLE, **UNRUNNABLE}[name]
    before = len(attacked.dead())
    attacked.send(message)
    attacked.assert_works()
    (queue, reason, kept), *more = attacked.dead()[before:]
    assert (queue, kept, more) == ("control", raw(message), [])
    assert reason
    assert reason.isprintable()


@pytest.mark.parametrize("queue", QUEUES)
def test_every_queue_of_a_worker_is_guarded(attacked: AttackedWorker, queue: str) -> None:
    before = len(attacked.dead())
    for message in (b"{", [], {"body": 5}, task(timelimit=["a", "b"])):
        attacked.send(message, queue)
    attacked.assert_works(queue)
    assert [one[0] for one in attacked.dead()[before:]] == [queue] * 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(string.printable, max_size=8), inner, max_size=3),
    max_leaves=8,
)


def words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


HEADERS = words(
    "task id root_id parent_id group shadow eta expires retries timelimit argsrepr kwargsrepr origin lang meth"
    " stamped_headers stamps ignore_result replaced_task_nesting group_index compression clock"
    " trawl_round trawl_restored callbacks errbacks chord chain children called_directly is_eager logfile"
    " loglevel utc taskset headers hostname args"
)
ODD_TASK = st.dictionaries(HEADERS, JSON, min_size=1, max_size=3).map(
    lambda changed: {**task(), "headers": {**task()["headers"], **changed}}
)
ODD_BODY = JSON.map(lambda content: task(content=content)) | st.dictionaries(
    st.sampled_from(("callbacks", "errbacks", "chain", "chord")), JSON
).map(lambda embedded: task(content=[["odd"], {}, embedded]))
ODD_PROPERTIES = st.dictionaries(
    st.sampled_from(
        ("delivery_tag", "delivery_info", "priority", "body_encoding", "correlation_id", "reply_to", "delivery_mode")
    ),
    JSON,
    min_size=1,
).map(lambda changed: with_properties(**changed))
ODD_CONTAINER = st.dictionaries(
    st.sampled_from(("body", "headers", "properties", "content-type", "content-encoding", "redelivered")), JSON, min_size=1
).map(lambda changed: {**task(), **changed})
MESSAGES = st.binary(max_size=40) | JSON | ODD_TASK | ODD_BODY | ODD_PROPERTIES | ODD_CONTAINER
FUZZ = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(st.lists(MESSAGES, min_size=1, max_size=12), st.sampled_from(QUEUES))
def test_any_bytes_or_json_in_a_queue_the_worker_works_on(attacked: AttackedWorker, messages: list[Any], queue: str) -> None:
    for message in messages:
        attacked.send(message, queue)
    attacked.assert_works(queue)


# remote control

COMMANDS = words(
    "ping stats active reserved scheduled registered revoked conf clock query_task revoke terminate rate_limit time_limit"
    " election enable_events disable_events heartbeat hello revoke_by_stamped_headers pool_grow autoscale add_consumer"
    " cancel_consumer active_queues report memsample objgraph memdump pool_restart no_such_command"
)
ARGUMENTS = st.dictionaries(
    words(
        "task_id terminate signal task_name rate_limit soft hard ids headers n max min queue exchange exchange_type routing_key"
        " id topic action from_node revoked type num samples safe with_defaults taskinfoitems state consumer"
    ),
    JSON.filter(lambda value: value != "control"),
)
FIELDS = st.fixed_dictionaries(
    {"method": COMMANDS | JSON},
    optional={
        "arguments": ARGUMENTS | JSON,
        "destination": st.just(["a@test"]) | JSON,
        "pattern": JSON,
        "matcher": st.sampled_from(("glob", "pcre")) | JSON,
        "reply_to": st.just({"exchange": "reply.celery.pidbox", "routing_key": "nobody"}) | JSON,
        "ticket": JSON,
    },
)
BROADCASTS = MESSAGES | st.tuples(FIELDS | JSON, st.just({}) | st.fixed_dictionaries({"clock": JSON})).map(
    lambda both: container(*both)
)


def order(method: str, **arguments: Any) -> dict[str, Any]:
    return container({"method": method, "arguments": arguments, "destination": None}, {"clock": 1})


@FUZZ
@given(st.lists(BROADCASTS, min_size=1, max_size=12))
@example([DEEP])
@example([b'{"a":' * 5000])
@example([order("time_limit", task_name="own.note", soft="a", hard=["b"])])
@example([order("add_consumer", queue=[1]), order("cancel_consumer", queue={}), order("add_consumer")])
@example([order("revoke", task_id=[[]]), order("revoke", task_id={"a": 1}), order("hello", from_node="x", revoked={"a": "b"})])
@example([container({"method": "ping", "pattern": "(.*)*" * 8 + "X", "matcher": "pcre"}, {"clock": "late"})])
@example([container({"method": "ping", "reply_to": 5}, {"clock": 10**400})])
def test_any_bytes_or_json_in_a_broadcast_the_worker_works_on(attacked: AttackedWorker, broadcasts: list[Any]) -> None:
    for broadcast in broadcasts:
        attacked.broadcast(broadcast)
    attacked.assert_works()


def test_a_worker_answers_remote_control_after_garbage(attacked: AttackedWorker) -> None:
    attacked.assert_works()
    for broadcast in (b"{", [], {"body": 5}, order("time_limit", task_name="own.note", hard="b"), b"[" * 5000):
        attacked.broadcast(broadcast)
    assert attacked.fleet.ask("app.control.ping(['a@test'], timeout=60, limit=1)") == "[{'a@test': {'ok': 'pong'}}]"


# what else kombu and Celery read


def test_garbage_where_kombu_keeps_bindings_and_unacknowledged_messages_harms_nobody(tmp_path: Path) -> None:
    with AttackedWorker(tmp_path) as worker:
        client = worker.client
        for exchange in ("control", "celery", "celery.pidbox", "crawlers.toy", "node.a@test", "reply.celery.pidbox", "celeryev"):
            client.sadd(f"_kombu.binding.{exchange}", b"garbage", b"\xff\xfe", b"a\x06\x16b", b"")
        client.hset("unacked", mapping={"a": b"{", "b": b"[]", "c": b"\xff"})
        client.zadd("unacked_index", {"a": 0, "b": 0, "c": 1e300, "nobody": 0})
        client.zadd("_kombu.binding_deadlines", {b"garbage": 0, b"\xff": 1})
        sent = worker.fleet.ask("app.send_task('own.note', ['sent'])")
        assert len(sent) == 36, sent
        worker.wait(lambda: "sent" in worker.notes(), "a task that was sent over it is run")
        worker.fleet.beat()
        worker.wait(lambda: worker.client.exists("trawl:fleet:beat_runs"), "beat sends")
        worker.assert_works("node.a@test")
        assert worker.fleet.ask("app.control.ping(['a@test'], timeout=60, limit=1)") == "[{'a@test': {'ok': 'pong'}}]"
        assert client.hlen("unacked") == 3, "not touched: there is nothing to acknowledge"


def test_garbage_in_the_queue_of_replies_is_left_out(tmp_path: Path) -> None:
    with AttackedWorker(tmp_path) as worker:
        worker.assert_works()  # from then on it hears broadcasts, too
        answer = worker.fleet.run(
            "from redis_components.connection import connect; from tasks import app;"
            "box = app.control.mailbox(app.pool.acquire()); connect().lpush(box.reply_queue.name, b'{', b'[]', b'5');"
            "print(box.call(['a@test'], 'ping', timeout=60))"
        )
        assert answer == "[{'a@test': {'ok': 'pong'}}]"


# shown, put back, forgotten


def test_what_was_set_aside_is_shown_put_back_and_forgotten(tmp_path: Path) -> None:
    with AttackedWorker(tmp_path) as worker:
        worker.send(b"\x1b]0;owned\x07{")
        worker.send({"body": 5}, "node.a@test")
        worker.assert_works("node.a@test")
        worker.assert_works()
        good = task(content=body(("put back",)))
        dead_messages.add(worker.client, raw(good), queue="control", reason="was in the hands of 4 workers that ended")
        dead_messages.add(worker.client, b"\x00\xff", queue="control", reason="x" * 10_000)
        shown = worker.command("dead", "messages")
        assert "has no properties" in shown
        assert "\x1b" not in shown
        assert json.loads(worker.command("status", "--json"))["dead_messages"] == 4
        assert json.loads(worker.command("dead", "messages", "--json", "-n", "1"))["counts"] == {"messages": 4}
        assert worker.command("dead", "messages", "replay", "--reason", "WORKERS THAT ended") == "replayed: messages 1"
        worker.wait(lambda: "put back" in worker.notes(), "the good message is run")
        assert worker.command("dead", "messages", "replay", "node.a@test") == "replayed: messages 1"
        worker.wait(lambda: worker.dead()[-1][2] == raw({"body": 5}), "what is still no message comes back")
        assert len(worker.dead()) == 3
        assert "--older-than 30d, or use --yes" in worker.command("dead", "messages", "purge")
        assert worker.command("dead", "messages", "purge", "--older-than", "1h") == "purged: messages 0"
        assert worker.command("dead", "messages", "purge", "--yes") == "purged: messages 3"
        assert worker.command("dead", "messages") == "No message was set aside."
        worker.assert_works()


def test_of_too_many_messages_the_oldest_go(redis_client: redis.Redis) -> None:
    redis_client.rpush(FleetKeys().dead_messages(), b"somebody else's", b'{"at_ms": 1e400}\nx')
    assert [dead_messages.add(redis_client, b"%d" % n, queue="q", reason="r", most=4) for n in range(4)] == [0, 0, 1, 1]
    found, number = dead_messages.newest(redis_client, 9)
    assert ([one.payload for one in found], number) == ([b"3", b"2", b"1", b"0"], 4)
    back: list[bytes] = []
    done = dead_messages.replay(redis_client, lambda one: back.append(one.payload), lambda one: one.payload != b"1", 2)
    assert (done.done, back) == (2, [b"0", b"2"]), "the oldest first"
    assert dead_messages.purge(redis_client, lambda one: one.reason == "r").done == 2


# never restored


def test_a_message_that_workers_end_with_is_set_aside_after_the_fourth(tmp_path: Path) -> None:
    """Restored it is where a worker ends for another reason: only the counter tells."""
    with AttackedWorker(tmp_path, "--queues=control") as worker:
        poison = task(eta="2999-01-01T00:00:00+00:00", id="poison")  # held in memory by the worker, for ever
        worker.send(poison)
        for _ in range(4):
            worker.assert_works()
            worker.worker.process.send_signal(signal.SIGTERM)
            worker.worker.wait(60)
            worker.worker = worker.fleet.node("a", "--concurrency=4", "--queues=control")
        worker.assert_works()
        assert worker.client.llen("control") == 0
        ((queue, reason, kept),) = worker.dead()
        assert (queue, json.loads(kept)["headers"]["id"]) == ("control", "poison")
        assert reason == "was in the hands of 4 workers that ended"


def test_a_task_that_runs_out_of_memory_ends_no_worker(attacked: AttackedWorker) -> None:
    attacked.send(task(name="own.out_of_memory", content=body(())))
    attacked.assert_works()
    attacked.wait(lambda: "raised unexpected: MemoryError" in attacked.worker.said(), "the task has failed")
    attacked.assert_works()
