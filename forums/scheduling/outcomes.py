"""Outcomes of seeding: a kind for programs and a sentence for people, and the root spans of the traces of what was seeded
(`workers/tracing/traces.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import repeat

from forums.records.start_tasks import ForumTask, PostTask
from redis_components.start_tasks.seeding import Seeding, SeedOutcome
from workers.tracing import traces
from workers.tracing.traces import Span


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


class OutcomeKind(Enum):
    """Kind of the outcome."""

    SEEDED = "its start task is in the queue"
    PENDING = "it waits or is being scanned already"
    EARLY = "it is not due yet"
    OVER_BUDGET = "its site's requests of this hour are spent"
    FULL = "too many forums are pending"
    HELD = "its site or the service is paused, draining or stopped"
    UNKNOWN = "no site has it"
    AMBIGUOUS = "several sites have it"
    BROKEN_FILE = "its site's file cannot be read"

    @property
    def is_refused(self) -> bool:
        """True if the operator must correct its name or its site's file."""
        return self in (OutcomeKind.UNKNOWN, OutcomeKind.AMBIGUOUS, OutcomeKind.BROKEN_FILE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome for one forum."""

    kind: OutcomeKind
    sentence: str


SEEDED = Outcome(kind=OutcomeKind.SEEDED, sentence="seeded")


def sentences(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """Return the sentences by forum, as tasks return them and `--json` prints them."""
    return {forum: outcome.sentence for forum, outcome in outcomes.items()}


def pending(since: float, now: float) -> Outcome:
    """Return the outcome for a forum that is pending since `since` (epoch s of Redis)."""
    return Outcome(kind=OutcomeKind.PENDING, sentence=f"pending since {_clock(since, now)}")


def early(due: float, now: float) -> Outcome:
    """Return the outcome for a forum that is due later."""
    return Outcome(kind=OutcomeKind.EARLY, sentence=f"not due until {_clock(due, now)}")


def of_seeding(seeding: Seeding, now: float) -> Outcome:
    """Return the outcome of a seeding; `now` is Redis's time."""
    match seeding.outcome:
        case SeedOutcome.SEEDED:
            return SEEDED
        case SeedOutcome.PENDING:
            return pending(seeding.at, now)
        case SeedOutcome.EARLY:
            return early(seeding.at, now)
        case SeedOutcome.FULL:
            return Outcome(kind=OutcomeKind.FULL, sentence=f"over the limit of {seeding.at:.0f} pending forums")


def _clock(at: float, now: float) -> str:
    """Format the time, with the date if it is not near."""
    form = "%H:%M:%S UTC" if abs(at - now) < 12 * 3600 else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(at, UTC).strftime(form)
