"""The definition of one metric, and the metrics of consumer groups, lanes, Redis's memory and a service's own stats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from redis_components.admin.inspector import CrawlSnapshot
from redis_components.admin.lanes import LaneCondition, LaneView
from redis_components.items.groups import GroupState
from workers.overview import Overview, ServiceView
from workers.process.stat_metrics import MOST_SERIES, StatKind, StatMetric, readable_metrics
from workers.state.group_runs import Verdict

Histogram = tuple[tuple[str, ...], list[tuple[str, float]], float]  # label values, buckets, sum
Samples = Iterable[tuple[tuple[str, ...], float]]  # label values, value


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """One metric: its name as Prometheus gets it, and how its samples come out of a view."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Overview], Samples] = lambda view: ()
    histograms: Callable[[Overview], Iterable[Histogram]] = lambda view: ()  # of that kind


def gauge(name: str, help: str, labels: tuple[str, ...], samples: Callable[[Overview], Samples]) -> MetricSpec:
    """Define a gauge by its samples."""
    return MetricSpec(name=name, kind="gauge", help=help, labels=labels, samples=samples)


def of_fleet(name: str, help: str, value: Callable[[Overview], float | None]) -> MetricSpec:
    """Define one figure of the whole fleet; missing where it is None."""
    return gauge(name, help, (), lambda view: [((), found)] if (found := value(view)) is not None else [])


def of_service(
    name: str,
    help: str,
    value: Callable[[ServiceView], float],
    *,
    kind: Literal["counter", "gauge"] = "gauge",
    which: Callable[[Overview], Iterable[ServiceView]] = lambda view: view.known,
) -> MetricSpec:
    """Define a figure of each service; one that crawls in another Redis has none."""

    def samples(view: Overview) -> Samples:
        return [(one.labels, value(one)) for one in which(view)]

    return MetricSpec(name=name, kind=kind, help=help, labels=("service", "spider"), samples=samples)


def with_own_items(view: Overview) -> list[ServiceView]:
    """Return the services with figures of items: where a service and its jobs share a stream, only the service, so that sums are
    right.
    """
    return [one for one in view.known if not one.items_of]


def of_crawls(*rows: tuple[str, str, str], **options: Any) -> list[MetricSpec]:
    """Define figures of each crawl: name, help, and the field of `CrawlSnapshot`."""
    return [of_service(name, help, attrgetter(f"crawl.{field}"), **options) for name, help, field in rows]


def of_stats(*rows: tuple[str, str, str]) -> list[MetricSpec]:
    """Define counters of each crawl: name, help, and the stat of its processes."""
    return [
        of_service(name, help, lambda one, key=stat_name: stat(one.crawl, key), kind="counter")  # type: ignore[misc]
        for name, help, stat_name in rows
    ]


def stat(crawl: CrawlSnapshot, name: str) -> float:
    """Return the sum of a stat over all processes; 0 if it is not a number."""
    return number(crawl.stats.get(name, "0")) or 0.0


def number(text: str) -> float | None:
    """Parse a finite number; None for anything else."""
    try:
        value = float(text)
    except ValueError:  # a stat of that name with a text
        return None
    return value if math.isfinite(value) else None


READS_S = 60.0  # a consumer that asked for items since reads


def _group(name: str, help: str, value: Callable[[GroupState], float | None]) -> MetricSpec:
    """Define a figure of each group; none where Redis has no value."""

    def samples(view: Overview) -> Samples:
        for service in view.services:
            for group in service.groups:
                if (figure := value(group)) is not None:
                    yield (*service.labels, group.name), figure

    return gauge(name, help, ("service", "spider", "group"), samples)


GROUP_METRICS: tuple[MetricSpec, ...] = (
    _group(
        "trawl_item_group_waiting",
        "Items that the consumer group was not given yet; missing where Redis has no count.",
        lambda one: one.waiting,
    ),
    _group("trawl_item_group_pending", "Items that the group was given and has not acknowledged.", lambda one: one.pending),
    _group(
        "trawl_item_group_oldest_pending_seconds",
        "Age of the oldest item that the group was given and has not acknowledged; 0: there is none.",
        lambda one: one.oldest_s or 0.0,
    ),
    _group(
        "trawl_item_group_consumers",
        "Consumers of the group that asked for items in the last 60 s.",
        lambda one: sum(consumer.idle_s <= READS_S for consumer in one.consumers),
    ),
)


def _lane(name: str, help: str, value: Callable[[Overview, LaneView], float | None]) -> MetricSpec:
    """Define a figure of each limited site, of those that have it."""

    def samples(view: Overview) -> Samples:
        found = ((one.lane, value(view, one)) for one in view.sites.lanes)
        return [((lane,), figure) for lane, figure in found if figure is not None]

    return gauge(name, help, ("site",), samples)


_STATES = {LaneCondition.LEFT_ALONE: "backing_off"}
LANE_METRICS: tuple[MetricSpec, ...] = (
    gauge(
        "trawl_site_rate_state",
        "1: the state of a limited site (`backing_off`, `quiet`, `spent`, `slowed`, `limited`, `free`).",
        ("site", "state"),
        lambda view: [((one.lane, _STATES.get(one.condition, str(one.condition))), 1.0) for one in view.sites.lanes],
    ),
    _lane(
        "trawl_lane_rate",
        "Requests per second that a site may get now, by its limit, its robots.txt and its complaints.",
        lambda _, one: one.rate_now,
    ),
    _lane("trawl_lane_requests_waiting", "Requests that wait for the limits of their site.", lambda _, one: float(one.waiting)),
    _lane(
        "trawl_lane_oldest_seconds",
        "Since the oldest request that waits for the limits of its site was stored first; 0: none waits.",
        lambda view, one: max(0.0, view.now - one.oldest_at) if one.oldest_at else 0.0,
    ),
    _lane(
        "trawl_lane_left_alone_seconds",
        "For how much longer a site is sent nothing because it asked for that; 0: it did not.",
        lambda _, one: one.state.left_alone_s,
    ),
    _lane(
        "trawl_site_consecutive_refusals",
        "Consecutive refusals of a site, by 429 or 503; half an hour without one resets it.",
        lambda _, one: float(one.state.refusals),
    ),
)


MEMORY_METRICS: tuple[MetricSpec, ...] = (
    gauge(
        "trawl_redis_memory_bytes",
        "Memory of Redis by kind of key, estimated once a minute; other: the broker's and Redis's own.",
        ("kind",),
        lambda view: [((kind,), float(size)) for kind, size in view.memory.kinds.items()] if view.memory else [],
    ),
    of_fleet(
        "trawl_redis_used_memory_bytes",
        "Memory that Redis uses, of all primaries together, looked at once a minute.",
        lambda view: float(view.memory.used) if view.memory else None,
    ),
    of_fleet(
        "trawl_redis_max_memory_bytes",
        "Memory that Redis may use (maxmemory); 0: no limit.",
        lambda view: float(view.memory.limit) if view.memory else None,
    ),
)


def families(view: Overview) -> Iterator[Metric]:
    """Yield the metrics of all services."""
    for found, samples in _chosen(view).values():
        family = GaugeMetricFamily if found.kind is StatKind.GAUGE else CounterMetricFamily
        labels = ("service", "spider", *found.labels)
        text = f"Stat {found.pattern} of the service, summed over its processes."
        metric: Metric = family(found.metric, text, labels=labels)
        for values, value in samples:
            metric.add_sample(found.metric, dict(zip(labels, values, strict=True)), value)
        yield metric


def left_out(view: Overview) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the number of series that are not shown, by service: over the bound, or of a name that another service has in
    another form.
    """
    shown = _chosen(view)
    for service in view.services:
        if patterns := list(readable_metrics(service.metrics)):
            there = sum(len(_all(service, one)) for one in patterns)
            here = sum(values[0] == service.name for _, samples in shown.values() for values, _ in samples)
            yield service.labels, float(there - here)


def _chosen(view: Overview) -> dict[str, tuple[StatMetric, list[tuple[tuple[str, ...], float]]]]:
    """Return the chosen metrics, by name: of two services that use a name for different things the first counts."""
    found: dict[str, tuple[StatMetric, list[tuple[tuple[str, ...], float]]]] = {}
    for service in view.services:
        for one in readable_metrics(service.metrics):
            known, samples = found.setdefault(one.metric, (one, []))
            if (known.kind, known.labels) == (one.kind, one.labels):
                samples += _all(service, one)[:MOST_SERIES]
    return {name: pair for name, pair in found.items() if pair[1]}


def _all(service: ServiceView, one: StatMetric) -> list[tuple[tuple[str, ...], float]]:
    """Return every series of a pattern, by its labels in their order. Names with the same shown labels are added up."""
    sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stat in sorted({*service.crawl.stats, *service.process_stats}):
        values = one.values(stat)
        if values is None:
            continue
        own, shared = service.process_stats.get(stat), number(service.crawl.stats.get(stat, ""))
        # A set value is each process's own; the shared hash keeps the value that the last process of a crawl had set.
        value = own if own is not None else shared
        if value is not None:
            sums[*service.labels, *values] += value
    return sorted(sums.items())


RUN_METRICS: tuple[MetricSpec, ...] = (
    gauge(
        "trawl_run_members",
        "Members of the newest run of a group that are over, by verdict.",
        ("group", "verdict"),
        lambda view: [((one.group, verdict), one.counts.get(verdict, 0)) for one in view.runs for verdict in Verdict],
    ),
    gauge(
        "trawl_run_alerting",
        "Those of them whose verdict an operator should look at: not sound, not silenced.",
        ("group", "verdict"),
        lambda view: [
            ((one.group, verdict), one.alerts.get(verdict, 0)) for one in view.runs for verdict in Verdict if not verdict.sound
        ],
    ),
    gauge(
        "trawl_run_members_left",
        "Members of the newest run of a group that crawl, or wait.",
        ("group",),
        lambda view: [((one.group,), one.members - sum(one.counts.values())) for one in view.runs],
    ),
    gauge(
        "trawl_run_late_seconds",
        "By how much the newest run of a group will miss its deadline at its pace; 0: not.",
        ("group",),
        lambda view: [((one.group,), (one.late or 0.0) - (one.deadline_at or 0.0) if one.late else 0.0) for one in view.runs],
    ),
)

LEFT_OUT = gauge(
    "trawl_stats_left_out",
    "Series of own stats (STATS_METRICS) that are left out: over 200 of a pattern, or two forms.",
    ("service", "spider"),
    left_out,
)
