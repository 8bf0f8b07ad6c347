"""The definition of one metric, and the reader of tables of metrics; a service's own stats."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from fleet_operations.overview import Overview
from redis_components.admin.inspector import CrawlSnapshot
from workers.process.stat_metrics import MOST_SERIES, is_named

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


def own_stats(view: Overview) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the stats that the services' projects name. A value that was set is the sum over the processes that live: the shared
    hash keeps what the last process of a crawl had set.
    """
    for service in view.services:
        if not service.metrics:
            continue
        shared = {stat: value for stat, text in service.crawl.stats.items() if (value := number(text)) is not None}
        named = sorted(stat for stat in {*shared, *service.process_stats} if is_named(stat, service.metrics))
        for stat in named[:MOST_SERIES]:
            yield (*service.labels, stat), service.process_stats.get(stat, shared.get(stat, 0.0))
