"""What Prometheus gets: one table, from which the exposition and the reference in docs/monitoring.md are made.

A service is a spider, so the labels `service` and `spider` have the same value; both are there because dashboards and alerts
written for the collector_* metrics select by either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Literal

from redis_components.fleet_holds import word_of
from redis_components.holds import HoldWord
from redis_components.nodes import NodeRecord
from redis_components.registry import CrawlerRecord, CrawlerState
from redis_components.rolls import Roll, RollState

from .metric_spec import MetricSpec, Samples, number, of_crawl, stat
from .reading import Reading
from .site_metrics import SITE_METRICS

GONE = "gone"  # state of a crawler that should be alive and was not heard for 15 s

_STATUS = "downloader/response_status_count/"


def _crawler(name: str, kind: Literal["counter", "gauge"], help: str, value: Callable[[CrawlerRecord], float]) -> MetricSpec:
    """A figure of each crawler process that is alive: the last figures of one that is gone say nothing about now."""

    def samples(reading: Reading) -> Samples:
        return [((r.spider, r.spider, r.name), value(r)) for r in reading.crawlers if r.alive(reading.now)]

    return MetricSpec(name=name, kind=kind, help=help, labels=("service", "spider", "crawler"), samples=samples)


def state_of(record: CrawlerRecord, now: float) -> str:
    """The state to show: what the crawler last said, or `gone` when it should be there and is silent."""
    return GONE if record.state.has_process and not record.alive(now) else str(record.state)


def up(reading: Reading, service: str) -> int:
    """Live crawlers that fill a slot of this service; those started by hand do not count."""
    return sum(r.spider == service and r.number is not None and r.alive(reading.now) for r in reading.crawlers)


def wanted(reading: Reading, service: str, size: int) -> int:
    """How many of the `size` crawlers of a service shall be there: those that nobody has stopped."""
    if word_of(service, reading.held) is HoldWord.STOP:
        return 0
    slots = {one.slot for one in reading.held if one.service == service and one.slot is not None}
    return size - sum(number in slots for number in range(size))


def _services(reading: Reading) -> list[str]:
    """Those that were asked for and those that crawlers were heard of."""
    if "fleet" in reading.unreadable or reading.failure:
        return []
    return list(dict.fromkeys([*reading.services, *reading.desired, *(r.spider for r in reading.crawlers)]))


def _states(reading: Reading) -> Samples:
    counts = Counter((r.spider, state_of(r, reading.now)) for r in reading.crawlers)
    for service in _services(reading):
        for state in (*CrawlerState, GONE):
            yield (service, service, str(state)), counts[service, str(state)]


def _node(name: str, help: str, value: Callable[[NodeRecord], float]) -> MetricSpec:
    """A figure of each node that is alive."""

    def samples(reading: Reading) -> Samples:
        return [((node.name,), value(node)) for node in reading.nodes if node.alive(reading.now)]

    return MetricSpec(name=name, kind="gauge", help=help, labels=("node",), samples=samples)


def _of_roll(reading: Reading, value: float) -> Samples:
    return [] if reading.failure or "fleet" in reading.unreadable else [((), value)]


def _to_replace(roll: Roll | None) -> int:
    return len(roll.waiting) + (roll.current is not None) if roll and roll.state is RollState.ROLLING else 0


def _statuses(reading: Reading) -> Samples:
    for crawl in reading.crawls:
        for name, text in sorted(crawl.stats.items()):
            code = name.removeprefix(_STATUS)
            # Three digits and nothing else: a label's values must be bounded, whatever was written to Redis.
            if name.startswith(_STATUS) and re.fullmatch(r"\d{3}", code, re.ASCII) and (value := number(text)) is not None:
                yield (crawl.spider, crawl.spider, code), value


METRICS: tuple[MetricSpec, ...] = (
    # The names of the article that Trawl grew out of (docs/monitoring.md); they stay as they are.
    of_crawl("collector_task_queue_size", "gauge", "Start tasks that wait for a crawler.", lambda c: c.start_tasks),
    of_crawl("collector_request_queue_size", "gauge", "Requests that wait in the shared frontier.", lambda c: c.ready),
    of_crawl("collector_dupefilter_size", "gauge", "Fingerprints that the dupefilter holds.", lambda c: c.fingerprints),
    of_crawl(
        "collector_downloader_request_count",
        "counter",
        "Requests sent, over all crawlers.",
        lambda c: stat(c, "downloader/request_count"),
    ),
    of_crawl(
        "collector_downloader_response_count",
        "counter",
        "Responses received, over all crawlers.",
        lambda c: stat(c, "downloader/response_count"),
    ),
    of_crawl(
        "collector_downloader_response_bytes",
        "counter",
        "Bytes of the responses received, over all crawlers.",
        lambda c: stat(c, "downloader/response_bytes"),
    ),
    MetricSpec(
        name="collector_downloader_response_status_count",
        kind="counter",
        help="Responses received, by HTTP status.",
        labels=("service", "spider", "status_code"),
        samples=_statuses,
    ),
    of_crawl(
        "collector_scraped_item_count", "counter", "Items scraped, over all crawlers.", lambda c: stat(c, "item_scraped_count")
    ),
    # The frontier.
    of_crawl("trawl_leased_requests", "gauge", "Requests that crawlers work on now.", lambda c: c.leased),
    of_crawl("trawl_parked_requests", "gauge", "Requests set aside, because their site is held.", lambda c: c.parked),
    of_crawl(
        "trawl_backlog_start_tasks", "gauge", "Start tasks of a backfill that wait for the site's budget.", lambda c: c.backlog
    ),
    of_crawl("trawl_thread_records", "gauge", "Threads of which is known what is stored.", lambda c: c.thread_records),
    of_crawl("trawl_start_tokens", "gauge", "Threads whose last start task was not carried out yet.", lambda c: c.start_tokens),
    of_crawl("trawl_parked_start_tasks", "gauge", "Start tasks set aside, because their site is held.", lambda c: c.parked_tasks),
    of_crawl("trawl_leased_start_tasks", "gauge", "Start tasks that are becoming requests.", lambda c: c.leased_tasks),
    of_crawl("trawl_dead_requests", "gauge", "Requests and start tasks given up, kept with their reasons.", lambda c: c.dead),
    of_crawl(
        "trawl_dupefilter_false_positive_rate",
        "gauge",
        "Part of the new requests that a Bloom dupefilter takes for seen, by estimate; 0 for the exact kinds.",
        lambda c: c.false_positive_rate,
    ),
    of_crawl("trawl_items_waiting", "gauge", "Items that wait for the writer.", lambda c: c.items),
    of_crawl("trawl_bad_items", "gauge", "Items that the database refused (the newest 10,000 are kept).", lambda c: c.bad_items),
    of_crawl("trawl_crawl_owners", "gauge", "Crawler processes that hold or may hold leases.", lambda c: c.owners),
    of_crawl("trawl_acked_requests_total", "counter", "Requests that were finished.", lambda c: c.acked),
    of_crawl("trawl_reclaimed_leases_total", "counter", "Leases taken back from crawlers that died.", lambda c: c.reclaimed),
    # The fleet.
    MetricSpec(
        name="trawl_crawlers_desired",
        kind="gauge",
        help="Crawlers that there should be; stopped ones do not count.",
        labels=("service", "spider"),
        samples=lambda reading: [((service, service), wanted(reading, service, n)) for service, n in reading.desired.items()],
    ),
    MetricSpec(
        name="trawl_crawlers_up",
        kind="gauge",
        help="Crawlers with a slot that were heard in the last 15 s.",
        labels=("service", "spider"),
        samples=lambda reading: [((service, service), up(reading, service)) for service in _services(reading)],
    ),
    MetricSpec(
        name="trawl_crawlers",
        kind="gauge",
        help="Crawlers by state; gone: should be alive and was not heard for 15 s.",
        labels=("service", "spider", "state"),
        samples=_states,
    ),
    MetricSpec(
        name="trawl_crawler_heartbeat_age_seconds",
        kind="gauge",
        help="Time since a crawler was last heard.",
        labels=("service", "spider", "crawler"),
        samples=lambda reading: [
            ((r.spider, r.spider, r.name), max(0.0, reading.now - r.beat_at)) for r in reading.crawlers if r.state.has_process
        ],
    ),
    MetricSpec(
        name="trawl_crawler_restarts_total",
        kind="counter",
        help="Crawler processes of the slot that have ended; it begins anew when the slot is forgotten.",
        labels=("service", "spider", "crawler"),
        samples=lambda reading: [((r.spider, r.spider, r.name), r.restarts) for r in reading.crawlers],
    ),
    _crawler("trawl_crawler_resident_memory_bytes", "gauge", "Resident memory of the crawler process.", lambda r: r.rss_bytes),
    _crawler("trawl_crawler_pages_per_second", "gauge", "Pages per second over the last heartbeats.", lambda r: r.pages_per_s),
    _crawler("trawl_crawler_requests_in_flight", "gauge", "Requests being downloaded.", lambda r: r.in_flight),
    _crawler("trawl_crawler_reactor_lag_seconds", "gauge", "How long the crawler's reactor took to answer.", lambda r: r.lag_s),
    # What is held.
    MetricSpec(
        name="trawl_held",
        kind="gauge",
        help="What an operator, or a site's breaker, holds (word: pause, drain, stop); no service: all, no site: all of it. "
        "Of slots, how many.",
        labels=("service", "spider", "site", "word"),
        samples=lambda reading: sorted(
            Counter((one.service, one.service, one.site, str(one.hold.word)) for one in reading.held).items()
        ),
    ),
    *SITE_METRICS,
    # The nodes.
    MetricSpec(
        name="trawl_node_up",
        kind="gauge",
        help="Whether the node was heard in the last 15 s; it is forgotten a minute after it was last heard.",
        labels=("node",),
        samples=lambda reading: [((node.name,), float(node.alive(reading.now))) for node in reading.nodes],
    ),
    _node("trawl_node_capacity", "Crawlers that the node may host.", lambda node: node.capacity),
    _node("trawl_node_crawlers", "Crawlers that the node hosts.", lambda node: node.taken),
    _node("trawl_node_draining", "Whether the node takes no crawlers any more.", lambda node: node.draining),
    MetricSpec(
        name="trawl_beat_leads",
        kind="gauge",
        help="Whether a beat leads; 0: nothing is seeded, launched or stored.",
        labels=(),
        samples=lambda reading: [((), float(reading.beats.leader is not None))] if reading.beats else [],
    ),
    MetricSpec(
        name="trawl_beat_silence_seconds",
        kind="gauge",
        help="Time since a beat sent its last task; a healthy one sends every second.",
        labels=(),
        samples=lambda reading: [((), reading.beats.silent_s)] if reading.beats and reading.beats.silent_s is not None else [],
    ),
    # Rolls.
    MetricSpec(
        name="trawl_roll_waiting",
        kind="gauge",
        help="Crawlers that the roll under way has still to replace.",
        labels=(),
        samples=lambda reading: _of_roll(reading, _to_replace(reading.roll)),
    ),
    MetricSpec(
        name="trawl_roll_failed",
        kind="gauge",
        help="Whether the last roll stopped because a new process was not well; until the next one, or `trawl roll --abort`.",
        labels=(),
        samples=lambda reading: _of_roll(reading, reading.roll is not None and reading.roll.state is RollState.FAILED),
    ),
    # The exporter itself.
    MetricSpec(
        name="trawl_redis_up",
        kind="gauge",
        help="Whether Redis answered; if not, only this and the scrape's duration are exported.",
        labels=(),
        samples=lambda reading: [((), float(reading.failure is None))],
    ),
    MetricSpec(
        name="trawl_readable",
        kind="gauge",
        help="Whether this part (a service, or `fleet`) could be read; 0: a key has another type or a foreign value.",
        labels=("part",),
        samples=lambda reading: (
            [] if reading.failure else [((part,), float(part not in reading.unreadable)) for part in reading.parts]
        ),
    ),
    MetricSpec(
        name="trawl_scrape_duration_seconds",
        kind="gauge",
        help="How long reading Redis took.",
        labels=(),
        samples=lambda reading: [((), reading.seconds)],
    ),
)


def reference() -> str:
    """The table in docs/monitoring.md."""
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{label}`' for label in m.labels)} | {m.help} |" for m in METRICS]
    return "\n".join(["| metric | type | labels | what it is |", "|---|---|---|---|", *rows])
