"""Renders the table of metrics in Prometheus's text format 0.0.4, with exactly the names in `METRICS`."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest

from fleet_operations.overview import Overview

from .figures import MetricSpec
from .fleet import METRICS

__all__ = ["CONTENT_TYPE", "text_of"]

# prometheus-client names every counter `..._total`, as OpenMetrics demands. The collector_* counters are older than that rule
# and their names are promised, so the two lines of comment that Prometheus reads the type from get the exact name, too. For the
# same reason OpenMetrics is never served: in that format such a counter would be an error.
_OLD_NAMES = [spec.name for spec in METRICS if spec.kind == "counter" and not spec.name.endswith("_total")]


def text_of(view: Overview) -> bytes:
    """Format a view as text."""
    text = generate_latest(SimpleNamespace(collect=lambda: _metrics(view)))
    for name in _OLD_NAMES:
        for comment in ("HELP", "TYPE"):
            text = text.replace(f"# {comment} {name}_total ".encode(), f"# {comment} {name} ".encode())
    return text


def _metrics(view: Overview) -> Iterator[Metric]:
    """Yield the metrics of the table that have samples."""
    for spec in METRICS:
        metric = _histogram(spec, view) if spec.kind == "histogram" else _values(spec, view)
        if metric.samples:
            yield metric


def _values(spec: MetricSpec, view: Overview) -> Metric:
    metric = Metric(spec.name.removesuffix("_total") if spec.kind == "counter" else spec.name, spec.help, spec.kind)
    for values, value in spec.samples(view):
        metric.add_sample(spec.name, dict(zip(spec.labels, values, strict=True)), value)
    return metric


def _histogram(spec: MetricSpec, view: Overview) -> Metric:
    histogram = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
    for values, buckets, total in spec.histograms(view):
        histogram.add_metric(values, buckets, total)
    return histogram
