"""The registry's lists and marks; slots are in tests/lua/test_slots.py."""

from __future__ import annotations

import redis

from workers.state.keys import FleetKeys
from workers.state.registry import KEPT_ERRORS, CrawlerRecord, CrawlerState, Registry, SlotView

RECORD_OF_WRONG_TYPE = '{"spider": "a", "state": "running", "beat_at": "yesterday"}'


def crawler(spider: str = "list", number: int | None = 0, **more: object) -> CrawlerRecord:
    return CrawlerRecord(spider=spider, number=number, state=CrawlerState.RUNNING, **more)  # type: ignore[arg-type]


def test_a_record_reads_back_as_it_was_written() -> None:
    record = crawler(pid=1, pages=3, pages_per_s=1.5, last_exit="killed (SIGKILL)", note="zwei\nZeilen ✓")
    assert CrawlerRecord.from_json(record.to_json()) == record


def test_a_record_of_a_newer_version_can_be_read() -> None:
    assert CrawlerRecord.from_json('{"spider": "list", "state": "running", "mood": "good"}').spider == "list"


def test_records_that_cannot_be_read_are_left_out(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    registry.note(crawler(number=None, pid=1))
    for i, junk in enumerate(["", "nope", "{}", "[]", '{"spider": "a", "state": "singing"}', RECORD_OF_WRONG_TYPE]):
        redis_client.hset(FleetKeys().crawlers(), f"junk/{i}", junk)
    assert [r.name for r in registry.crawlers()] == ["list/hand-1"]


def test_crawlers_are_listed_by_number_and_those_by_hand_last(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    for number in (10, 2, None):
        registry.note(crawler(number=number, pid=5))
    registry.note(crawler("detail", 0))
    assert [r.name for r in registry.crawlers()] == ["detail/0", "list/2", "list/10", "list/hand-5"]
    registry.forget(["list/2", "list/10"])
    registry.forget([])
    assert [r.name for r in registry.crawlers()] == ["detail/0", "list/hand-5"]


def test_the_slots_show_what_is_desired_what_is_held_and_what_was_heard_of(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    slot = registry.acquire("list", 0, "celery@a")
    assert slot is not None
    registry.renew(slot, crawler())
    registry.note(crawler("old", 3))
    assert registry.mark_launch("list", 1, "celery@b")
    views = registry.slots({"list": 2}, registry.crawlers())
    assert [(v.spider, v.number, v.token, v.owner, v.launching_on, v.record is not None) for v in views] == [
        ("list", 0, slot.token, "celery@a", None, True),
        ("list", 1, None, None, "celery@b", False),
        ("old", 3, None, None, None, True),
    ]
    assert registry.slots({}, []) == []
    assert isinstance(views[0], SlotView)


def test_a_launch_is_marked_once_until_it_arrives_or_runs_out(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    assert registry.mark_launch("list", 0, "a")
    assert not registry.mark_launch("list", 0, "b")
    assert not registry.mark_launch("list", 0, "b", not_on="c")
    assert registry.mark_launch("list", 0, "b", not_on="a")  # a does not take it any more
    assert 0 < redis_client.pttl(FleetKeys().launch("list", 0)) <= 10_000
    registry.clear_launch("list", 0)
    assert registry.mark_launch("list", 0, "a")


def test_errors_are_listed_newest_first_and_counted_when_they_repeat(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    for what in ("one", "two", "one", "one"):
        registry.report_error("here", what)
    assert [(e.where, e.what, e.times) for e in registry.errors()] == [("here", "one", 3), ("here", "two", 1)]
    assert registry.errors(0) == []
    assert [e.what for e in registry.errors(1)] == ["one"]


def test_no_more_than_a_hundred_errors_are_kept(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    for n in range(KEPT_ERRORS + 5):
        registry.report_error("here", f"error {n}")
    assert len(registry.errors(1000)) == KEPT_ERRORS
    assert registry.errors(1)[0].what == f"error {KEPT_ERRORS + 4}"


def test_a_foreign_key_of_errors_undoes_nothing_and_one_has_news(redis_client: redis.Redis) -> None:
    redis_client.set(FleetKeys().errors(), "another's")
    assert [Registry(redis_client).report_error("here", what) for what in ("one", "one", "two")] == [True, False, True]
    assert redis_client.get(FleetKeys().errors()) == b"another's"


def test_a_client_that_decodes_is_understood_too(redis_client: redis.Redis, redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    registry = Registry(client)
    registry.set_desired("list", 2)
    slot = registry.acquire("list", 0, "node-a")
    assert slot is not None
    registry.renew(slot, crawler())
    assert registry.desired() == {"list": 2}
    assert registry.slots({}, registry.crawlers())[0].token == slot.token
    registry.report_error("here", "one")
    registry.report_error("here", "one")
    assert registry.errors()[0].times == 2
    client.close()
