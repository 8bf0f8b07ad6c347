"""The part of scrapyd's API that its clients use, on the fleet's jobs: python-scrapyd-api, `curl` in CI go on working.

A scrapyd *project* is the package of a project's settings module (`shop` for `shop.settings`); `default` is the nodes' own one. A
scrapyd *job* is a job of the fleet: `schedule.json` starts it, its id is the end of its name. What is not offered says what is.
Errors are answered as scrapyd does: 200, `{"status": "error", "message": …}`; but 401 and 403 without a valid token.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import redis
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from redis_components.errors import ConfigError, TrawlError, did_you_mean
from redis_components.fleet.jobs import Job, Jobs, JobState
from redis_components.fleet.registry import Registry
from redis_components.fleet.services import ServiceRecord
from redis_components.server.masking import masked_values
from workers.fleet import jobs
from workers.fleet.job_orders import check_settings
from workers.fleet.sizes import declared_fleet, service_in

from .access import audited
from .body import FormFields
from .entrance import AsciiJson

DEFAULT = "default"
"""The project of services that name none."""
LIST_S = 60.0
"""For importing a project on a busy machine; how long its spiders are remembered, too."""
_OWN = frozenset({"project", "spider", "setting", "jobid", "priority", "_version", "_crawlers"})

Fields = Mapping[str, list[str]]
Told = dict[str, Any]
Answer = Callable[[Mapping[str, list[str]], Request], dict[str, Any]]


def scrapyd_routes(client: redis.Redis, read: Callable[..., Any], act: Callable[..., Any]) -> APIRouter:
    """The routes; `read` and `act` check the scope."""
    routes, spiders = APIRouter(include_in_schema=False), _Spiders()

    def answering(path: str, methods: list[str], check: Callable[..., Any], answer: Answer) -> None:
        def route(fields: FormFields, request: Request) -> JSONResponse:
            try:
                told = {"node_name": socket.gethostname(), "status": "ok", **answer(fields, request)}
            except TrawlError as error:
                told = {"node_name": socket.gethostname(), "status": "error", "message": str(error)}
            return AsciiJson(told)

        routes.add_api_route(path, route, methods=methods, dependencies=[Depends(check)])

    def daemon_status(_fields: Fields, _request: Request) -> Told:
        return {kind: len(found) for kind, found in _listed(client, None).items()}

    def list_projects(_fields: Fields, _request: Request) -> Told:
        return {"projects": sorted(_projects(client))}

    def list_versions(fields: Fields, _request: Request) -> Told:
        _project(client, fields)
        return {"versions": []}

    def list_spiders(fields: Fields, _request: Request) -> Told:
        name, module = _project(client, fields)
        services = {one for one in declared_fleet(client) if "." not in one and _project_of(service_in(client, one)) == name}
        return {"spiders": sorted(services | set(spiders.of(module)))}

    def list_jobs(fields: Fields, _request: Request) -> Told:
        return _listed(client, _project(client, fields)[0] if fields.get("project") else None)

    def status(fields: Fields, _request: Request) -> Told:
        return {"currstate": _state(client, jobs.find(client, _one(fields, "job")))}

    def schedule(fields: Fields, request: Request) -> Told:
        given = [f"{name}={value}" for name, values in fields.items() for value in values]
        with audited(client, request, ["schedule.json", *given]):
            return {"jobid": _id(jobs.start(client, _order(client, fields, spiders)))}

    def cancel(fields: Fields, request: Request) -> Told:
        with audited(client, request, ["cancel.json", *fields.get("job", ())]):
            before = jobs.find(client, _one(fields, "job"))
            state = _state(client, before)
            jobs.cancel(client, before.id)
            return {"prevstate": None if before.state.ended else state}

    def not_offered() -> JSONResponse:  # reads no form: an egg is sent as multipart
        told = {"node_name": socket.gethostname(), "status": "error"}
        return AsciiJson(told | {"message": "no code is taken by HTTP: trawl deploy brings it to the nodes (docs/services.md)"})

    looks: dict[str, Answer] = {
        "daemonstatus": daemon_status,
        "listprojects": list_projects,
        "listversions": list_versions,
        "listspiders": list_spiders,
        "listjobs": list_jobs,
        "status": status,
    }
    for path, look in looks.items():
        answering(f"/{path}.json", ["GET"], read, look)
    for path, do in (("schedule", schedule), ("cancel", cancel)):
        answering(f"/{path}.json", ["POST"], act, do)
    for path in ("addversion", "delversion", "delproject"):
        routes.add_api_route(f"/{path}.json", not_offered, methods=["POST"], dependencies=[Depends(act)])
    return routes


def _order(client: redis.Redis, fields: Fields, spiders: _Spiders) -> jobs.JobOrder:
    """What a form of `schedule.json` asks for. Raises ConfigError."""
    name, module = _project(client, fields)
    spider = _one(fields, "spider")
    if (declared := service_in(client, spider)) and _project_of(declared) != name:
        raise ConfigError(f"spider {spider!r} belongs to the project {_project_of(declared)!r}")
    if declared is None and spider not in declared_fleet(client) and (known := spiders.of(module)) and spider not in known:
        raise ConfigError(f"spider '{spider:.100}' not found{did_you_mean(spider, known)}")
    settings = {}
    for pair in fields.get("setting", ()):
        setting, equals, value = pair.partition("=")
        if not (setting and equals):
            raise ConfigError(f"setting {pair!r:.100} is not of the form NAME=VALUE")
        settings[setting] = value
    check_settings(settings)
    crawlers = fields.get("_crawlers", ["1"])[-1]
    if not (crawlers.isascii() and crawlers.isdigit()):
        raise ConfigError(f"_crawlers = {crawlers!r:.100}: must be a whole number")
    return jobs.JobOrder(
        service=spider,
        crawlers=int(crawlers),
        arguments={key: values[-1] for key, values in fields.items() if key not in _OWN},
        settings=settings,
        project=module,
        id=fields.get("jobid", [""])[-1],
        by="the API (schedule.json)",
    )


def _one(fields: Fields, name: str) -> str:
    if not (found := fields.get(name, [""])[-1]):
        raise ConfigError(f"'{name}' parameter is required")  # scrapyd's words
    return found


def _projects(client: redis.Redis) -> dict[str, str]:
    """The settings module of each project, by name."""
    services = (service_in(client, name) for name in declared_fleet(client))
    return {DEFAULT: "", **{_project_of(one): one.project for one in services if one and one.project}}


def _project(client: redis.Redis, fields: Fields) -> tuple[str, str]:
    """Name and settings module of the project that is asked for. Raises ConfigError."""
    name, known = _one(fields, "project"), _projects(client)
    if name not in known:
        raise ConfigError(f"project '{name:.100}' not found; there are {', '.join(sorted(known))}{did_you_mean(name, known)}")
    return name, known[name]


def _project_of(record: ServiceRecord | None) -> str:
    return record.project.partition(".")[0] if record and record.project else DEFAULT


def _id(job: Job) -> str:
    return job.id.rpartition(".")[2]


def _listed(client: redis.Redis, project: str | None) -> Told:
    """The jobs as `listjobs.json` has them; None: of all projects."""
    registry = Registry(client)
    found: dict[str, list[Told]] = {"pending": [], "running": [], "finished": []}
    now = registry.now()
    crawling = {one.spider: one.pid for one in registry.crawlers() if one.alive(now)}
    for job in sorted(Jobs(client).all().values(), key=lambda job: job.started_at):
        of = _project_of(job.declaration)
        if project not in (None, of):
            continue
        one: Told = {"id": _id(job), "project": of, "spider": job.service, "version": None, "args": masked_values(job.arguments)}
        one |= {"settings": masked_values(job.settings), "start_time": _time(job.started_at)}
        if job.state.ended:
            one |= {"end_time": _time(job.ended_at or now), "log_url": None, "items_url": None, "state": str(job.state)}
            found["finished"].append(one)
        elif job.state is JobState.ENDING or job.id in crawling or job.figures.pages:
            found["running"].append(one | {"pid": crawling.get(job.id)})
        else:
            found["pending"].append(one)
    return dict(found)


def _state(client: redis.Redis, job: Job) -> str:
    """`pending`, `running` or `finished`."""
    return next((kind for kind, found in _listed(client, None).items() if _id(job) in [one["id"] for one in found]), "finished")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


class _Spiders:
    """The spiders of projects on this machine, found in a process each: importing a project may do anything."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, list[str]]] = {}

    def of(self, module: str) -> list[str]:
        """Their names; none where the project is not installed here."""
        at, names = self._found.get(module, (0.0, []))
        if not at or time.monotonic() - at > LIST_S:
            names = self._ask(module)
            self._found[module] = (time.monotonic(), names)
        return names

    def _ask(self, module: str) -> list[str]:
        environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": module} if module else {})}
        command = [sys.executable, "-m", "scrapy", "list"]
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIST_S, check=False, text=True
            )
        except (subprocess.TimeoutExpired, OSError):
            return []
        return done.stdout.split() if done.returncode == 0 else []
