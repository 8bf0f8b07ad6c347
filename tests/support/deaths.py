"""What each way to die costs: `measure_death(death, fleet)` does one to a fleet that crawls, and measures until it is whole."""

from __future__ import annotations

import time
from dataclasses import dataclass

import redis

from tests.support.mortal_fleet import MortalFleet
from tests.support.ways_to_die import Blow, Death, strike
from workers.state.registry import CrawlerRecord

GIVE_UP_S = 75.0


@dataclass(frozen=True, kw_only=True)
class Toll:
    """What one death cost."""

    death: Death
    noticed_s: float | None  # until the fleet showed that it knows; None where nothing has to be noticed
    whole_s: float  # until every slot crawled again
    orphans: int  # crawlers without a supervisor, or beside the one of their slot, a moment after that
    most: int  # crawlers in one slot at the same time; one that was frozen is not counted any more
    late: int  # crawlers that asked for a page after their successor in the slot had asked for its first
    thawed_s: float  # how long a crawler that had been frozen lived after it went on
    lost: int  # pages that were never fetched
    twice: int  # fetches beyond the first of each page


def measure_death(death: Death, fleet: MortalFleet, *, away_s: float = 60.0, lived_s: float = 0.0) -> Toll:
    """One crawl with this death in its middle, from a whole fleet to a whole fleet.

    `away_s` is for Redis; crawlers have crawled for `lived_s` before it: after a quick end the next start has to wait.
    """
    fleet.wait_ready()
    begun = time.time()
    fleet.begin()
    fleet.wait_crawling(since=begun)
    time.sleep(lived_s)  # the case itself
    fleet.watch.forget()
    blow = strike(death, fleet, away_s)
    noticed_s, whole_s = _healed(fleet, blow)
    blow.after()
    orphans = _orphans(fleet)
    crawled = fleet.end()
    return Toll(
        death=death,
        noticed_s=noticed_s if blow.before is None else blow.before,
        whole_s=whole_s,
        orphans=orphans,
        most=max(fleet.watch.most.values()),
        late=fleet.late(begun),
        thawed_s=max(fleet.watch.thawed.values(), default=0.0),
        lost=crawled.lost,
        twice=crawled.twice,
    )


def _healed(fleet: MortalFleet, blow: Blow) -> tuple[float | None, float]:
    """Seconds until the death was noticed, and until the fleet was whole."""
    noticed_s: float | None = None
    until = time.time() + GIVE_UP_S
    found: dict[str, CrawlerRecord] = {}
    while time.time() < until:
        try:
            if noticed_s is None and blow.noticed and blow.noticed():
                noticed_s = time.time() - blow.at
            found = fleet.crawling(since=blow.at, but_not=blow.gone)
        except redis.RedisError:
            continue
        if set(found) == set(fleet.slots):
            return noticed_s, time.time() - blow.at
        time.sleep(0.02)
    raise AssertionError(f"not whole after {GIVE_UP_S:g} s: {found}; {fleet.watch.look()}\n{fleet.said()}")


def _orphans(fleet: MortalFleet) -> int:
    """Those that do not go within a while."""
    until = time.time() + 20.0
    while (left := fleet.orphans()) and time.time() < until:
        time.sleep(0.05)
    return len(left)
