"""The spans with which traces begin: one for each start task that is seeded (`workers/process/traces.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from forums.records.start_tasks import ForumTask, PostTask
from workers.process import traces
from workers.process.traces import Span


def begin(tasks: Iterable[ForumTask | PostTask]) -> list[Span | None]:
    """A span for each task, which says so from now on. None where spans are off."""
    spans = []
    for task in tasks:
        thread = task.post if isinstance(task, PostTask) else None
        about = {"trawl.site": task.site, "trawl.forum": task.forum, "trawl.thread": thread, "trawl.mode": task.mode}
        span = traces.begin("seed", about, kind="producer")
        task.traceparent = traces.traceparent_of(span)
        spans.append(span)
    return spans


def end(spans: Sequence[Span | None], seeded: Iterable[bool] | None = None) -> None:
    """The tasks wait for crawlers; of those that were not `seeded` (None: all were) nobody is told."""
    for span, is_seeded in zip(spans, repeat(True) if seeded is None else seeded, strict=False):
        if span is not None and is_seeded:
            span.end()
