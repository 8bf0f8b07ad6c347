"""Scheduled tasks: the entries of `celeryconfig.py`, under those of `trawl.toml`, under those set by `trawl schedule`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from celery.schedules import crontab, maybe_schedule

from fleet_operations.jobs.groups import group_entries, zone_of
from redis_components.errors import ConfigError
from redis_components.server.fleet_file import FILE
from workers.application import application
from workers.state.beats import Round, RoundState, StoredEntry, Unreadable, parse_cron, schedule_in_file

MIN_EVERY_S = 1.0  # more often is a loop, not a schedule
MAX_EVERY_S = 366 * 86_400.0
# Without it the fleet does not heal: it cannot be switched off, and its interval can be changed within these bounds (s) alone.
# The application declares such bounds for its tasks (`Round.bounds`).
FLEETS_OWN = {"reconcile_fleet": (1.0, 30.0)}


@dataclass(frozen=True, kw_only=True)
class ScheduledTask:
    """A task that is sent again and again; either `every_s` or `cron` is set."""

    name: str
    task: str
    every_s: float | None = None
    cron: str | None = None  # minute, hour, day of the month, month, day of the week
    timezone: str = "UTC"  # of `cron`
    catch_up: bool = True  # a round that was due while no beat led is made up once
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # of `apply_async`
    enabled: bool = True
    changed_at: float = 0.0  # epoch s, Redis's clock; 0: never
    origin: str = "default"  # or `trawl.toml`, `changed` (one of these), `added`

    @property
    def rhythm(self) -> str:
        """`every 10 s`, or `cron */5 * * * *`."""
        zone = "" if self.timezone == "UTC" else f" {self.timezone}"
        return f"cron {self.cron}{zone}" if self.cron else f"every {self.every_s:g} s"

    @property
    def arguments(self) -> str:
        """Its arguments as Python writes them."""
        return ", ".join([*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.kwargs.items())])


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """All valid entries, and the invalid ones with the reason: an invalid entry does not stop the others."""

    entries: Mapping[str, ScheduledTask]
    refused: Mapping[str, str]


def defaults_of(beat_schedule: Mapping[str, Any]) -> Schedule:
    """Parse the entries of Celery's setting `beat_schedule`, in the forms that make sense here: seconds, timedelta, crontab."""
    entries, refused = {}, {}
    for name, raw in beat_schedule.items():
        try:
            entries[name] = _default(name, dict(raw))
        except (ConfigError, TypeError, KeyError, ValueError) as error:
            refused[name] = f"beat_schedule: {error}"
    return Schedule(entries=entries, refused=refused)


def effective(
    defaults: Schedule, stored: Mapping[str, StoredEntry | Unreadable], check: Callable[[ScheduledTask], None]
) -> Schedule:
    """Return the schedule in effect: `stored` over `trawl.toml` over `defaults`. `check` raises ConfigError for an invalid entry.

    Where an entry of one of them is invalid, the one below it stays.
    """
    entries, refused = {}, dict(defaults.refused)
    for name, entry in defaults.entries.items():
        try:
            check(entry)
            entries[name] = entry
        except ConfigError as error:
            refused[name] = str(error)
    in_file, faults = schedule_in_file()
    of_groups, wrong_groups = group_entries()
    refused |= faults | wrong_groups
    in_file = {**of_groups, **in_file}
    changes: list[tuple[str, StoredEntry | Unreadable, str]] = [(name, change, FILE) for name, change in in_file.items()]
    changes += [(name, one, "changed" if name in {*defaults.entries, *in_file} else "added") for name, one in stored.items()]
    for name, change, origin in changes:
        if isinstance(change, Unreadable):
            refused[name] = change.reason
            continue
        try:
            entry = replace(changed(name, entries.get(name) or defaults.entries.get(name), change), origin=origin)
            check(entry)
            entries[name] = entry
        except ConfigError as error:
            refused[name] = str(error)
    return Schedule(entries=entries, refused=refused)


def changed(name: str, default: ScheduledTask | None, change: StoredEntry) -> ScheduledTask:
    """Return `default` with `change` applied, or a new entry from `change` alone. Raises ConfigError when something
    is missing.
    """
    task = change.task or (default.task if default else None)
    if task is None:
        raise ConfigError(f"{name}: name its task with --task")
    base = default or ScheduledTask(name=name, task=task)
    rhythm: dict[str, Any] = {}
    if change.every_s is not None or change.cron is not None:
        rhythm = {"every_s": change.every_s, "cron": change.cron}
    rhythm |= {name: one for name in ("timezone", "catch_up") if (one := getattr(change, name)) is not None}
    return replace(
        base,
        task=task,
        args=tuple(change.args) if change.args is not None else base.args,
        kwargs=change.kwargs if change.kwargs is not None else base.kwargs,
        enabled=base.enabled if change.enabled is None else change.enabled,
        changed_at=change.changed_at,
        **rhythm,
    )


def checker(tasks: Mapping[str, Any]) -> Callable[[ScheduledTask], None]:
    """Return a function that raises ConfigError for an entry that cannot be sent; `tasks` are the application's, by name."""
    known = sorted(name for name in tasks if not name.startswith("celery."))

    def check(entry: ScheduledTask) -> None:
        if entry.task not in tasks:
            raise ConfigError(f"{entry.name}: unknown task {entry.task!r}; known are {', '.join(known)}")
        _check_rhythm(entry)
        _check_fleets_own(entry)
        header = getattr(tasks[entry.task], "__header__", None)
        try:
            if header is not None:
                header(*entry.args, **entry.kwargs)
        except TypeError as error:
            raise ConfigError(f"{entry.name}: {entry.task} does not take these arguments: {error}") from None

    return check


def _check_rhythm(entry: ScheduledTask) -> None:
    if (entry.every_s is None) == (entry.cron is None):
        raise ConfigError(f"{entry.name}: give its rhythm, with either --every 10s or --cron '*/5 * * * *'")
    if entry.cron is not None:
        try:
            parse_cron(entry.cron)
        except ConfigError as error:
            raise ConfigError(f"{entry.name}: {error}") from None
        zone_of(entry.timezone)
    elif entry.every_s is not None and not MIN_EVERY_S <= entry.every_s <= MAX_EVERY_S:
        raise ConfigError(
            f"{entry.name}: every {entry.every_s:g} s is out of bounds: from {MIN_EVERY_S:g} s to {MAX_EVERY_S / 86_400:g} d"
        )


def _check_fleets_own(entry: ScheduledTask) -> None:
    bounds = FLEETS_OWN | {name: one.bounds for name, one in application().schedule().items() if one.bounds}
    if entry.name not in bounds:
        return
    low, high = bounds[entry.name]
    if entry.every_s is None or not low <= entry.every_s <= high:
        raise ConfigError(
            f"{entry.name} keeps the fleet going: its interval can be changed from {low:g} s to {high:g} s, no more"
        )
    if entry.task != f"trawl.{entry.name}" or entry.args or entry.kwargs or not entry.enabled:
        raise ConfigError(f"{entry.name} keeps the fleet going: only its interval can be changed (--every)")


def _default(name: str, raw: dict[str, Any]) -> ScheduledTask:
    rhythm = raw["schedule"]
    every_s = cron = None
    if isinstance(rhythm, crontab):
        fields = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
        cron = " ".join(str(getattr(rhythm, f"_orig_{field}")) for field in fields)
    else:
        try:
            every_s = maybe_schedule(rhythm).run_every.total_seconds()
        except AttributeError:
            kind = type(rhythm).__name__
            raise ConfigError(f"{name}: a schedule of the kind {kind} is not supported: seconds or crontab are") from None
    given = {key: raw[key] for key in ("args", "kwargs", "options") if raw.get(key)}
    return ScheduledTask(name=name, task=raw["task"], every_s=every_s, cron=cron, **given)


# At least so long, although the next round may be sooner: machines' clocks differ, and a worker uses its own.
MIN_EXPIRES_S = 10.0
LATE_S = 300.0
"""After this long a round was missed, for an entry that makes up none: a beat that restarts is back sooner."""


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
    if due <= now - LATE_S and not entry.catch_up:
        due = _following(entry, now - LATE_S)
    return due if due > now or entry.catch_up is False or _following(entry, due) > now else now


def _following(entry: ScheduledTask, after: float) -> float:
    """Return the first time after `after` that the five fields name, by the entry's clock.

    Where a clock is set forward, a time that it leaves out is the same number of minutes later; where it is set back, a time
    that it has twice is the first one. An entry of each hour, or of many, is not bound to the clock: it goes on in the hour
    that is there twice.
    """
    zone: tzinfo = zone_of(entry.timezone)
    begin = datetime.fromtimestamp(after, zone)
    if (entry.cron or "").split()[1][:1] == "*":
        zone = timezone(begin.utcoffset() or timedelta())
        begin = datetime.fromtimestamp(after, zone)
    parsed = parse_cron(entry.cron or "")
    while True:
        start, delta, _ = parsed.remaining_delta(begin, tz=zone)
        found: datetime = (start + delta).replace(fold=0)
        if found.timestamp() > after:
            return found.timestamp()
        begin = found  # it was in the hour before, which the clock has twice
