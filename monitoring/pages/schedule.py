"""The schedule and the jobs, as rows of their pages."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from redis_components.server.replies import server_time
from workers.state.schedules import Round, Schedules


@dataclass(frozen=True, kw_only=True)
class ScheduleRow:
    """One entry of the schedule; `refused` is the reason why it is not sent. Times are epoch seconds by Redis's clock."""

    name: str
    task: str = ""
    rhythm: str = ""
    arguments: str = ""
    enabled: bool = False
    origin: str = ""
    last: Round | None = None
    due_at: float | None = None
    refused: str = ""


def schedule_rows(client: redis.Redis) -> list[ScheduleRow]:
    """Return the schedule as the beat that leads would read it now. Loads Celery's application."""
    from tasks import app as celery
    from tasks.beat.schedule import checker, defaults_of, effective, next_due

    celery.loader.import_default_modules()  # also an operator's own tasks
    schedules, now = Schedules(client), server_time(client)
    found = effective(defaults_of(celery.conf.beat_schedule), schedules.stored(), checker(celery.tasks))
    rounds = schedules.rounds()
    rows = []
    for name in sorted({*found.entries, *found.refused}):
        entry, last = found.entries.get(name), rounds.get(name)
        if entry is None:
            rows.append(ScheduleRow(name=name, refused=found.refused[name], last=last))
            continue
        given = [*map(repr, entry.args), *(f"{key}={value!r}" for key, value in entry.kwargs.items())]
        rows.append(
            ScheduleRow(
                name=name,
                task=entry.task,
                rhythm=entry.rhythm,
                arguments=", ".join(given),
                enabled=entry.enabled,
                origin=entry.origin,
                last=last,
                due_at=next_due(entry, last, now) if entry.enabled else None,
                refused=found.refused.get(name, ""),
            )
        )
    return rows
