"""The schedule for operators: what `trawl schedule` and the status page show, and changes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import redis

from redis_components.errors import ConfigError, unknown_name
from redis_components.server.untrusted_values import server_time
from tasks.app import app as celery
from workers.state.beats import Beats, Schedules, StoredEntry

from .schedule import ScheduledTask, changed, checker, defaults_of, effective, next_due


@dataclass(frozen=True, kw_only=True)
class EntryView:
    """One entry now. Times are epoch seconds by Redis's clock."""

    name: str
    entry: ScheduledTask | None
    """None: it is invalid, and not sent."""
    refused: str
    """The reason why the entry, or a change of it, is left out."""
    sent_at: float | None
    due_at: float | None


class ScheduleDesk:
    """The schedule as the beat that leads would read it now."""

    def __init__(self, client: redis.Redis) -> None:
        celery.loader.import_default_modules()  # also an operator's own tasks
        self.tasks = celery.tasks
        self.schedules = Schedules(client)
        found = defaults_of(celery.conf.beat_schedule)
        with_file = effective(found, {}, checker(self.tasks)).entries
        self.defaults = replace(found, entries={**found.entries, **with_file})
        self.now = server_time(client)
        self.beats = Beats(client).look(self.now)
        self.rounds = self.schedules.rounds()
        self.read()

    def read(self) -> None:
        """Read the stored changes."""
        self.stored = self.schedules.stored()
        self.schedule = effective(self.defaults, self.stored, checker(self.tasks))

    def look(self, name: str) -> EntryView:
        """Return one entry, also an invalid one."""
        entry, last = self.schedule.entries.get(name), self.rounds.get(name)
        return EntryView(
            name=name,
            entry=entry,
            refused=self.schedule.refused.get(name, ""),
            sent_at=last.sent_at if last and last.sent_at else None,
            due_at=next_due(entry, last, self.now) if entry and entry.enabled else None,
        )

    def names(self) -> list[str]:
        """Return every entry, also invalid ones."""
        return sorted({*self.schedule.entries, *self.schedule.refused})

    def unknown(self, name: str) -> ConfigError:
        """Return the error for a name that no entry has."""
        return unknown_name("entry", name, self.names())

    def known(self, name: str) -> ScheduledTask:
        """Return the entry of that name. Raises ConfigError."""
        if name in self.schedule.entries:
            return self.schedule.entries[name]
        if name in self.schedule.refused:
            raise ConfigError(f"{self.schedule.refused[name]}; correct it with `trawl schedule set`, or remove it")
        raise self.unknown(name)

    def change(self, name: str, **given: Any) -> None:
        """Store a valid entry. Raises ConfigError."""
        if name not in self.names() and not given.get("task"):
            raise ConfigError(f"{self.unknown(name)}; a new one needs --task")
        before = self.stored.get(name)
        entry = before if isinstance(before, StoredEntry) else StoredEntry()
        if given.get("every_s") is not None or given.get("cron") is not None:
            entry = msgspec.structs.replace(entry, every_s=None, cron=None)
        entry = msgspec.structs.replace(entry, **{key: value for key, value in given.items() if value is not None})
        checker(self.tasks)(changed(name, self.defaults.entries.get(name), entry))
        self.schedules.set(name, entry)
        self.read()
