"""The history of crawler processes: from Redis into each kind of database, and out again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from forums.storage import Database, RunHistory
from forums.writer import run_history
from forums.writer.run_history import look_for_lost, store_runs
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.process.exit_kinds import Exit
from workers.process.heartbeat import Heartbeat
from workers.process.run_recorder import RunRecorder
from workers.state.group_runs import GroupRun, GroupRuns, Member, Verdict
from workers.state.history import Run, RunBy, RunRow, Runs, Wanted, latest, of_row, to_row
from workers.state.keys import FleetKeys
from workers.state.registry import CrawlerRecord, CrawlerState, Renewal, Slot

NOW = datetime.now(UTC).timestamp()
BEGUN = Run(id="toy/0#1.0", spider="toy", by=RunBy.FLEET, number=0, token=1, node="a@test", pid=11, started_at=NOW - 600, pages=3)
ENDED = replace(BEGUN, ended_at=NOW - 300, outcome="crashed", exit_code=1, reason="no \0 reason", pages=40, items=7)
HAND = Run(id="hand-12@a#1", spider="toy", by=RunBy.HAND, node="a", pid=12, started_at=NOW - 500)
ONCE = Run(id="once-1", spider="news", by=RunBy.ONCE, node="a@test", pid=13, started_at=NOW - 400)
RECORD = CrawlerRecord(spider="toy", number=0, token=1, pid=11, state=CrawlerState.RUNNING, beat_at=NOW)


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_history, "LOOK_AGAIN_S", 0.0)


def of(database: Database, wanted: Wanted, limit: int) -> list[RunRow]:
    return RunHistory(database).latest(wanted, limit)


def shown(database: Database, wanted: Wanted | None = None, limit: int = 20) -> list[tuple[str, str | None]]:
    return [(run.id, run.outcome) for run in RunHistory(database).latest(wanted or Wanted(), limit)]


def test_a_run_that_is_told_twice_and_out_of_order_is_one_row_with_its_latest_state(
    database: Database, redis_client: redis.Redis
) -> None:
    runs = Runs(redis_client)
    for told in (ENDED, BEGUN, ENDED):
        runs.add(told)
    assert store_runs(redis_client, database) == 3
    assert not redis_client.exists(FleetKeys().runs())
    runs.add(BEGUN)
    store_runs(redis_client, database)
    (run,) = RunHistory(database).latest(Wanted(), 20)
    assert run == to_row(ENDED)
    assert (run.outcome, run.pages, run.scraped, run.reason) == ("crashed", 40, 7, "no  reason")


def test_what_two_writers_have_read_is_stored_once_and_nothing_else_is_taken_out(
    database: Database, redis_client: redis.Redis
) -> None:
    runs = Runs(redis_client)
    runs.add(BEGUN)
    first, second = runs.peek(10), runs.peek(10)
    runs.settle(first)
    runs.add(HAND)
    runs.settle(second)
    assert [Run.from_json(told) for told in runs.peek(10)] == [HAND]


def test_what_is_no_run_is_left_out_and_its_neighbours_are_stored(database: Database, redis_client: redis.Redis) -> None:
    redis_client.rpush(FleetKeys().runs(), "no json", '{"id": 5}', replace(HAND, started_at=1e300).to_json(), HAND.to_json())
    store_runs(redis_client, database)
    assert [id for id, _ in shown(database)] == [HAND.id]


def test_runs_are_found_by_service_slot_kind_and_time_and_those_on_their_way_too(
    database: Database, redis_client: redis.Redis
) -> None:
    for told in (ENDED, HAND):
        Runs(redis_client).add(told)
    store_runs(redis_client, database)
    for told in (ONCE, replace(HAND, ended_at=NOW, outcome="finished")):
        Runs(redis_client).add(told)

    def found(limit: int = 20, **wanted: object) -> list[str]:
        return [run.id for run in latest(of(database, Wanted(**wanted), limit), redis_client, Wanted(**wanted), limit)]  # type: ignore[arg-type]

    assert found() == ["once-1", HAND.id, BEGUN.id]
    states = {run.id: run.outcome for run in latest(of(database, Wanted(), 9), redis_client, Wanted(), 9)}
    assert states == {"once-1": None, HAND.id: "finished", BEGUN.id: "crashed"}
    assert found(2) == ["once-1", HAND.id]
    assert found(spider="toy") == [HAND.id, BEGUN.id]
    assert found(spider="toy", number=0) == [BEGUN.id]
    assert found(outcome="finished") == [HAND.id]
    assert found(outcome="crashed") == [BEGUN.id]
    assert found(since=datetime.fromtimestamp(NOW - 550, UTC)) == ["once-1", HAND.id]
    RunHistory(database).write([to_row(replace(HAND, id="hand-2"))])
    assert [run.outcome for run in latest(of(database, Wanted(), 9), None, Wanted(), 9)] == ["unknown", "lost", "crashed"]


def test_a_run_whose_node_died_is_lost_until_it_is_heard_again_or_its_end_is_told(
    database: Database, redis_client: redis.Redis
) -> None:
    runs_of = RunHistory(database)
    young = replace(BEGUN, id="toy/1#1.0", number=1, started_at=NOW - 5)
    runs_of.write([to_row(run) for run in (BEGUN, HAND, ONCE, young)])
    states = {run.id: None for run in (BEGUN, HAND, ONCE, young)}

    look_for_lost(runs_of, [RECORD], NOW)
    assert dict(shown(database)) == {**states, HAND.id: "lost"}
    for heard in (replace(RECORD, token=2, pid=99), replace(RECORD, beat_at=NOW - 60)):
        look_for_lost(runs_of, [heard], NOW)
        assert dict(shown(database)) == {**states, HAND.id: "lost", BEGUN.id: "lost"}
    look_for_lost(runs_of, [RECORD], NOW)
    assert dict(shown(database)) == {**states, HAND.id: "lost"}
    look_for_lost(runs_of, [RECORD], NOW + 4000)
    assert dict(shown(database))[ONCE.id] == "lost"
    runs_of.write([to_row(replace(HAND, ended_at=NOW, outcome="stopped"))])
    look_for_lost(runs_of, [RECORD], NOW)
    assert dict(shown(database)) == {**states, HAND.id: "stopped"}


def test_the_history_is_kept_for_its_days_and_within_its_number(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forums.storage.history.MOST_ROWS", 4)
    runs_of = RunHistory(database)
    runs_of.write([to_row(replace(BEGUN, id=f"toy/0#{day}.0", started_at=NOW - day * 86_400)) for day in range(8)])
    now = datetime.fromtimestamp(NOW, UTC) + timedelta(hours=1)
    assert runs_of.prune(now, days=6) == 4
    assert runs_of.prune(now, days=6) == 0
    assert [id for id, _ in shown(database)] == [f"toy/0#{day}.0" for day in range(4)]
    assert runs_of.prune(now, days=1) == 3


def test_what_happened_while_redis_was_away_is_told_when_it_is_back() -> None:
    slot = Slot(spider="toy", number=0, token=1, owner="a@test")
    with RedisServer() as server:
        client = server.client()
        heartbeat = Heartbeat(lambda: Renewal(held=bool(client.ping())), period_s=0.05)
        book = RunRecorder(slot, "a@test", lambda run: heartbeat.errand(lambda: Runs(client).add(run)))
        server.kill()
        heartbeat.start()
        try:
            for n in range(3):
                book.began(f"toy/0#1.{n}", 11)
                book.ended(Exit.of(1, lived_s=1.0), "it broke")
            server.start()
            wait_until(lambda: len(Runs(client).peek(10)) >= 6, "everything is told")
        finally:
            heartbeat.stop()
        told = [Run.from_json(text) for text in Runs(client).peek(10)]
        assert list(dict.fromkeys((run.id, run.outcome) for run in told)) == [
            (f"toy/0#1.{n}", outcome) for n in range(3) for outcome in (None, "crashed")
        ]
        client.close()


def night(number: int, **changed: Any) -> tuple[GroupRun, Member]:
    run = GroupRun(id=f"shops-2026010{number}T030000", group="shops")
    day = {"started_at": NOW - (9 - number) * 86_400, "ended_at": NOW - (9 - number) * 86_400 + 60}
    figures = {"pages": 10 * number, "items": number, "errors": 1, "seconds": 60.5, "fields": {"name": 1.0, "price": 0.25}}
    return run, Member(**{"spider": "books", "verdict": Verdict.FINE, "traceback": "long", **day, **figures, **changed})


def test_members_of_runs_are_kept_for_months_and_read_again(
    database: Database, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = GroupRuns(redis_client)
    for number in (1, 2, 3):
        known.end(*_listed(night(number)))
    known.end(*_listed(night(3, verdict=Verdict.NO_ITEMS, reason="no \0 item", items=0)))  # after a death its step is taken again
    known.end(*_listed(night(4, spider="other")))
    redis_client.rpush(FleetKeys().ended_members(), "no json", '{"spider": "x"}')
    store_runs(redis_client, database)
    assert not redis_client.exists(FleetKeys().ended_members())
    history = RunHistory(database)
    rows = history.members("books", "shops", 10)
    assert [row.run[-15:-7] for row in rows] == ["20260103", "20260102", "20260101"]
    assert (rows[0].verdict, rows[0].reason, rows[0].scraped) == ("no_items", "no  item", 0)
    again = of_row(rows[1])
    assert again == replace(night(2)[1], traceback="", started_at=again.started_at, ended_at=again.ended_at)
    assert again.ended_at == pytest.approx(night(2)[1].ended_at, abs=0.001)
    assert history.members("books", "others", 10) == []
    assert len(history.members("books", None, 2)) == 2
    now = datetime.fromtimestamp(NOW, UTC)
    assert history.prune(now, days=1) == 0, "they are kept longer than processes"
    monkeypatch.setattr("forums.storage.history.MOST_MEMBERS", 2)
    assert history.prune(now, days=1) == 2
    assert [row.run[-15:-7] for row in history.members("books", None, 10)] == ["20260103"]
    assert history.prune(now + timedelta(days=401), days=1) == 2


def _listed(night: tuple[GroupRun, Member]) -> tuple[GroupRun, list[Member]]:
    return night[0], [night[1]]
