"""Publishing events: none missing and none twice by its id, whoever dies or is away."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from sqlalchemy import update

from forums.events.cursors import Cursors
from forums.events.publish import OutputResult, publish
from forums.events.rules import Rules
from forums.state.keys import ForumFleetKeys
from forums.state.site_faults import output_troubles
from forums.storage import Database, parse
from forums.storage.read.event_reader import EventLog
from forums.storage.schema.tables import event_outputs
from forums.storage.write.changes import BEGINNING, Position
from tests.support import warm_start
from tests.support.event_rules import rules_of
from tests.support.items import at, comment, wire
from tests.support.processes import wait_until

SECRET = "a secret of more than sixteen characters"
IDS = [f"demo/comment/c{n}@1" for n in range(12)]


class Receiver:
    """A webhook's receiver. `answers` are given first, then 200; `refuses` names an item of which a batch is refused."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.refuses: str | None = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(receiver.take(dict(self.headers), body))
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def take(self, headers: dict[str, str], body: bytes) -> int:
        self.requests.append((headers, body))
        events = json.loads(body)["events"]
        if self.answers:
            return self.answers.pop(0)
        if any(event["item"] == self.refuses for event in events):
            return 422
        self.events += events
        return 200


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)


def store(database: Database, first: int, last: int) -> None:
    items = [parse(wire(comment(id=f"c{n}", body=f"text {n}", fetched_at=at(n)))) for n in range(first, last)]
    assert database.write(items) == []


def hook(url: str, more: str = "") -> str:
    return f'[outputs.hook]\nkind = "webhook"\nurl = "{url}"\nsecret = "${{HOOK_SECRET}}"\nbegin = "oldest"\nbatch = 4\n{more}\n'


def try_now(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(update(event_outputs).values(retry_at=None))


def test_a_receiver_that_was_away_gets_everything_once_signed(
    database: Database, redis_client: redis.Redis, receiver: Receiver
) -> None:
    rules = rules_of(hook(receiver.url))
    store(database, 0, 6)
    assert publish(database, redis_client, rules, budget_s=60) == {"hook": OutputResult.UP_TO_DATE}
    receiver.answers = [503]
    store(database, 6, 12)
    assert publish(database, redis_client, rules, budget_s=60) == {"hook": OutputResult.FAILED}
    assert publish(database, redis_client, rules, budget_s=60) == {"hook": OutputResult.WAITING}
    state = Cursors(database).all()["hook"]
    assert (state.failures, state.error, state.retry_at is not None) == (1, "HTTP 503", True)
    try_now(database)
    assert publish(database, redis_client, rules, budget_s=60) == {"hook": OutputResult.UP_TO_DATE}
    assert [event["id"] for event in receiver.events] == IDS
    for headers, body in receiver.requests:
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = hmac.new(SECRET.encode(), text, hashlib.sha256).digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_what_is_refused_is_a_dead_letter_and_delays_nothing_else(
    database: Database, redis_client: redis.Redis, receiver: Receiver
) -> None:
    receiver.refuses = "c5"
    store(database, 0, 12)
    assert publish(database, redis_client, rules_of(hook(receiver.url)), budget_s=60) == {"hook": OutputResult.UP_TO_DATE}
    assert [event["id"] for event in receiver.events] == [id_ for id_ in IDS if "c5@" not in id_]
    [(position, _, reason)] = Cursors(database).refused("hook")
    assert [event.item for event in EventLog(database).at([position])] == ["c5"]
    assert reason == "HTTP 422"


def test_a_receiver_that_always_fails_at_one_event_does_not_hold_up_the_others_for_ever(
    database: Database, redis_client: redis.Redis, receiver: Receiver
) -> None:
    rules = rules_of(hook(receiver.url))
    store(database, 0, 3)
    for _ in range(21):
        receiver.answers = [500]
        assert publish(database, redis_client, rules, budget_s=60) in (
            {"hook": OutputResult.FAILED},
            {"hook": OutputResult.UP_TO_DATE},
        )
        try_now(database)
    assert [event["item"] for event in receiver.events] == ["c1", "c2"]
    assert len(Cursors(database).refused("hook")) == 1


def test_a_name_that_resolves_to_a_private_address_is_refused_unless_allowed(
    database: Database, redis_client: redis.Redis, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: real("127.0.0.1", *rest, **more))
    url = receiver.url.replace("127.0.0.1", "hook.example")
    store(database, 0, 1)
    assert publish(database, redis_client, rules_of(hook(url))) == {"hook": OutputResult.FAILED}
    assert "not to a public address" in str(Cursors(database).all()["hook"].error)
    assert receiver.requests == []
    try_now(database)
    assert publish(database, redis_client, rules_of(hook(url, "allow_private = true"))) == {"hook": OutputResult.UP_TO_DATE}
    assert len(receiver.events) == 1


def test_a_receiver_that_takes_its_time_delays_no_other_output(
    database: Database, redis_client: redis.Redis, receiver: Receiver, tmp_path: Path
) -> None:
    reached, go_on, answer = threading.Event(), threading.Event(), receiver.take

    def slow(headers: dict[str, str], body: bytes) -> int:
        reached.set()
        assert go_on.wait(60)
        return answer(headers, body)

    receiver.take = slow  # type: ignore[method-assign]
    rules = rules_of(hook(receiver.url) + outputs_of(tmp_path))
    rules.outputs["hook"] = rules.outputs["hook"].model_copy(update={"timeout_s": 120})  # on a busy machine, longer than allowed
    store(database, 0, 6)
    told: list[dict[str, OutputResult]] = []
    round_of_another = threading.Thread(target=lambda: told.append(publish(database, redis_client, rules, budget_s=60)))
    round_of_another.start()
    try:
        assert reached.wait(60)
        store(database, 6, 12)

        def is_told() -> bool:
            now = publish(database, redis_client, rules, budget_s=60)
            assert "hook" not in now, "another process tells it"
            return in_file(tmp_path) == IDS == in_stream(redis_client)

        wait_until(is_told, "the others are told", 60)
    finally:
        go_on.set()
        round_of_another.join(60)
    assert told[0]["hook"] in (OutputResult.UP_TO_DATE, OutputResult.MORE)
    assert [event["id"] for event in receiver.events] == IDS


ENDLESS: dict[str, tuple[bytes, bytes, OutputResult]] = {
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65_536, OutputResult.UP_TO_DATE),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000, OutputResult.UP_TO_DATE),
    "body of a refusal": (b"HTTP/1.1 400 No\r\n\r\n", b"x" * 65_536, OutputResult.UP_TO_DATE),
    "head": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1_000, OutputResult.FAILED),
    "responses of 1xx": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1_000, OutputResult.FAILED),
    "control characters": (b"HTTP/1.1 503 no\r\nContent-Length: 8\r\n\r\na\0\x1b[31mb", b"", OutputResult.FAILED),
    "control characters in a refusal": (
        b"HTTP/1.1 422 no\r\nContent-Length: 8\r\n\r\na\0\x1b[31mb",
        b"",
        OutputResult.UP_TO_DATE,
    ),
    "redirect": (b"HTTP/1.1 307 To\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n", b"", OutputResult.FAILED),
}


@pytest.mark.parametrize(("head", "more", "outcome"), ENDLESS.values(), ids=ENDLESS)
def test_a_receiver_that_answers_without_end_or_leads_elsewhere_costs_no_more_than_its_events(
    database: Database, redis_client: redis.Redis, receiver: Receiver, head: bytes, more: bytes, outcome: OutputResult
) -> None:
    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    connection.sendall(head % receiver.server.server_port if b"%d" in head else head)
                    while more:
                        connection.sendall(more)

    store(database, 0, 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        rules = rules_of(hook(f"http://127.0.0.1:{listener.getsockname()[1]}/", "timeout_s = 5"))
        assert publish(database, redis_client, rules, budget_s=60) == {"hook": outcome}
        listener.shutdown(socket.SHUT_RDWR)
    assert receiver.requests == [], "no redirect is followed"
    cursors = Cursors(database)
    said = [cursors.all()["hook"].error or "", *(reason for _, _, reason in cursors.refused("hook"))]
    assert all(len(one) < 1_000 and one.isprintable() for one in said)


def test_a_receiver_that_is_away_for_days_is_tried_each_five_minutes(
    database: Database, redis_client: redis.Redis, receiver: Receiver
) -> None:
    rules = rules_of(hook(receiver.url))
    store(database, 0, 1)
    cursors = Cursors(database)
    cursor = cursors.create("hook", EventLog(database).begin())
    with database.engine.begin() as connection:
        connection.execute(update(event_outputs).values(failures=5_000))
    receiver.answers = [503]
    assert publish(database, redis_client, rules, budget_s=60) == {"hook": OutputResult.FAILED}
    state = cursors.all()["hook"]
    assert (state.failures, state.after) == (5_001, cursor.after)
    assert state.retry_at is not None
    assert 200 < (state.retry_at - datetime.now(UTC)).total_seconds() <= 300


def outputs_of(folder: Path) -> str:
    return (
        f'[outputs.file]\nkind = "file"\npath = "{folder}/events.jsonl"\nbegin = "oldest"\n'
        '[outputs.stream]\nkind = "stream"\nmax_length = 100\nbegin = "oldest"\n'
    )


def in_file(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / "events.jsonl").read_text("utf-8").splitlines()]


def in_stream(client: redis.Redis) -> list[str]:
    found: Any = client.xrange(ForumFleetKeys().event_stream("stream"))
    return [fields[b"id"].decode() for _, fields in found]


DIES = """
import os, signal, sys
from forums.events import cursors
from forums.events.publish import publish
from tests.support.event_rules import rules_of
from forums.storage import Database, parse
from redis_components.connection import connect
from tests.support.items import at, comment, wire

url, redis_url, rules, when = sys.argv[1:]
die = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
database = Database.from_url(url).open()
database.write([parse(wire(comment(id=f"c{n}", body=f"text {n}", fetched_at=at(n)))) for n in range(6)])
if when == "committed":
    die()
cursors.Cursors.advance = die
publish(database, connect(redis_url), rules_of(rules))
"""


@pytest.mark.parametrize("when", ["committed", "handed over"])
def test_a_process_that_is_killed_after_the_commit_loses_and_repeats_nothing(
    database: Database, database_url: str, redis_client: redis.Redis, redis_url: str, tmp_path: Path, when: str
) -> None:
    text = outputs_of(tmp_path)
    died = warm_start.run([sys.executable, "-c", DIES, database_url, redis_url, text, when], family="storage", timeout=120)
    assert died.returncode == -signal.SIGKILL
    for output in rules_of(text).outputs:
        redis_client.delete(ForumFleetKeys().publishing(output))  # as when it has expired
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"id": "half')  # and as when the disk was written in pieces
    store(database, 0, 12)  # the first six again, as the next writer does
    assert set(publish(database, redis_client, rules_of(text), budget_s=60).values()) == {OutputResult.UP_TO_DATE}
    assert in_file(tmp_path) == IDS
    assert in_stream(redis_client) == IDS


def test_a_full_stream_waits_for_its_groups_and_loses_nothing(database: Database, redis_client: redis.Redis) -> None:
    rules: Rules = rules_of('[outputs.stream]\nkind = "stream"\nmax_length = 100\nbegin = "oldest"')
    key = ForumFleetKeys().event_stream("stream")
    for start in range(0, 250, 50):
        store(database, start, start + 50)
    redis_client.xgroup_create(key, "shop", id="0", mkstream=True)
    seen: list[bytes] = []
    for _ in range(10):
        publish(database, redis_client, rules, budget_s=60)
        assert int(redis_client.xlen(key)) <= 100
        while got := _read(redis_client, key, 30):
            seen += [fields[b"id"] for _, fields in got]
            redis_client.xack(key, "shop", *[id_ for id_, _ in got])
        try_now(database)
    assert [id_.decode() for id_ in seen] == [f"demo/comment/c{n}@1" for n in range(250)]


def _read(client: redis.Redis, key: str, count: int) -> list[Any]:
    found: Any = client.xreadgroup("shop", "one", {key: ">"}, count=count)
    return list(found[0][1]) if found else []


def test_an_output_takes_what_fits_its_rules_only(database: Database, redis_client: redis.Redis, tmp_path: Path) -> None:
    text = f'[rules.seven]\nmatch = "7 or 9"\n{outputs_of(tmp_path)}'.replace(
        '/events.jsonl"\n', '/events.jsonl"\nrules = ["seven"]\n'
    )
    store(database, 0, 12)
    publish(database, redis_client, rules_of(text), budget_s=60)
    assert in_file(tmp_path) == [IDS[7], IDS[9]]
    assert json.loads((tmp_path / "events.jsonl").read_text().splitlines()[0])["rules"] == ["seven"]
    assert in_stream(redis_client) == IDS


def test_an_output_that_is_new_is_told_from_now_on(database: Database, redis_client: redis.Redis, tmp_path: Path) -> None:
    rules = rules_of(outputs_of(tmp_path).replace("oldest", "now"))
    store(database, 0, 6)
    publish(database, redis_client, rules, budget_s=60)
    store(database, 6, 12)
    publish(database, redis_client, rules, budget_s=60)
    assert in_file(tmp_path) == IDS[6:]


def test_a_file_or_stream_of_another_database_is_left_alone(
    database: Database, redis_client: redis.Redis, tmp_path: Path
) -> None:
    store(database, 0, 6)
    foreign = json.loads('{"id": "x", "position": "999-0", "type": "new", "row": "post", "site": "x", "thread": "1"}')
    foreign |= {"item": "1", "version": 1, "stored_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "events.jsonl").write_text(json.dumps(foreign) + "\n")
    redis_client.xadd(ForumFleetKeys().event_stream("stream"), {"id": "x"}, id="999-0")
    assert set(publish(database, redis_client, rules_of(outputs_of(tmp_path))).values()) == {OutputResult.FAILED}
    assert in_file(tmp_path) == ["x"]
    assert "does not have" in str(Cursors(database).all()["stream"].error)


def test_a_cursor_that_was_moved_meanwhile_is_not_moved_again(database: Database) -> None:
    cursors = Cursors(database)
    old = cursors.create("hook", BEGINNING)
    assert cursors.advance(old, Position(3, 0)) is not None
    assert cursors.advance(old, Position(2, 0)) is None
    assert cursors.all()["hook"].after == Position(3, 0)
    assert cursors.move("hook", BEGINNING)
    assert cursors.all()["hook"].after == BEGINNING


def test_a_rule_without_end_and_one_hostile_site_stop_nothing(
    database: Database, redis_client: redis.Redis, tmp_path: Path
) -> None:
    rules = rules_of(
        """
        rules = { slow = { match = "/(a|aa)+$/" }, word = { match = "text" } }
        """
        + "".join(
            f'[outputs.{name}]\nkind = "file"\npath = "{tmp_path / name}"\nrules = ["{rule}"]\nbegin = "oldest"\n'
            for name, rule in (("slow", "slow"), ("other", "word"))
        )
    )
    hostile = [comment(site="evil", id=f"e{n}", body="a" * 5000 + "b", fetched_at=at(n)) for n in range(300)]
    assert database.write([parse(wire(one)) for one in hostile]) == []
    store(database, 0, 3)
    told, troubles = {"slow": OutputResult.MORE}, set[str]()
    while set(told.values()) != {OutputResult.UP_TO_DATE}:
        assert OutputResult.MORE in told.values()
        told = publish(database, redis_client, rules, budget_s=1)
        troubles |= set(output_troubles(redis_client).values())
    assert any("of site evil that rule slow could not judge in time" in one for one in troubles)
    before = output_troubles(redis_client)
    assert publish(database, redis_client, rules, budget_s=1) == told
    assert output_troubles(redis_client) == before, "nothing was looked at"
    written = [msgspec.json.decode(line) for line in (tmp_path / "slow").read_bytes().splitlines()]
    assert [(one["item"], one["undecided"]) for one in written] == [(f"e{n}", ["slow"]) for n in range(300)]
    assert len((tmp_path / "other").read_bytes().splitlines()) == 3
