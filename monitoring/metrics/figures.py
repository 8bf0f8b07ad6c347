"""The definition of one metric, and the metrics of consumer groups, lanes, Redis's memory and a service's own stats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

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


def of_crawl(name: str, kind: Literal["counter", "gauge"], help: str, value: Callable[[CrawlSnapshot], float]) -> MetricSpec:
    """Define a figure of each crawl; a crawl in another Redis has none."""

    def samples(view: Overview) -> Samples:
        return [(one.labels, value(one.crawl)) for one in view.known]

    return MetricSpec(name=name, kind=kind, help=help, labels=("service", "spider"), samples=samples)


def of_service(name: str, help: str, value: Callable[[ServiceView], float]) -> MetricSpec:
    """Define a figure of each service's declaration."""

    def samples(view: Overview) -> Samples:
        return [(one.labels, value(one)) for one in view.known]

    return MetricSpec(name=name, kind="gauge", help=help, labels=("service", "spider"), samples=samples)


def of_items(name: str, help: str, value: Callable[[CrawlSnapshot], float]) -> MetricSpec:
    """Define a figure of each item stream: where a service and its jobs share one, only the service has it, so that sums are
    right.
    """

    def samples(view: Overview) -> Samples:
        return [(one.labels, value(one.crawl)) for one in view.known if not one.items_of]

    return MetricSpec(name=name, kind="gauge", help=help, labels=("service", "spider"), samples=samples)


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

    return MetricSpec(name=name, kind="gauge", help=help, labels=("service", "spider", "group"), samples=samples)


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


def _of_lanes(figure: Callable[[LaneView], float | None]) -> Callable[[Overview], Samples]:
    def samples(view: Overview) -> Samples:
        found = ((one.lane, figure(one)) for one in view.sites.lanes)
        return [((lane,), value) for lane, value in found if value is not None]

    return samples


_STATES = {LaneCondition.LEFT_ALONE: "backing_off"}
LANE_METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        name="trawl_site_rate_state",
        kind="gauge",
        help="1: the state of a limited site (`backing_off`, `quiet`, `spent`, `slowed`, `limited`, `free`).",
        labels=("site", "state"),
        samples=lambda view: [((one.lane, _STATES.get(one.condition, str(one.condition))), 1.0) for one in view.sites.lanes],
    ),
    MetricSpec(
        name="trawl_lane_rate",
        kind="gauge",
        help="Requests per second that a site may get now, by its limit, its robots.txt and its complaints.",
        labels=("site",),
        samples=_of_lanes(lambda one: one.rate_now),
    ),
    MetricSpec(
        name="trawl_lane_requests_waiting",
        kind="gauge",
        help="Requests that wait for the limits of their site.",
        labels=("site",),
        samples=_of_lanes(lambda one: float(one.waiting)),
    ),
    MetricSpec(
        name="trawl_lane_oldest_seconds",
        kind="gauge",
        help="Since the oldest request that waits for the limits of its site was stored first; 0: none waits.",
        labels=("site",),
        samples=lambda view: [
            ((one.lane,), max(0.0, view.now - one.oldest_at) if one.oldest_at else 0.0) for one in view.sites.lanes
        ],
    ),
    MetricSpec(
        name="trawl_lane_left_alone_seconds",
        kind="gauge",
        help="For how much longer a site is sent nothing because it asked for that; 0: it did not.",
        labels=("site",),
        samples=_of_lanes(lambda one: one.state.left_alone_s),
    ),
    MetricSpec(
        name="trawl_site_consecutive_refusals",
        kind="gauge",
        help="Consecutive refusals of a site, by 429 or 503; half an hour without one resets it.",
        labels=("site",),
        samples=_of_lanes(lambda one: float(one.state.refusals)),
    ),
)


MEMORY_METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        name="trawl_redis_memory_bytes",
        kind="gauge",
        help="Memory of Redis by kind of key, estimated once a minute; other: the broker's and Redis's own.",
        labels=("kind",),
        samples=lambda view: [((kind,), float(size)) for kind, size in view.memory.kinds.items()] if view.memory else [],
    ),
    MetricSpec(
        name="trawl_redis_used_memory_bytes",
        kind="gauge",
        help="Memory that Redis uses, of all primaries together, looked at once a minute.",
        labels=(),
        samples=lambda view: [((), float(view.memory.used))] if view.memory else [],
    ),
    MetricSpec(
        name="trawl_redis_max_memory_bytes",
        kind="gauge",
        help="Memory that Redis may use (maxmemory); 0: no limit.",
        labels=(),
        samples=lambda view: [((), float(view.memory.limit))] if view.memory else [],
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
    MetricSpec(
        name="trawl_run_members",
        kind="gauge",
        help="Members of the newest run of a group that are over, by verdict.",
        labels=("group", "verdict"),
        samples=lambda view: [((one.group, verdict), one.counts.get(verdict, 0)) for one in view.runs for verdict in Verdict],
    ),
    MetricSpec(
        name="trawl_run_alerting",
        kind="gauge",
        help="Those of them whose verdict an operator should look at: not sound, not silenced.",
        labels=("group", "verdict"),
        samples=lambda view: [
            ((one.group, verdict), one.alerts.get(verdict, 0)) for one in view.runs for verdict in Verdict if not verdict.sound
        ],
    ),
    MetricSpec(
        name="trawl_run_members_left",
        kind="gauge",
        help="Members of the newest run of a group that crawl, or wait.",
        labels=("group",),
        samples=lambda view: [((one.group,), one.members - sum(one.counts.values())) for one in view.runs],
    ),
    MetricSpec(
        name="trawl_run_late_seconds",
        kind="gauge",
        help="By how much the newest run of a group will miss its deadline at its pace; 0: not.",
        labels=("group",),
        samples=lambda view: [
            ((one.group,), (one.late or 0.0) - (one.deadline_at or 0.0) if one.late else 0.0) for one in view.runs
        ],
    ),
)

LEFT_OUT = MetricSpec(
    name="trawl_stats_left_out",
    kind="gauge",
    help="Series of own stats (STATS_METRICS) that are left out: over 200 of a pattern, or two forms.",
    labels=("service", "spider"),
    samples=left_out,
)
