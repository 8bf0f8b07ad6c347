"""Root spans of traces: one for each start task that is seeded (`workers/process/traces.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from forums.records.start_tasks import ForumTask, PostTask
from workers.process import traces
from workers.process.traces import Span


def begin(tasks: Iterable[ForumTask | PostTask]) -> list[Span | None]:
    """Begin a span for each task, and set the task's `traceparent`. None if tracing is off."""
    spans = []
    for task in tasks:
        thread = task.post if isinstance(task, PostTask) else None
        about = {"trawl.site": task.site, "trawl.forum": task.forum, "trawl.thread": thread, "trawl.mode": task.mode}
        span = traces.begin("seed", about, kind="producer")
        task.traceparent = traces.traceparent_of(span)
        spans.append(span)
    return spans


def end(spans: Sequence[Span | None], seeded: Iterable[bool] | None = None) -> None:
    """End the spans of tasks that were seeded (`seeded` None: all); spans of other tasks are dropped."""
    for span, is_seeded in zip(spans, repeat(True) if seeded is None else seeded, strict=False):
        if span is not None and is_seeded:
            span.end()
