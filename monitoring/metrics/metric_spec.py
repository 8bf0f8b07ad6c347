"""The definition of one metric, and the sources of a crawl's figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from forums.overview import Overview
from forums.state.forum_states import WatchedForum
from redis_components.admin.inspector import CrawlSnapshot

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
    of_boards: Callable[[WatchedForum], float | None] | None = None  # the figure of a board, for a metric of all boards


def of_crawl(name: str, kind: Literal["counter", "gauge"], help: str, value: Callable[[CrawlSnapshot], float]) -> MetricSpec:
    """Define a figure of each crawl; a crawl in another Redis has none."""

    def samples(view: Overview) -> Samples:
        return [((one.name, one.name), value(one.crawl)) for one in view.known]

    return MetricSpec(name=name, kind=kind, help=help, labels=("service", "spider"), samples=samples)


def of_items(name: str, help: str, value: Callable[[CrawlSnapshot], float]) -> MetricSpec:
    """Define a figure of each item stream: where a service and its jobs share one, only the service has it, so that sums are
    right.
    """

    def samples(view: Overview) -> Samples:
        return [((one.name, one.name), value(one.crawl)) for one in view.known if not one.items_of]

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
