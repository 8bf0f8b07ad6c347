"""From what is desired and what is there to what has to be done: pure, so that every situation can be tested.

`tasks.reconcile_fleet` applies the actions. Doing so twice, from two beats at once, has the effect of doing it once: launches are
marked, orders are for one token, forgetting is forgetting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redis_components.registry import CrawlerRecord, SlotView

# A slot that was given up is tried again after this: what was missing (a database, a proxy) may be back.
GIVEN_UP_RETRY_S = 60.0
# How long the record of a crawler stays visible that is gone and not desired any more.
FORGET_AFTER_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Send `run_crawler(spider, number)`: the slot is desired and nobody holds it."""

    spider: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Retire:
    """Order the slot's holder to stop gracefully: it is not desired."""

    slot: SlotView
    reason: str


@dataclass(frozen=True, kw_only=True)
class Forget:
    """Drop the record of a crawler that is gone and not desired."""

    name: str


Action = Launch | Retire | Forget


def plan(
    desired: Mapping[str, int], live: Iterable[SlotView], now: float, strangers: Iterable[CrawlerRecord] = ()
) -> list[Action]:
    """What to do so that the fleet gets its desired size.

    `live` is every slot that is desired, held, or was heard of (`Registry.slots`), `strangers` the records of crawlers without
    a slot (started by hand), `now` Redis's time. Launches come lowest numbers first over all spiders, so that none is left
    without a crawler while another gets all of a small node's room.
    """
    slots = {(view.spider, view.number): view for view in live}
    launches = sorted((number, spider) for spider, n in desired.items() for number in range(n))
    surplus = [view for view in slots.values() if view.number >= desired.get(view.spider, 0)]
    return [
        *(Retire(slot=view, reason=_reason(desired, view)) for view in surplus if view.token is not None),
        *(Launch(spider=spider, number=number) for number, spider in launches if _wanting(slots.get((spider, number)), now)),
        *(Forget(name=r.name) for r in _records(surplus, strangers) if now - r.beat_at > FORGET_AFTER_S),
    ]


def _wanting(view: SlotView | None, now: float) -> bool:
    """Whether a desired slot needs a launch."""
    if view is None:
        return True
    if view.token is not None or view.launching:
        return False
    given_up = view.record is not None and view.record.state.given_up and now - view.record.beat_at < GIVEN_UP_RETRY_S
    return not given_up


def _reason(desired: Mapping[str, int], view: SlotView) -> str:
    n = desired.get(view.spider, 0)
    return f"scaled to {view.spider}={n}" if view.spider in desired else f"{view.spider} is not a service of this fleet"


def _records(surplus: Iterable[SlotView], strangers: Iterable[CrawlerRecord]) -> list[CrawlerRecord]:
    return [*(view.record for view in surplus if view.token is None and view.record), *strangers]
