"""Decides when a scheduled task is due. Pure; by Redis's clock, so a machine's wrong clock cannot repeat or skip a round."""

from __future__ import annotations

from datetime import UTC, datetime

from redis_components.fleet.schedules import Round, RoundState

from .schedule import ScheduledTask, cron_of

# At least so long, although the next round may be sooner: machines' clocks differ, and a worker uses its own.
MIN_EXPIRES_S = 10.0


def next_due(entry: ScheduledTask, last: Round | None, now: float) -> float:
    """Return the time at which the next round of `entry` is due, after `last`; `now` and the result are epoch s.

    Missed rounds are made up by one round. A round whose sending was not confirmed is due again, as the same round. After the
    clock was set back, an interval entry is due at once, and a cron entry counts from `now`.
    """
    return _next_of_cron(entry, last, now) if entry.cron else _next_of_interval(entry.every_s or 0.0, last, now)


def needs_anchor(entry: ScheduledTask, last: Round | None, now: float) -> bool:
    """Return True if a cron entry has no time to count from: the leader has to note `now` (state `seen`), or it would never be
    due.
    """
    return entry.cron is not None and (last is None or last.due > now)


def expires_s(entry: ScheduledTask, now: float) -> float:
    """Return the seconds until a message that is sent now expires: when the next round is due."""
    if entry.cron:
        return max(MIN_EXPIRES_S, _following(entry, now) - now)
    return max(MIN_EXPIRES_S, entry.every_s or 0.0)


def _next_of_interval(every_s: float, last: Round | None, now: float) -> float:
    if last is None:
        return now
    due = last.due if last.state is RoundState.DUE else last.due + every_s
    return due if now - every_s < due <= now + every_s else now


def _next_of_cron(entry: ScheduledTask, last: Round | None, now: float) -> float:
    if last is not None and last.state is RoundState.DUE and last.due <= now:
        return last.due
    starts = [at for at in (last.due if last else 0.0, entry.changed_at) if 0.0 < at <= now]
    due = _following(entry, max(starts, default=now))
    return due if due > now or _following(entry, due) > now else now


def _following(entry: ScheduledTask, after: float) -> float:
    """Return the first time after `after` that the five fields name."""
    start, delta, _ = cron_of(entry).remaining_delta(datetime.fromtimestamp(after, UTC), tz=UTC)
    found: datetime = start + delta
    return found.timestamp()
