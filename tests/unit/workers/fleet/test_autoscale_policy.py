"""`autoscale` on traces: a service whose crawlers, site and work are simulated, looked at every 2 s as the fleet does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from workers.fleet.autoscale import DOWN_AFTER_S, Sample, autoscale
from workers.state.keys import FleetKeys
from workers.state.services import Autoscaled, Autoscaling, Memory, Policy

POLICY = Policy(min=1, max=8, target_s=60)
START_S = 4.0  # a crawler's start


@dataclass
class Service:
    """Crawlers finish `each` requests per second, all together at most what the site gives."""

    each: float = 10.0
    site: float = math.inf
    inflow: Callable[[float], float] = lambda at: 0.0
    room: int = 100
    policy: Policy = POLICY
    size: int = 1
    backlog: float = 0.0
    memory: Memory = field(default_factory=Memory)
    now: float = 1_000_000.0
    acked: float = 0.0
    alive: int = 1
    starts: list[float] = field(default_factory=list)
    sizes: list[tuple[float, int]] = field(default_factory=list)

    def sample(self) -> Sample:
        leased = min(int(self.backlog), 16 * self.alive)
        return Sample(
            size=self.size,
            alive=self.alive,
            waiting=int(self.backlog) - leased,
            leased=leased,
            acked=int(self.acked),
            room=self.room,
        )

    def run(self, seconds: float) -> list[tuple[float, int]]:
        """What became of the size: (s since this began, new size) for each change."""
        began = self.now
        self.sizes = []
        for _ in range(int(seconds / 2)):
            self.now += 2
            self.alive = min(
                self.size, sum(at + START_S <= self.now for at in self.starts) + max(0, self.size - len(self.starts))
            )
            self.backlog += 2 * self.inflow(self.now - began)
            done = min(self.backlog, 2 * min(self.alive * self.each, self.site))
            self.backlog -= done
            self.acked += done
            self.look(self.sample(), began)
        return self.sizes

    def look(self, sample: Sample | None, began: float = 0.0) -> None:
        new, memory = autoscale(self.policy, self.memory, sample, self.now)
        assert (new, memory) == autoscale(self.policy, self.memory, sample, self.now)
        self.memory = memory
        if new is not None:
            self.starts = [*[0.0] * min(self.size, new), *[self.now] * max(0, new - self.size)]
            self.size = new
            self.sizes.append((self.now - began, new))


def test_a_burst_is_met_within_a_minute_and_the_crew_shrinks_slowly_when_it_is_over() -> None:
    service = Service(backlog=4000)  # 67/s to be done in a minute
    grown = service.run(60)
    assert [n for _, n in grown] == [2, 4, 6]  # each crew is measured before the next
    assert grown[-1][0] <= 45
    shrunk = service.run(600)
    assert (service.backlog, service.size) == (0, 1)
    assert [n for _, n in shrunk] == sorted((n for _, n in shrunk), reverse=True)
    assert all(later - earlier >= DOWN_AFTER_S for (earlier, _), (later, _) in pairwise(shrunk))


def test_a_steady_inflow_gets_a_steady_crew() -> None:
    service = Service(inflow=lambda at: 45.0)
    service.run(300)
    assert service.size in (5, 6)
    assert len(service.run(1800)) <= 1
    assert service.backlog < 45 * 60


def test_a_sawtooth_shorter_than_the_patience_does_not_make_the_size_flap() -> None:
    service = Service(inflow=lambda at: 80.0 if at % 40 < 20 else 0.0)  # 40/s on average
    service.run(300)
    assert service.size >= 4
    assert len(service.run(1200)) <= 4
    assert service.backlog < 40 * 60


def test_where_the_site_is_the_bottleneck_the_upper_bound_holds_and_then_few_are_enough() -> None:
    service = Service(site=20.0, backlog=20_000)  # two crawlers get all that it gives
    assert [n for _, n in service.run(250)] == [2, 4, 8]
    service.run(2000)
    assert service.size == 1


def test_a_throughput_that_is_not_known_adds_nothing() -> None:
    service = Service(each=0.0, backlog=10_000)  # every page hangs
    assert service.run(600) == []
    service = Service(size=4, alive=4, each=0.0, backlog=0)
    assert [n for _, n in service.run(600)] == [3, 2, 1]  # nothing to do: slowly down


def test_nothing_at_all_goes_down_to_none_and_the_first_request_wakes_one() -> None:
    service = Service(policy=Policy(min=0, max=4))
    service.run(200)
    assert service.size == 0
    service.backlog = 5
    assert service.run(4) == [(2, 1)]
    assert service.run(60) == []


def test_never_above_what_the_nodes_offer_and_what_they_lack_takes_nobody_away() -> None:
    service = Service(backlog=100_000, room=3)
    service.run(300)
    assert service.size == 3
    assert "room for 3" in service.memory.why
    service.room = 1  # a node died: its crawlers are missing, and their slots wait for room
    assert service.run(60) == []


def test_the_bounds_hold_at_once() -> None:
    assert Service(size=20).run(2) == [(2, 8)]
    assert Service(size=0, policy=Policy(min=2, max=4)).run(2) == [(2, 2)]


def test_what_is_held_does_not_grow() -> None:
    service = Service(backlog=10_000)
    service.run(20)
    for _ in range(60):
        service.now += 2
        service.look(replace(service.sample(), held=True))
    assert (service.size, service.memory.why) == (2, "it is held")
    service.run(30)
    assert service.size > 2


def test_while_crawlers_are_missing_no_more_are_asked_for() -> None:
    service = Service(backlog=100_000)
    service.run(16)
    assert service.size == 2
    for _ in range(60):
        service.now += 2
        service.acked += 20
        service.look(replace(service.sample(), alive=1))  # the second one crashes again and again
    assert service.size == 2
    assert "1 of 2 do not run yet" in service.memory.why


@pytest.mark.parametrize("jump_s", [-7200.0, 7200.0, -1.0, 31.0])
def test_a_clock_that_jumps_only_makes_it_measure_anew(jump_s: float) -> None:
    service = Service(inflow=lambda at: 45.0)
    service.run(600)
    service.now += jump_s
    before = service.size
    assert service.run(60) == []
    service.run(240)
    assert abs(service.size - before) <= 1


def test_missing_figures_and_counters_that_begin_anew_change_nothing() -> None:
    service = Service(inflow=lambda at: 45.0)
    service.run(600)
    for _ in range(20):
        service.now += 2
        service.look(None)
    service.acked = 0  # Redis was flushed, or came back older
    before = service.size
    assert service.run(40) == []
    service.run(200)
    assert abs(service.size - before) <= 1


samples = st.builds(
    Sample,
    size=st.integers(0, 12),
    alive=st.integers(0, 12),
    waiting=st.integers(0, 10**9),
    leased=st.integers(0, 10**4),
    acked=st.integers(0, 10**9),
    room=st.integers(0, 20),
    held=st.booleans(),
)


@given(st.lists(st.tuples(st.none() | samples, st.floats(-100, 100))), st.integers(0, 4), st.integers(1, 8), st.floats(1, 3600))
def test_whatever_is_seen_the_size_stays_within_its_bounds_and_the_room(
    seen: list[tuple[Sample | None, float]], least: int, more: int, target_s: float
) -> None:
    policy, memory, now = Policy(min=least, max=least + more, target_s=target_s), Memory(), 1_000_000.0
    for sample, seconds in seen:
        now += seconds
        new, memory = autoscale(policy, memory, sample, now)
        if new is None or sample is None:
            continue
        assert policy.min <= new <= policy.max
        assert new != sample.size
        if policy.min <= sample.size <= policy.max and new > sample.size:
            assert new <= max(sample.room, 1 if not sample.size else 0, policy.min)
            assert new <= 2 * max(sample.size, 1)
            assert not sample.held


# in Redis


def test_a_policy_is_kept_with_what_was_learnt_and_a_new_one_forgets_that(redis_client: redis.Redis) -> None:
    autoscaling, other = Autoscaling(redis_client), Autoscaling(redis_client)
    assert autoscaling.all() == {}
    autoscaling.set("detail", POLICY)
    other.all()
    (found,) = autoscaling.all().values()
    learnt = replace(found, memory=Memory(at=5.0, per_crawler=2.5))
    assert autoscaling.put("detail", learnt)
    assert not other.put("detail", replace(found, memory=Memory(at=6.0)))  # it has read an older one
    assert other.all() == {"detail": learnt}
    autoscaling.set("detail", replace(POLICY, max=9))
    assert not other.put("detail", replace(found, memory=Memory(at=7.0)))
    assert other.all() == {"detail": Autoscaled(policy=replace(POLICY, max=9))}
    assert autoscaling.off("detail")
    assert not autoscaling.off("detail")
    assert not other.put("detail", learnt), "what was switched off does not come back"
    redis_client.hset(FleetKeys().autoscale(), mapping={"list": "nonsense"})
    assert autoscaling.all() == {}
