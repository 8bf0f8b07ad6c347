"""The steps of a run, with jobs that a test ends: nothing is begun twice, paused members go on, a deadline ends the rest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
import redis

from fleet_operations.jobs import jobs, runs
from fleet_operations.jobs.groups import Group, Overlap, limits_of_quotas
from fleet_operations.jobs.run_steps import advance, next_member
from fleet_operations.overview import Overview, problems
from redis_components.errors import ConfigError
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.server.untrusted_values import server_time
from workers.fleet.sizes import write_file_limits
from workers.state.group_runs import GroupRun, GroupRuns, RunState, Verdict
from workers.state.jobs import Job, Jobs, JobState
from workers.state.keys import FleetKeys
from workers.state.nodes import NodeRecord
from workers.state.registry import Registry, Slot
from workers.state.reports import Note

NAMES = ("a", "b", "c", "d", "e")


def begin(client: redis.Redis, overlap: Overlap = "skip", deadline: str = "", quota: str = "") -> GroupRun:
    group = Group(spiders=NAMES, at_once=2, overlap=overlap, deadline=deadline, quota=quota)
    return runs.start(client, runs.RunOrder(group="g", declared=group, spiders=dict.fromkeys(NAMES, "m")))


def crawling(client: redis.Redis, run: GroupRun) -> set[str]:
    found = Jobs(client).all().values()
    return {job.service for job in found if job.id.endswith(run.id) and job.state is JobState.RUNNING}


def end(client: redis.Redis, run: GroupRun, *spiders: str, state: JobState = JobState.FINISHED) -> None:
    """End jobs as `jobs.advance` does when their crawlers are gone."""
    store = Jobs(client)
    for spider in spiders:
        job = store.get(f"{spider}.{run.id}")
        assert job is not None
        cancelled = job.state is JobState.ENDING
        after = JobState.CANCELLED if cancelled else state
        assert store.swap(replace(job, state=after, reason=job.reason if cancelled else "finished", ended_at=server_time(client)))


def now(client: redis.Redis, run: GroupRun) -> GroupRun:
    advance(client)
    return GroupRuns(client).all()[run.id]


def test_members_crawl_so_many_at_once_and_each_once(redis_client: redis.Redis) -> None:
    run = begin(redis_client)
    now(redis_client, run)
    assert crawling(redis_client, run) == {"a", "b"}
    assert Jobs(redis_client).all()[f"a.{run.id}"].settings == {"RUN_ID": run.id, "SPIDER_MODULES": "m"}, (
        "its crawlers import no other module"
    )
    now(redis_client, run)
    assert crawling(redis_client, run) == {"a", "b"}, "a step that is taken twice begins nothing twice"
    end(redis_client, run, "a")
    assert now(redis_client, run).counts == {Verdict.NOTHING_DUE: 1}
    assert crawling(redis_client, run) == {"b", "c"}
    assert f"a.{run.id}" not in Jobs(redis_client).all(), "its outcome is kept, its job is not"
    end(redis_client, run, "b", "c", state=JobState.FAILED)
    now(redis_client, run)
    end(redis_client, run, "d", "e")
    over = now(redis_client, run)
    assert (over.state, over.counts) == (RunState.FINISHED, {Verdict.NOTHING_DUE: 3, Verdict.CRASHED: 2})
    assert advance(redis_client) == []
    again = runs.rerun(redis_client, run.id, failed=True)
    assert (again.members, again.of) == (2, run.id)
    assert set(GroupRuns(redis_client).waiting(again.id)) == {"b", "c"}


def test_a_member_whose_process_died_between_two_steps_begins_all_the_same(redis_client: redis.Redis) -> None:
    run = begin(redis_client)
    GroupRuns(redis_client).begin(run.id, ["a", "b"], 1.0, 10)  # and its jobs were not started
    now(redis_client, run)
    assert crawling(redis_client, run) == {"a", "b"}


def finish(client: redis.Redis, run: GroupRun, spider: str) -> Slot | None:
    """Have the only crawler of a member come to its end; return the slot that its place goes to."""
    registry = Registry(client)
    slot = registry.acquire(f"{spider}.{run.id}", 0, "n")
    assert slot is not None
    Jobs(client).crawler_ended(slot.spider, 0, "finished")
    registry.release(slot)
    return next_member(registry, slot)


def test_a_place_goes_to_the_next_member_at_once(redis_client: redis.Redis) -> None:
    run = begin(redis_client)
    now(redis_client, run)
    following = finish(redis_client, run, "a")
    assert following is not None
    assert (following.spider, following.owner) == (f"c.{run.id}", "n")
    assert crawling(redis_client, run) == {"b", "c"}, "two at once, as before"
    assert GroupRuns(redis_client).members(run.id).keys() == {"a"}, "its outcome did not wait for a step of the run"
    assert now(redis_client, run).counts == {Verdict.NOTHING_DUE: 1}
    assert GroupRuns(redis_client).begin(run.id, ["d"], 1.0, 2) == [], "no more than `at_once`, however many try"


@pytest.mark.parametrize("kind", ["service", "member of higher rank", "member of lower rank"])
def test_those_who_wait_for_a_place_get_it_in_the_order_of_their_rank(redis_client: redis.Redis, kind: str) -> None:
    run = begin(redis_client)
    other = runs.start(redis_client, runs.RunOrder(group="h", declared=Group(spiders=("z",)), spiders={"z": "m"}))
    now(redis_client, run)
    waits = "books" if kind == "service" else f"z.{other.id}"
    Registry(redis_client).store_waiting([(-1 if "lower" in kind else 1, waits, 0)])
    following = finish(redis_client, run, "a")
    expected = {"service": None, "member of higher rank": f"z.{other.id}", "member of lower rank": f"c.{run.id}"}
    assert (following and following.spider) == expected[kind]


def test_a_paused_run_goes_on_where_it_stopped(redis_client: redis.Redis) -> None:
    run = begin(redis_client)
    now(redis_client, run)
    assert runs.pause(redis_client, run.id).state is RunState.PAUSED
    now(redis_client, run)
    assert crawling(redis_client, run) == set()
    end(redis_client, run, "a")
    runs.resume(redis_client, "latest")
    now(redis_client, run)
    end(redis_client, run, "b")  # it needed longer for its pages than the pause lasted
    now(redis_client, run)
    assert crawling(redis_client, run) == {"a", "b"}
    assert Jobs(redis_client).all()[f"a.{run.id}"].resumed == 1
    assert not GroupRuns(redis_client).members(run.id), "a pause is no verdict"
    with pytest.raises(ConfigError, match="is running: this is for a run that is paused"):
        runs.resume(redis_client, run.id)


def test_a_deadline_ends_members_that_crawl_and_those_that_wait(redis_client: redis.Redis) -> None:
    run = begin(redis_client, deadline="1h")
    now(redis_client, run)
    end(redis_client, run, "a")
    store = GroupRuns(redis_client)
    late = store.all()[run.id]
    assert store.swap(replace(late, deadline_at=1.0))
    assert now(redis_client, run).state is RunState.ENDING
    end(redis_client, run, "b")
    over = now(redis_client, run)
    assert (over.state, over.counts) == (RunState.FINISHED, {Verdict.DEADLINE: 4, Verdict.NOTHING_DUE: 1})


def test_a_deadline_that_will_be_missed_is_reported_before(redis_client: redis.Redis) -> None:
    run = begin(redis_client, deadline="1h")
    now(redis_client, run)
    store = GroupRuns(redis_client)
    slow = store.crawling(run.id)["a"] - 3000
    redis_client.hset(store._keys.run_crawling(run.id), "a", repr(slow))
    end(redis_client, run, "a")
    after = now(redis_client, run)
    assert after.late is not None
    assert after.deadline_at is not None
    assert after.late > after.deadline_at, "four members of 50 minutes, two at a time"


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_overlap(redis_client: redis.Redis, overlap: Overlap) -> None:
    first = begin(redis_client, overlap)
    now(redis_client, first)
    second = begin(redis_client, overlap)
    if overlap == "skip":
        assert second == GroupRuns(redis_client).all()[first.id]
        return
    assert second.id != first.id
    assert second.state is RunState.QUEUED
    now(redis_client, second)
    if overlap == "queue":
        assert begin(redis_client, overlap).id == second.id, "one run waits, not a line of them"
        runs.cancel(redis_client, first.id)
        now(redis_client, first)
    end(redis_client, first, "a", "b")
    assert now(redis_client, first).state is RunState.CANCELLED
    assert now(redis_client, second).state is RunState.RUNNING
    now(redis_client, second)
    assert crawling(redis_client, second) == {"a", "b"}


def test_a_job_that_is_cancelled_by_hand_is_a_verdict_and_old_runs_go(redis_client: redis.Redis) -> None:
    run = begin(redis_client)
    now(redis_client, run)
    jobs.cancel(redis_client, f"a.{run.id}")
    end(redis_client, run, "a")
    assert now(redis_client, run).counts == {Verdict.CANCELLED: 1}
    store = GroupRuns(redis_client)
    assert store.swap(replace(store.all()[run.id], state=RunState.FINISHED, keep_runs=1))
    newer = begin(redis_client)
    assert store.swap(replace(store.all()[newer.id], state=RunState.FINISHED, keep_runs=1, started_at=server_time(redis_client)))
    begin(redis_client)
    advance(redis_client)
    assert run.id not in store.all()
    assert not redis_client.exists(store._keys.run_members(run.id))


def late_fix(run: GroupRun, *nodes: NodeRecord) -> str:
    found = problems(Overview(now=100.0, runs=(run,), nodes=nodes))
    return next(one.fix for one in found if "will miss its deadline" in one.what)


def test_a_late_run_is_named_with_what_would_help_and_what_would_not() -> None:
    full = NodeRecord(name="n", capacity=4, taken=4, beat_at=100.0)
    run = GroupRun(id="g-1", group="g", members=90, waiting=50, at_once=10, deadline_at=1100.0, late=2600.0)
    assert "at_once = 25 and nodes for 9 more would (it is 10" in late_fix(run, full, replace(full, name="m", capacity=10))
    assert "at_once = 25 would (it is 10, and nodes have room for 20 more)" in late_fix(run, replace(full, capacity=24))
    assert "a higher at_once would not help" in late_fix(run, full)
    assert "more of them at a time would not help" in late_fix(replace(run, waiting=0), full)
    assert all("helps a site that has a limit" in late_fix(replace(run, waiting=n), full) for n in (0, 50))


def notes(client: redis.Redis) -> list[str]:
    return [Note.from_json(fields[b"note"]).said for _, fields in client.xrange(FleetKeys().notes())]  # type: ignore[union-attr]


def test_a_verdict_is_an_event_once_and_the_end_of_a_run_each_time(redis_client: redis.Redis) -> None:
    for night in range(3):
        if night == 2:
            GroupRuns(redis_client).silence("a", "known broken")
        run = runs.start(
            redis_client, runs.RunOrder(group="g", declared=Group(spiders=("a",), overlap="queue"), spiders={"a": "m"})
        )
        now(redis_client, run)
        end(redis_client, run, "a", state=JobState.FAILED)
        assert now(redis_client, run).alerts == ({} if night == 2 else {"crashed": 1})
    said = notes(redis_client)
    assert len([one for one in said if ": a: crashed" in one]) == 1, said
    assert len([one for one in said if "finished: 1 members: 1 crashed" in one]) == 3


def test_groups_of_a_quota_share_its_places_and_others_are_not_delayed(redis_client: redis.Redis) -> None:
    def started(group: str, priority: int = 0, most: int = 3) -> GroupRun:
        declared = Group(spiders=NAMES, at_once=3, priority=priority)
        run = runs.start(redis_client, runs.RunOrder(group=group, declared=declared, spiders=dict.fromkeys(NAMES, "m")))
        owned = replace(known.all()[run.id], quota="ops" if most else "", most_crawlers=most)
        assert known.swap(owned)
        return owned

    known = GroupRuns(redis_client)
    low, high, other = started("low"), started("high", priority=1), started("other", most=0)
    advance(redis_client)
    assert [len(known.crawling(run.id)) for run in (low, high, other)] == [0, 3, 3]
    waits = known.all()[low.id]
    assert waits.waits_for == f"a place of the quota ops, which has 3 ({high.id} has 3)"
    what = [one.what for one in problems(Overview(now=1.0, runs=(waits,)))]
    assert any("5 members wait for a place of the quota ops" in one for one in what), what
    end(redis_client, high, "a", "b")
    for _ in range(2):
        advance(redis_client)
        assert len(known.crawling(high.id)) + len(known.crawling(low.id)) == 3
    runs.cancel(redis_client, high.id)
    end(redis_client, high, *known.crawling(high.id))
    for _ in range(2):
        advance(redis_client)
    assert len(known.crawling(low.id)) == 3


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_a_job_that_is_due_while_one_goes_on(redis_client: redis.Redis, overlap: str) -> None:
    def start() -> Job:
        return jobs.start(redis_client, jobs.JobOrder(service="books", overlap=overlap))

    first, second = start(), start()
    store = Jobs(redis_client)
    state = store.all()
    if overlap == "skip":
        assert second == first
    elif overlap == "replace":
        assert (state[first.id].state, state[second.id].state) == (JobState.ENDING, JobState.RUNNING)
    else:
        assert start() == second, "one waits, not each"
        assert jobs.closed_slots(redis_client, []) == {(second.id, 0)}
        assert store.swap(replace(state[first.id], state=JobState.FINISHED, ended_at=1.0))
        assert jobs.closed_slots(redis_client, []) == set()
    with pytest.raises(ConfigError, match="overlap"):
        jobs.start(redis_client, jobs.JobOrder(service="books", overlap="later"))


def test_a_place_of_a_quota_that_is_free_is_the_higher_priority_s(redis_client: redis.Redis) -> None:
    known, started = GroupRuns(redis_client), []
    for group, priority in (("low", 0), ("high", 5)):
        declared = Group(spiders=NAMES, at_once=3, priority=priority)
        run = runs.start(redis_client, runs.RunOrder(group=group, declared=declared, spiders=dict.fromkeys(NAMES, "m")))
        assert known.swap(replace(known.all()[run.id], quota="ops", most_crawlers=2))
        advance(redis_client)
        started.append(run)
    low, high = started
    assert (len(crawling(redis_client, low)), len(crawling(redis_client, high))) == (2, 0)
    end(redis_client, low, "a")
    advance(redis_client)
    assert (len(crawling(redis_client, low)), len(crawling(redis_client, high))) == (1, 1), "not the next of its own"


@pytest.mark.parametrize("what", ["job", "run"])
def test_of_starts_at_one_moment_one_counts(redis_client: redis.Redis, what: str) -> None:
    together = Barrier(8)

    def start(_: int) -> str:
        together.wait(30)
        if what == "job":
            return jobs.start(redis_client, jobs.JobOrder(service="books", overlap="skip")).id
        return begin(redis_client).id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(start, range(8)))) == 1
    assert len(Jobs(redis_client).all() if what == "job" else GroupRuns(redis_client).all()) == 1


def test_a_quota_of_requests_is_a_lane_that_its_members_crawlers_name(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trawl.toml"
    monkeypatch.setenv("TRAWL_CONFIG", str(file))
    file.write_text("[quotas.ops]\nper_minute = 600\n[limits.'example.org']\nrate = 2\n")
    run = begin(redis_client, quota="ops")
    lanes = limits.read(redis_client, limits_key())
    assert lanes["quotas.ops"].within(limits.MINUTE_MS) == 600, "before a member sends anything"
    now(redis_client, run)
    assert Jobs(redis_client).all()[f"a.{run.id}"].settings["SCHEDULER_QUOTA"] == "quotas.ops"
    file.write_text("[quotas.ops]\nper_minute = 60\n[limits.'example.org']\nrate = 2\n")
    assert write_file_limits(redis_client, limits_of_quotas()) == ["quotas.ops", "example.org"]
    assert limits.read(redis_client, limits_key())["quotas.ops"].within(limits.MINUTE_MS) == 60
    file.write_text("[quotas.ops]\nplaces = 2\n")
    assert "quotas.ops" in write_file_limits(redis_client, limits_of_quotas())
    assert not limits.read(redis_client, limits_key())["quotas.ops"].quotas
    file.write_text("[quotas.'a b']\nper_minute = 60\n")
    with pytest.raises(ConfigError, match=r"quotas\.a b"):
        limits_of_quotas()
