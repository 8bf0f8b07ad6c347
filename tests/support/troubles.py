"""The trouble of each alert, made and ended in a Redis: records as the fleet writes them, without its processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from forums.records import FORUM_WRITER
from forums.state.database_state import PublicationDelays
from forums.state.keys import ForumState, ForumStates
from redis_components.frontier.holds import HoldKind
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from tests.support.owner import Owner
from tests.support.redis_server import RedisServer
from workers.fleet.holds import HoldTarget, hold, resume
from workers.state import dead_messages
from workers.state.beats import Beats
from workers.state.group_runs import GroupRun, GroupRuns
from workers.state.holds import Breaker, Breakers, BreakerState
from workers.state.keys import FleetKeys
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import CrawlerRecord, CrawlerState, Registry
from workers.state.rolls import Roll, RollNote, RollState
from workers.state.services import MAX_WAITING, ServiceRecord, Services

FLEET = "forum_list=1,forum_detail=2,others=0,broken=0"
MAX_ITEMS = 4


@dataclass
class Fleet:
    """The records of a fleet that is well, but for what is done to it. `tick` is a moment of its life."""

    server: RedisServer
    leads: bool = True
    node_lives: bool = True
    restarts: int = 0
    produced: int = 0  # start tasks of forum_list that come with each tick
    oldest_s: float = 0.0  # of the pages at work
    slots: dict[str, CrawlerState] = field(default_factory=dict)
    grows: dict[str, int] = field(default_factory=dict)  # stats of forum_detail, by how much at each tick
    late: bool = False  # what is stored was published two hours ago

    def __post_init__(self) -> None:
        self.client = self.server.client()
        self.registry, self.nodes, self.beats = Registry(self.client), Nodes(self.client), Beats(self.client)
        self.rolls, self.breakers, self.boards = RollNote(self.client), Breakers(self.client), ForumStates(self.client)
        self.services = Services(self.client)
        self.records = CrawlRecords(self.client)
        self.lists, self.details = CrawlKeys.for_spider("forum_list"), CrawlKeys.for_spider("forum_detail")
        self.slots = dict.fromkeys(("forum_list/0", "forum_detail/0", "forum_detail/1"), CrawlerState.RUNNING)
        self.records.write(CrawlRecord(spider="forum_list", keys=self.lists, consumer=FORUM_WRITER))
        self.records.write(CrawlRecord(spider="forum_detail", keys=self.details, max_items=MAX_ITEMS))
        stats = ("item_scraped_count", "downloader/response_count", "downloader/response_status_count/429", "raw/dropped")
        self.client.hset(self.details.stats_hash(), mapping=dict.fromkeys(stats, "1"))
        self.delays = PublicationDelays(self.client)
        self.delays.add({"demo": [1.0]})
        self.write_board("quick", ForumState())

    def tick(self) -> None:
        """Who lives says so, and what grows has grown."""
        for name, state in self.slots.items():
            spider, _, number = name.partition("/")
            figures = {"restarts": self.restarts, "oldest_s": self.oldest_s}
            record = CrawlerRecord(spider=spider, number=int(number), pid=7, node="n1", state=state, **figures)
            self.registry.note(record)
        if self.node_lives:
            self.nodes.beat(NodeRecord(name="n1", services=("forum_list", "forum_detail")))
        if self.leads:
            self.beats.lead("host:1#a")
        for stat, number in self.grows.items():
            self.client.hincrby(self.details.stats_hash(), stat, number)
        if self.produced:
            self.client.rpush(self.lists.start_tasks(), *["a task"] * self.produced)
        self.delays.add({"demo": [7200.0 if self.late else 1.0]})

    def write_board(self, name: str, state: ForumState, late_s: float = 0.0) -> None:
        """A board of the site `demo`, whose scan is due for so many seconds."""
        now = self.registry.now()
        self.boards.write({f"demo/{name}": state})
        self.boards.store_dues({f"demo/{name}": now - late_s if late_s else now + 3600}, now, whole=False)

    def lose_node(self) -> None:
        """It was last heard 20 s ago."""
        self.node_lives = False
        record = json.loads(NodeRecord(name="n1").to_json())
        self.client.hset(FleetKeys().nodes(), "n1", json.dumps({**record, "beat_at": self.registry.now() - 20}))

    def break_roll(self, state: RollState) -> None:
        before = self.rolls.read() or Roll(id="roll", services=("forum_list",))
        self.rolls.write(replace(before, state=state))

    def bury(self) -> None:
        """A request is given up."""
        owner = Owner(self.client, "b", keys=self.details).open()
        owner.add("doomed")
        lease = owner.take()
        assert lease
        owner.frontier.bury(lease[0], "the disk is full")
        owner.advance()

    def queue(self) -> None:
        """A request waits, and nobody takes it."""
        owner = Owner(self.client, "a", keys=self.lists).open()
        owner.add("waits")
        owner.advance()
        owner.close()

    def finish(self) -> None:
        """It is carried out."""
        owner = Owner(self.client, "c", keys=self.lists).open()
        lease = owner.take()
        assert lease
        owner.frontier.ack(lease[0])
        owner.advance()

    def store_late_item(self) -> None:
        """An item that was fetched 400 s ago is the oldest of those that wait for the writer."""
        moment = (datetime.now(UTC) - timedelta(seconds=400)).isoformat()
        self.client.rpush(self.lists.item_stream(), json.dumps({"fetched_at": moment}))

    def break_site(self, state: BreakerState) -> None:
        self.breakers.get("shop")
        self.breakers.put("shop", Breaker(state=state, cause="login", reason="a login page", since=self.registry.now()))


Act = Callable[[Fleet], object]
HELD = HoldTarget(services=("broken",))
OTHERS, BROKEN = CrawlKeys.for_spider("others"), CrawlKeys.for_spider("broken")

TROUBLES: dict[str, tuple[Act, Act]] = {
    "TrawlUnreadable": (
        lambda fleet: fleet.client.set(BROKEN.dead(), "a text"),
        lambda fleet: fleet.client.delete(BROKEN.dead()),
    ),
    "TrawlRedisTrouble": (
        lambda fleet: fleet.client.config_set("appendonly", "no"),
        lambda fleet: fleet.client.config_set("appendonly", "yes"),
    ),
    "TrawlForeignValues": (
        lambda fleet: fleet.client.hset(FleetKeys().nodes(), "n2", "no record"),
        lambda fleet: fleet.client.hdel(FleetKeys().nodes(), "n2"),
    ),
    "TrawlFleetTooSmall": (
        lambda fleet: (fleet.slots.pop("forum_detail/1"), fleet.registry.forget(["forum_detail/1"])),
        lambda fleet: fleet.slots.update({"forum_detail/1": CrawlerState.RUNNING}),
    ),
    "TrawlPageStands": (
        lambda fleet: setattr(fleet, "oldest_s", 400.0),
        lambda fleet: setattr(fleet, "oldest_s", 0.0),
    ),
    "TrawlCrawlerGivenUp": (
        lambda fleet: fleet.slots.update({"forum_list/0": CrawlerState.REFUSED}),
        lambda fleet: fleet.slots.update({"forum_list/0": CrawlerState.RUNNING}),
    ),
    "TrawlCrawlerRestartsOften": (lambda fleet: setattr(fleet, "restarts", 8), lambda fleet: None),
    "TrawlNodeGone": (lambda fleet: fleet.lose_node(), lambda fleet: setattr(fleet, "node_lives", True)),
    "TrawlRollFailed": (
        lambda fleet: fleet.break_roll(RollState.FAILED),
        lambda fleet: fleet.break_roll(RollState.ABORTED),
    ),
    "TrawlNoBeat": (
        lambda fleet: (setattr(fleet, "leads", False), fleet.beats.resign("host:1#a")),
        lambda fleet: setattr(fleet, "leads", True),
    ),
    "TrawlStalled": (lambda fleet: fleet.queue(), lambda fleet: fleet.finish()),
    "TrawlTaskQueueFillsUp": (
        lambda fleet: setattr(fleet, "produced", 300),
        lambda fleet: (setattr(fleet, "produced", 0), fleet.client.delete(fleet.lists.start_tasks())),
    ),
    "TrawlTaskQueueFull": (
        lambda fleet: (
            fleet.services.declare("forum_detail", ServiceRecord(size=2, max_waiting=3)),
            fleet.client.rpush(fleet.details.start_tasks(), *"abc"),
        ),
        lambda fleet: fleet.client.delete(fleet.details.start_tasks()),
    ),
    "TrawlTasksOutrunCrawlers": (lambda fleet: None, lambda fleet: None),  # the same tasks
    "TrawlTooFewItems": (
        lambda fleet: fleet.services.declare("forum_list", ServiceRecord(max_waiting=MAX_WAITING, min_items_per_minute=1e6)),
        lambda fleet: fleet.services.remove("forum_list"),
    ),
    "TrawlHeldForLong": (
        lambda fleet: hold(fleet.client, HELD, HoldKind.PAUSE),
        lambda fleet: resume(fleet.client, HELD),
    ),
    "TrawlNoItems": (
        lambda fleet: fleet.grows.update({"downloader/response_count": 5}),
        lambda fleet: fleet.grows.update({"item_scraped_count": 5}),
    ),
    "TrawlSiteRefuses": (
        lambda fleet: fleet.grows.update({"downloader/response_status_count/429": 4}),
        lambda fleet: fleet.grows.pop("downloader/response_status_count/429"),
    ),
    "TrawlBoardsStale": (
        lambda fleet: fleet.write_board("stale", ForumState(), 4000.0),
        lambda fleet: fleet.write_board("stale", ForumState()),
    ),
    "TrawlItemsTooSlow": (lambda fleet: setattr(fleet, "late", True), lambda fleet: setattr(fleet, "late", False)),
    "TrawlWriterLate": (lambda fleet: fleet.store_late_item(), lambda fleet: fleet.client.delete(fleet.lists.item_stream())),
    "TrawlGapStaysOpen": (
        lambda fleet: fleet.write_board("gap", ForumState(gap_at=1.0)),
        lambda fleet: fleet.write_board("gap", ForumState()),
    ),
    "TrawlItemsBackedUp": (
        lambda fleet: fleet.client.rpush(fleet.details.item_stream(), *["an item"] * MAX_ITEMS),
        lambda fleet: fleet.client.delete(fleet.details.item_stream()),
    ),
    "TrawlItemsPileUp": (lambda fleet: None, lambda fleet: None),  # the same items
    "TrawlRequestsDie": (lambda fleet: fleet.bury(), lambda fleet: fleet.client.delete(fleet.details.dead())),
    "TrawlItemsRefused": (
        lambda fleet: fleet.client.rpush(fleet.lists.bad_items(), "an item"),
        lambda fleet: fleet.client.delete(fleet.lists.bad_items()),
    ),
    "TrawlSiteBreaker": (
        lambda fleet: fleet.break_site(BreakerState.OPEN),
        lambda fleet: fleet.break_site(BreakerState.CLOSED),
    ),
    "TrawlRawPagesDropped": (
        lambda fleet: fleet.client.hincrby(fleet.details.stats_hash(), "raw/dropped", 3),
        lambda fleet: None,
    ),
    "TrawlDeadMessages": (
        lambda fleet: dead_messages.add(fleet.client, b"{}", queue="control", reason="no task"),
        lambda fleet: fleet.client.delete(FleetKeys().dead_messages()),
    ),
    "TrawlRunVerdict": (
        lambda fleet: GroupRuns(fleet.client).add(GroupRun(id="shops-1", group="shops", alerts={"moved": 1}), {"a": ""}),
        lambda fleet: GroupRuns(fleet.client).forget("shops-1"),
    ),
    "TrawlRunLate": (
        lambda fleet: GroupRuns(fleet.client).add(GroupRun(id="late-1", group="late", deadline_at=1.0, late=61.0), {"a": ""}),
        lambda fleet: GroupRuns(fleet.client).forget("late-1"),
    ),
}
"""By alert: how its trouble is made, and ended; where nothing ends it, it is over after its range."""
