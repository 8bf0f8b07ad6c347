"""The metrics of the fleet: `fleet.toml` has the table, of which the exposition and the reference in docs/monitoring.md are made,
this file what is computed. Those of the forum crawl are in `monitoring/forums`.

The label `spider` names the spider that a service runs: several services, and all jobs of one, may have the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fleet_operations.overview import Overview, ServiceView
from fleet_operations.overview.model import GONE, shown_state
from monitoring.part import part
from redis_components.admin import health
from workers.state.group_runs import Verdict
from workers.state.registry import CrawlerState
from workers.state.rolls import RollState

from .figures import MetricSpec, Samples, Source, Value, number, own_stats, single, specs

_STATUS = "downloader/response_status_count/"
_CODE = re.compile(r"\d{3}", re.ASCII).fullmatch


def _services(view: Overview) -> Iterable[ServiceView]:
    """Return the services; none where nothing is known of crawlers."""
    return () if "crawlers" in view.unreadable else view.services


def _states(view: Overview) -> Samples:
    counts = Counter((r.spider, shown_state(r, view.now)) for r in view.crawlers)
    for service in _services(view):
        for state in (*CrawlerState, GONE):
            yield (*service.labels, str(state)), counts[service.name, str(state)]


def _of_roll(view: Overview, value: float) -> float | None:
    return None if view.failure or "roll" in view.unreadable else value


def _statuses(view: Overview) -> Samples:
    for service in view.known:
        stats = service.crawl.stats
        for name in sorted([one for one in stats if one.startswith(_STATUS)]):
            code = name.removeprefix(_STATUS)
            # Three digits and nothing else: a label's values must be bounded, and anybody may have written to Redis.
            if _CODE(code) and (value := number(stats[name])) is not None:
                yield (*service.labels, code), value


def _crawlers(view: Overview, value: Value, *, all_of_them: bool = False) -> Samples:
    """Return a figure of each crawler process that is alive: the last figures of an ended one are not current."""
    shown = [r for r in view.crawlers if all_of_them or r.alive(view.now)]
    return [((r.spider, view.spider_of(r.spider), r.name), value(r) or 0.0) for r in shown]


def _crawls(view: Overview, value: Value) -> Samples:
    """Return a figure of each crawl; one that cannot be read has none."""
    return [(service.labels, value(service.crawl) or 0.0) for service in view.known]


def _items(view: Overview, value: Value) -> Samples:
    """Return a figure of each item stream: where a service and its jobs share one, only the service has it, so that sums
    are right.
    """
    return [(service.labels, value(service.crawl) or 0.0) for service in view.known if not service.items_of]


_SERVICE = ("service", "spider")
_SOURCES: Mapping[str, Source] = {
    "crawl": (_SERVICE, _crawls),
    "stat": (_SERVICE, _crawls),
    "items": (_SERVICE, _items),
    "service": (_SERVICE, lambda view, value: [(each.labels, value(each) or 0.0) for each in view.known]),
    "crawler": (("service", "spider", "crawler"), _crawlers),
    "node": (("node",), lambda view, value: [((node.name,), value(node) or 0.0) for node in view.nodes if node.alive(view.now)]),
}

_COMPUTED: Mapping[str, Callable[[Overview], Samples]] = {
    "collector_downloader_response_status_count": _statuses,
    "trawl_oldest_ready_seconds": lambda view: [
        (each.labels, max(0.0, view.now - at) if (at := each.crawl.oldest_ready_at) else 0.0) for each in view.known
    ],
    "trawl_crawlers_desired": lambda view: [
        (each.labels, view.wanted(each)) for each in _services(view) if each.desired is not None
    ],
    "trawl_crawlers_up": lambda view: [(each.labels, each.up) for each in _services(view)],
    "trawl_crawlers": _states,
    "trawl_crawler_restarts_total": lambda view: _crawlers(view, lambda record: record.restarts, all_of_them=True),
    "trawl_paused": lambda view: sorted(
        Counter((each.service, view.spider_of(each.service), each.site, str(each.hold.word)) for each in view.held).items()
    ),
    "trawl_site_breaker": lambda view: [((site, each.cause), 1.0) for site, each in view.sites.breakers.items()],
    "trawl_node_up": lambda view: [((node.name,), float(node.alive(view.now))) for node in view.nodes],
    "trawl_beat_leads": lambda view: single(float(view.beats.leader is not None) if view.beats else None),
    "trawl_beat_silence_seconds": lambda view: single(view.beats.silent_s if view.beats else None),
    "trawl_dead_messages": lambda view: single(view.dead_messages),
    "trawl_roll_failed": lambda view: single(_of_roll(view, view.roll is not None and view.roll.state is RollState.FAILED)),
    "trawl_run_members": lambda view: [
        ((run.group, verdict), run.counts.get(verdict, 0)) for run in view.runs for verdict in Verdict
    ],
    "trawl_run_alerting": lambda view: [
        ((run.group, verdict), run.alerts.get(verdict, 0)) for run in view.runs for verdict in Verdict if not verdict.sound
    ],
    "trawl_run_late_seconds": lambda view: [
        ((run.group,), (run.late or 0.0) - (run.deadline_at or 0.0) if run.late else 0.0) for run in view.runs
    ],
    "trawl_redis_up": lambda view: single(float(view.failure is None)),
    "trawl_keys_readable": lambda view: (
        [] if view.failure else [((name,), float(name not in view.unreadable)) for name in view.parts]
    ),
    "trawl_redis_trouble": lambda view: (
        [] if view.failure else [((name,), float(any(each.name == name for each in view.server))) for name in health.NAMES]
    ),
    "trawl_redis_used_memory_bytes": lambda view: single(float(view.memory.used) if view.memory else None),
    "trawl_redis_max_memory_bytes": lambda view: single(float(view.memory.limit) if view.memory else None),
    "trawl_foreign_values": lambda view: single(None if view.failure else float(len(view.foreign))),
    "trawl_stat": own_stats,
    "trawl_scrape_duration_seconds": lambda view: single(view.seconds),
}

METRICS: tuple[MetricSpec, ...] = (*specs(Path(__file__).with_name("fleet.toml"), _COMPUTED, _SOURCES), *part().metrics)


def reference() -> str:
    """Return the table in docs/monitoring.md."""
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{label}`' for label in m.labels)} | {m.help} |" for m in METRICS]
    return "\n".join(["| metric | type | labels | what it is |", "|---|---|---|---|", *rows])
