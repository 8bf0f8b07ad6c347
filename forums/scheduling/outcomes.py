"""Outcome of seeding a forum: a kind for programs, a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from redis_components.start_tasks.seeding import Seeding, SeedOutcome


class Kind(Enum):
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
        return self in (Kind.UNKNOWN, Kind.AMBIGUOUS, Kind.BROKEN_FILE)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome for one forum."""

    kind: Kind
    sentence: str


SEEDED = Outcome(kind=Kind.SEEDED, sentence="seeded")


def sentences(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """Return the sentences by forum, as tasks return them and `--json` prints them."""
    return {forum: outcome.sentence for forum, outcome in outcomes.items()}


def pending(since: float, now: float) -> Outcome:
    """Return the outcome for a forum that is pending since `since` (epoch s of Redis)."""
    return Outcome(kind=Kind.PENDING, sentence=f"pending since {_clock(since, now)}")


def early(due: float, now: float) -> Outcome:
    """Return the outcome for a forum that is due later."""
    return Outcome(kind=Kind.EARLY, sentence=f"not due until {_clock(due, now)}")


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
            return Outcome(kind=Kind.FULL, sentence=f"over the limit of {seeding.at:.0f} pending forums")


def _clock(at: float, now: float) -> str:
    """Format the time, with the date if it is not near."""
    form = "%H:%M:%S UTC" if abs(at - now) < 12 * 3600 else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(at, UTC).strftime(form)
