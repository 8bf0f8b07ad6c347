"""Stats that services name as metrics (`STATS_METRICS`), with labels, summed over processes and bounded in number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from forums.overview import Overview, ServiceView
from workers.process.stat_metrics import MOST_SERIES, StatKind, StatMetric, readable_metrics

from .metric_spec import number


def families(view: Overview) -> Iterator[Metric]:
    """The metrics of all services."""
    for found, samples in _chosen(view).values():
        family = GaugeMetricFamily if found.kind is StatKind.GAUGE else CounterMetricFamily
        labels = ("service", "spider", *found.labels)
        text = f"Stat {found.pattern} of the service, summed over its processes."
        metric: Metric = family(found.metric, text, labels=labels)
        for values, value in samples:
            metric.add_sample(found.metric, dict(zip(labels, values, strict=True)), value)
        yield metric


def left_out(view: Overview) -> Iterator[tuple[tuple[str, ...], float]]:
    """Series that are not shown, by service: more than the bound, or another service has the name in another form."""
    shown = _chosen(view)
    for service in view.services:
        if patterns := list(readable_metrics(service.metrics)):
            there = sum(len(_all(service, one)) for one in patterns)
            here = sum(values[0] == service.name for _, samples in shown.values() for values, _ in samples)
            yield (service.name, service.name), float(there - here)


def _chosen(view: Overview) -> dict[str, tuple[StatMetric, list[tuple[tuple[str, ...], float]]]]:
    """By name of the metric: of two services that mean different things by it the first counts."""
    found: dict[str, tuple[StatMetric, list[tuple[tuple[str, ...], float]]]] = {}
    for service in view.services:
        for one in readable_metrics(service.metrics):
            known, samples = found.setdefault(one.metric, (one, []))
            if (known.kind, known.labels) == (one.kind, one.labels):
                samples += _all(service, one)[:MOST_SERIES]
    return {name: pair for name, pair in found.items() if pair[1]}


def _all(service: ServiceView, one: StatMetric) -> list[tuple[tuple[str, ...], float]]:
    """Every series of a pattern, by its labels in their order. Names that differ in nothing that is shown are added up."""
    sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for stat in sorted({*service.crawl.stats, *service.process_stats}):
        values = one.values(stat)
        if values is None:
            continue
        own, shared = service.process_stats.get(stat), number(service.crawl.stats.get(stat, ""))
        # What was set is each process's own; the shared hash keeps what the last process of a crawl had set.
        value = own if own is not None else shared
        if value is not None:
            sums[service.name, service.name, *values] += value
    return sorted(sums.items())
