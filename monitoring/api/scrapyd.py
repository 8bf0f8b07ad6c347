"""The part of scrapyd's API that its clients use, on the fleet's jobs, and scrapyd's pages of jobs and logs:
python-scrapyd-api and `curl` in CI go on working.

A scrapyd *project* is the package of a project's settings module (`shop` for `shop.settings`); `default` is the nodes' own one.
A scrapyd *job* is a job of the fleet: `schedule.json` starts it, its id is the end of its name. An unsupported route names its
substitute. Errors are answered as scrapyd does: 200, `{"status": "error", "message": …}`; but 401 and 403 without a valid token.
"""

from __future__ import annotations

import heapq
import logging
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import redis
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from monitoring.pages.rendering import rendered
from redis_components.errors import ConfigError, TrawlError, did_you_mean
from redis_components.server.names import service_name
from redis_components.server.printable import masked_values
from workers.fleet.sizes import declarations, declared_fleet, service_in
from workers.jobs import jobs
from workers.jobs.orders import check_settings, pairs
from workers.jobs.spider_list import project_spiders
from workers.logs.slot_log import LogLine, SlotLog, last_lines, slot_logs
from workers.state.jobs import Job, Jobs, JobState
from workers.state.registry import Registry
from workers.state.services import Deployments, ServiceRecord

from .access import audited
from .entrance import AsciiJson, FormFields

DEFAULT = "default"
"""The project of services that name none."""

JsonObject = dict[str, Any]


def project_of(record: ServiceRecord | None) -> str:
    """Return the name of a service's project."""
    return record.project.partition(".")[0] if record and record.project else DEFAULT


def id_of(job: Job) -> str:
    """Return scrapyd's id of the job."""
    return job.id.rpartition(".")[2]


def log_path(job: Job) -> str:
    """Return the path at which `scrapyd_pages` serves its log."""
    return f"/logs/{project_of(job.declaration)}/{job.service}/{id_of(job)}.log"


def in_order(jobs: Mapping[str, Job]) -> list[Job]:
    """Sort jobs by the time of their start."""
    return sorted(jobs.values(), key=lambda job: job.started_at)


def listed(client: redis.Redis, project: str | None) -> dict[str, list[JsonObject]]:
    """Return the jobs as `listjobs.json` has them; None: of all projects."""
    registry = Registry(client)
    found: dict[str, list[JsonObject]] = {"pending": [], "running": [], "finished": []}
    now, logged = registry.now(), {spider for spider, _ in slot_logs()}
    crawling = {one.spider: one.pid for one in registry.crawlers() if one.alive(now)}
    for job in in_order(Jobs(client).all()):
        of = project_of(job.declaration)
        if project not in (None, of):
            continue
        one: JsonObject = {"id": id_of(job), "project": of, "spider": job.service, "version": None}
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
    """Return `pending`, `running` or `finished`."""
    return next((kind for kind, found in listed(client, None).items() if id_of(job) in [one["id"] for one in found]), "finished")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


MOST_LINES = 20_000
"""Most lines of one log, the last ones."""
_HEADERS = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}


def scrapyd_pages(client: redis.Redis) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        return _page("Trawl")

    @routes.get("/jobs")
    def jobs() -> HTMLResponse:
        found = listed(client, None)
        return _page("Jobs", jobs=[*map(_row, (*found["pending"], *found["running"], *reversed(found["finished"])))])

    @routes.get("/logs/{path:path}")
    def logs(path: str) -> Response:
        folder, known = f"/logs/{path}", defaultdict[str, list[SlotLog]](list)
        for (spider, _), log in slot_logs().items():
            known[spider].append(log)
        here = {log_path(job): job for job in in_order(Jobs(client).all()) if job.id in known}
        if job := here.get(folder):
            return PlainTextResponse("".join(f"{line}\n" for line in _lines(known[job.id])), headers=_HEADERS)
        below = [one.removeprefix(folder).partition("/") for one in here if folder.endswith("/") and one.startswith(folder)]
        if path and not below:
            raise HTTPException(404, "no log of a job on this machine has this name: trawl logs, on the node of its crawlers")
        return _page(
            f"Directory listing for {folder}", files=[name + slash for name, slash in dict.fromkeys(one[:2] for one in below)]
        )

    return routes


def _page(title: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(rendered("scrapyd.html", title=title, **{"jobs": None, "files": None, **values}), headers=_HEADERS)


def _row(job: JsonObject) -> JsonObject:
    """Return the row of one job; missing values are empty cells."""
    began, ended = (job[name].partition(".")[0] if job.get(name) else "" for name in ("start_time", "end_time"))
    began = began if "pid" in job or ended else ""
    took = str(datetime.fromisoformat(ended) - datetime.fromisoformat(began)) if ended else ""
    texts = (job["project"], job["spider"], job["id"], str(job.get("pid") or ""), began, took, ended)
    return {"texts": texts, "log": job.get("log_url")}


def _lines(logs: Iterable[SlotLog]) -> Iterable[str]:
    """Return the last lines of a job's crawlers on this machine, in the order of time."""
    merged = heapq.merge(*(last_lines(log, MOST_LINES) for log in logs), key=lambda line: line.at)
    return [_in_scrapys_format(line) for line in list(merged)[-MOST_LINES:]]


def _in_scrapys_format(line: LogLine) -> str:
    """Format a line as `2026-01-02 03:04:05 [name] INFO: text`."""
    name, colon, text = line.message.partition(": ")
    if not (line.head and colon):
        return line.text
    return f"{line.at} [{name}] {logging.getLevelName(line.level)}: {text}"


LIST_S = 60.0
"""For importing a project on a busy machine; how long its spiders are remembered, too."""
_OWN = frozenset({"project", "spider", "setting", "jobid", "priority", "_version", "_crawlers"})

Fields = Mapping[str, list[str]]
Answer = Callable[[Fields, Request], JsonObject]


def scrapyd_routes(client: redis.Redis, spiders: Spiders) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)

    def answering(path: str, method: str, answer: Answer) -> None:
        def route(fields: FormFields, request: Request) -> JSONResponse:
            try:
                reply = {"node_name": socket.gethostname(), "status": "ok", **answer(fields, request)}
            except TrawlError as error:
                reply = {"node_name": socket.gethostname(), "status": "error", "message": str(error)}
            return AsciiJson(reply)

        routes.add_api_route(path, route, methods=[method])

    def schedule(fields: Fields, request: Request) -> JsonObject:
        given = [f"{name}={value}" for name, values in fields.items() for value in values]
        with audited(client, request, ["schedule.json", *given]):
            return {"jobid": id_of(jobs.start(client, _order(client, fields, spiders)))}

    def cancel(fields: Fields, request: Request) -> JsonObject:
        with audited(client, request, ["cancel.json", *fields.get("job", ())]):
            before = jobs.find(client, _one(fields, "job"))
            state = state_of(client, before)
            jobs.cancel(client, before.id)
            return {"prevstate": None if before.state.ended else state}

    def not_offered() -> JSONResponse:  # reads no form: an egg is sent as multipart
        reply = {"node_name": socket.gethostname(), "status": "error"}
        return AsciiJson(reply | {"message": "no code is taken by HTTP: trawl deploy brings it to the nodes (docs/services.md)"})

    looks: dict[str, Answer] = {
        "daemonstatus": lambda _fields, _: {kind: len(found) for kind, found in listed(client, None).items()},
        "listprojects": lambda _fields, _: {"projects": sorted(_projects(client))},
        "listversions": lambda fields, _: {"versions": _versions(client, _project(client, fields)[0])},
        "listspiders": lambda fields, _: {"spiders": _spiders(client, spiders, *_project(client, fields))},
        "listjobs": lambda fields, _: listed(client, _project(client, fields)[0] if fields.get("project") else None),
        "status": lambda fields, _: {"currstate": state_of(client, jobs.find(client, _one(fields, "job")))},
    }
    for path, look in looks.items():
        answering(f"/{path}.json", "GET", look)
    for path, do in (("schedule", schedule), ("cancel", cancel)):
        answering(f"/{path}.json", "POST", do)
    for path in ("addversion", "delversion", "delproject"):
        routes.add_api_route(f"/{path}.json", not_offered, methods=["POST"])
    return routes


def _order(client: redis.Redis, fields: Fields, spiders: Spiders) -> jobs.JobOrder:
    """Parse the order of a `schedule.json` form. Raises ConfigError."""
    name, module = _project(client, fields)
    spider = _one(fields, "spider")
    if (declared := service_in(client, spider)) and project_of(declared) != name:
        raise ConfigError(f"spider {spider!r} belongs to the project {project_of(declared)!r}")
    spiders.check(client, spider, module)
    version, current = fields.get("_version", [""])[-1], Deployments(client).of(spider).current
    if version and version != current:
        raise ConfigError(f"_version = {version!r:.100}: the crawlers of {spider} have {current or 'none'}")
    settings = pairs("setting", fields.get("setting"))
    check_settings(settings)
    crawlers = fields.get("_crawlers", ["1"])[-1]
    if not (crawlers.isascii() and crawlers.isdigit() and len(crawlers) < 10):
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


def _services(client: redis.Redis, project: str) -> list[str]:
    """Return the services of a project, without jobs."""
    return [name for name, one in declarations(client).items() if "." not in name and project_of(one.record) == project]


def _spiders(client: redis.Redis, spiders: Spiders, project: str, module: str) -> list[str]:
    return sorted({*_services(client, project), *spiders.of(module)})


def _versions(client: redis.Redis, project: str) -> list[str]:
    """Return the deployed versions of a project's services, the newest last."""
    found = {one.name: one.at for service in _services(client, project) for one in Deployments(client).of(service).versions}
    return sorted(found, key=lambda name: found[name])


def _one(fields: Fields, name: str) -> str:
    if not (found := fields.get(name, [""])[-1]):
        raise ConfigError(f"'{name}' parameter is required")  # scrapyd's words
    return found


def _projects(client: redis.Redis) -> dict[str, str]:
    """Return the settings module of each project, by name."""
    of_jobs = (job.declaration for job in Jobs(client).open().values())
    records = (*(one.record for one in declarations(client).values()), *of_jobs)
    return {DEFAULT: "", **{project_of(one): one.project for one in records if one.project}}


def _project(client: redis.Redis, fields: Fields) -> tuple[str, str]:
    """Name and settings module of the project that is asked for. Raises ConfigError."""
    name, known = _one(fields, "project"), _projects(client)
    if name not in known:
        raise ConfigError(f"project '{name:.100}' not found; there are {', '.join(sorted(known))}{did_you_mean(name, known)}")
    return name, known[name]


class Spiders:
    """The spiders of projects on this machine, found in a process each: importing a project may do anything."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, list[str]]] = {}

    def check(self, client: redis.Redis, spider: str, module: str = "") -> None:
        """Raise ConfigError for a name that neither a service has nor a spider of the project, where this machine has that."""
        service_name(spider)
        declared = service_in(client, spider) is not None or spider in declared_fleet(client)
        if not declared and (known := self.of(module)) and spider not in known:
            raise ConfigError(f"spider '{spider:.100}' not found{did_you_mean(spider, known)}")

    def of(self, module: str) -> list[str]:
        """Return the names of a project's spiders; none where the project is not installed here."""
        at, names = self._found.get(module, (0.0, []))
        if not at or time.monotonic() - at > LIST_S:
            names = []
            with suppress(ConfigError):  # it is not installed here
                names = [one.name for one in project_spiders(module).spiders]
            self._found[module] = (time.monotonic(), names)
        return names
