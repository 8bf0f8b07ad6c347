"""Records are bounded where they are written as where they are read: what is written can be read, whatever was given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, get_type_hints

import msgspec
import pytest
import redis

from fleet_operations.consumers.declared import ConsumerPlace
from redis_components.errors import ConfigError
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.keys import CrawlKeys, CrawlRecord
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from redis_components.server.untrusted_values import JsonRecord
from workers.state.beats import Schedules, StoredEntry
from workers.state.group_runs import EndedMember, GroupRun, Member, Verdict
from workers.state.history import Run
from workers.state.holds import Breaker, Breakers, BreakerState
from workers.state.jobs import Job, Jobs, JobState
from workers.state.nodes import NodeRecord
from workers.state.records import CrawlerRecord, CrawlerState
from workers.state.reports import Act, Note
from workers.state.rolls import Roll
from workers.state.services import Autoscaled, Deployment, Policy, ServiceRecord, Services

LARGE = 2_000_000
GIVEN: dict[Any, Any] = {
    str: "x" * LARGE,
    str | None: "\x01" * LARGE,
    tuple[str, ...]: ("a" * 200,) * (LARGE // 200),
    dict[str, str]: {"name": "x" * LARGE},
    dict[str, Any]: {"one": {"inner": "y" * LARGE}},
}
KINDS: list[JsonRecord] = [
    Act(at=1.0, by="me", what=("pause",)),
    Autoscaled(policy=Policy(min=1, max=2)),
    ConsumerPlace(target="jsonl:items.jsonl", node="node", host="host"),
    CrawlRecord(spider="books", keys=CrawlKeys.for_spider("books")),
    CrawlerRecord(spider="books", number=0, state=CrawlerState.RUNNING),
    Deployment(),
    EndedMember(spider="books", verdict=Verdict.FINE, run="brands-1", group="brands"),
    GroupRun(id="brands-1", group="brands"),
    Hold(word=HoldKind.PAUSE),
    Job(id="books.1", service="books"),
    Member(spider="books", verdict=Verdict.FINE),
    NodeRecord(name="node"),
    Note(about="fleet", type="changed", said="more", at=1.0),
    Roll(id="r", services=()),
    Run(id="books/0#1.1", spider="books", by=next(iter(get_type_hints(Run)["by"])), pid=1, started_at=1.0),
    ServiceRecord(),
]


def kinds(of: type) -> Iterator[type]:
    for one in of.__subclasses__():
        yield one
        yield from kinds(one)


def test_each_kind_of_record_is_among_these() -> None:
    ours = {
        one
        for one in kinds(JsonRecord)
        if one.__module__.partition(".")[0] in ("redis_components", "workers", "fleet_operations", "forums")
    }
    assert ours == {type(record) for record in KINDS}


@pytest.mark.parametrize("record", KINDS, ids=lambda record: type(record).__name__)
def test_what_is_written_can_be_read_and_what_cannot_is_refused_by_its_field(record: Any) -> None:
    hints = get_type_hints(type(record))
    given = {one.name: GIVEN[hints[one.name]] for one in fields(record) if hints[one.name] in GIVEN}
    for name, value in given.items():
        large = replace(record, **{name: value})
        if record.CUT:
            found = type(record).from_json(large.to_json())
            assert found == replace(large, **{name: getattr(found, name)}), "nothing else is another"
        else:
            with pytest.raises(ConfigError, match=rf"^{type(record).__name__.lower()} is too large: it has [\d,]+ bytes"):
                large.to_json()
    assert type(record).from_json(record.to_json()) == record


def _job(client: redis.Redis, text: str) -> None:
    Jobs(client).add(Job(id="books.1", service="books", arguments={"a": text}))


STORES: dict[str, tuple[Callable[[redis.Redis, str], object], str]] = {
    "job": (_job, r"job books\.1 is too large: it has"),
    "service": (
        lambda client, text: Services(client).declare("books", ServiceRecord(settings={"S": text})),
        r"service books is too large: it has",
    ),
    "schedule": (
        lambda client, text: Schedules(client).set("mine", StoredEntry(task="t", args=[text])),
        "schedule mine is too large: it has",
    ),
    "limits": (
        lambda client, text: limits.change(client, "k", "demo", LaneLimits(by=text)),
        "limits of demo is too large: it has",
    ),
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", STORES)
def test_every_store_takes_what_it_can_read_and_refuses_the_rest(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, name: str, signed: bool
) -> None:
    if signed:
        monkeypatch.setenv("TRAWL_SIGNING_KEY", "k" * 40)
    store, refused = STORES[name]
    size, complaints = 1 << 21, [""]
    while size > 1024 and complaints:
        before, complaints = redis_client.dbsize(), []
        try:
            store(redis_client, "x" * size)
        except ConfigError as error:
            complaints = str(error).splitlines()
            size = size * 63 // 64
        if complaints:
            assert len(complaints) == 1
            assert re.match(refused, complaints[0])
            assert redis_client.dbsize() == before
    assert size > 30_000
    read: dict[str, Callable[[], object]] = {
        "job": lambda: Jobs(redis_client).get("books.1"),
        "service": lambda: Services(redis_client).get("books"),
        "schedule": lambda: isinstance(Schedules(redis_client).stored()["mine"], StoredEntry),
        "limits": lambda: limits.read(redis_client, "k")["demo"].by,
    }
    assert read[name]()


def test_a_job_that_was_just_accepted_can_be_shown_ended_and_told_why(redis_client: redis.Redis) -> None:
    jobs, size = Jobs(redis_client), Job.MOST
    job = Job(id="books.1", service="books")
    while True:
        try:
            jobs.add(large := replace(job, arguments={"url": "http://h/" + "x" * size}))
            break
        except ConfigError:
            size -= 1000
    assert jobs.get("books.1") == large
    assert jobs.swap(replace(large, state=JobState.FAILED, reason="\x01" * 100_000))
    assert (found := jobs.get("books.1")) is not None
    assert (found.state, len(found.reason)) == (JobState.FAILED, 2_000)


def test_a_breaker_whose_page_said_much_opens_all_the_same(redis_client: redis.Redis) -> None:
    breakers = Breakers(redis_client)
    assert breakers.get("demo") is None
    assert breakers.put("demo", Breaker(state=BreakerState.OPEN, cause="wall", reason="r" * LARGE, since=1.0, url="u" * LARGE))
    assert (found := breakers.get("demo")) is not None
    assert (found.state, found.reason[:2], len(msgspec.json.encode(found)) < 65_536) == (BreakerState.OPEN, "rr", True)
