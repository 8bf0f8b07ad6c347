"""One metric, and where the figures of a crawl come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from redis_components.inspector import CrawlSnapshot

from .reading import Reading

Samples = Iterable[tuple[tuple[str, ...], float]]  # label values, value


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """One metric: its name as Prometheus gets it, and how its samples come out of a reading."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Reading], Samples]


def of_crawl(name: str, kind: Literal["counter", "gauge"], help: str, value: Callable[[CrawlSnapshot], float]) -> MetricSpec:
    """A figure of each crawl."""

    def samples(reading: Reading) -> Samples:
        return [((crawl.spider, crawl.spider), value(crawl)) for crawl in reading.crawls]

    return MetricSpec(name=name, kind=kind, help=help, labels=("service", "spider"), samples=samples)


def stat(crawl: CrawlSnapshot, name: str) -> float:
    """A stat over all processes; 0 where it is no number."""
    return number(crawl.stats.get(name, "0")) or 0.0


def number(text: str) -> float | None:
    """A finite number; None for anything else."""
    try:
        value = float(text)
    except ValueError:  # a stat of that name that somebody has set to a text
        return None
    return value if math.isfinite(value) else None
