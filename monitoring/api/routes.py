"""`/api/v1`: jobs, services, and runs of groups of spiders."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import Field

from fleet_operations.jobs import jobs, runs
from fleet_operations.jobs.groups import groups_in_file
from fleet_operations.jobs.spider_list import project_spiders
from fleet_operations.overview import Overview
from fleet_operations.seed_urls import seed_urls
from monitoring.source import CachedOverview, Source, readiness
from redis_components.connection import explain
from redis_components.errors import ConfigError, RedisUnavailable, TrawlError, unknown_name
from redis_components.server.names import service_name
from redis_components.server.printable import in_one_line, masked_values
from redis_components.start_tasks.seeding import Pushed
from workers.crawler.orders import check_settings
from workers.fleet.sizes import declared_fleet
from workers.state.group_runs import GroupRun, GroupRuns
from workers.state.jobs import Jobs

from .access import Guesses, Tokens, audited
from .entrance import AsciiJson, Body, Entrance, JobBody, UrlsBody

BY = "the API"
JsonObject = dict[str, Any]


MOST_FAULTS = 5  # wrong values


def create_api(client: redis.Redis, tokens: Tokens, url: str) -> FastAPI:
    """Create the API of the fleet at `client`. Routes are plain functions, so each runs in a thread.

    `/openapi.json` describes it, for clients that may read; there are no documentation pages, which load foreign scripts.
    """
    app = FastAPI(title="Trawl", version="1", openapi_url=None, default_response_class=AsciiJson)
    app.add_middleware(Entrance, guesses=Guesses(tokens))
    _answer_errors(app, url)

    @app.get("/livez", include_in_schema=False)
    async def live() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    look = CachedOverview(Source(url, None).look)

    @app.get("/readyz", include_in_schema=False)
    def ready() -> PlainTextResponse:
        return readiness(look())

    @app.get("/openapi.json", include_in_schema=False)
    def described() -> JsonObject:
        return app.openapi()

    app.include_router(_reading(client, look), prefix="/api/v1")
    app.include_router(_jobs(client), prefix="/api/v1/jobs")
    app.include_router(_services(client), prefix="/api/v1/services/{service}")
    app.include_router(run_routes(client), prefix="/api/v1")
    return app


def _answer_errors(app: FastAPI, url: str) -> None:
    @app.exception_handler(TrawlError)
    async def refused(_request: Request, error: TrawlError) -> JSONResponse:
        code = 400 if isinstance(error, ConfigError) else 503 if isinstance(error, RedisUnavailable) else 409
        return AsciiJson({"error": str(error)}, code)

    @app.exception_handler(redis.RedisError)
    async def away(_request: Request, error: redis.RedisError) -> JSONResponse:
        return AsciiJson({"error": str(explain(error, url))}, 503)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        # Without FastAPI's `input`: JSON may not hold it, or it is a misplaced secret.
        found = [{name: one[name] for name in ("type", "loc", "msg")} for one in error.errors()]
        faults = "; ".join(f"{'.'.join(map(str, one['loc'][1:])) or 'the body'}: {one['msg']}" for one in found[:MOST_FAULTS])
        return AsciiJson({"error": in_one_line(faults), "detail": found}, 422)

    @app.exception_handler(UnicodeEncodeError)
    async def half_a_character(_request: Request, _error: UnicodeEncodeError) -> JSONResponse:
        return AsciiJson({"error": "a text has half a surrogate pair, which is not a character"}, 400)


def _reading(client: redis.Redis, look: Callable[[], Overview]) -> APIRouter:
    routes = APIRouter()

    @routes.get("/jobs")
    def list_jobs(service: str = "") -> list[JsonObject]:
        """List every known job, the newest first."""
        return [jobs.job_fields(job) for job in Jobs(client).newest(service)]

    @routes.get("/jobs/{job}")
    def show_job(job: str) -> JsonObject:
        """Return one job, by its name or id."""
        found = jobs.find(client, job)
        given = {"arguments": masked_values(found.arguments), "settings": masked_values(found.settings)}
        return {**jobs.job_fields(found), **given, "by": found.by}

    @routes.get("/services")
    def list_services() -> list[JsonObject]:
        """List each service with its figures, as `trawl status --json` does."""
        view = look()
        if view.failure:
            raise RedisUnavailable(view.failure)
        return [one.figures() for one in view.services]

    return routes


def _jobs(client: redis.Redis) -> APIRouter:
    routes = APIRouter()

    @routes.post("", status_code=201)
    def start_job(body: JobBody, request: Request) -> JsonObject:
        """Start a job."""
        given = [f"{name}={value}" for name, value in {**body.arguments, **body.settings}.items()]
        with audited(client, request, ["start job", body.service, f"crawlers={body.crawlers}", *given]):
            check_settings(body.settings)
            _check_spider(client, body.service)
            return jobs.job_fields(jobs.start(client, jobs.JobOrder(**body.model_dump(), by=BY)))

    @routes.post("/{job}/cancel")
    def cancel_job(job: str, request: Request) -> JsonObject:
        """End a job; the rest of its queue is kept."""
        with audited(client, request, ["cancel job", job]):
            return jobs.job_fields(jobs.cancel(client, job))

    @routes.post("/{job}/resume")
    def resume_job(job: str, request: Request) -> JsonObject:
        """Go on with a job that is over, where it stopped."""
        with audited(client, request, ["resume job", job]):
            return jobs.job_fields(jobs.resume(client, job))

    return routes


def _check_spider(client: redis.Redis, spider: str) -> None:
    """Raise ConfigError for a name that neither a service has nor a spider of the project, where this machine has that."""
    if service_name(spider) not in declared_fleet(client):
        known: list[str] = []
        with suppress(ConfigError):  # it is not installed here
            known = [one.name for one in project_spiders().spiders]
        if known and spider not in known:
            raise unknown_name("spider", spider, known)


def _services(client: redis.Redis) -> APIRouter:
    routes = APIRouter()

    @routes.post("/urls")
    def seed_service(service: str, body: UrlsBody, request: Request) -> JsonObject:
        """Queue URLs."""
        with audited(client, request, ["seed urls", service, len(body.urls)]):
            last = deque(seed_urls(client, service, body.urls, unique=body.unique), maxlen=1)
            done = last[0] if last else Pushed()
            return {"queued": done.queued, "refused": done.reasons()}

    return routes


class RunBody(Body):
    """A run to start."""

    group: str = Field(description="A group of trawl.toml, or all.")
    spiders: list[str] = Field(default_factory=list, max_length=10_000, description="Only these of its members.")


class RerunBody(Body):
    """Members that are run again."""

    failed: bool = Field(False, description="Only those whose verdict is not sound.")


def run_routes(client: redis.Redis) -> APIRouter:
    """Return the routes of groups and runs. Acts are audited in the words of the command."""
    routes = APIRouter()

    @routes.get("/groups")
    def list_groups() -> list[JsonObject]:
        """List the declared groups, each with its last run."""
        known = GroupRuns(client).newest()
        last = {run.group: runs.run_fields(run) for run in reversed(known)}
        about = ("cron", "timezone", "deadline", "at_once", "overlap", "quota", "files")
        return [
            {"group": name, **{field: getattr(one, field) for field in about}, "last": last.get(name)}
            for name, one in groups_in_file().items()
        ]

    @routes.get("/runs")
    def list_runs(group: str = "") -> list[JsonObject]:
        """List the runs, the newest first."""
        return [runs.run_fields(run) for run in GroupRuns(client).newest(group)]

    @routes.get("/runs/{run}")
    def show_run(run: str) -> JsonObject:
        """Return a run with its members, by its id; latest, or a group: the newest one."""
        found = runs.run_named(client, run)
        return {**runs.run_fields(found), "members": runs.member_fields(client, found)}

    @routes.post("/runs", status_code=201)
    def start_run(body: RunBody, request: Request) -> JsonObject:
        """Start a run of a group, or of some of its members."""
        with audited(client, request, ["run start", "--group", body.group, *body.spiders[:20]]):
            return runs.run_fields(runs.start(client, runs.order(body.group, only=body.spiders, by=BY)))

    @routes.post("/runs/{run}/rerun", status_code=201)
    def rerun_run(run: str, body: RerunBody, request: Request) -> JsonObject:
        """Start a run with the members of one that is over."""
        with audited(client, request, ["run rerun", run, *(["--failed"] if body.failed else [])]):
            return runs.run_fields(runs.rerun(client, run, failed=body.failed, by=BY))

    acts = {
        "pause": lambda name: runs.pause(client, name, by=BY),
        "resume": lambda name: runs.resume(client, name),
        "cancel": lambda name: runs.cancel(client, name, reason=f"cancelled by {BY}"),
    }
    for word, act in acts.items():
        _changing(routes, client, word, act)
    return routes


def _changing(routes: APIRouter, client: redis.Redis, word: str, act: Any) -> None:
    def change_run(run: str, request: Request) -> JsonObject:
        with audited(client, request, [f"run {word}", run]):
            changed: GroupRun = act(run)
            return runs.run_fields(changed)

    change_run.__doc__ = f"{word.capitalize()} a run."
    routes.add_api_route(f"/runs/{{run}}/{word}", change_run, methods=["POST"], name=f"{word}_run")
