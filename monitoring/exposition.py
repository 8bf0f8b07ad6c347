"""Renders the table of metrics in Prometheus's text format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from forums.overview import Overview

from .metrics import METRICS
from .stat_metrics import families

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class FleetCollector(Collector):
    """Shows what `look` gives at each scrape: no number is older than a second."""

    def __init__(self, look: Callable[[], Overview]) -> None:
        self._look = look

    def describe(self) -> Iterable[Metric]:
        """Nothing: so that registering it does not read Redis."""
        return ()

    def collect(self) -> Iterator[Metric]:
        view = self._look()
        for spec in METRICS:
            if spec.kind == "histogram":
                histogram = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
                for values, buckets, total in spec.histograms(view):
                    histogram.add_metric(values, buckets, total)
                if histogram.samples:
                    yield histogram
                continue
            family = GaugeMetricFamily if spec.kind == "gauge" else CounterMetricFamily
            metric: Metric = family(spec.name, spec.help, labels=spec.labels)
            for values, number in spec.samples(view):
                metric.add_sample(spec.name, dict(zip(spec.labels, values, strict=True)), number)
            if metric.samples:
                yield metric
        yield from families(view)


# prometheus-client names every counter `..._total`, as OpenMetrics demands. The five collector_* counters are older than that
# rule and their names are promised, so their samples are added under the exact name (`add_sample` above), and here the two
# lines of comment that Prometheus reads the type from get it, too. For the same reason OpenMetrics is never served: in that
# format such a counter would be an error.
_LATER_NAME = re.compile(rb"^(# (?:HELP|TYPE) collector_\w+)_total ", re.MULTILINE)


def exposition(registry: CollectorRegistry) -> bytes:
    """The registry in Prometheus's text format 0.0.4 (`CONTENT_TYPE`), with exactly the names in `METRICS`."""
    return _LATER_NAME.sub(rb"\1 ", generate_latest(registry))
