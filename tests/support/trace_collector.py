"""A collector of spans: OTLP over HTTP, read with OpenTelemetry's own messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True, kw_only=True)
class Told:
    """A span as it was told."""

    name: str
    service: str
    trace: str
    id: str
    parent: str  # "" of the first one of a trace
    kind: int
    began_ns: int
    ended_ns: int
    attributes: dict[str, Any]
    failed: bool


@dataclass
class Collector:
    """What it was told, and whether it takes more."""

    url: str
    spans: list[Told] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuses: bool = False

    def named(self, name: str) -> list[Told]:
        return [span for span in self.spans if span.name == name]

    def ancestors(self, span: Told) -> list[str]:
        """The names from the first span of its trace to this one."""
        by_id = {one.id: one for one in self.spans}
        names = [span.name]
        while span.parent:
            span = by_id[span.parent]
            names.append(span.name)
        return names[::-1]


@contextmanager
def trace_collector() -> Iterator[Collector]:
    """One on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and not collector.refuses:
                collector.headers.append(dict(self.headers))
                collector.spans += _spans(decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
            else:
                self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _spans(body: bytes) -> Iterator[Told]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = {pair.key: _value(pair.value) for pair in resource.resource.attributes}["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Told(
                    name=span.name,
                    service=service,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    began_ns=span.start_time_unix_nano,
                    ended_ns=span.end_time_unix_nano,
                    attributes={pair.key: _value(pair.value) for pair in span.attributes},
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                )


def _value(value: AnyValue) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")
