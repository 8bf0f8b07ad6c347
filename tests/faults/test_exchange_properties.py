"""Random interleavings of several owners with crashes, lost replies, lost requests, pauses and a Redis that forgets its last
moments.

The crawl is a tree: node n leads to 2n and 2n+1, each node has one item. Whatever happened before, once the faults stop, every
node is done and has its item; at every moment each request is in one place only and the counters agree with the leases.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from redis_components.inspector import expire_owner, snapshot
from tests.support.owner import KEYS, Owner
from tests.support.redis_server import RedisServer

NODES = 40
PROCESSES = st.integers(0, 2)


class Crawler(Owner):
    """An owner that also remembers what it works on."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        super().__init__(client, name, concurrency=3, max_attempts=100, batch=4)
        self.working: dict[str, int] = {}

    def _fenced(self) -> None:
        super()._fenced()
        self.working.clear()

    def start_one(self) -> None:
        lease = self.frontier.take()
        if lease is not None:
            self.working[lease.id] = int(lease.data)

    def finish_one(self) -> None:
        if not self.working:
            return
        lease_id, node = self.working.popitem()
        for child in (2 * node, 2 * node + 1):
            if child <= NODES:
                self.add(str(child))
        self.frontier.add_item(str(node).encode())
        self.frontier.ack(lease_id)


class Exchanges(RuleBasedStateMachine):
    """Three crawlers at a time on one Redis."""

    client: redis.Redis

    @initialize()
    def begin(self) -> None:
        self.client.flushall()
        self.born = 0
        self.states: deque[dict[bytes, Any]] = deque(maxlen=6)
        seeder = self.spawn()
        seeder.add("1")
        seeder.advance()
        seeder.close()
        self.crawlers = [self.spawn() for _ in range(3)]

    def spawn(self) -> Crawler:
        self.born += 1
        return Crawler(self.client, f"owner{self.born}").open()  # type: ignore[return-value]

    @rule(process=PROCESSES, times=st.integers(1, 4))
    def work(self, process: int, times: int) -> None:
        for _ in range(times):
            self.crawlers[process].start_one()
            self.crawlers[process].advance(0.05)

    @rule(process=PROCESSES, times=st.integers(1, 4))
    def finish(self, process: int, times: int) -> None:
        for _ in range(times):
            self.crawlers[process].finish_one()

    @rule(process=PROCESSES, seconds=st.floats(0.01, 3))
    def live(self, process: int, seconds: float) -> None:
        self.crawlers[process].advance(seconds)

    @rule(process=PROCESSES, fault=st.sampled_from(["lose_replies", "lose_requests"]), times=st.integers(1, 3))
    def lose(self, process: int, fault: str, times: int) -> None:
        setattr(self.crawlers[process].exchanger, fault, times)

    @rule(process=PROCESSES)
    def kill(self, process: int) -> None:
        victim = self.crawlers[process]
        victim.frontier.stop()
        expire_owner(self.client, KEYS, victim.frontier.owner)
        self.crawlers[process] = self.spawn()

    @rule(process=PROCESSES)
    def pause_for_too_long(self, process: int) -> None:
        """SIGSTOP: taken for dead, and back later."""
        expire_owner(self.client, KEYS, self.crawlers[process].frontier.owner)

    @rule(process=PROCESSES)
    def leave(self, process: int) -> None:
        crawler = self.crawlers[process]
        while crawler.working:
            crawler.finish_one()
        crawler.close()
        self.crawlers[process] = self.spawn()

    @rule(steps=st.integers(1, 6))
    def forget(self, steps: int) -> None:
        """Redis comes back as it was some steps ago."""
        saved = self.states[-min(steps, len(self.states))]
        self.states.clear()
        self.client.flushall()
        for key, dumped in saved.items():
            self.client.restore(key, 0, dumped)
        live = {crawler.frontier.owner for crawler in self.crawlers}
        for name in self.client.zrange(KEYS.owners(), 0, 100):  # the others' time runs out
            if name.decode() not in live:
                expire_owner(self.client, KEYS, name.decode())

    @invariant()
    def each_request_is_in_one_place_and_the_counters_agree(self) -> None:
        places = [member[9:] for member in self.client.zrange(KEYS.ready(), 0, 1000)]
        held = 0
        for key in self.client.keys(f"{KEYS.requests}:leases:*"):
            values = self.client.hvals(key.decode())
            held += len(values)
            places += [value.partition(b"|")[2][9:] for value in values]
        assert len(places) == len(set(places)), f"in two places: {sorted(places)}"
        assert int(self.client.hget(KEYS.counters(), "leased") or 0) == held
        self.states.append({key: self.client.dump(key) for key in self.client.keys("*")})

    def teardown(self) -> None:
        """The faults stop; now everything has to be done."""
        if not hasattr(self, "crawlers"):
            return
        for _ in range(400):
            for crawler in self.crawlers:
                crawler.start_one()
                crawler.finish_one()
                crawler.advance(0.5)
            if all(crawler.frontier.idle for crawler in self.crawlers):
                break
        shot = snapshot(self.client, "s")
        assert (shot.ready, shot.leased, shot.dead) == (0, 0, 0)
        items = {int(item) for item in self.client.lrange(KEYS.item_stream(), 0, 100_000)}
        assert items == set(range(1, NODES + 1)), f"missing: {sorted(set(range(1, NODES + 1)) - items)}"


@pytest.mark.timeout(300)
def test_no_request_and_no_item_is_lost_or_leased_twice_in_any_interleaving(redis_server: RedisServer) -> None:
    client = redis_server.client()
    machine = type("OnThisRedis", (Exchanges,), {"client": client})
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
        ),
    )
