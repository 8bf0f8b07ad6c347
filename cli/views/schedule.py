"""The schedule as beat would read it now: what `trawl schedule` shows and changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec
import redis
from rich.text import Text

from cli.access.redis import redis_client
from redis_components.errors import ConfigError, unknown_name
from redis_components.server.untrusted_values import server_time
from tasks import app as celery
from tasks.beat.schedule import ScheduledTask, changed, checker, defaults_of, effective, next_due
from tasks.routing import IMPATIENT
from workers.state.beats import Beats
from workers.state.schedules import Schedules, StoredEntry

from .output import duration, iso
from .tables import Column, FittedTable


class Desk:
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
        """Hear what was changed."""
        self.stored = self.schedules.stored()
        self.schedule = effective(self.defaults, self.stored, checker(self.tasks))

    def names(self) -> list[str]:
        """Every entry, also those that are left out."""
        return sorted({*self.schedule.entries, *self.schedule.refused})

    def unknown(self, name: str) -> ConfigError:
        """The error for a name that no entry has."""
        return unknown_name("entry", name, self.names())

    def known(self, name: str) -> ScheduledTask:
        """The entry of that name. Raises ConfigError."""
        if name in self.schedule.entries:
            return self.schedule.entries[name]
        if name in self.schedule.refused:
            raise ConfigError(f"{self.schedule.refused[name]}; correct it with `trawl schedule set`, or remove it")
        raise self.unknown(name)

    def send(self, entry: ScheduledTask) -> Any:
        """Send its task now; returns the `AsyncResult`. Raises kombu's OperationalError, within seconds."""
        with celery.connection_for_write(transport_options=IMPATIENT) as broker:
            options = {**entry.options, "connection": broker, "retry": False, "ignore_result": True}  # nobody waits for it
            return self.tasks[entry.task].apply_async(entry.args, dict(entry.kwargs), **options)

    def change(self, name: str, **given: Any) -> None:
        """Store it, if it can be. Raises ConfigError."""
        if name not in self.names() and not given.get("task"):
            raise ConfigError(f"{self.unknown(name)}; a new one needs --task")
        before = self.stored.get(name)
        entry = before if isinstance(before, StoredEntry) else StoredEntry()
        if given.get("every_s") is not None or given.get("cron") is not None:
            entry = msgspec.structs.replace(entry, every_s=None, cron=None)
        entry = msgspec.structs.replace(entry, **{key: value for key, value in given.items() if value is not None})
        checker(self.tasks)(changed(name, self.defaults.entries.get(name), entry))
        self.schedules.put(name, entry)
        self.read()


@contextmanager
def open_desk() -> Iterator[Desk]:
    """Raises RedisUnavailable for every error of Redis within the block."""
    with redis_client() as client:
        yield Desk(client)


def row_of(desk: Desk, name: str) -> dict[str, Any]:
    """One entry for `--json`; `refused` says why one, or what was changed about it, is left out."""
    entry, last = desk.schedule.entries.get(name), desk.rounds.get(name)
    row: dict[str, Any] = {"entry": name, "refused": desk.schedule.refused.get(name)}
    if entry is not None:
        due = next_due(entry, last, desk.now) if entry.enabled else None
        row |= {
            "task": entry.task,
            "every_s": entry.every_s,
            "cron": entry.cron,
            "args": list(entry.args),
            "kwargs": dict(entry.kwargs),
            "enabled": entry.enabled,
            "origin": entry.origin,
            "last_sent": iso(last.sent_at) if last and last.sent_at else None,
            "sent_s_ago": round(desk.now - last.sent_at, 1) if last and last.sent_at else None,
            "next_due": iso(due) if due is not None else None,
            "due_in_s": round(due - desk.now, 1) if due is not None else None,
        }
    return row


def table_of(rows: list[dict[str, Any]]) -> FittedTable:
    """The same for people."""
    columns = (
        Column(name="entry"),
        Column(name="task", least=20, rank=4),
        Column(name="when", rank=1),
        Column(name="last sent", right=True, rank=2),
        Column(name="next due", right=True),
        Column(name="state", least=12, rank=3, below=True),
    )
    return FittedTable(columns, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> tuple[str | Text, ...]:

    if "task" not in row:
        return row["entry"], "-", "-", "-", "-", Text(f"left out: {row['refused']}", style="bold red")
    arguments = ", ".join([json.dumps(one) for one in row["args"]] + [f"{k}={json.dumps(v)}" for k, v in row["kwargs"].items()])
    state = "disabled" if not row["enabled"] else "" if row["origin"] == "default" else row["origin"]
    if row["refused"]:
        state = f"what was changed is left out: {row['refused']}"
    return (
        row["entry"],
        f"{row['task']}({arguments})" if arguments else row["task"],
        f"cron {row['cron']}" if row["cron"] else f"every {row['every_s']:g} s",
        "never" if row["last_sent"] is None else f"{duration(row['sent_s_ago'])} ago",
        "-" if row["next_due"] is None else "now" if row["due_in_s"] <= 0 else f"in {duration(row['due_in_s'])}",
        Text(state, style="bold red" if row["refused"] else "yellow" if not row["enabled"] else "dim"),
    )
