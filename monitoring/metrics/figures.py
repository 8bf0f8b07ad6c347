"""The definition of one metric, and the reader of tables of metrics; the metrics of a service's own stats."""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from redis_components.admin.inspector import CrawlSnapshot
from workers.overview import Overview, ServiceView
from workers.process.stat_metrics import MOST_SERIES, StatKind, StatMetric, readable_metrics

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


Value = Callable[[Any], float | None]
Source = tuple[tuple[str, ...], Callable[[Overview, Value], Samples]]
"""Labels of a kind of record, and the samples of its records by the value of each."""


def specs(
    table: Path, computed: Mapping[str, Callable[[Overview], Any]], sources: Mapping[str, Source]
) -> tuple[MetricSpec, ...]:
    """Read the metrics of a table: each is a field of a kind of record in `sources`, or computed by the function of its name."""

    def spec(name: str, row: dict[str, Any]) -> MetricSpec:
        kind, labels = row.get("kind", "gauge"), tuple(row.get("labels", ()))
        if named := next((one for one in sources if one in row), None):
            labels, read = sources[named]
            value: Value = partial(_stat_of, name=row[named]) if named == "stat" else attrgetter(row[named])
            return MetricSpec(name=name, kind=kind, help=row["help"], labels=labels, samples=lambda view: read(view, value))
        way = "histograms" if kind == "histogram" else "samples"
        return MetricSpec(name=name, kind=kind, help=row["help"], labels=labels, **{way: computed[name]})

    return tuple(spec(name, row) for name, row in tomllib.loads(table.read_text("utf-8")).items())


def single(value: float | None) -> Samples:
    """Return the figure of the whole fleet; nothing where it is None."""
    return [] if value is None else [((), value)]


def _stat_of(crawl: CrawlSnapshot, name: str) -> float:
    """Return the sum of a stat over all processes; 0 if it is not a number."""
    return number(crawl.stats.get(name, "0")) or 0.0


def number(text: str) -> float | None:
    """Parse a finite number; None for anything else."""
    try:
        value = float(text)
    except ValueError:  # a stat of that name with a text
        return None
    return value if math.isfinite(value) else None


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
