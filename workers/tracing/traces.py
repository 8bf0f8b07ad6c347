"""Spans of OpenTelemetry: where the time of a page goes, from its seed over its fetch and its callback to its rows.

Off unless TRAWL_TRACES_URL is set; then nothing of OpenTelemetry is imported. A span belongs to the trace of its parent, which
other processes name by a `traceparent` (W3C Trace Context), a text of 55 characters that travels in start tasks, in
`request.meta` and in the items of the forum spiders.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from workers.environment.variables import Traces
from workers.logs.json_lines import identity

if TYPE_CHECKING:
    from .trace_export import SpanExport

TRACEPARENT = "traceparent"
"""In `request.meta`, start tasks and items: the span that this follows from."""
NO_LIBRARY = "TRAWL_TRACES_URL is set and no span is sent: that needs the packages of pip install 'trawl-fleet[otel]' (%s)"
LAST_WORDS_S = 1.0
"""A process that ends waits no longer for the collector."""

Kind = Literal["internal", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int | float | None]
"""By the names of OpenTelemetry's conventions, or `trawl.<name>`; what is None is left out."""

_now: ContextVar[str] = ContextVar("trawl_traceparent", default="")
_opening = threading.Lock()
_opened: tuple[int, SpanExport | None] | None = None  # the process that opened it: a fork has threads of its parent no more

logger = logging.getLogger(__name__)


class Span:
    """A span that has begun; it is exported when `end` is called."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: Any, traceparent: str) -> None:
        self._span = span
        self.traceparent = traceparent

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""
        self._span.set_attributes(_known(attributes))

    def end(self, error: str = "", *, at_ns: int | None = None) -> None:
        """End the span, now or at an epoch time in ns; `error`: with this type of error."""
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(_failed())
        self._span.end(end_time=at_ns)


def is_on() -> bool:
    """Return True if spans are sent. Raises ConfigError."""
    return _export() is not None


def begin(
    name: str, attributes: Attributes, parent: object = None, *, kind: Kind = "internal", at_ns: int | None = None
) -> Span | None:
    """Return a span that begins now, or at an epoch time in ns; None where spans are off. `parent`: a traceparent; without one a
    trace begins. Raises ConfigError.
    """
    export = _export()
    if export is None:
        return None
    span, traceparent = export.begin(name, parent if isinstance(parent, str) else "", kind, at_ns, _known(attributes))
    return Span(span, traceparent)


def traceparent_of(span: Span | None) -> str | None:
    """Return the traceparent that a task or an item records of its parent span; None where spans are off."""
    return None if span is None else span.traceparent


def work_on(span: Span | None) -> None:
    """Make `span` the parent of the following work of this asyncio task, and of the tasks that it starts."""
    _now.set("" if span is None else span.traceparent)


def fields() -> dict[str, str]:
    """Return the trace that the running code belongs to, for a line of the log."""
    traceparent = _now.get()
    return {"trace_id": traceparent.split("-")[1]} if traceparent else {}


def close() -> None:
    """Send what has not been sent, for `LAST_WORDS_S` at most. The next span opens it again."""
    global _opened
    with _opening:
        opened, _opened = _opened, None
    if opened and opened[1] and opened[0] == os.getpid():
        sending = threading.Thread(target=opened[1].close, name="traces", daemon=True)
        sending.start()
        sending.join(LAST_WORDS_S)


def _export() -> SpanExport | None:
    global _opened
    pid = os.getpid()
    if (opened := _opened) is not None and opened[0] == pid:
        return opened[1]
    with _opening:
        if _opened is None or _opened[0] != pid:
            _opened = (pid, _open())
        return _opened[1]


def _open() -> SpanExport | None:
    declared = Traces.read()
    if not declared.traces_url:
        return None
    try:
        from .trace_export import SpanExport  # only where it is asked for: it loads more than a crawler has otherwise
    except ImportError as error:
        logger.warning(NO_LIBRARY, error)
        return None
    atexit.register(close)
    return SpanExport(declared.traces_url, declared.traces_share, identity())


def _known(attributes: Attributes) -> dict[str, str | int | float]:
    return {name: value for name, value in attributes.items() if value is not None}


def _failed() -> Any:
    from opentelemetry.trace import StatusCode

    return StatusCode.ERROR
