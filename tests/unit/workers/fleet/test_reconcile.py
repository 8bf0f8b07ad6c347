"""`plan`: what is done about every situation of the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_components.frontier.holds import Hold, HoldKind
from workers.fleet.reconcile import FORGET_AFTER_S, GIVEN_UP_RETRY_S, Forget, ForgetNode, Launch, Retire, plan, without_room
from workers.state.nodes import SILENT_AFTER_S, NodeRecord, shortages
from workers.state.records import GONE_AFTER_S
from workers.state.registry import CrawlerRecord, CrawlerState, SlotView

NOW = 1_000_000.0


def node(name: str = "node-a", capacity: int = 10, *services: str, ago_s: float = 1.0, draining: bool = False) -> NodeRecord:
    return NodeRecord(
        name=name, services=services or ("list", "detail"), capacity=capacity, beat_at=NOW - ago_s, draining=draining
    )


NODES = [node()]


def held(spider: str, number: int, owner: str = "node-a", **more: object) -> SlotView:
    return SlotView(spider=spider, number=number, token=7, owner=owner, **more)  # type: ignore[arg-type]


def ended(spider: str, number: int, state: CrawlerState = CrawlerState.STOPPED, *, ago_s: float) -> SlotView:
    return SlotView(
        spider=spider, number=number, record=CrawlerRecord(spider=spider, number=number, state=state, beat_at=NOW - ago_s)
    )


def launch(spider: str, number: int, on: str = "node-a", *, instead_of: str | None = None) -> Launch:
    return Launch(spider=spider, number=number, node=on, instead_of=instead_of)


def test_an_empty_fleet_is_launched_lowest_numbers_first_over_all_services() -> None:
    assert plan({"list": 1, "detail": 3}, [], NODES, NOW) == [
        launch("detail", 0),
        launch("list", 0),
        launch("detail", 1),
        launch("detail", 2),
    ]


def test_services_of_a_higher_rank_get_places_first() -> None:
    launched = plan({"list": 1, "detail": 3}, [], [node(capacity=2)], NOW, ranks={"detail": 1})
    assert launched == [launch("detail", 0), launch("detail", 1)]


def test_slots_that_find_no_place_are_listed_in_the_order_in_which_they_get_one() -> None:
    desired, ranks = {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}, {"b": 5, "d": 5}
    live, stopped = [held("a", 0), held("e", 0)], {("c", 0)}
    actions = plan(
        desired, live, [node("node-a", 3, *desired)], NOW, ranks=ranks, stopped=dict.fromkeys(stopped, Hold(word=HoldKind.STOP))
    )
    assert [action for action in actions if isinstance(action, Launch)] == [launch("b", 0)]
    assert without_room(desired, live, actions, stopped, ranks) == [(5, "d", 0), (0, "a", 1)]


def test_crawlers_are_spread_by_the_share_of_places_that_are_taken() -> None:
    nodes = [node("a", 2), node("b", 4), node("c", 4, "other"), node("d", 9, draining=True), node("e", 9, ago_s=SILENT_AFTER_S)]
    numbers = {one.number: one.node for one in plan({"list": 7}, [], nodes, NOW) if isinstance(one, Launch)}
    # At equal shares the first name; what finds no room is not launched, and no other service's node is used for it.
    assert numbers == {0: "a", 1: "b", 2: "b", 3: "a", 4: "b", 5: "b"}


def test_places_that_are_held_or_promised_are_taken() -> None:
    nodes = [node("a", 2), node("b", 2)]
    live = [held("list", 0, "a"), SlotView(spider="list", number=1, launching_on="a")]
    assert plan({"list": 4}, live, nodes, NOW) == [launch("list", 2, "b"), launch("list", 3, "b")]
    assert plan({"list": 4}, live, [node("a", 1)], NOW) == []  # it was restarted with less room


def test_a_node_that_has_just_lost_a_crawler_gets_it_back_only_if_there_is_no_other() -> None:
    record = CrawlerRecord(spider="list", number=0, state=CrawlerState.STOPPED, node="a", beat_at=NOW - 1)
    view = SlotView(spider="list", number=0, record=record)
    busy = [held("list", n, "b") for n in (1, 2)]
    assert plan({"list": 3}, [view, *busy], [node("a", 9), node("b", 3)], NOW) == [launch("list", 0, "b")]
    assert plan({"list": 3}, [view, *busy], [node("a", 9), node("b", 2)], NOW) == [launch("list", 0, "a")]
    later = replace(view, record=replace(record, beat_at=NOW - SILENT_AFTER_S))
    assert plan({"list": 3}, [later, *busy], [node("a", 9), node("b", 3)], NOW) == [launch("list", 0, "a")]


def test_a_launch_to_a_node_that_has_fallen_silent_or_is_drained_is_sent_elsewhere() -> None:
    view = SlotView(spider="list", number=0, launching_on="a")
    for lost in (node("a", ago_s=SILENT_AFTER_S), node("a", draining=True)):
        assert plan({"list": 1}, [view], [lost, node("b")], NOW) == [launch("list", 0, "b", instead_of="a")]
        assert plan({"list": 1}, [view], [lost], NOW) == []
    assert plan({"list": 1}, [view], [node("b")], NOW) == [launch("list", 0, "b", instead_of="a")]


def test_the_crawlers_of_a_node_that_is_being_drained_leave() -> None:
    view, other = held("list", 0, "a"), held("list", 1, "b")
    nodes = [node("a", draining=True), node("b")]
    assert plan({"list": 2}, [view, other], nodes, NOW) == [Retire(slot=view, reason="a is being drained")]
    assert plan({"list": 2}, [other], nodes, NOW) == [launch("list", 0, "b")]


def test_a_node_that_is_gone_is_forgotten_after_a_while_and_one_that_has_no_room_is_left_alone() -> None:
    assert plan({"list": 1}, [], [node("a", ago_s=FORGET_AFTER_S - 1), node("b", 0)], NOW) == []
    assert plan({}, [], [node("a", ago_s=FORGET_AFTER_S + 1)], NOW) == [ForgetNode(name="a")]


def test_what_has_no_room_is_said_in_one_sentence_for_each_service() -> None:
    live = [held("list", 0, "a"), held("list", 1, "a"), held("detail", 0, "a")]
    nodes = [node("a", 3), node("b", 5, ago_s=GONE_AFTER_S), node("c", 5, draining=True)]
    assert shortages({"list": 4, "detail": 1, "other": 1}, live, nodes, NOW) == {
        "list": "4 wanted, no room for 2: the nodes that serve it offer 3, all taken",
        "other": "1 wanted, no room for 1: no node serves it",
    }
    assert shortages({"list": 4}, live, [node("a", 4)], NOW) == {}  # they are about to be launched
    given_up = ended("list", 2, CrawlerState.REFUSED, ago_s=1)
    assert shortages({"list": 3}, [*live, given_up], nodes, NOW) == {}  # that is not what it lacks


def test_a_whole_fleet_needs_nothing() -> None:
    assert plan({"list": 1, "detail": 2}, [held("list", 0), held("detail", 0), held("detail", 1)], NODES, NOW) == []


def test_only_the_missing_slot_is_launched() -> None:
    assert plan({"list": 3}, [held("list", 0), held("list", 2)], NODES, NOW) == [launch("list", 1)]


def test_a_launch_that_is_on_its_way_is_not_sent_again() -> None:
    assert plan({"list": 1}, [SlotView(spider="list", number=0, launching_on="node-a")], NODES, NOW) == []


def test_a_smaller_fleet_retires_its_highest_numbers() -> None:
    views = [held("list", n) for n in range(3)]
    assert plan({"list": 1}, views, NODES, NOW) == [Retire(slot=view, reason="scaled to list=1") for view in views[1:]]


def test_a_service_that_is_not_desired_any_more_is_retired() -> None:
    view = held("old", 0)
    assert plan({"list": 0}, [view], NODES, NOW) == [Retire(slot=view, reason="old is not a service of this fleet")]


def test_a_slot_that_was_given_up_is_left_alone_for_a_while_and_then_tried_again() -> None:
    for state in (CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED):
        assert plan({"list": 1}, [ended("list", 0, state, ago_s=GIVEN_UP_RETRY_S - 1)], NODES, NOW) == []
        assert plan({"list": 1}, [ended("list", 0, state, ago_s=GIVEN_UP_RETRY_S + 1)], NODES, NOW) == [launch("list", 0)]


def test_a_slot_that_was_given_up_is_tried_again_on_another_node() -> None:
    view = ended("list", 0, CrawlerState.REFUSED, ago_s=GIVEN_UP_RETRY_S + 1)
    assert view.record
    view = replace(view, record=replace(view.record, node="a"))
    assert plan({"list": 1}, [view], [node("a"), node("b", 1)], NOW) == [launch("list", 0, "b")]
    assert plan({"list": 1}, [view], [node("a")], NOW) == [launch("list", 0, "a")]


def test_a_slot_whose_last_word_is_old_is_launched_at_once() -> None:
    for state in (CrawlerState.RUNNING, CrawlerState.STOPPED, CrawlerState.BACKING_OFF):
        assert plan({"list": 1}, [ended("list", 0, state, ago_s=16)], NODES, NOW) == [launch("list", 0)]


def test_retired_crawlers_and_those_started_by_hand_are_forgotten_after_a_while() -> None:
    by_hand = [
        CrawlerRecord(spider="list", pid=pid, state=CrawlerState.RUNNING, beat_at=NOW - ago_s)
        for pid, ago_s in ((1, 1.0), (2, FORGET_AFTER_S + 1))
    ]
    views = [ended("list", 0, ago_s=1), ended("list", 1, ago_s=FORGET_AFTER_S + 1)]
    assert plan({"list": 0}, views, NODES, NOW, by_hand) == [Forget(name="list/1"), Forget(name="list/hand-2")]


@st.composite
def views(draw: st.DrawFn) -> SlotView:
    spider, number = draw(st.sampled_from(["a", "b", "c"])), draw(st.integers(0, 6))
    state, beat_at = draw(st.sampled_from(CrawlerState)), draw(st.floats(NOW - 1000, NOW))
    record = CrawlerRecord(spider=spider, number=number, state=state, beat_at=beat_at)
    token = draw(st.none() | st.integers(1))
    return SlotView(
        spider=spider,
        number=number,
        token=token,
        owner=draw(st.sampled_from(["m", "n", "o", "gone"])) if token else None,
        launching_on=draw(st.none() | st.sampled_from(["m", "n", "o", "gone"])),
        record=draw(st.none() | st.just(record)),
    )


@st.composite
def some_nodes(draw: st.DrawFn) -> list[NodeRecord]:
    names = draw(st.lists(st.sampled_from(["m", "n", "o"]), unique=True))
    return [
        NodeRecord(
            name=name,
            services=tuple(draw(st.sets(st.sampled_from(["a", "b"])))),
            capacity=draw(st.integers(0, 6)),
            beat_at=NOW - draw(st.sampled_from([0.0, 5.0, 10.0, 100.0])),
            draining=draw(st.booleans()),
        )
        for name in names
    ]


sizes = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 6))
slots = st.lists(views(), unique_by=lambda v: (v.spider, v.number))


@pytest.mark.thorough
@given(desired=sizes, live=slots, nodes=some_nodes())
def test_plans_are_sound(desired: dict[str, int], live: list[SlotView], nodes: list[NodeRecord]) -> None:
    actions = plan(desired, live, nodes, NOW)
    launches = [a for a in actions if isinstance(a, Launch)]
    retired = [(a.slot.spider, a.slot.number) for a in actions if isinstance(a, Retire)]
    taken = {(v.spider, v.number) for v in live if v.token is not None}
    wanted = {(spider, n) for spider, size in desired.items() for n in range(size)}
    known = {one.name: one for one in nodes}

    slots_launched = [(a.spider, a.number) for a in launches]
    assert len(slots_launched) == len(set(slots_launched))
    assert set(slots_launched) <= wanted - taken  # never a second crawler for a slot, never one that nobody wants
    for one in launches:
        assert known[one.node].is_open(NOW)
        assert one.spider in known[one.node].services
    on_drained = {(v.spider, v.number) for v in live if v.token is not None and v.owner in known and known[v.owner].draining}
    assert set(retired) == (taken - wanted) | on_drained  # all that is too much or in the wrong place, and nothing else


@pytest.mark.thorough
@given(desired=sizes, live=slots, nodes=some_nodes())
def test_no_node_gets_more_than_it_has_room_for(desired: dict[str, int], live: list[SlotView], nodes: list[NodeRecord]) -> None:
    launched = [a for a in plan(desired, live, nodes, NOW) if isinstance(a, Launch)]
    for one in nodes:
        new = sum(a.node == one.name for a in launched)
        sent = {(a.spider, a.number) for a in launched}
        busy = sum(
            v.owner == one.name if v.token is not None else v.launching_on == one.name and (v.spider, v.number) not in sent
            for v in live
        )
        assert not new or busy + new <= one.capacity


@pytest.mark.thorough
@given(desired=sizes, live=slots, nodes=some_nodes())
def test_once_a_plan_has_come_true_the_fleet_is_whole_or_there_is_no_room(
    desired: dict[str, int], live: list[SlotView], nodes: list[NodeRecord]
) -> None:
    known = {one.name: one for one in nodes}
    for _ in range(2):  # what leaves a node that is drained is launched in the second round
        later = {(v.spider, v.number): v for v in live}
        for action in plan(desired, live, known.values(), NOW):
            match action:
                case Launch(spider=spider, number=number, node=on):
                    later[spider, number] = held(spider, number, on)
                case Retire(slot=slot):
                    later[slot.spider, slot.number] = replace(slot, token=None, owner=None, record=None, launching_on=None)
                    if slot.number >= desired.get(slot.spider, 0):
                        del later[slot.spider, slot.number]
                case Forget(name=name):
                    spider, _, n = name.partition("/")
                    del later[spider, int(n)]
                case ForgetNode(name=name):
                    del known[name]
        live = list(later.values())
    assert plan(desired, live, known.values(), NOW) == []
    lacking = shortages(desired, live, [one for one in known.values() if one.is_open(NOW)], NOW)
    for spider, size in desired.items():
        there = [v for v in live if v.spider == spider and v.number < size]
        waiting = [v for v in there if v.token is None and (v.launching_on or (v.record and v.record.state.given_up))]
        held_now = [v for v in there if v.token is not None]
        assert (len(held_now) + len(waiting) < size) == (spider in lacking)


def test_what_is_stopped_is_retired_not_launched_and_keeps_its_size() -> None:
    stop, at_once = Hold(word=HoldKind.STOP, by="ops", reason="why"), Hold(word=HoldKind.STOP, by="ops", at_once=True)
    stopped = {("list", 0): stop, ("detail", 0): at_once, ("detail", 1): stop}
    live = [held("list", 0), held("detail", 0), ended("detail", 1, ago_s=FORGET_AFTER_S + 1)]
    assert plan({"list": 1, "detail": 3}, live, NODES, NOW, stopped=stopped) == [
        Retire(slot=live[0], reason="stopped by ops: why"),
        Retire(slot=live[1], reason="stopped by ops", at_once=True),
        launch("detail", 2),
        Forget(name="detail/1"),
    ]
