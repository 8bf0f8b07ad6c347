"""The policy of freshness: the square-root rule under a budget, rates learned from scans, gaps, and the checks of threads."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import mean

import msgspec
import pytest

from benchmarks.forums.freshness import POLICIES, TRAWL, UNIFORM, measure
from benchmarks.forums.rechecks import EDITS, fitted, threads
from benchmarks.forums.rechecks import POLICIES as CHECKS
from benchmarks.support.posting import WORKLOADS, Workload
from forums.freshness import Demand, IntervalBounds, Observation, estimate, interval, intervals, next_check, observe, price
from forums.state.keys import ForumState

LIMITS = IntervalBounds(min_s=30, max_s=86_400)
HOUR = 3600.0


def scanned(at: float, *, events: float, exposure: float) -> ForumState:
    return ForumState(scanned_at=at, tried_at=at, deep_at=at, events=events, exposure=exposure)


def test_the_budget_is_spent_in_proportion_to_the_roots_of_the_rates() -> None:
    demands = {"a": Demand(rate=0.01, cost=1), "b": Demand(rate=0.0001, cost=1), "c": Demand(rate=0.0001, cost=4)}
    paid = price(demands, 60, LIMITS)
    found = {forum: interval(one, paid, LIMITS) for forum, one in demands.items()}
    assert sum(one.cost * HOUR / found[forum] for forum, one in demands.items()) == pytest.approx(60)
    assert found["b"] == pytest.approx(10 * found["a"])
    assert found["c"] == pytest.approx(2 * found["b"]), "a scan of four pages is worth its requests half as often"


def test_no_other_division_of_the_budget_has_changes_wait_less() -> None:
    rng = random.Random(1)
    demands = {str(n): Demand(rate=rng.uniform(0.0001, 0.01), cost=rng.choice((1, 2))) for n in range(20)}
    paid = price(demands, 300, LIMITS)
    scans = {forum: HOUR / interval(one, paid, LIMITS) for forum, one in demands.items()}

    def waiting(by_forum: dict[str, float]) -> float:
        return sum(one.rate * HOUR / by_forum[forum] / 2 for forum, one in demands.items())

    best = waiting(scans)
    for _ in range(200):
        one, other = rng.sample(sorted(scans), 2)
        moved = min(scans[one], 1.0) * rng.uniform(0, 0.5)
        other_way = scans | {one: scans[one] - moved, other: scans[other] + moved * demands[one].cost / demands[other].cost}
        assert waiting(other_way) >= best * (1 - 1e-9)


def test_intervals_keep_within_the_site_s_limits_whatever_the_budget() -> None:
    states = {"busy": scanned(0, events=9000, exposure=HOUR), "dead": scanned(0, events=0, exposure=1e9)}
    rich = intervals(states, 1e9, now=0, limits=LIMITS)
    assert rich["busy"] == 30
    assert 3600 < rich["dead"] <= 86_400, "a request that finds nothing is not sent because there is budget"
    poor = intervals(states, 1e-6, now=0, limits=LIMITS)
    assert poor == pytest.approx({"busy": 86_400, "dead": 86_400})


def test_a_forum_that_was_never_scanned_is_due_at_once_and_one_that_fails_waits_longer_each_time() -> None:
    good = scanned(0, events=10, exposure=HOUR)
    bad = ForumState(scanned_at=0, tried_at=0, events=10, exposure=HOUR, errors=3)
    found = intervals({"new": ForumState(), "good": good, "bad": bad}, 1200, now=0, limits=LIMITS)
    assert found["new"] == 0
    assert found["bad"] == pytest.approx(8 * found["good"])
    worse = ForumState(scanned_at=0, tried_at=0, errors=1000)
    assert intervals({"worse": worse}, 1200, now=0, limits=LIMITS) == {"worse": 86_400}


def test_forums_are_scanned_as_the_page_of_the_newest_messages_leaves_changes_to_them() -> None:
    """It is trusted as far as it has proved right: the rates of scans are of what it did not tell."""
    told = {"+": scanned(0, events=80, exposure=HOUR)}
    alone = {one: scanned(0, events=8, exposure=HOUR) for one in "abcdefghij"}
    residual = alone | {"a": scanned(0, events=0.1, exposure=9 * HOUR)}
    before, now = (
        intervals(states, 1e9, now=0, limits=LIMITS, recent=recent) for states, recent in ((alone, None), (residual, told))
    )
    assert 6 * before["a"] < now["a"] <= 10 * before["a"], "it shows this forum, whose list stays the proof"
    assert now["b"] == pytest.approx(before["b"], rel=0.05), "it does not show that one"
    assert 30 <= now["+"] < now["b"]
    broken = {"+": msgspec.structs.replace(told["+"], errors=2)}
    failing = intervals(residual, 1e9, now=0, limits=LIMITS, recent=broken)
    assert failing["a"] == pytest.approx(before["a"], rel=0.3), "each has its part again"
    assert failing["+"] > now["+"]
    new = intervals(residual, 1e9, now=0, limits=LIMITS, recent={"+": ForumState()})
    assert new["+"] == 0


def test_the_rate_is_learned_and_follows_a_burst_and_its_end() -> None:
    rng, state, at = random.Random(1), ForumState(), 0.0

    def hours(number: int, per_hour: float) -> None:
        nonlocal state, at
        for _ in range(number * 6):
            at += 600
            state = observe(state, Observation(at=at, events=sum(rng.random() < per_hour / 3600 for _ in range(600))))

    hours(72, per_hour=2)
    assert estimate(state, at) * HOUR == pytest.approx(2, rel=0.5)
    hours(2, per_hour=40)
    assert estimate(state, at) * HOUR > 15, "within two hours"
    hours(6, per_hour=2)
    assert estimate(state, at) * HOUR < 5
    assert estimate(state, at + 24 * HOUR) * HOUR < 8, "the long memory has noticed, and hardly more"


def test_the_dates_on_the_first_list_page_tell_the_rate() -> None:
    busy = observe(ForumState(), Observation(at=1000 * HOUR, events=20, threads=20, oldest_at=998 * HOUR))
    quiet = observe(ForumState(), Observation(at=1000 * HOUR, events=20, threads=20, oldest_at=100 * HOUR))
    assert estimate(busy, 1000 * HOUR) * HOUR == pytest.approx(5), "of 10 an hour: four changes are no proof"
    assert estimate(quiet, 1000 * HOUR) * HOUR < 0.1
    unknown = observe(ForumState(), Observation(at=1000 * HOUR, events=20))
    assert estimate(unknown, 1000 * HOUR, prior=5 / HOUR) * HOUR == pytest.approx(5), "as the site's other forums"


def test_a_new_forum_is_scanned_again_soon_and_never_waits_longer_than_it_was_watched() -> None:
    """The dates on the first page may be of openings: the busiest board looks as if it changed once a day."""

    def scans(per_hour: float, number: int, budget: float = 1200, others: int = 0) -> list[float]:
        rest = {f"o{n}": scanned(0, events=1, exposure=1e6) for n in range(others)}
        state, at, waits = ForumState(), 1000 * HOUR, []
        for n in range(number):
            events = 20 if n == 0 else round(per_hour * waits[-1] / HOUR)
            state = observe(state, Observation(at=at, events=events, threads=20, oldest_at=500 * HOUR))
            waits.append(intervals({"new": state, **rest}, budget, now=at, limits=LIMITS)["new"])
            at += waits[-1]
        return waits

    assert scans(600, 6)[0] == 120
    assert max(scans(600, 6)[1:]) < 60, "known from the second scan on"
    quiet = scans(0, 12)
    assert quiet[:5] == [120, 120, 240, 480, 960]
    assert 1500 < quiet[5] < 1920, "until what was observed decides"
    assert scans(0, 1, budget=60, others=99)[0] > 2000, "not sooner than the budget scans all of them once"
    known = scanned(0, events=1, exposure=86_400 * 10)
    assert intervals({"known": known}, 1200, now=0, limits=LIMITS)["known"] > HOUR, "of an older Trawl, or long known"
    learned = [observe(ForumState(), Observation(at=9.0, events=1)), known, ForumState()]
    assert [one.is_learning for one in learned] == [True, False, False]


def test_a_scan_is_learned_once_and_an_older_one_not_at_all() -> None:
    first = observe(ForumState(), Observation(at=100, events=1))
    second = observe(first, Observation(at=200, events=3))
    assert observe(second, Observation(at=200, events=3)) == second
    assert observe(second, Observation(at=150, events=3)) == second


def test_what_a_failed_scan_has_seen_is_counted_by_the_next_one() -> None:
    state = observe(ForumState(), Observation(at=100, events=0))
    state = observe(state, Observation(at=200, events=4, outcome="failed", reason="page 2: 503"))
    assert (state.errors, state.reason, state.scanned_at) == (1, "page 2: 503", 100)
    state = observe(state, Observation(at=300, events=1))
    assert (state.errors, state.reason, state.carried) == (0, None, 0)
    assert state.events == pytest.approx(5)


def test_a_gap_stays_open_until_a_scan_has_read_what_lay_in_it() -> None:
    state = observe(ForumState(), Observation(at=1000, events=0, newest_at=900))
    state = observe(state, Observation(at=2000, events=400, outcome="gap", reason="20 pages", newest_at=1990, oldest_at=1500))
    assert (state.gap_at, state.gap_from, state.gap_scans, state.reason) == (2000, 900, 1, "20 pages")
    state = observe(state, Observation(at=2100, events=1, newest_at=2090, oldest_at=1900))
    assert (state.gap_at, state.gap_scans) == (2000, 1), "a scan that overlaps the last one closes nothing"
    deep = observe(state, Observation(at=2200, events=60, mode="deep", newest_at=2190, oldest_at=850))
    assert (deep.gap_at, deep.gap_from, deep.gap_scans, deep.reason) == (None, None, 0, None)
    old = observe(state, Observation(at=2200, events=60, mode="backfill", whole=True))
    assert old.gap_at is None
    assert old.events == state.events, "history says nothing about the rate"


def test_a_thread_is_checked_by_its_age_and_what_it_costs_and_sooner_where_changes_were_found() -> None:
    def wait(age_h: float, changes: int = 0, requests: int = 2, min_interval_s: float = 30) -> float:
        found = next_check(age_h * HOUR, changes, recheck_s=30 * 24 * HOUR, min_interval_s=min_interval_s, requests=requests)
        assert found is not None
        return found / HOUR

    assert [round(wait(age_h), 1) for age_h in (0, 1, 24, 24 * 30)] == [0.3, 1.2, 8.5, 76.9]
    assert wait(24, requests=8) == pytest.approx(2 * wait(24))
    assert wait(24, changes=4) == pytest.approx(wait(24) / 3)
    assert wait(24 / 60, min_interval_s=0.5) == pytest.approx(wait(24) / 60), "the rule has no scale of its own"
    assert wait(24 * 29, requests=200) == 7 * 24, "never longer than a week"
    assert wait(0, changes=100) == pytest.approx(600 / HOUR), "nor sooner than twenty shortest intervals"
    assert next_check(31 * 24 * HOUR, 9, recheck_s=30 * 24 * HOUR) is None


def test_a_thread_costs_about_27_checks_in_its_month() -> None:
    age, checks = 0.0, 0
    while (wait := next_check(age, recheck_s=30 * 24 * HOUR)) is not None:
        age, checks = age + wait, checks + 1
    assert 22 <= checks <= 32


def test_where_edits_come_at_the_rate_of_one_by_age_the_checks_are_better_than_by_doubling_or_evenly() -> None:
    found = threads(random.Random(2), 120, EDITS["at the rate 1/age"])
    delays = {name: mean(fitted(found, wait, requests=60)) for name, wait in CHECKS.items()}
    assert min(delays, key=lambda name: delays[name]) == next(iter(CHECKS)), delays


@pytest.mark.parametrize(
    "workload",
    [
        next(one for one in WORKLOADS if one.name == "recorded"),
        replace(next(one for one in WORKLOADS if one.silent), forums=40, scans_per_hour=240, skew=1.8),
    ],
    ids=["recorded", "model"],
)
def test_on_a_skewed_site_the_policy_is_nearly_as_fresh_as_one_that_knows_the_rates_and_twice_as_quick_as_polling(
    workload: Workload,
) -> None:
    found = {
        name: measure(workload, POLICIES[name], seeds=1, days=2)
        for name in (TRAWL, UNIFORM, "known rates: freshness (Cho, Garcia-Molina)")
    }
    trawl, uniform, known = found.values()
    assert trawl.fresh >= 0.95 * known.fresh
    assert trawl.delay_s <= 0.5 * uniform.delay_s
    assert trawl.first_day_s <= 0.5 * uniform.first_day_s, "from the first day on"
    assert math.isclose(trawl.scans_per_hour, uniform.scans_per_hour, rel_tol=0.01)
