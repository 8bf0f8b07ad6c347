"""The history of crawler processes in Redis, and of members of runs: from there into each kind of database, and out again."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from forums.storage import Database
from forums.storage.history import RunHistory, log_fleet_notes, store_members
from forums.storage.read.event_reader import EventLog
from forums.storage.write.changes import BEGINNING
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.process.exit_kinds import Exit
from workers.process.heartbeat import Heartbeat
from workers.process.run_recorder import RunRecorder, report_run
from workers.state.group_runs import EndedMember, GroupRun, GroupRuns, Member, Verdict
from workers.state.history import Run, RunBy, Runs, latest
from workers.state.keys import FleetKeys
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, Renewal, Slot

NOW = datetime.now(UTC).timestamp()
BEGUN = Run(id="toy/0#1.0", spider="toy", by=RunBy.FLEET, number=0, token=1, node="a@test", pid=11, started_at=NOW - 600, pages=3)
ENDED = replace(BEGUN, ended_at=NOW - 300, outcome="crashed", exit_code=1, reason="no \0 reason", pages=40, items=7)
HAND = Run(id="hand-12@a#1", spider="toy", by=RunBy.HAND, node="a", pid=12, started_at=NOW - 500)
OTHER = Run(id="hand-13@a#1", spider="news", by=RunBy.HAND, node="a@test", pid=13, started_at=NOW - 400)
RECORD = CrawlerRecord(spider="toy", number=0, token=1, pid=11, state=CrawlerState.RUNNING, beat_at=NOW)


def test_a_run_that_is_told_twice_and_out_of_order_is_shown_once_as_it_ended(redis_client: redis.Redis) -> None:
    for told in (ENDED, BEGUN, ENDED):
        Runs(redis_client).add(told)
    redis_client.rpush(FleetKeys().runs(), "no json", '{"id": 5}')
    assert latest(redis_client, 20) == [ENDED]


def test_runs_are_found_by_service_slot_and_time(redis_client: redis.Redis) -> None:
    for told in (ENDED, HAND, OTHER, replace(HAND, ended_at=NOW, outcome="finished")):
        Runs(redis_client).add(told)

    def found(limit: int = 20, **wanted: Any) -> list[str]:
        return [run.id for run in latest(redis_client, limit, **wanted)]

    assert found() == [OTHER.id, HAND.id, BEGUN.id]
    assert [run.outcome for run in latest(redis_client, 9)] == ["lost", "finished", "crashed"]
    assert found(2) == [OTHER.id, HAND.id]
    assert found(spider="toy") == [HAND.id, BEGUN.id]
    assert found(spider="toy", number=0) == [BEGUN.id]
    assert found(since=NOW - 550) == [OTHER.id, HAND.id]


def test_a_run_whose_node_died_is_lost_unless_it_is_heard_or_its_end_is_told(redis_client: redis.Redis) -> None:
    young = replace(BEGUN, id="toy/1#1.0", number=1, started_at=time.time() - 5)  # NOW may be minutes ago
    for run in (BEGUN, HAND, young):
        Runs(redis_client).add(run)
    Registry(redis_client).note(replace(RECORD, pages=55))  # of the process in the slot
    states = {run.id: (run.outcome, run.pages) for run in latest(redis_client, 9)}
    assert states == {
        BEGUN.id: (None, 55),
        HAND.id: ("lost", 0),
        young.id: (None, 3),
    }
    Runs(redis_client).add(replace(HAND, ended_at=NOW, outcome="stopped"))
    assert [run.id for run in latest(redis_client, 9) if run.outcome == "lost"] == []


def test_begin_and_end_of_a_process_are_events(database: Database, redis_client: redis.Redis) -> None:
    killed = replace(BEGUN, ended_at=NOW - 5, outcome="killed", exit_code=-9, pages=420)
    recycled = replace(HAND, ended_at=NOW, outcome="recycled", exit_code=4, reason="memory")
    log_fleet_notes(redis_client, database)  # a stream that is new is read from its end
    for run in (BEGUN, killed, recycled):
        report_run(redis_client, run)
    assert log_fleet_notes(redis_client, database) == 3
    found = EventLog(database).read(BEGINNING, fleet=True)
    assert [(one.row, one.type) for one in found] == [("crawler", "started"), ("crawler", "died"), ("crawler", "ended")]
    assert found[1].text == "toy/0: killed (signal 9), process 11 on a@test, after 420 pages"
    assert found[2].text == "toy: recycled, process 12 on a, after 0 pages: memory"
    assert len({one.id for one in found}) == 3


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
            wait_until(lambda: client.llen(FleetKeys().runs()) >= 6, "everything is told")
        finally:
            heartbeat.stop()
        told = [Run.from_json(text) for text in client.lrange(FleetKeys().runs(), 0, -1)]
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
    store_members(redis_client, database)
    assert not redis_client.exists(FleetKeys().ended_members())
    history = RunHistory(database)
    rows = history.members("books", "shops", 10)
    assert [row.run[-15:-7] for row in rows] == ["20260103", "20260102", "20260101"]
    assert (rows[0].verdict, rows[0].reason, rows[0].items) == ("no_items", "no  item", 0)
    again = rows[1]
    run, one = night(2)
    times = {"started_at": again.started_at, "ended_at": again.ended_at}
    assert again == EndedMember(**{**vars(one), "traceback": "", "run": run.id, "group": run.group, **times})
    assert again.ended_at == pytest.approx(night(2)[1].ended_at, abs=0.001)
    assert history.members("books", "others", 10) == []
    assert len(history.members("books", None, 2)) == 2
    now = datetime.fromtimestamp(NOW, UTC)
    assert history.prune(now) == 0
    monkeypatch.setattr("forums.storage.history.MOST_MEMBERS", 2)
    assert history.prune(now) == 2
    assert [row.run[-15:-7] for row in history.members("books", None, 10)] == ["20260103"]
    assert history.prune(now + timedelta(days=401)) == 2


def _listed(night: tuple[GroupRun, Member]) -> tuple[GroupRun, list[Member]]:
    return night[0], [night[1]]
