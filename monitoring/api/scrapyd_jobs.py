"""The fleet's jobs as scrapyd has them: by project, pending, running or finished, with times and addresses of logs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import redis

from redis_components.fleet.jobs import Job, Jobs, JobState
from redis_components.fleet.registry import Registry
from redis_components.fleet.services import ServiceRecord
from redis_components.server.masking import masked_values
from workers.logs.slot_log import slot_logs

DEFAULT = "default"
"""The project of services that name none."""

Told = dict[str, Any]


def project_of(record: ServiceRecord | None) -> str:
    """The name of a service's project."""
    return record.project.partition(".")[0] if record and record.project else DEFAULT


def id_of(job: Job) -> str:
    """What scrapyd calls the job."""
    return job.id.rpartition(".")[2]


def log_path(job: Job) -> str:
    """Where `scrapyd_pages` answers with its log."""
    return f"/logs/{project_of(job.declaration)}/{job.service}/{id_of(job)}.log"


def in_order(jobs: Mapping[str, Job]) -> list[Job]:
    """By the time of their start."""
    return sorted(jobs.values(), key=lambda job: job.started_at)


def listed(client: redis.Redis, project: str | None) -> dict[str, list[Told]]:
    """The jobs as `listjobs.json` has them; None: of all projects."""
    registry = Registry(client)
    found: dict[str, list[Told]] = {"pending": [], "running": [], "finished": []}
    now, logged = registry.now(), {spider for spider, _ in slot_logs()}
    crawling = {one.spider: one.pid for one in registry.crawlers() if one.alive(now)}
    for job in in_order(Jobs(client).all()):
        of = project_of(job.declaration)
        if project not in (None, of):
            continue
        one: Told = {"id": id_of(job), "project": of, "spider": job.service, "version": None}
        one |= {
            "args": masked_values(job.arguments),
            "settings": masked_values(job.settings),
            "start_time": _time(job.started_at),
        }
        files = {"log_url": log_path(job) if job.id in logged else None, "items_url": None}
        if job.state.ended:
            found["finished"].append(one | {"end_time": _time(job.ended_at or now), **files, "state": str(job.state)})
        elif job.state is JobState.ENDING or job.id in crawling or job.figures.pages:
            found["running"].append(one | {"pid": crawling.get(job.id), **files})
        else:
            found["pending"].append(one)
    return found


def state_of(client: redis.Redis, job: Job) -> str:
    """`pending`, `running` or `finished`."""
    return next((kind for kind, found in listed(client, None).items() if id_of(job) in [one["id"] for one in found]), "finished")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
