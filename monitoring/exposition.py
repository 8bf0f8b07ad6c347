"""Renders the table of metrics in Prometheus's text format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

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
# rule and their names are promised, so their samples are added under the exact name (`add_sample` above), and the two lines of
# comment that Prometheus reads the type from get it, too. For the same reason OpenMetrics is never served: in that format such
# a counter would be an error.
_OLD_NAMES = "collector_"
_number: Callable[[float], str] = floatToGoString
_TO_ESCAPE = re.compile(r'[\\\n"]')


def exposition(registry: CollectorRegistry) -> bytes:
    """The registry in Prometheus's text format 0.0.4 (`CONTENT_TYPE`), with exactly the names in `METRICS`.

    Not by prometheus-client's `generate_latest`, which checks each label's name again for each sample: with 100 services that
    is half of its time. A test compares both.
    """
    lines: list[str] = []
    for metric in registry.collect():
        name = f"{metric.name}_total" if metric.type == "counter" and not metric.name.startswith(_OLD_NAMES) else metric.name
        text = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
        lines.append(f"# HELP {name} {text}\n# TYPE {name} {metric.type}\n")
        lines += [f"{one.name}{_labels(one.labels)} {_number(one.value)}\n" for one in metric.samples]
    return "".join(lines).encode()


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_escaped(labels[name])}"' for name in sorted(labels)]) + "}"


def _escaped(value: str) -> str:
    if _TO_ESCAPE.search(value) is None:
        return value
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
