"""`advance`: what a roll does next in every situation, played through with a fleet made of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from redis_components.errors import ConfigError, FleetBusy
from workers.fleet.roll import COMPARED_S, LIVED_S, STEP_S, UNSEEN_S, abort_roll, advance, begin, go_on, start_roll
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, SlotCommandKind, SlotView
from workers.state.rolls import Roll, RollNote, RollState, Work

DESIRED = {"list": 1, "detail": 3}


@dataclass
class Fleet:
    """Slots with a crawler each; a slot that is told to reload does so within the next `tick` (unless `obey` says otherwise)."""

    desired: dict[str, int] = field(default_factory=lambda: dict(DESIRED))
    now: float = 1_000_000.0
    slots: dict[str, SlotView] = field(default_factory=dict)
    obey: Callable[[Fleet, SlotView], None] = lambda fleet, view: fleet.restart(view)
    told: list[str] = field(default_factory=list)
    stopped: set[tuple[str, int]] = field(default_factory=set)
    fewest: int = 99

    def __post_init__(self) -> None:
        for spider, size in self.desired.items():
            for number in range(size):
                self.put(spider, number, pid=100 + len(self.slots))

    def put(self, spider: str, number: int, token: int = 7, **fields: object) -> None:
        known = {"spider": spider, "number": number, "token": token, "state": CrawlerState.RUNNING, "beat_at": self.now, **fields}
        if "last_exit" in known:
            known["last_exit_kind"] = str(known["last_exit"]).partition(" (")[0]
        record = CrawlerRecord(**known)  # type: ignore[arg-type]
        self.slots[f"{spider}/{number}"] = SlotView(spider=spider, number=number, token=token, owner="a", record=record)

    def restart(self, view: SlotView, **fields: object) -> None:
        old = view.record
        assert old is not None
        how = {"pid": old.pid + 1000, "restarts": old.restarts + 1, "last_exit": "recycled", **fields}
        self.put(view.spider, view.number, view.token or 8, **how)

    def begin(self, *services: str) -> Roll:
        return begin("r1", services or ("list", "detail"), self.desired, self.slots.values(), self.now)

    def running(self) -> int:
        records = (view.record for view in self.slots.values() if view.token)
        return sum(record is not None and record.state is CrawlerState.RUNNING for record in records)

    def tick(self, roll: Roll, seconds: float = 2.0) -> Roll:
        self.now += seconds
        for name, view in self.slots.items():
            if view.record and view.token:
                self.slots[name] = replace(view, record=replace(view.record, beat_at=self.now))
        new, slot = advance(roll, self.desired, list(self.slots.values()), self.now, self.stopped)
        again = advance(roll, self.desired, list(self.slots.values()), self.now, self.stopped)
        assert again == (new, slot), "two beats do the same"
        if slot:
            self.told.append(f"{slot.spider}/{slot.number}")
            self.fewest = min(self.fewest, self.running() - 1)
            self.obey(self, slot)
        return new

    def end(self, roll: Roll, ticks: int = 200) -> Roll:
        for _ in range(ticks):
            roll = self.tick(roll)
            if roll.state is not RollState.ROLLING:
                break
        return roll


def test_crawlers_are_replaced_one_by_one_and_the_fleet_is_never_below_its_size_minus_one() -> None:
    fleet = Fleet()
    roll = fleet.end(fleet.begin())
    assert (roll.state, roll.reason) == (RollState.DONE, None)
    assert fleet.told == ["detail/0", "detail/1", "detail/2", "list/0"]  # each once
    assert [step.name for step in roll.replaced] == fleet.told
    assert fleet.fewest == 3
    assert all(view.record and view.record.pid > 1000 for view in fleet.slots.values())


def test_only_the_named_services_are_rolled_and_only_what_runs() -> None:
    fleet = Fleet()
    fleet.slots["detail/1"] = SlotView(spider="detail", number=1)  # will start afresh anyway
    fleet.put("detail", 2, state=CrawlerState.CRASH_LOOPING)
    fleet.put("detail", 3)  # not desired: it is being retired
    assert [step.name for step in fleet.begin("detail").waiting] == ["detail/0"]
    assert fleet.end(fleet.begin("nothing", "list")).total == 1


def test_the_next_one_goes_only_when_the_new_one_has_been_well_for_a_while() -> None:
    fleet = Fleet(obey=lambda fleet, view: fleet.restart(view, state=CrawlerState.STARTING))
    roll = fleet.tick(fleet.begin("detail"))
    for _ in range(10):
        roll = fleet.tick(roll)
    assert fleet.told == ["detail/0"]  # it is starting
    fleet.put("detail", 0, pid=5, restarts=1, lag_s=9.0)  # it runs, and its reactor does not answer
    for _ in range(5):
        roll = fleet.tick(roll)
    assert fleet.told == ["detail/0"]
    fleet.put("detail", 0, pid=5, restarts=1)
    roll = fleet.tick(roll, 0.5)
    roll = fleet.tick(roll, LIVED_S - 0.5)
    assert not roll.replaced
    roll = fleet.tick(roll, 0.5)
    assert [step.name for step in roll.replaced] == ["detail/0"]
    assert fleet.told == ["detail/0", "detail/1"]


def test_a_new_process_that_has_fetched_a_page_is_well() -> None:
    fleet = Fleet(obey=lambda fleet, view: fleet.restart(view, pages=1))
    roll = fleet.tick(fleet.begin("detail"))
    roll = fleet.tick(roll)
    assert [step.name for step in roll.replaced] == ["detail/0"]


def test_an_order_is_sent_until_it_is_seen_to_be_obeyed() -> None:
    fleet = Fleet(obey=lambda fleet, view: None)
    roll = fleet.begin("list")
    for _ in range(3):
        roll = fleet.tick(roll)
    assert fleet.told == ["list/0"] * 3


BEFORE = Work(answered=1000, raised=20, items=400, pages_per_s=5.0)


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ({"answered": 5, "raised": 5}, "callbacks raised 5 times on 5 pages (before: 20 on 1000)"),
        ({"answered": 300, "raised": 100, "items": 80}, "callbacks raised 100 times on 300 pages"),
        ({"answered": 30}, "0 items from 30 pages (before: 400 from 1000)"),
        ({"answered": 500, "items": 9}, "9 items from 500 pages"),
    ],
)
def test_a_version_whose_callbacks_raise_or_whose_items_stop_fails_at_its_first_crawler(work: dict[str, int], why: str) -> None:
    fleet = Fleet(obey=lambda fleet, view: fleet.restart(view, pages=1, **work))
    roll = fleet.end(replace(fleet.begin("detail"), before=BEFORE))
    assert (roll.state, roll.worse, fleet.told) == (RollState.FAILED, True, ["detail/0"])
    assert (roll.reason or "").startswith(why)


@pytest.mark.parametrize(
    ("before", "work"),
    [
        (BEFORE, {"answered": 25, "items": 1}),  # fewer items, by chance or by the kind of these pages
        (BEFORE, {"answered": 40, "raised": 4, "items": 12}),
        (replace(BEFORE, raised=400), {"answered": 40, "raised": 40, "items": 9}),  # so did the version before
        (replace(BEFORE, items=0), {"answered": 40}),
        (Work(), {"answered": 4, "raised": 1}),
    ],
)
def test_a_version_that_works_as_the_one_before_is_rolled_out(before: Work, work: dict[str, int]) -> None:
    fleet = Fleet(obey=lambda fleet, view: fleet.restart(view, pages=1, **work))
    roll = fleet.end(replace(fleet.begin("detail"), before=before))
    assert (roll.state, fleet.told) == (RollState.DONE, ["detail/0", "detail/1", "detail/2"])


def test_a_version_is_not_compared_with_crawlers_that_do_not_count_their_pages() -> None:
    older = CrawlerRecord(spider="detail", number=0, pid=1, state=CrawlerState.RUNNING, items=1000, pages_per_s=5.0)
    assert Work.of([older]) == Work()
    assert Work.of([older, replace(older, answered=1000)]) == Work(answered=1000, items=1000, pages_per_s=5.0)


def test_the_first_crawler_of_a_version_gets_time_for_its_pages_and_a_site_that_is_away_does_not_fail_it() -> None:
    fleet = Fleet(obey=lambda fleet, view: fleet.restart(view, pages=99))  # each a 503
    roll = fleet.tick(fleet.tick(replace(fleet.begin("detail"), before=BEFORE)))
    assert roll.reason == "compares detail/0 with the version before"
    for _ in range(int(COMPARED_S / 2) - 1):
        roll = fleet.tick(roll)
    assert fleet.told == ["detail/0"]
    assert fleet.end(roll).state is RollState.DONE
    idle = Fleet(obey=lambda fleet, view: fleet.restart(view, pages=1))
    roll = idle.tick(idle.tick(replace(idle.begin("detail"), before=replace(BEFORE, pages_per_s=0.0))))
    assert len(roll.replaced) == 1, "crawlers that had nothing to do have nothing to be compared by"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"state": CrawlerState.REFUSED, "last_exit": "refused"}, "detail/0 is refused"),
        ({"state": CrawlerState.CRASH_LOOPING, "last_exit": "crashed (exit code 1)"}, "detail/0 is crash-looping (crashed"),
        ({"state": CrawlerState.BACKING_OFF, "last_exit": "crashed (exit code 1)"}, "detail/0: the new process crashed"),
        ({"restarts": 2, "last_exit": "killed (SIGKILL)"}, "detail/0: the new process killed"),  # and was started again
        ({"state": CrawlerState.STARTING}, "detail/0 is not well (starting, recycled) 120 s after"),
    ],
)
def test_it_stops_at_the_first_new_process_that_is_not_well(what: dict[str, object], said: str) -> None:
    fleet = Fleet(obey=lambda fleet, view: fleet.restart(view, **what))
    roll = fleet.end(fleet.begin())
    assert roll.state is RollState.FAILED
    assert said in (roll.reason or "")
    assert fleet.told == ["detail/0"]
    assert fleet.end(roll) == roll


def test_a_supervisor_that_does_not_hear_the_order_ends_it() -> None:
    fleet = Fleet(obey=lambda fleet, view: None)  # of an older version: it does not know the word
    roll = fleet.end(fleet.begin())
    assert (roll.state, roll.reason) == (
        RollState.FAILED,
        f"detail/0 has not made room {STEP_S:.0f} s after the order to reload",
    )


def test_an_old_process_that_dies_by_itself_or_with_its_node_counts_as_replaced() -> None:
    fleet = Fleet()
    roll = fleet.begin("detail")
    fleet.put("detail", 0, pid=5, restarts=1, last_exit="killed (SIGKILL)")
    fleet.put("detail", 1, token=9, pid=5, restarts=1, last_exit="orphaned")
    assert fleet.end(roll).state is RollState.DONE
    assert fleet.told == ["detail/2"]


@pytest.mark.parametrize("end", ["drained", "aborted", "orphaned"])
def test_a_new_process_whose_node_goes_away_does_not_end_the_roll(end: str) -> None:
    fleet = Fleet()
    roll = fleet.tick(fleet.begin("detail"))
    fleet.put("detail", 0, token=9, pid=5, restarts=2, last_exit=end)  # the second process after the old one, on another node
    assert fleet.end(roll).state is RollState.DONE


def test_it_waits_for_the_rest_of_the_fleet_to_be_well() -> None:
    fleet = Fleet()
    roll = fleet.begin("detail")
    fleet.slots["detail/2"] = replace(fleet.slots["detail/2"], token=None)  # its node died
    for _ in range(5):
        roll = fleet.tick(roll)
    assert (fleet.told, roll.reason) == ([], "waits for detail/2")
    fleet.put("detail", 2, token=9, pid=5, restarts=1)
    assert fleet.end(roll).state is RollState.DONE

    fleet = Fleet()
    roll = fleet.begin("detail")
    fleet.slots["detail/2"] = replace(fleet.slots["detail/2"], token=None)
    assert fleet.end(roll).reason == "detail/2: no crawler runs there since 120 s"


def test_what_is_scaled_away_is_left_out_and_what_is_scaled_up_is_new_already() -> None:
    fleet = Fleet(obey=lambda fleet, view: None)
    roll = fleet.tick(fleet.begin())
    assert roll.current is not None
    fleet.desired.update(detail=0, list=2)
    fleet.put("list", 1)
    fleet.obey = lambda fleet, view: fleet.restart(view)
    roll = fleet.end(roll)
    assert (roll.state, roll.left_out) == (RollState.DONE, ("detail/1", "detail/2", "detail/0"))
    assert [step.name for step in roll.replaced] == ["list/0"]
    assert (roll.total, fleet.told) == (4, ["detail/0", "list/0"])


def test_a_slot_that_is_stopped_meanwhile_is_left_out() -> None:
    fleet = Fleet()
    roll = fleet.tick(fleet.begin("detail"))
    fleet.stopped = {("detail", 2)}
    fleet.slots["detail/2"] = SlotView(spider="detail", number=2)
    roll = fleet.end(roll)
    assert (roll.state, roll.left_out) == (RollState.DONE, ("detail/2",))
    assert fleet.told == ["detail/0", "detail/1"]


def test_the_time_in_which_nobody_looked_does_not_count() -> None:
    fleet = Fleet(obey=lambda fleet, view: None)
    roll = fleet.tick(fleet.begin())
    roll = fleet.tick(roll, 3600)  # Redis was away, or beat
    assert roll.state is RollState.ROLLING
    roll = fleet.tick(roll, -50)  # Redis's clock was put back
    assert roll.state is RollState.ROLLING
    assert fleet.end(roll).state is RollState.FAILED


@given(st.lists(st.sampled_from(["tick", "late", "die", "lose", "heal", "shrink", "grow"]), max_size=60))
def test_whatever_happens_no_two_crawlers_are_down_for_it_and_it_comes_to_an_end(events: list[str]) -> None:
    fleet = Fleet()
    roll = fleet.begin("detail")
    for number, event in enumerate(events):
        name = f"detail/{number % 3}"
        view = fleet.slots[name]
        if event == "die" and view.record:
            fleet.restart(view, last_exit="killed (SIGKILL)")
        elif event == "lose":
            fleet.slots[name] = replace(view, token=None)
        elif event == "heal" and view.token is None and view.record:
            fleet.put("detail", number % 3, token=9 + number, pid=number, restarts=view.record.restarts + 1)
        elif event in ("shrink", "grow"):
            fleet.desired["detail"] = 2 if event == "shrink" else 3
        told = len(fleet.told)
        roll = fleet.tick(roll, UNSEEN_S + 5 if event == "late" else 2.0)
        if len(fleet.told) > told:
            named = [v for n, v in fleet.slots.items() if n.startswith("detail/") and n != fleet.told[-1]]
            assert all(v.token for v in named if v.number < fleet.desired["detail"])
        names = [step.name for step in (*roll.waiting, *roll.replaced, *((roll.current,) if roll.current else ()))]
        assert sorted([*names, *roll.left_out]) == ["detail/0", "detail/1", "detail/2"]  # each is somewhere, and once
    assert fleet.end(roll).state is not RollState.ROLLING


# in Redis


@pytest.fixture
def registry(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setenv("TRAWL_FLEET", "list=1,detail=2")
    registry = Registry(redis_client)
    for spider, number in (("list", 0), ("detail", 0), ("detail", 1)):
        slot = registry.acquire(spider, number, "a")
        assert slot
        record = CrawlerRecord(spider=spider, number=number, token=slot.token, pid=5, state=CrawlerState.RUNNING)
        registry.renew(slot, record)
    return registry


def test_one_roll_at_a_time_and_an_unknown_service_is_named(registry: Registry, redis_client: redis.Redis) -> None:
    note = RollNote(redis_client)
    assert note.read() is None
    with pytest.raises(ConfigError, match="unknown service 'nope'"):
        start_roll(registry, note, ["list", "nope"])
    begun = start_roll(registry, note)
    assert [step.name for step in begun.waiting] == ["detail/0", "detail/1", "list/0"]
    with pytest.raises(FleetBusy, match=r"0 of 3 crawlers replaced.*trawl roll --abort"):
        start_roll(registry, note, ["list"])
    stopped = abort_roll(note)
    assert stopped
    assert (stopped.id, stopped.state) == (begun.id, RollState.ABORTED)
    assert abort_roll(note) is None
    assert start_roll(registry, note, ["list"]).total == 1


def test_of_two_beats_one_goes_on_and_the_order_reaches_the_holder(registry: Registry, redis_client: redis.Redis) -> None:
    begun, desired = start_roll(registry, RollNote(redis_client)), {"list": 1, "detail": 2}
    views = registry.slots(desired, registry.crawlers())
    slow = RollNote(redis_client)
    read = slow.read()
    now = go_on(registry, RollNote(redis_client), desired, views, [], [])
    assert now
    assert (now.current and now.current.name) == "detail/0"
    assert read
    assert not slow.write(replace(read, reason="what a slow beat thinks"))
    (view,) = (v for v in views if (v.spider, v.number) == ("detail", 0))
    order = redis_client.hget("trawl:fleet:orders", "detail/0")
    assert order == f"{view.token}|{SlotCommandKind.RELOAD}|{begun.id}".encode()

    # An order to retire is not written over.
    redis_client.delete("trawl:fleet:orders")
    assert go_on(registry, RollNote(redis_client), desired, views, [view], [])
    assert not redis_client.exists("trawl:fleet:orders")


def test_a_roll_of_a_newer_version_is_read_and_any_other_text_is_none(registry: Registry, redis_client: redis.Redis) -> None:
    note = RollNote(redis_client)
    begun = start_roll(registry, note)
    redis_client.hset("trawl:fleet:roll", "roll", begun.to_json()[:-1] + ',"colour":"blue"}')
    assert note.read() == begun
    assert note.write(replace(begun, state=RollState.DONE))
    redis_client.hset("trawl:fleet:roll", "roll", "nonsense")
    assert note.read() is None
    assert start_roll(registry, note).total == 3
