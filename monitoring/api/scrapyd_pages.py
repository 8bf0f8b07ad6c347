"""The fleet's jobs as scrapyd has them: by project, pending, running or finished, with times and addresses of logs."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

import redis
from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from redis_components.server.masking import masked_values
from workers.logs.lines import LogLine, last_lines
from workers.logs.slot_log import slot_logs
from workers.state.jobs import Job, Jobs, JobState
from workers.state.registry import Registry
from workers.state.services import ServiceRecord

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
_COLUMNS = ("Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Items")


def scrapyd_pages(client: redis.Redis) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        links = "".join(f'<li><a href="{path}">{path}</a></li>' for path in ("/jobs", "/logs/"))
        return _page("Trawl", f"<p>The part of scrapyd's API that its clients use.</p><ul>{links}</ul>")

    @routes.get("/jobs")
    def jobs() -> HTMLResponse:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        found = listed(client, None)
        rows = "\n".join(_row(one) for kind in ("pending", "running") for one in found[kind])
        ended = "\n".join(_row(one) for one in reversed(found["finished"]))
        return _page("Jobs", f"<table>\n<thead><tr>{head}</tr></thead>\n{rows}\n{ended}\n</table>")

    @routes.get("/logs/{path:path}")
    def logs(path: str) -> Response:
        folder, here = f"/logs/{path}", {log_path(job): job for job in in_order(Jobs(client).all()) if _logs(job)}
        if job := here.get(folder):
            return PlainTextResponse("".join(f"{line}\n" for line in _lines(job)), headers=_HEADERS)
        below = [one.removeprefix(folder).partition("/") for one in here if folder.endswith("/") and one.startswith(folder)]
        if path and not below:
            raise HTTPException(404, "no log of a job on this machine has this name: trawl logs, on the node of its crawlers")
        rows = (_file(f"{name}{slash}", count) for count, (name, slash) in enumerate(dict.fromkeys(one[:2] for one in below)))
        return _page(f"Directory listing for {folder}", f"<table>\n{''.join(rows)}</table>")

    return routes


def _page(title: str, body: str) -> HTMLResponse:
    words = escape(title)
    page = f"<!doctype html>\n<html><head><title>{words}</title></head><body>\n<h1>{words}</h1>\n{body}\n</body></html>\n"
    return HTMLResponse(page, headers=_HEADERS)


def _row(job: JsonObject) -> str:
    """Return the row of one job; missing values are empty cells."""
    began, ended = (job[name].partition(".")[0] if job.get(name) else "" for name in ("start_time", "end_time"))
    running = "pid" in job
    began = began if running or ended else ""
    took = str(datetime.fromisoformat(ended) - datetime.fromisoformat(began)) if ended else ""
    url = job.get("log_url")
    log = f'<a href="{escape(url)}">Log</a>' if url else ""
    texts = (job["project"], job["spider"], job["id"], str(job.get("pid") or ""), began, took, ended)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in (*map(escape, texts), log, ''))}</tr>"


def _file(name: str, count: int) -> str:
    kind = "[Directory]" if name.endswith("/") else "[text/plain]"
    cells = (f'<a href="{escape(name)}">{escape(name)}</a>', "", kind, "")
    inside = "".join(f"    <td>{cell}</td>\n" for cell in cells)
    return f'<tr class="{("odd", "even")[count % 2]}">\n{inside}</tr>\n'


def _logs(job: Job) -> list[Any]:
    return [log for (spider, _), log in slot_logs().items() if spider == job.id]


def _lines(job: Job) -> Iterable[str]:
    """Return the last lines of all its crawlers on this machine, in the order of time."""
    merged = heapq.merge(*(last_lines(log, MOST_LINES) for log in _logs(job)), key=lambda line: line.at)
    return [_in_scrapys_format(line) for line in list(merged)[-MOST_LINES:]]


def _in_scrapys_format(line: LogLine) -> str:
    """Format a line as `2026-01-02 03:04:05 [name] INFO: text`."""
    name, colon, text = line.message.partition(": ")
    if not (line.head and colon):
        return line.text
    return f"{line.at} [{name}] {logging.getLevelName(line.level)}: {text}"
