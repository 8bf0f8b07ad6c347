"""scrapyd's pages, which its clients fetch and read: `/` (is it there?), `/jobs` (ScrapydWeb's list), `/logs/` (SpiderKeeper,
ScrapydWeb, LogParser). Rows and cells are where those programs look for them; people have `trawl jobs` and the status page.

A log is that of a job's crawlers on this machine, its lines in Scrapy's own form: LogParser knows no other.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from html import escape
from typing import Any

import redis
from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from redis_components.fleet.jobs import Job, Jobs
from workers.logs.lines import LogLine
from workers.logs.slot_log import slot_logs
from workers.logs.tail import last_lines

from .scrapyd_jobs import Told, in_order, listed, log_path

MOST_LINES = 20_000
"""Of one log, the last ones."""
_HEADERS = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
_COLUMNS = ("Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Items")


def scrapyd_pages(client: redis.Redis, read: Callable[..., Any]) -> APIRouter:
    """The routes; `read` checks the scope."""
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(read)])

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


def _row(job: Told) -> str:
    """One job; what it has not got yet is an empty cell."""
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
    """The last lines of all its crawlers on this machine, in the order of time."""
    merged = heapq.merge(*(last_lines(log, MOST_LINES) for log in _logs(job)), key=lambda line: line.at)
    return [_as_scrapy_says_it(line) for line in list(merged)[-MOST_LINES:]]


def _as_scrapy_says_it(line: LogLine) -> str:
    """`2026-01-02 03:04:05 [name] INFO: text`."""
    name, colon, text = line.message.partition(": ")
    if not (line.head and colon):
        return line.text
    return f"{line.at} [{name}] {logging.getLevelName(line.level)}: {text}"
