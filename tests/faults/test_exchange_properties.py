"""Random interleavings of several owners with crashes, lost replies, lost requests, pauses, a Redis out of memory, a Redis
that forgets its last moments (the next time older ones still), an operator who holds the crawl or some of its sites,
and sites that have limits, ask to be left alone, answer badly, or ask for a delay in their robots.txt.

The crawl is a tree: node n leads to 2n and 2n+1, each node has one item and a priority. Some further nodes come from start tasks,
in two keys; half of the items go into a list of their own.
Whatever happened before, once the faults stop, every node is done and has its item; at every moment each request and each start
task is in one place only, the counters agree with the leases, and each process takes what it holds in order. No message counts
twice: items and stats carry the name of the page visit that they come from, and each is stored once.

With EXCHANGES=1000 Hypothesis looks at as many interleavings, other ones each time, with every kind of dupefilter (about 10
minutes; `make chaos` does so). What it finds it prints as a list of steps.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.filters import Bloom, Exact, Filter, PlainSet, Rolling
from redis_components.frontier import holds
from redis_components.frontier.frontier import score_of
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.frontier.messages import KeyedItem, NewRequest, StatChange
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from redis_components.politeness.robots_cache import FileKind, RobotsCache, RobotsFile
from tests.support import owner
from tests.support.redis_server import RedisServer

LATER = "s:later"
ODD_ITEMS = "s:items:odd"
KEYS = replace(owner.KEYS, more_start_urls=(LATER,))

NODES = 60
TASKS = range(NODES + 1, NODES + 5)  # nodes that come from start tasks; they have no children
ALL = {*range(1, NODES + 1), *TASKS}
PROCESSES = st.integers(0, 2)
FAULTS = ["lose_replies", "lose_requests"]
SECONDS = st.sampled_from([0.005, 0.02, 0.02, 0.02, 0.1, 0.5, 3.0])  # mostly one exchange: what it leaves behind is in danger


HOLDS = ["spider", "fleet", "site:0", "site:1", "fleet:site:1"]
LIMITS = st.sampled_from([LaneLimits(concurrency=1), LaneLimits(concurrency=2, quotas=((3, 50),)), LaneLimits(rate=200), None])
WORDS = st.sampled_from([HoldKind.PAUSE, HoldKind.PAUSE, HoldKind.DRAIN, None, None])


def priority_of(node: int) -> int:
    return node * 7 % 5


def site_of(node: int) -> Iterator[str]:
    yield str(node % 3)


class Crawler(owner.Owner):
    """An owner that also remembers what it works on, and finds things out about its leases."""

    def __init__(self, client: redis.Redis, name: str, filter: Filter) -> None:
        config = {"keys": KEYS, "filter": filter, "concurrency": 3, "max_attempts": 100}
        super().__init__(client, name, **config, batch=3, max_batch_bytes=30, journal_s=1000)
        self.working: dict[str, int] = {}
        self.task: tuple[str, int] | None = None
        self.visits: list[str] = []
        self.told: list[StatChange] = []
        self.frontier.listeners.stats = self._stats
        self.frontier.listeners.names = lambda payload: site_of(int(payload))

    def _fenced(self) -> None:
        super()._fenced()
        self.working.clear()  # not the task: a spider acks it later by its old lease, which must not mean another one

    def _stats(self, final: bool) -> list[StatChange]:
        told, self.told = self.told, []
        return told

    def start_one(self) -> None:
        best = max(self.frontier._buffer.leases, default=None, key=lambda lease: (-lease.score, [-n for n in lease.order]))
        lease = self.frontier.take()
        if lease is None:
            return
        assert lease.lane or lease == best, "what comes first in the queue's order is started first"
        assert lease.id not in self.working
        if not lease.lane and (lane := self.lane_of(int(lease.data))):
            self.frontier.shelve(lease.id, lane)
            return
        self.working[lease.id] = int(lease.data)

    def lane_of(self, node: int) -> str:
        """The site of a node, where it has limits."""
        return next((site for site in site_of(node) if site in self.frontier.limits.lanes), "")

    def add_node(self, node: int) -> None:
        payload = str(node).encode()
        mark = self.frontier.config.filter.entry(payload)
        self.frontier.add_request(NewRequest(mark, score_of(priority_of(node)), payload, self.lane_of(node)))

    def finish_one(self) -> None:
        if not self.working:
            return
        lease_id, node = self.working.popitem()
        for child in (2 * node, 2 * node + 1):
            if child <= NODES:
                self.add_node(child)
        visit = f"{node} {self.frontier.config.owner} {len(self.visits)}"
        self.visits.append(visit)
        if node % 2:
            self.frontier.add_keyed_item(KeyedItem(ODD_ITEMS, visit.encode()))
        else:
            self.frontier.add_item(visit.encode())
        self.told.append(StatChange("add", visit, "1"))
        self.frontier.ack(lease_id)

    def start_task(self) -> None:
        if self.task is None and (lease := self.frontier.take_task()) is not None:
            if not self.frontier.park(lease.id, site_of(int(lease.data)), task=True):
                self.task = (lease.id, int(lease.data))
        elif self.task is None:
            self.frontier.want_tasks(2)

    def finish_task(self) -> None:
        if self.task is not None:
            lease_id, node = self.task
            self.task = None
            self.add_node(node)
            self.frontier.ack(lease_id)


class Exchanges(RuleBasedStateMachine):
    """Three crawlers at a time on one Redis."""

    client: redis.Redis
    filter: Filter

    @initialize()
    def begin(self) -> None:
        self.client.flushall()
        self.client.config_set("maxmemory", 0)
        self.born = 0
        self.states: deque[dict[bytes, Any]] = deque(maxlen=12)
        for task in TASKS:
            if task % 2:
                self.client.rpush(KEYS.start_tasks(), str(task))
            else:
                self.client.zadd(LATER, {str(task): task})
        seeder = self.spawn()
        seeder.add("1", priority=priority_of(1))
        seeder.close()
        self.crawlers = [self.spawn() for _ in range(3)]
        for process in (0, 1, 2, 0, 1, 2):  # so that there is work for all
            self.visit(process, 1, 0.1)

    def visit(self, process: int, pages: int, seconds: float) -> None:
        """Crawl some pages, with one more under way."""
        for _ in range(pages):
            self.crawlers[process].start_one()
            self.crawlers[process].start_one()
            self.crawlers[process].finish_one()
            self.crawlers[process].advance(seconds)

    def spawn(self) -> Crawler:
        self.born += 1
        return Crawler(self.client, f"owner~{self.born}", self.filter).open()  # type: ignore[return-value]

    @rule(process=PROCESSES, times=st.integers(1, 4), seconds=SECONDS)
    def start(self, process: int, times: int, seconds: float) -> None:
        for _ in range(times):
            self.crawlers[process].start_one()
            self.crawlers[process].advance(seconds)

    @rule(process=PROCESSES, times=st.integers(1, 4), seconds=SECONDS)
    def finish(self, process: int, times: int, seconds: float) -> None:
        for _ in range(times):
            self.crawlers[process].finish_one()
        self.crawlers[process].advance(seconds)

    @rule(process=PROCESSES, pages=st.integers(1, 6), seconds=SECONDS)
    def crawl(self, process: int, pages: int, seconds: float) -> None:
        self.visit(process, pages, seconds)

    @rule(process=PROCESSES)
    def take_task(self, process: int) -> None:
        self.crawlers[process].start_task()
        self.crawlers[process].advance(0.05)

    @rule(process=PROCESSES)
    def finish_task(self, process: int) -> None:
        self.crawlers[process].finish_task()

    @rule(process=PROCESSES)
    def release(self, process: int) -> None:
        crawler = self.crawlers[process]
        if crawler.working:
            crawler.frontier.release(crawler.working.popitem()[0])

    @rule(process=PROCESSES, seconds=SECONDS)
    def live(self, process: int, seconds: float) -> None:
        self.crawlers[process].advance(seconds)

    @rule(process=PROCESSES, fault=st.sampled_from(FAULTS), times=st.integers(1, 3))
    def lose(self, process: int, fault: str, times: int) -> None:
        setattr(self.crawlers[process].exchanger, fault, times)

    @rule(process=PROCESSES, pages=st.integers(0, 4), exchanges=st.integers(0, 4))
    def kill(self, process: int, pages: int, exchanges: int) -> None:
        """At any instant: after some pages, of which some exchanges have told."""
        victim = self.crawlers[process]
        victim.exchanger.cut_after = exchanges
        self.visit(process, pages, 0.02)
        victim.advance(0.5)
        victim.frontier.stop()
        expire_owner(self.client, KEYS, victim.frontier.config.owner)  # as a supervisor does: by its first name
        self.crawlers[process] = self.spawn()

    @rule(process=PROCESSES, pages=st.integers(0, 4))
    def pause_for_too_long(self, process: int, pages: int) -> None:
        """SIGSTOP: taken for dead, and back later."""
        self.visit(process, pages, 0.02)
        expire_owner(self.client, KEYS, self.crawlers[process].frontier.owner)

    @rule(
        process=PROCESSES,
        pages=st.integers(0, 4),
        in_time=st.booleans(),
        fault=st.sampled_from(FAULTS),
        times=st.integers(0, 2),
        seconds=SECONDS,
    )
    def leave(self, process: int, pages: int, in_time: bool, fault: str, times: int, seconds: float) -> None:
        """SIGTERM: what runs is finished, or the time for that is over."""
        crawler = self.crawlers[process]
        self.visit(process, pages, seconds)
        while crawler.working and in_time:
            crawler.finish_one()
        if in_time:
            crawler.finish_task()
        crawler.frontier.close(lambda: None)
        crawler.advance(seconds)
        setattr(crawler.exchanger, fault, times)
        crawler.frontier.leave(lambda: None)
        crawler.advance(20)
        assert crawler.exchanger.closed
        expire_owner(self.client, KEYS, crawler.frontier.config.owner)
        self.crawlers[process] = self.spawn()

    @rule(what=st.sampled_from(HOLDS), word=WORDS)
    def hold(self, what: str, word: HoldKind | None) -> None:
        holds.change(self.client, KEYS, {what: Hold(word=word) if word else None})

    @rule(site=st.sampled_from(["0", "1"]), limited=LIMITS)
    def limit(self, site: str, limited: LaneLimits | None) -> None:
        with suppress(redis.RedisError):  # out of memory: the operator is told
            limits.change(self.client, KEYS.limits, site, limited)

    @rule(process=PROCESSES, site=st.sampled_from(["1", "2"]))
    def ask_to_be_left_alone(self, process: int, site: str) -> None:
        self.crawlers[process].frontier.wait(site, 0.01)

    @rule(process=PROCESSES, site=st.sampled_from(["1", "2"]))
    def answer_worse_than_before(self, process: int, site: str) -> None:
        self.crawlers[process].frontier.slow_down(site, 300)

    @rule(site=st.sampled_from(["1", "2"]), rate=st.sampled_from([300.0, None]))
    def ask_for_a_delay_in_robots_txt(self, site: str, rate: float | None) -> None:
        with suppress(redis.RedisError):  # out of memory: whoever fetched the file goes by it alone
            RobotsCache(self.client, KEYS, "any").store(f"http://{site}", RobotsFile(FileKind.RULES, rate=rate), site)

    @rule(full=st.booleans())
    def memory(self, full: bool) -> None:
        self.client.config_set("maxmemory", 1 if full else 0)

    @rule(steps=st.integers(2, 6))
    def forget(self, steps: int) -> None:
        """Redis comes back as it was some steps ago; the next time it may be older than that."""
        for _ in range(min(steps, len(self.states))):
            saved = self.states.pop()
        self.client.config_set("maxmemory", 0)
        self.client.flushall()
        for key, dumped in saved.items():
            self.client.restore(key, 0, dumped)
        live = {crawler.frontier.owner for crawler in self.crawlers}
        for name in self.client.zrange(KEYS.owners(), 0, 100):  # the others' time runs out
            if name.decode() not in live:
                expire_owner(self.client, KEYS, name.decode())

    @invariant()
    def each_request_is_in_one_place_and_the_counters_agree(self) -> None:
        if not hasattr(self, "crawlers"):
            return
        ready: Any = self.client.zrange(KEYS.ready(), 0, 1000, withscores=True)
        for member, score in ready:
            assert score == -priority_of(int(member[9:])), "a request keeps its priority, wherever it has been"
        requests = Counter(member[9:] for member, _ in ready)
        lanes: Any = self.client.zrange(KEYS.lanes(), 0, 100)
        for site in ("0", "1", "2"):
            entries: Any = self.client.zrange(KEYS.lane(site), 0, 1000, withscores=True)
            assert bool(entries) <= (site.encode() in lanes), "a lane that holds requests is served"
            assert all(score == -priority_of(int(member[9:])) for member, score in entries)
            requests.update(member[9:] for member, _ in entries)
        tasks = Counter((KEYS.start_tasks().encode(), task) for task in self.client.lrange(KEYS.start_tasks(), 0, 1000))
        tasks.update((LATER.encode(), task) for task in self.client.zrange(LATER, 0, 1000))
        held = Counter[str]()
        lots: Counter[str] = Counter(holds.parked_lots(self.client, KEYS))
        for lot, entries in lots.items():
            values = self.client.lrange(KEYS.parked_lot(lot), 0, 1000)
            assert len(values) == entries
            for value in values:
                place, _, member = value.partition(b"|")
                if lot.startswith(holds.REQUESTS):
                    assert place.startswith(b"r")
                    assert place[1:].partition(b"@")[0] == str(-priority_of(int(member[9:]))).encode()
                    requests[member[9:]] += 1
                else:
                    size, _, keyed = member.partition(b"|")
                    tasks[keyed[: int(size)], keyed[int(size) :]] += 1
        for counter, kind in (("parked", holds.REQUESTS), ("parked_tasks", holds.TASKS)):
            counted = int(self.client.hget(KEYS.counters(), counter) or 0)
            assert counted == sum(entries for lot, entries in lots.items() if lot.startswith(kind)), counter
        for key in self.client.keys(f"{KEYS.requests}:leases:*"):
            for value in self.client.hvals(key.decode()):
                place, _, member = value.partition(b"|")
                is_request = place.startswith(b"r")
                held["leased" if is_request else "leased_tasks"] += 1
                if is_request:
                    requests[member[9:]] += 1
                else:
                    size, _, keyed = member.partition(b"|")
                    tasks[keyed[: int(size)], keyed[int(size) :]] += 1
        assert max(requests.values(), default=1) == 1, f"in two places: {requests}"
        assert max(tasks.values(), default=1) == 1, f"in two places: {tasks}"
        assert all((int(task) % 2 == 1) == (key == KEYS.start_tasks().encode()) for key, task in tasks), "a task keeps its key"
        assert {int(request) for request in requests} <= ALL
        for name in ("leased", "leased_tasks"):
            assert int(self.client.hget(KEYS.counters(), name) or 0) == held[name], name
        seen = snapshot(self.client, "s", KEYS).fingerprints
        acked = int(self.client.hget(KEYS.counters(), "acked") or 0)
        assert requests.total() + acked == seen, "each request ever stored is ready, leased or acked"
        running = Counter(
            node
            for crawler in self.crawlers
            for lease_id, node in crawler.working.items()
            if self.client.hexists(KEYS.leases(crawler.frontier.owner), lease_id)
        )
        assert max(running.values(), default=1) == 1, f"leased twice: {running}"
        self.states.append({key: self.client.dump(key) for key in self.client.keys("*")})

    def remove_limits(self) -> None:
        for site in ("0", "1", "2"):
            self.client.delete(KEYS.lane_state(site))
            limits.change(self.client, KEYS.limits, site, None)
            self.client.zadd(KEYS.lanes(), {site: 0}, xx=True)  # it is looked at again within 5 s

    def teardown(self) -> None:
        """The faults stop; now everything has to be done."""
        if not hasattr(self, "crawlers"):
            return
        self.client.config_set("maxmemory", 0)
        holds.change(self.client, KEYS, dict.fromkeys(HOLDS))
        for turn in range(400):
            if turn < 20:  # what crawlers have not told yet slows a lane once more: by this clock its requests would all be late
                self.remove_limits()
            for crawler in self.crawlers:
                crawler.start_one()
                crawler.finish_one()
                crawler.start_task()
                crawler.finish_task()
                crawler.advance(0.5)
            if all(crawler.frontier.task_idle for crawler in self.crawlers):
                break
        shot = snapshot(self.client, "s", KEYS)
        left = (shot.start_tasks, shot.ready, shot.leased, shot.leased_tasks, shot.parked, shot.parked_tasks, shot.dead)
        assert left == (0, 0, 0, 0, 0, 0, 0)
        items = [item.decode() for key in (KEYS.item_stream(), ODD_ITEMS) for item in self.client.lrange(key, 0, 100_000)]
        assert len(items) == len(set(items)), "an item is stored twice"
        done = {int(item.split()[0]) for item in items}
        assert done == ALL, f"missing: {sorted(ALL - done)}"
        lost = {visit for crawler in self.crawlers for visit in crawler.visits} - set(items)
        assert not lost, "a process that lives has told everything, also when Redis forgot it meanwhile"
        assert set(self.client.hvals(KEYS.stats_hash())) <= {b"1"}, "a change is counted twice"
        assert shot.acked == len(ALL), "each request is acked once"
        assert not [key for key in self.client.keys("*") if re.search(rb":deaths$", key)], "nobody is under suspicion any more"


SEARCH = int(os.environ.get("EXCHANGES", "0"))
CASES: list[tuple[Filter, int]] = [(PlainSet(), 6 if os.environ.get("SHORT_TESTS") else 40), (Rolling(max_entries=1000), 12)]
if SEARCH:
    bloom: dict[str, Any] = {"false_positives": 1e-9, "capacity": 30}
    more = (Exact(), Bloom(**bloom))
    CASES = [(filter, SEARCH // 4) for filter in (*(one for one, _ in CASES), *more)]


@pytest.mark.timeout(0 if SEARCH else 300)
@pytest.mark.parametrize(("filter", "examples"), CASES, ids=[filter.kind for filter, _ in CASES])
def test_no_request_and_no_item_is_lost_or_leased_twice_in_any_interleaving(
    filter: Filter, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis draws constants from all of our modules that are loaded: the examples would be others after other tests."""
    monkeypatch.setattr(providers, "_get_local_constants", providers.Constants)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", {})
    with RedisServer() as server:  # its own: it runs out of memory
        machine = type("OnThisRedis", (Exchanges,), {"client": server.client(), "filter": filter})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=40,
                deadline=None,
                derandomize=not SEARCH,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.explicit, Phase.generate, Phase.shrink],
            ),
        )
