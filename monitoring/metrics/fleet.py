"""The table of metrics, from which the exposition and the reference in docs/monitoring.md are generated;
those of the forum crawl are in `monitoring/forums`, of item consumers and of Redis in `figures.py`.

The label `spider` names the spider that a service runs: several services, and all jobs of one, may have the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal

from monitoring.part import part
from redis_components.admin import health
from workers.overview import Overview, ServiceView
from workers.overview.model import GONE, shown_state
from workers.state.holds import Breaker
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerRecord, CrawlerState
from workers.state.rolls import Roll, RollState

from .figures import (
    GROUP_METRICS,
    LANE_METRICS,
    LEFT_OUT,
    MEMORY_METRICS,
    RUN_METRICS,
    MetricSpec,
    Samples,
    gauge,
    number,
    of_crawls,
    of_fleet,
    of_service,
    of_stats,
    with_own_items,
)

_STATUS = "downloader/response_status_count/"
_CODE = re.compile(r"\d{3}", re.ASCII).fullmatch


def _crawler(
    name: str,
    kind: Literal["counter", "gauge"],
    help: str,
    value: Callable[[CrawlerRecord], float],
    which: Callable[[CrawlerRecord], bool] | None = None,
) -> MetricSpec:
    """Define a figure of each crawler process that is alive, or of `which`: the last figures of an ended one are not current."""

    def samples(view: Overview) -> Samples:
        shown = [r for r in view.crawlers if (which(r) if which else r.alive(view.now))]
        return [((r.spider, view.spider_of(r.spider), r.name), value(r)) for r in shown]

    return MetricSpec(name=name, kind=kind, help=help, labels=("service", "spider", "crawler"), samples=samples)


def _breaker(name: str, help: str, value: Callable[[Overview, Breaker], float]) -> MetricSpec:
    """Define a figure of each open breaker."""
    return gauge(
        name,
        help,
        ("site", "cause"),
        lambda view: [((site, one.cause), value(view, one)) for site, one in view.sites.breakers.items()],
    )


def _services(view: Overview) -> Iterable[ServiceView]:
    """Return the services; none where nothing is known of crawlers."""
    return () if "crawlers" in view.unreadable else view.services


def _states(view: Overview) -> Samples:
    counts = Counter((r.spider, shown_state(r, view.now)) for r in view.crawlers)
    for service in _services(view):
        for state in (*CrawlerState, GONE):
            yield (*service.labels, str(state)), counts[service.name, str(state)]


def _node(name: str, help: str, value: Callable[[NodeRecord], float]) -> MetricSpec:
    """Define a figure of each node that is alive."""
    return gauge(name, help, ("node",), lambda view: [((one.name,), value(one)) for one in view.nodes if one.alive(view.now)])


def _of_roll(view: Overview, value: float) -> float | None:
    return None if view.failure or "roll" in view.unreadable else value


def _to_replace(roll: Roll | None) -> int:
    return len(roll.waiting) + (roll.current is not None) if roll and roll.state is RollState.ROLLING else 0


def _statuses(view: Overview) -> Samples:
    for service in view.known:
        stats = service.crawl.stats
        for name in sorted([one for one in stats if one.startswith(_STATUS)]):
            code = name.removeprefix(_STATUS)
            # Three digits and nothing else: a label's values must be bounded, and anybody may have written to Redis.
            if _CODE(code) and (value := number(stats[name])) is not None:
                yield (*service.labels, code), value


METRICS: tuple[MetricSpec, ...] = (
    # The names of the article that Trawl grew out of (docs/monitoring.md); they stay as they are.
    *of_crawls(
        ("collector_task_queue_size", "Start tasks that wait for a crawler.", "start_tasks"),
        ("collector_request_queue_size", "Requests that wait in the shared frontier.", "ready"),
        ("collector_dupefilter_size", "Fingerprints that the dupefilter holds.", "fingerprints"),
    ),
    *of_stats(
        ("collector_downloader_request_count", "Requests sent, over all crawlers.", "downloader/request_count"),
        ("collector_downloader_response_count", "Responses received, over all crawlers.", "downloader/response_count"),
        (
            "collector_downloader_response_bytes",
            "Bytes of responses received, over all crawlers.",
            "downloader/response_bytes",
        ),
        ("collector_scraped_item_count", "Items scraped, over all crawlers.", "item_scraped_count"),
    ),
    MetricSpec(
        name="collector_downloader_response_status_count",
        kind="counter",
        help="Responses received, by HTTP status.",
        labels=("service", "spider", "status_code"),
        samples=_statuses,
    ),
    *of_stats(
        ("trawl_retries_total", "Requests that were sent again after an error.", "retry/count"),
        ("trawl_download_exceptions_total", "Downloads that ended without a response.", "downloader/exception_count"),
        ("trawl_spider_exceptions_total", "Exceptions that spiders raised.", "spider_exceptions/count"),
        (
            "trawl_start_tasks_queued_total",
            "Start tasks that `trawl seed-urls`, its task and API queued.",
            "start_tasks/queued",
        ),
        ("trawl_start_tasks_refused_total", "Start tasks that they refused, as `max_waiting` waited.", "start_tasks/refused"),
        ("trawl_start_tasks_taken_total", "Start tasks that crawlers took and carried out.", "start_tasks/taken"),
        ("trawl_raw_pages_total", "Raw pages kept on disk.", "raw/kept"),
        ("trawl_raw_bytes_total", "Bytes of raw pages kept on disk, compressed.", "raw/bytes"),
        ("trawl_raw_pages_dropped_total", "Raw pages that were not kept: the disk is full, broken or too slow.", "raw/dropped"),
    ),
    # What is declared.
    of_service(
        "trawl_task_queue_limit",
        "Start tasks from which on seeders are refused (`max_waiting`); 0: any.",
        lambda s: s.max_waiting,
    ),
    of_service(
        "trawl_items_per_minute_wanted",
        "Items a minute that the service declares to scrape at least (`min_items_per_minute`); 0: any.",
        lambda s: s.min_items_per_minute,
    ),
    # The frontier.
    gauge(
        "trawl_oldest_ready_seconds",
        "Since the oldest request that waits was stored first; 0: none waits, or the queue is in random order.",
        ("service", "spider"),
        lambda view: [(one.labels, max(0.0, view.now - at) if (at := one.crawl.oldest_ready_at) else 0.0) for one in view.known],
    ),
    *of_crawls(
        ("trawl_leased_requests", "Requests that crawlers work on now.", "leased"),
        ("trawl_parked_requests", "Requests set aside, because their site is held.", "parked"),
        ("trawl_overflow_start_tasks", "Start tasks that wait until the start key has capacity.", "overflow"),
        ("trawl_backlog_start_tasks", "Start tasks of a backfill that wait for the site's budget.", "backlog"),
        ("trawl_thread_records", "Threads of which is known what is stored.", "thread_records"),
        ("trawl_start_tokens", "Threads whose last start task was not carried out yet.", "start_tokens"),
        ("trawl_parked_start_tasks", "Start tasks set aside, because their site is held.", "parked_tasks"),
        ("trawl_leased_start_tasks", "Start tasks that are becoming requests.", "leased_tasks"),
        ("trawl_dead_requests", "Requests and start tasks given up, kept with their reasons.", "dead"),
        (
            "trawl_dupefilter_false_positive_rate",
            "Part of the new requests that a Bloom dupefilter takes for seen, by estimate; 0 for the exact kinds.",
            "false_positive_rate",
        ),
        ("trawl_items_limit", "Items, waiting and refused, from which on no page is started; 0: any.", "max_items"),
        ("trawl_items_backed_up", "1 while so many items wait or were refused that crawlers start no page.", "backed_up"),
        ("trawl_crawl_owners", "Crawler processes that hold or may hold leases.", "owners"),
    ),
    *of_crawls(
        ("trawl_acked_requests_total", "Requests that were finished.", "acked"),
        ("trawl_reclaimed_leases_total", "Leases taken back from crawlers that died.", "reclaimed"),
        kind="counter",
    ),
    *of_crawls(
        (
            "trawl_items_waiting",
            "Items that wait for their consumer; of a shared stream its first service has them.",
            "items",
        ),
        ("trawl_bad_items", "Items that their consumer refused, kept with their reasons; shared ones once.", "bad_items"),
        ("trawl_item_bytes", "Memory that waiting and refused items take, by estimate; shared ones once.", "item_bytes"),
        which=with_own_items,
    ),
    *GROUP_METRICS,
    of_service(
        "trawl_crawl_in_another_redis",
        "1 where a service crawls in another Redis than the fleet's: then its other figures are missing.",
        lambda one: int(bool(one.crawl.redis)),
        which=lambda view: [one for one in view.services if not one.fault],
    ),
    # The fleet.
    gauge(
        "trawl_crawlers_desired",
        "Crawlers that there should be; stopped ones do not count.",
        ("service", "spider"),
        lambda view: [(one.labels, view.wanted(one)) for one in _services(view) if one.desired is not None],
    ),
    of_service("trawl_crawlers_up", "Crawlers with a slot that reported in the last 15 s.", lambda one: one.up, which=_services),
    gauge(
        "trawl_crawlers",
        "Crawlers by state; gone: should be alive and has not reported for 15 s.",
        ("service", "spider", "state"),
        _states,
    ),
    gauge(
        "trawl_crawler_heartbeat_age_seconds",
        "Time since a crawler's last report.",
        ("service", "spider", "crawler"),
        lambda view: [
            ((r.spider, view.spider_of(r.spider), r.name), max(0.0, view.now - r.beat_at))
            for r in view.crawlers
            if r.state.has_process
        ],
    ),
    _crawler(
        "trawl_crawler_restarts_total",
        "counter",
        "Crawler processes of the slot that have ended; it restarts at 0 when the slot is forgotten.",
        lambda r: r.restarts,
        which=lambda _: True,
    ),
    _crawler("trawl_crawler_resident_memory_bytes", "gauge", "Resident memory of the crawler process.", lambda r: r.rss_bytes),
    _crawler("trawl_crawler_pages_per_second", "gauge", "Pages per second over the last heartbeats.", lambda r: r.pages_per_s),
    _crawler("trawl_crawler_requests_in_flight", "gauge", "Pages begun and not yet acked.", lambda r: r.in_flight),
    _crawler(
        "trawl_crawler_oldest_page_seconds", "gauge", "Since the quietest of them gave a sign of life.", lambda r: r.oldest_s
    ),
    _crawler("trawl_crawler_reactor_lag_seconds", "gauge", "How long the crawler's reactor took to answer.", lambda r: r.lag_s),
    # What is held.
    gauge(
        "trawl_paused",
        "Holds of operators and breakers (kind: pause, drain, stop); no service: all, no site: all; of slots the number.",
        ("service", "spider", "site", "kind"),
        lambda view: sorted(
            Counter((one.service, view.spider_of(one.service), one.site, str(one.hold.word)) for one in view.held).items()
        ),
    ),
    *LANE_METRICS,
    # The sites.
    _breaker(
        "trawl_site_breaker",
        "1 while a site's breaker is open: other pages than its own, or a wrong file; not crawled.",
        lambda _, one: 1.0,
    ),
    _breaker(
        "trawl_site_breaker_seconds",
        "How long the breaker of a site has been open.",
        lambda view, one: max(0.0, view.now - one.since),
    ),
    *part().metrics,
    # The nodes.
    gauge(
        "trawl_node_up",
        "Whether the node reported in the last 15 s; it is forgotten a minute after its last report.",
        ("node",),
        lambda view: [((node.name,), float(node.alive(view.now))) for node in view.nodes],
    ),
    _node("trawl_node_capacity", "Crawlers that the node may host.", lambda node: node.capacity),
    _node("trawl_node_crawlers", "Crawlers that the node hosts.", lambda node: node.taken),
    _node("trawl_node_draining", "Whether the node takes no crawlers any more.", lambda node: node.draining),
    of_fleet(
        "trawl_beat_leads",
        "Whether a beat leads; 0: nothing is seeded, launched or stored.",
        lambda view: float(view.beats.leader is not None) if view.beats else None,
    ),
    of_fleet(
        "trawl_beat_silence_seconds",
        "Time since a beat sent its last task; a healthy one sends every second.",
        lambda view: view.beats.silent_s if view.beats else None,
    ),
    of_fleet(
        "trawl_dead_messages",
        "Messages of the broker that no worker could read or run, kept with their reasons.",
        lambda view: view.dead_messages,
    ),
    # Rolls.
    of_fleet(
        "trawl_roll_waiting",
        "Crawlers that the roll under way has still to replace.",
        lambda view: _of_roll(view, _to_replace(view.roll)),
    ),
    of_fleet(
        "trawl_roll_failed",
        "Whether the last roll stopped because a new process was not well; until the next one, or `trawl roll --abort`.",
        lambda view: _of_roll(view, view.roll is not None and view.roll.state is RollState.FAILED),
    ),
    *RUN_METRICS,
    # The exporter itself.
    of_fleet(
        "trawl_redis_up",
        "Whether Redis answered; if not, only this and the scrape's duration are exported.",
        lambda view: float(view.failure is None),
    ),
    gauge(
        "trawl_keys_readable",
        "1 if this part (a service, a kind of record) could be read; 0: foreign type or value.",
        ("part",),
        lambda view: [] if view.failure else [((part,), float(part not in view.unreadable)) for part in view.parts],
    ),
    gauge(
        "trawl_redis_trouble",
        "1 where Redis is set up, or fails, so that data is or will be lost; `trawl doctor` names the fix.",
        ("trouble",),
        lambda view: (
            [] if view.failure else [((name,), float(any(one.name == name for one in view.server))) for name in health.NAMES]
        ),
    ),
    *MEMORY_METRICS,
    of_fleet(
        "trawl_foreign_values",
        "Values in Trawl's keys that are not Trawl's, and keys of another type; `trawl doctor --repair` sets them aside.",
        lambda view: None if view.failure else float(len(view.foreign)),
    ),
    LEFT_OUT,
    of_fleet("trawl_scrape_duration_seconds", "How long reading Redis took.", lambda view: view.seconds),
)


def reference() -> str:
    """Return the table in docs/monitoring.md."""
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{label}`' for label in m.labels)} | {m.help} |" for m in METRICS]
    return "\n".join(["| metric | type | labels | what it is |", "|---|---|---|---|", *rows])
