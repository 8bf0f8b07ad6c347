"""The addresses of the pages, each read at most once in two seconds, whoever asks how often."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from forums.overview import Overview
from monitoring.page import page
from monitoring.shared_look import SharedLook
from redis_components.connection import explain

from . import views
from .rendering import rendered
from .views import NotThere, Reading

PAGE_AGE_S = 2.0
MOST_PAGES = 200
"""Pages that are kept, the oldest goes first."""

# Nothing is loaded from others, no script but ours runs: what somebody managed to write to Redis stays text.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Answer = tuple[str, int]


class SharedPages:
    """Pages that were made lately, for all who look at them."""

    def __init__(self) -> None:
        self._pages: OrderedDict[object, SharedLook[Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], Answer]) -> Answer:
        """The page of that key, made again when it is too old; only one is made at a time."""
        with self._lock:
            if key not in self._pages:
                self._pages[key] = SharedLook(make, max_age_s=PAGE_AGE_S)
            self._pages.move_to_end(key)
            while len(self._pages) > MOST_PAGES:
                self._pages.popitem(last=False)
            shared = self._pages[key]
        return shared()


def page_routes(look: Callable[[], Overview], client: redis.Redis, source: str, url: str) -> APIRouter:
    """The overview and the pages below it; plain functions, so each runs in a thread."""
    routes, shared = APIRouter(default_response_class=HTMLResponse), SharedPages()

    def answer(key: object, make: Callable[[Reading], str]) -> HTMLResponse:
        html, code = shared.get(key, lambda: _made(Reading(client=client, source=source, view=look()), make, url))
        return HTMLResponse(html, code, headers=HEADERS)

    @routes.get("/")
    def overview() -> HTMLResponse:
        return answer("/", lambda reading: page(reading.view, reading.source))

    plain: dict[str, Callable[[Reading], str]] = {
        "sites": views.sites,
        "dead": views.dead,
        "events": views.events,
        "schedule": views.schedule,
        "jobs": views.jobs,
    }
    for path, make in plain.items():
        routes.add_api_route(f"/{path}", lambda path=path, make=make: answer(path, make), methods=["GET"], name=path)

    named: dict[str, Callable[[Reading, str], str]] = {
        "site": views.site,
        "service": views.service,
        "crawler": views.crawler,
        "node": views.node,
    }
    for path, of in named.items():
        routes.add_api_route(f"/{path}/{{name:path}}", _of_name(path, of, answer), methods=["GET"], name=path)

    @routes.get("/live.js")
    def script() -> Response:
        return Response(_SCRIPT.read_bytes(), media_type="text/javascript", headers=HEADERS)

    return routes


_SCRIPT = Path(__file__).parents[1] / "templates" / "live.js"


def _of_name(path: str, make: Callable[[Reading, str], str], answer: Callable[..., HTMLResponse]) -> Callable[..., Any]:
    def named(name: str) -> HTMLResponse:
        return answer((path, name), lambda reading: make(reading, name))

    return named


def _made(reading: Reading, make: Callable[[Reading], str], url: str) -> Answer:
    try:
        return make(reading), 200
    except NotThere as error:
        return rendered("message.html", title="Not found", source=reading.source, said=str(error), fix=""), 404
    except (redis.RedisError, OSError) as error:
        said = str(explain(error, url))
        return rendered("message.html", title="Redis is away", source=reading.source, said=said, fix=""), 503
