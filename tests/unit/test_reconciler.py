"""`plan`: what is done about every situation of the fleet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redis_components.registry import CrawlerRecord, CrawlerState, SlotView
from workers.reconciler import FORGET_AFTER_S, GIVEN_UP_RETRY_S, Forget, Launch, Retire, plan

NOW = 1_000_000.0


def held(spider: str, number: int, **more: object) -> SlotView:
    return SlotView(spider=spider, number=number, token=7, owner="node-a", **more)  # type: ignore[arg-type]


def ended(spider: str, number: int, state: CrawlerState = CrawlerState.STOPPED, *, ago_s: float) -> SlotView:
    return SlotView(
        spider=spider, number=number, record=CrawlerRecord(spider=spider, number=number, state=state, beat_at=NOW - ago_s)
    )


def launch(spider: str, number: int) -> Launch:
    return Launch(spider=spider, number=number)


def test_an_empty_fleet_is_launched_lowest_numbers_first_over_all_services() -> None:
    assert plan({"list": 1, "detail": 3}, [], NOW) == [
        launch("detail", 0),
        launch("list", 0),
        launch("detail", 1),
        launch("detail", 2),
    ]


def test_a_whole_fleet_needs_nothing() -> None:
    assert plan({"list": 1, "detail": 2}, [held("list", 0), held("detail", 0), held("detail", 1)], NOW) == []


def test_only_the_missing_slot_is_launched() -> None:
    assert plan({"list": 3}, [held("list", 0), held("list", 2)], NOW) == [launch("list", 1)]


def test_a_launch_that_is_on_its_way_is_not_sent_again() -> None:
    assert plan({"list": 1}, [SlotView(spider="list", number=0, launching=True)], NOW) == []


def test_a_smaller_fleet_retires_its_highest_numbers() -> None:
    views = [held("list", n) for n in range(3)]
    assert plan({"list": 1}, views, NOW) == [Retire(slot=view, reason="scaled to list=1") for view in views[1:]]


def test_a_service_that_is_not_desired_any_more_is_retired() -> None:
    view = held("old", 0)
    assert plan({"list": 0}, [view], NOW) == [Retire(slot=view, reason="old is not a service of this fleet")]


def test_a_slot_that_was_given_up_is_left_alone_for_a_while_and_then_tried_again() -> None:
    for state in (CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED):
        assert plan({"list": 1}, [ended("list", 0, state, ago_s=GIVEN_UP_RETRY_S - 1)], NOW) == []
        assert plan({"list": 1}, [ended("list", 0, state, ago_s=GIVEN_UP_RETRY_S + 1)], NOW) == [launch("list", 0)]


def test_a_slot_whose_last_word_is_old_is_launched_at_once() -> None:
    for state in (CrawlerState.RUNNING, CrawlerState.STOPPED, CrawlerState.BACKING_OFF):
        assert plan({"list": 1}, [ended("list", 0, state, ago_s=16)], NOW) == [launch("list", 0)]


def test_retired_crawlers_and_those_started_by_hand_are_forgotten_after_a_while() -> None:
    by_hand = [
        CrawlerRecord(spider="list", pid=pid, state=CrawlerState.RUNNING, beat_at=NOW - ago_s)
        for pid, ago_s in ((1, 1.0), (2, FORGET_AFTER_S + 1))
    ]
    views = [ended("list", 0, ago_s=1), ended("list", 1, ago_s=FORGET_AFTER_S + 1)]
    assert plan({"list": 0}, views, NOW, by_hand) == [Forget(name="list/1"), Forget(name="list/hand-2")]


@st.composite
def views(draw: st.DrawFn) -> SlotView:
    spider, number = draw(st.sampled_from(["a", "b", "c"])), draw(st.integers(0, 6))
    state, beat_at = draw(st.sampled_from(CrawlerState)), draw(st.floats(NOW - 1000, NOW))
    record = CrawlerRecord(spider=spider, number=number, state=state, beat_at=beat_at)
    return SlotView(
        spider=spider,
        number=number,
        token=draw(st.none() | st.integers(1)),
        launching=draw(st.booleans()),
        record=draw(st.none() | st.just(record)),
    )


sizes = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 6))


@given(desired=sizes, live=st.lists(views(), unique_by=lambda v: (v.spider, v.number)))
def test_plans_are_sound(desired: dict[str, int], live: list[SlotView]) -> None:
    actions = plan(desired, live, NOW)
    launches = [(a.spider, a.number) for a in actions if isinstance(a, Launch)]
    retired = [(a.slot.spider, a.slot.number) for a in actions if isinstance(a, Retire)]
    taken = {(v.spider, v.number) for v in live if v.token is not None}
    wanted = {(spider, n) for spider, size in desired.items() for n in range(size)}

    assert len(launches) == len(set(launches))
    assert set(launches) <= wanted - taken  # never a second crawler for a slot, never one that nobody wants
    assert set(retired) == taken - wanted  # all that is too much, and nothing else


@given(desired=sizes, live=st.lists(views(), unique_by=lambda v: (v.spider, v.number)))
def test_once_a_plan_has_come_true_the_next_one_is_empty(desired: dict[str, int], live: list[SlotView]) -> None:
    later = {(v.spider, v.number): v for v in live}
    for action in plan(desired, live, NOW):
        match action:
            case Launch(spider=spider, number=number):
                later[spider, number] = held(spider, number)
            case Retire(slot=slot):
                del later[slot.spider, slot.number]
            case Forget(name=name):
                spider, _, n = name.partition("/")
                del later[spider, int(n)]
    assert plan(desired, later.values(), NOW) == []
