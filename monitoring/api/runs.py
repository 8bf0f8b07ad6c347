"""`/api/v1/groups` and `/api/v1/runs`: groups of spiders, and their runs with a verdict for each member."""

from __future__ import annotations

from typing import Any

import redis
from fastapi import APIRouter, Request
from pydantic import Field

from workers.jobs import runs
from workers.jobs.groups import groups_in_file
from workers.state.group_runs import GroupRun, GroupRuns

from .access import audited
from .entrance import Body

BY = "the API"
JsonObject = dict[str, Any]


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
