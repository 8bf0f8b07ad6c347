"""A fleet without crawlers, for what costs too much with them: `python -m benchmarks.support.simulated_fleet supervise|rounds N`.

`supervise` runs N real supervisors (`workers.supervision.supervisor`, each with its heartbeat, events and run book) in one
process, over simulated crawlers: no process, no frontier, only the messages of a crawler to its supervisor and to Redis.
It goes on until SIGTERM. `rounds` puts N slots and their records into Redis and prints, as JSON, what one round of
`reconcile_fleet` and one scrape of the exporter cost then.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import workers.supervision.supervisor
from redis_components.connection import connect, get_redis
from redis_components.embedded import redis_url
from workers.logs.slot_log import SlotLog
from workers.node.host import NODE
from workers.process.heartbeat import PERIOD_S, Heartbeat
from workers.process.options import CrawlerOptions
from workers.process.pipes import HandshakeLimits
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, Slot

SPIDER = "forum_detail"
NAME = "simulated@bench"


class SimulatedCrawler:
    """Simulated `LaunchedCrawler` for a supervisor; its heartbeat has its own connection, as a process has."""

    rests = False

    def __init__(self, slot: Slot) -> None:
        self._born = time.monotonic()
        self._ended = False
        self._said_at = 0.0
        self.pid = 0
        self.terms = HandshakeLimits()
        self.record: CrawlerRecord | None = None
        self._registry = Registry(get_redis(url=redis_url()))
        self._slot = slot
        self._now = record_of(slot)
        self._heartbeat = Heartbeat(lambda: self._registry.renew(slot, self._now))
        self._heartbeat.start()

    @property
    def lived_s(self) -> float:
        return time.monotonic() - self._born

    @property
    def silent_s(self) -> float:
        return time.monotonic() - max(self._born, self._said_at)

    def excuse(self, seconds: float) -> None:
        self._said_at += seconds

    def poll(self) -> int | None:
        return 0 if self._ended else None

    def pulse(self) -> bool:
        if time.monotonic() - self._said_at < PERIOD_S:
            return False
        self._said_at = time.monotonic()
        self.record = self._now = replace(record_of(self._slot), pages=int(self.lived_s))
        return True

    def resident(self) -> int:
        return 0

    def terminate(self) -> None:
        self._ended = True

    def dump_stacks(self) -> None: ...

    def kill(self) -> None:
        self._ended = True

    def close(self) -> None:
        self._heartbeat.stop()


def record_of(slot: Slot) -> CrawlerRecord:
    """Return the record of an idle crawler."""
    return CrawlerRecord(
        spider=slot.spider,
        number=slot.number,
        pid=1,
        node=NAME,
        state=CrawlerState.RUNNING,
        token=slot.token,
        started_at=time.time(),
        rss_bytes=100_000_000,
    )


def launch(options: CrawlerOptions, _: SlotLog, resting: object = None) -> SimulatedCrawler:  # noqa: ARG001 - as there
    """In the place of `workers.supervision.launcher.launch`."""
    assert options.slot
    return SimulatedCrawler(options.slot)


def supervise(number: int) -> None:
    """Hold `number` slots until SIGTERM."""
    from tasks import app
    from tasks.flower_crawlers import CrawlingEvents

    leave = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leave.set())
    stand_in: Any = launch
    workers.supervision.supervisor.launch = stand_in
    NODE.crawlers = number

    def host(place: int) -> None:
        request = SimpleNamespace(hostname=NAME, id=f"simulated-{place}", args=(SPIDER, place), kwargs={})
        task = SimpleNamespace(app=app, name="trawl.run_crawler", request=request)
        NODE.host(SPIDER, place, name=NAME, on_record=CrawlingEvents(task).crawling)

    threads = [threading.Thread(target=host, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
        time.sleep(2 * PERIOD_S / number / 2)  # as in life, they do not speak all at once
    leave.wait()
    NODE.drain.set()
    for thread in threads:
        thread.join()


def rounds(number: int, repetitions: int = 20) -> dict[str, float]:
    """Milliseconds, and commands that Redis ran, for one round and one scrape of a fleet of `number`."""
    from monitoring.metrics.exposition import text_of
    from monitoring.source import Source
    from tasks import reconcile_fleet

    client = connect()
    registry = Registry(client, slot_ttl_s=600)
    for place in range(number):
        slot = registry.acquire(SPIDER, place, NAME)
        assert slot
        registry.renew(slot, record_of(slot))
    registry.set_desired(SPIDER, number)
    source = Source(redis_url(), {SPIDER: number})

    def cost(act: Any) -> tuple[float, float]:
        act()
        client.config_resetstat()
        begun = time.perf_counter()
        for _ in range(repetitions):
            act()
        took = (time.perf_counter() - begun) / repetitions
        stats = client.info("commandstats")
        return took * 1000, sum(one["calls"] for one in stats.values()) / repetitions

    reconcile_ms, reconcile_commands = cost(reconcile_fleet)
    scrape_ms, scrape_commands = cost(lambda: text_of(source.look()))
    return {
        "reconcile_ms": reconcile_ms,
        "reconcile_commands": reconcile_commands,
        "scrape_ms": scrape_ms,
        "scrape_commands": scrape_commands,
    }


if __name__ == "__main__":
    if sys.argv[1] == "supervise":
        supervise(int(sys.argv[2]))
    else:
        print(json.dumps(rounds(int(sys.argv[2]))))
