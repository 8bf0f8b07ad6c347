"""The part of scrapyd's API that its clients use, on the fleet's jobs: python-scrapyd-api, `curl` in CI go on working.

A scrapyd *project* is the package of a project's settings module (`shop` for `shop.settings`); `default` is the nodes' own one.
A scrapyd *job* is a job of the fleet: `schedule.json` starts it, its id is the end of its name. An unsupported route names its
substitute. Errors are answered as scrapyd does: 200, `{"status": "error", "message": …}`; but 401 and 403 without a valid token.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import redis
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from redis_components.errors import ConfigError, TrawlError, did_you_mean
from redis_components.server.names import service_name
from workers.fleet.sizes import declared_fleet, service_in
from workers.jobs import jobs
from workers.jobs.orders import check_settings
from workers.state.versions import Deployments

from .access import audited
from .body import FormFields
from .entrance import AsciiJson
from .scrapyd_pages import DEFAULT, JsonObject, id_of, listed, project_of, state_of

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

    def daemon_status(_fields: Fields, _request: Request) -> JsonObject:
        return {kind: len(found) for kind, found in listed(client, None).items()}

    def list_projects(_fields: Fields, _request: Request) -> JsonObject:
        return {"projects": sorted(_projects(client))}

    def list_versions(fields: Fields, _request: Request) -> JsonObject:
        return {"versions": _versions(client, _project(client, fields)[0])}

    def list_spiders(fields: Fields, _request: Request) -> JsonObject:
        name, module = _project(client, fields)
        return {"spiders": sorted({*_services(client, name), *spiders.of(module)})}

    def list_jobs(fields: Fields, _request: Request) -> JsonObject:
        return listed(client, _project(client, fields)[0] if fields.get("project") else None)

    def status(fields: Fields, _request: Request) -> JsonObject:
        return {"currstate": state_of(client, jobs.find(client, _one(fields, "job")))}

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
        "daemonstatus": daemon_status,
        "listprojects": list_projects,
        "listversions": list_versions,
        "listspiders": list_spiders,
        "listjobs": list_jobs,
        "status": status,
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


def _services(client: redis.Redis, project: str) -> list[str]:
    """Return the services of a project, without jobs."""
    return [one for one in declared_fleet(client) if "." not in one and project_of(service_in(client, one)) == project]


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
    services = (service_in(client, name) for name in declared_fleet(client))
    return {DEFAULT: "", **{project_of(one): one.project for one in services if one and one.project}}


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
