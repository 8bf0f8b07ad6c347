"""Renders the table of metrics in Prometheus's text format 0.0.4, with exactly the names in `METRICS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from workers.overview import Overview

from .figures import MetricSpec, families
from .fleet import METRICS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


# prometheus-client names every counter `..._total`, as OpenMetrics demands. The five collector_* counters are older than that
# rule and their names are promised, so their samples are added under the exact name (`add_sample`), and the two lines of
# comment that Prometheus reads the type from get it, too. For the same reason OpenMetrics is never served: in that format such
# a counter would be an error.
_OLD_NAMES = "collector_"


def _number(value: float) -> str:
    """Format a number as prometheus-client does; below a million, as nearly all are, that is Python's own form."""
    return repr(float(value)) if -1e6 < value < 1e6 else _written(value)


_written: Callable[[float], str] = floatToGoString


def _histograms(spec: MetricSpec, view: Overview) -> Iterator[Metric]:
    histogram = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
    for values, buckets, total in spec.histograms(view):
        histogram.add_metric(values, buckets, total)
    if histogram.samples:
        yield histogram


def text_of_metrics(metrics: Iterable[Metric]) -> bytes:
    """Format metrics with exactly their names.

    Not by prometheus-client's `generate_latest`, which checks each label's name again for each sample: with 100 services that is
    half of its time. A test compares both.
    """
    return "".join(line for metric in metrics for line in _lines(metric)).encode()


class _Series:
    """The lines of one metric. They are kept: between two scrapes few series come or go, and most have the same value."""

    def __init__(self, spec: MetricSpec) -> None:
        self._samples = spec.samples
        self._head = _head(spec.name, spec.help, spec.kind)
        self._order = sorted(range(len(spec.labels)), key=lambda place: spec.labels[place])
        form = ",".join(f'{spec.labels[place]}="%s"' for place in self._order)
        self._form = f"{spec.name}{f'{{{form}}}' if form else ''} "
        self._known: dict[tuple[str, ...], tuple[float, str]] = {}

    def parts(self, view: Overview) -> list[bytes]:
        """Return the metric's head and samples; nothing where there are none."""
        lines = [self._head]
        known, add = self._known.get, lines.append
        for values, value in self._samples(view):
            before = known(values)
            add(before[1] if before is not None and before[0] == value else self._line(values, value))
        if len(self._known) > 2 * len(lines) + _SPARE:
            self._known = {}  # most of them are gone
        return ["".join(lines).encode()] if len(lines) > 1 else []

    def _line(self, values: tuple[str, ...], value: float) -> str:
        begin = self._form % tuple([_escaped(values[place]) for place in self._order])
        line = f"{begin}{_number(value)}\n"
        self._known[values] = value, line
        return line


def text_of(view: Overview) -> bytes:
    """Format a view as text, without an object for each sample: with 10,000 boards those were two thirds of the time. A
    test compares both.
    """
    parts: list[bytes] = []
    for spec in METRICS:
        if spec.kind == "histogram":
            parts.append(text_of_metrics(_histograms(spec, view)))
        else:
            parts += _SERIES[spec.name].parts(view)
    parts.append(text_of_metrics(families(view)))
    return b"".join(parts)


def _lines(metric: Metric) -> Iterator[str]:
    name = f"{metric.name}_total" if metric.type == "counter" and not metric.name.startswith(_OLD_NAMES) else metric.name
    yield _head(name, metric.documentation, metric.type)
    for one in metric.samples:
        yield f"{one.name}{_labels(one.labels)} {_number(one.value)}\n"


def _head(name: str, help: str, kind: str) -> str:
    text = help.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_escaped(labels[name])}"' for name in _in_order(tuple(labels))]) + "}"


@lru_cache(maxsize=1024)
def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _escaped(value: str) -> str:
    if '"' not in value and "\\" not in value and "\n" not in value:
        return value
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


_SPARE = 1000
_SERIES = {spec.name: _Series(spec) for spec in METRICS if spec.kind != "histogram"}
