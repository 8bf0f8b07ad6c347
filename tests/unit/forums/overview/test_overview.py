"""What needs attention in a fleet, from views made by hand: each fault alone, and the fleet that is well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fleet_operations.overview import Overview, ServiceView, problems
from forums.overview import Boards, ForumSites
from forums.overview.boards import WatchedForum
from forums.state.keys import ForumState
from forums.state.site_faults import RULES_FILE
from redis_components.admin.health import Finding, Problem
from redis_components.admin.inspector import CrawlSnapshot
from redis_components.admin.lanes import LaneState, LaneView, in_one_line
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.politeness.limits import BY_TRIAL, LaneLimits
from workers.state.beats import BeatView
from workers.state.holds import Breaker, BreakerState, Held
from workers.state.nodes import NodeRecord
from workers.state.quarantine import Foreign
from workers.state.registry import CrawlerRecord, CrawlerState
from workers.state.rolls import Roll, RollState

NOW = 1_800_000_000.0
CRAWLER = CrawlerRecord(spider="books", number=0, pid=4711, state=CrawlerState.RUNNING, beat_at=NOW - 1)
NODE = NodeRecord(name="worker@host", services=("books",), capacity=4, taken=1, beat_at=NOW - 1)


def fleet(*crawlers: CrawlerRecord, desired: int = 1, held: tuple[Held, ...] = (), **sizes: Any) -> Overview:
    """One service, one node, a beat."""
    service = ServiceView.of(replace(CrawlSnapshot(spider="books"), **sizes), desired, crawlers, held, NOW)
    beats = BeatView(leader="host:1", waiting=(), silent_s=0.5)
    return Overview(now=NOW, services=(service,), crawlers=crawlers, held=held, nodes=(NODE,), beats=beats)


def lane(name: str, refusals: int = 0, refused_s: float = 0.0, *, left_alone_s: float = 0.0, slowed: float | None = None) -> Any:
    state = LaneState(left_alone_s=left_alone_s, refusals=refusals, refused_s=refused_s, slowed=slowed, robots=None)
    figures: dict[str, Any] = {"rate_now": slowed, "at_work": None, "waiting": 0, "quiet_s": None, "next_s": None}
    return LaneView(lane=name, limits=LaneLimits(), state=state, **figures)


def board(held: Mapping[str, Hold] | None = None, **state: Any) -> Boards:
    """A board that was due an hour ago."""
    return Boards([WatchedForum(site="demo", forum="f1", state=ForumState(**state), due_at=NOW - 3600)], NOW, held=held)


WELL = fleet(CRAWLER)
BROKEN = Breaker(state=BreakerState.OPEN, cause="login", reason="a login page", since=NOW - 60)
FILMS = ServiceView.of(CrawlSnapshot(spider="films"), 0, (), (), NOW)
OF_FILMS = replace(NODE, services=("films",))
ALONE = LaneState(left_alone_s=240.0, refusals=0, refused_s=0.0, slowed=None, robots=None)
STOP, PAUSE = Hold(word=HoldKind.STOP, at=NOW), Hold(word=HoldKind.PAUSE, at=NOW)
GIVEN_UP = replace(CRAWLER, state=CrawlerState.CRASH_LOOPING, note="6 failures in a row", error="no key")
FAULTS: dict[str, tuple[Overview, str, str, bool]] = {
    "Redis": (Overview(failure="Redis is not running: start it"), "Redis is not running", "start it", True),
    "a part": (replace(WELL, unreadable={"nodes": "WRONGTYPE"}), "nodes cannot be read (WRONGTYPE)", "trawl doctor", True),
    "a record": (
        replace(WELL, foreign=(Foreign(key="k", field=b"f", value=b"v", reason="is odd"),)),
        "k, field f: 'v' is odd",
        "trawl doctor",
        True,
    ),
    "eviction": (replace(WELL, server=(Finding(name="eviction", what="may evict", fix="set it"),)), "may evict", "set it", True),
    "no log file": (
        replace(WELL, server=(Finding(name="no_aof", what="no file", fix="set it", grave=False),)),
        "no file",
        "set it",
        False,
    ),
    "no beat": (
        replace(WELL, beats=BeatView(leader=None, waiting=(), silent_s=90.0)),
        "none leads",
        "celery -A tasks beat",
        True,
    ),
    "no crawler": (fleet(), "no crawler is alive", "trawl logs", True),
    "no node": (replace(fleet(), nodes=()), "no crawler is alive", "trawl up", True),
    "a gone crawler": (fleet(replace(CRAWLER, beat_at=NOW - 60)), "no crawler is alive", "trawl history", True),
    "too few": (fleet(CRAWLER, desired=3), "books has 1 of 3 crawlers", "trawl history books", True),
    "by hand": (fleet(replace(CRAWLER, number=None)), "books has 0 of 1 crawlers", "trawl history books", True),
    "no room": (
        replace(fleet(CRAWLER, desired=9), shortages={"books": "9 wanted, no room for 5"}),
        "books: 9 wanted, no room for 5",
        "TRAWL_NODE_CRAWLERS",
        True,
    ),
    "given up": (fleet(GIVEN_UP), "books/0 is crash-looping: 6 failures in a row: no key", "trawl resume books", True),
    "a page that stands": (
        fleet(replace(CRAWLER, oldest_s=840.0, oldest="an item pipeline of http://a/1")),
        "books/0: a page has given no sign of life for 14 min, an item pipeline of http://a/1",
        "SCHEDULER_MAX_PAGE_AGE",
        True,
    ),
    "a start that stands": (
        fleet(replace(CRAWLER, state=CrawlerState.STARTING, started_at=NOW - 600)),
        "books/0 has been starting for 10 min",
        "trawl logs books/0",
        True,
    ),
    "backed up": (fleet(CRAWLER, items=9, max_items=9), "books starts no page: 9 items wait", "REDIS_ITEMS_MAX", True),
    "refused": (fleet(CRAWLER, bad_items=2), "2 items were refused", "trawl dead items books", True),
    "dead": (fleet(CRAWLER, dead=2), "requests were given up and are kept (books 2)", "trawl dead", False),
    "rules file": (
        replace(WELL, sites=ForumSites(output_troubles={RULES_FILE: "events.toml: outputs.shop.ur: there is no such key"})),
        "no output gets events or alarms, the rules file is wrong: events.toml: outputs.shop.ur",
        "mend it",
        True,
    ),
    "outputs": (
        replace(WELL, sites=ForumSites(output_troubles={"shop": "takes no events, they wait: HTTP 503"})),
        "output shop takes no events",
        "trawl events list",
        False,
    ),
    "messages": (replace(WELL, dead_messages=2), "2 messages of the broker", "trawl dead messages", True),
    "a roll": (replace(WELL, roll=Roll(id="r", services=("books",), state=RollState.FAILED)), "roll failed", "--abort", True),
    "a site": (replace(WELL, sites=ForumSites(breakers={"demo": BROKEN})), "a login page", "resume --site demo --breaker", True),
    "a file": (replace(WELL, sites=ForumSites(wrong_files={"demo": "base_url = 7"})), "base_url = 7", "sites check demo", True),
    "refusals": (
        replace(WELL, sites=ForumSites(lanes=(lane("good", 9, 60), lane("shop", 12, 7300)))),
        "without half an hour of peace: shop (shop has refused 12 in 2 h)",
        "trawl limit",
        False,
    ),
    "no contact": (
        replace(WELL, sites=ForumSites(lanes=(replace(lane("shop"), limits=LaneLimits(by=BY_TRIAL)),))),
        "and get 1,000 requests a day until they do: shop",
        "USER_AGENT",
        False,
    ),
    "a stale board": (replace(WELL, sites=ForumSites(boards=board())), "stale: demo/f1", "trawl forums", True),
    "a failing board": (
        replace(WELL, sites=ForumSites(boards=board(tried_at=NOW - 9, errors=1, reason="page 1: HTTP 503"))),
        "the last scan failed: demo/f1 (1 scan failed: page 1: HTTP 503)",
        "trawl forums",
        False,
    ),
    "a gap": (replace(WELL, sites=ForumSites(boards=board(tried_at=NOW, gap_at=NOW))), "a gap is open", "trawl forums", False),
    "a gone node": (
        replace(WELL, nodes=(NODE, replace(NODE, name="b@c", beat_at=NOW - 30))),
        "b@c was last heard",
        "look",
        False,
    ),
    "a name twice": (replace(WELL, nodes=(replace(NODE, rivals=True),)), "two workers have this name", "-n NAME@%h", True),
    "a trouble": (
        replace(WELL, troubles=(Problem(what="worker a: disk full", fix="make room"),)),
        "disk full",
        "make room",
        True,
    ),
    "no node serves it": (
        replace(
            fleet(CRAWLER, desired=2),
            services=(*fleet(CRAWLER, desired=2).services, FILMS),
            nodes=(OF_FILMS,),
            shortages={"books": "2 wanted, no room for 1: no node serves it"},
        ),
        "books: 2 wanted, no room for 1: no node serves it",
        "-Q crawlers.books",
        True,
    ),
    "a node that serves nothing": (
        replace(WELL, nodes=(NODE, replace(OF_FILMS, name="b@host"))),
        "node b@host serves nothing of this fleet (films)",
        "-Q crawlers.SERVICE",
        False,
    ),
    "no consumer": (
        replace(fleet(CRAWLER, items=720), without_consumer=("books",)),
        "books declares a consumer and none runs, 720 items wait",
        "start a worker with -Q control",
        True,
    ),
    "no consumer yet": (
        replace(WELL, without_consumer=("books/files",)),
        "books/files declares a consumer and none runs",
        "trawl up",
        False,
    ),
    "no writer": (
        replace(WELL, sites=ForumSites(writer_lag_s=400.0)),
        "the oldest item has waited for 7 min to be stored",
        "trawl doctor",
        True,
    ),
    "a limit that starves": (
        replace(
            WELL,
            sites=ForumSites(
                lanes=(
                    replace(lane("shop"), waiting=61, next_s=240.0, limits=LaneLimits(by="an operator")),
                    replace(
                        lane("left"),
                        waiting=61,
                        next_s=240.0,
                        state=LaneState(left_alone_s=240.0, refusals=0, refused_s=0.0, slowed=None, robots=None),
                    ),
                    replace(lane("soon"), waiting=61, next_s=3.0),
                )
            ),
        ),
        "61 requests of shop wait, its limits let none go for 4 min (an operator)",
        "trawl limit shop",
        False,
    ),
}


def test_a_fleet_that_is_well_has_no_problem() -> None:
    assert problems(WELL) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_said_once_with_its_next_step(fault: str) -> None:
    view, what, fix, grave = FAULTS[fault]
    (one,) = problems(view)
    assert what in one.what
    assert fix in str(one)
    assert one.grave is grave
    assert "\n" not in str(one)


@pytest.mark.parametrize(
    "view",
    [
        fleet(held=(Held(hold=STOP),)),
        fleet(held=(Held(hold=STOP, service="books"),)),
        fleet(CRAWLER, held=(Held(hold=PAUSE),)),
        fleet(desired=0),
        replace(fleet(desired=0), nodes=(replace(NODE, services=()),)),
        replace(WELL, sites=ForumSites(boards=board(held={"demo": PAUSE}))),
    ],
    ids=("fleet stopped", "service stopped", "paused", "scaled to 0", "jobs alone", "site paused"),
)
def test_what_an_operator_wants_is_no_problem(view: Overview) -> None:
    assert problems(view) == []


def test_the_worst_comes_first() -> None:
    found = problems(replace(fleet(GIVEN_UP, desired=1, dead=1), server=(Finding(name="x", what="a", fix="b", grave=False),)))
    assert [one.grave for one in found] == [True, False, False]


def test_lanes_that_get_less_than_their_limits_are_one_line() -> None:
    lanes = [lane("a", slowed=0.5), lane("b", left_alone_s=7), lane("c"), *(lane(f"d{n}", slowed=1.0) for n in range(4))]
    assert in_one_line(lanes) == "1 left alone (b), 5 slowed (a, d0, d1, …)"
    assert in_one_line(lanes[2:3]) == ""
