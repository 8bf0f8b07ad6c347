"""Sends spans to a collector by OTLP over HTTP. The only module that imports OpenTelemetry's SDK; `traces.py` asks it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from redis_components.server.url import masked

ANSWER_S = 5
"""For an answer of the collector."""

logger = logging.getLogger(__name__)
_context = TraceContextTextMapPropagator()


class SpanExport:
    """The spans of this process, in batches from a thread; while the collector is away, the newest 2,048 are kept.

    `share`: of the traces that begin here, from 0 to 1; a trace from another process keeps that process's decision. `identity`:
    the fields that this process's log lines have.
    """

    def __init__(self, url: str, share: float, identity: Mapping[str, str]) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the exporter below logs a failure once
        self._provider = TracerProvider(
            resource=Resource.create(_described(identity)), sampler=ParentBased(TraceIdRatioBased(share)), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(_Collector(url)))
        self._tracer = self._provider.get_tracer("trawl")

    def begin(
        self, name: str, parent: str, kind: str, at_ns: int | None, attributes: Mapping[str, str | int | float]
    ) -> tuple[Span, str]:
        """Return a new span, and its traceparent. An invalid `parent` counts as none."""
        span = self._tracer.start_span(
            name,
            context=_context.extract({"traceparent": parent}),
            kind=SpanKind[kind.upper()],
            attributes=attributes,
            start_time=at_ns,
        )
        at = span.get_span_context()
        return span, f"00-{at.trace_id:032x}-{at.span_id:016x}-{at.trace_flags:02x}"

    def close(self) -> None:
        """Send the rest."""
        self._provider.shutdown()


class _Collector(SpanExporter):
    """OTLP's exporter, and one line in the log when the collector stops answering, and when it answers again."""

    def __init__(self, url: str) -> None:
        self._url = masked(url)
        self._exporter = OTLPSpanExporter(endpoint=f"{url.rstrip('/')}/v1/traces", timeout=ANSWER_S)
        self._is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        is_away = result is not SpanExportResult.SUCCESS
        if is_away and not self._is_away:
            logger.warning("%s does not take spans: traces are lost until it does; the crawl goes on", self._url)
        elif self._is_away and not is_away:
            logger.info("%s takes spans again", self._url)
        self._is_away = is_away
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


def _described(identity: Mapping[str, str]) -> dict[str, str]:
    """Return the resource; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of the environment override it."""
    name = identity.get("service") or identity.get("program") or "trawl"
    found = {
        "service.namespace": "trawl",
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or name,
        "service.instance.id": identity.get("slot") or f"{identity.get('node') or name}/{os.getpid()}",
        "host.name": identity.get("node", ""),
        "process.pid": str(os.getpid()),
    }
    return {key: value for key, value in found.items() if value}
