"""The addresses of the pages, each read at most once in two seconds, at any rate of requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from fleet_operations.overview import Overview
from fleet_operations.overview.samples import History, Samples, until_now
from monitoring.api.access import Scope
from monitoring.part import part
from monitoring.source import CachedOverview
from redis_components.connection import explain

from . import runs, views
from .charts import StoredRows
from .login import Login
from .rendering import rendered
from .views import NotThere, Reading

PAGE_AGE_S = 2.0
HISTORY_AGE_S = 20.0  # a sample comes each minute
MOST_PAGES = 200
"""Pages that are kept, the oldest goes first."""

# Nothing is loaded from other hosts, no script but ours runs: foreign text in Redis stays text.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # with "no-referrer" browsers send forms with `Origin: null`, as foreign pages can
    "X-Content-Type-Options": "nosniff",
}
Answer = tuple[str, int]


class SharedPages:
    """Pages that were made lately, for all who look at them."""

    def __init__(self) -> None:
        self._pages: OrderedDict[object, CachedOverview[Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], Answer]) -> Answer:
        """Return the page of that key, made again when it is too old; only one is made at a time."""
        with self._lock:
            if key not in self._pages:
                self._pages[key] = CachedOverview(make, max_age_s=PAGE_AGE_S)
            self._pages.move_to_end(key)
            while len(self._pages) > MOST_PAGES:
                self._pages.popitem(last=False)
            shared = self._pages[key]
        return shared()


class Desk:
    """Shared parts of all routes: the readings, the logins, and the rendering of a page."""

    def __init__(self, look: Callable[[], Overview], client: redis.Redis, source: str, url: str, login: Login) -> None:
        self.client, self.login = client, login
        self._look, self._source, self.url = look, source, url
        self._shared = SharedPages()
        self._history = CachedOverview(self._samples, max_age_s=HISTORY_AGE_S)
        self._stored = part().rows()
        self._rows = CachedOverview(self._read_rows, max_age_s=PAGE_AGE_S)

    def reading(self, request: Request) -> Reading:
        """Return the reading for this request."""
        view = self._look()
        return Reading(
            client=self.client,
            source=self._source,
            view=view,
            history=lambda: until_now(self._history(), view),
            rows=self._rows,
            role=self.role(request),
        )

    def _samples(self) -> History:
        try:
            return Samples(self.client).read()
        except (redis.RedisError, OSError):  # the page reports it, without the charts
            return History()

    def _read_rows(self) -> StoredRows:
        self._stored.read()
        return self._stored

    def role(self, request: Request) -> str:
        """Return `act` or `read`, for templates."""
        return "act" if self.login.scope(request) is Scope.ACT else "read"

    def answer(self, request: Request, key: object, make: Callable[[Reading], str], *, is_open: bool = False) -> Response:
        """Return a page that is shared between its viewers; `is_open`: also without a login where no token to read is set."""
        if refused := self.refused(request, is_open=is_open):
            return refused
        scope = self.login.scope(request)
        html, code = self._shared.get((key, scope), lambda: self.made(request, make))
        tag = f'"{blake2b(html.encode(), digest_size=10).hexdigest()}"'
        if code == 200 and request.headers.get("if-none-match") == tag:  # as live.js asks every few seconds
            return Response(status_code=304, headers=HEADERS)
        return HTMLResponse(html, code, headers=HEADERS | {"ETag": tag})

    def refused(self, request: Request, *, is_open: bool = False) -> Response | None:
        """Return a redirection to the login, or a refusal, for a viewer without access."""
        if self.login.scope(request) is not Scope.NOTHING or (is_open and not self.login.tokens.read):
            return None
        if not (self.login.tokens.read or self.login.tokens.act):
            text = "Only the overview is open to other machines: set TRAWL_API_READ_TOKEN to log in from elsewhere."
            return self.message("Log in", text, 403)
        return self.to_login(request)

    def to_login(self, request: Request) -> Response:
        """Redirect to the page to log in, which leads back here."""
        here = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""))
        return RedirectResponse(f"/login?next={here}", 303, headers=HEADERS)

    def made(self, request: Request, make: Callable[[Reading], str]) -> Answer:
        """Return the page and its status; an error is a page, too."""
        try:
            return make(self.reading(request)), 200
        except NotThere as error:
            return self._message("Not found", str(error)), 404
        except (redis.RedisError, OSError) as error:
            return self._message("Redis is away", str(explain(error, self.url))), 503

    def message(self, title: str, text: str, code: int) -> HTMLResponse:
        """Return a page of one sentence."""
        return HTMLResponse(self._message(title, text), code, headers=HEADERS)

    def html(self, template: str, code: int = 200, **values: Any) -> HTMLResponse:
        """Return the page of a template for one viewer alone."""
        return HTMLResponse(rendered(template, source=self._source, **values), code, headers=HEADERS)

    def _message(self, title: str, text: str) -> str:
        return rendered("message.html", title=title, source=self._source, text=text)


def page_routes(desk: Desk) -> APIRouter:
    """Return the routes of the overview and the pages below it; plain functions, so each runs in a thread."""
    routes = APIRouter()

    @routes.get("/")
    def overview(request: Request) -> Response:
        return desk.answer(
            request, "/", lambda found: views.overview(found, is_known=bool(desk.login.scope(request))), is_open=True
        )

    plain: dict[str, Callable[[Reading], str]] = {
        "dead": views.dead,
        "history": views.history,
        "jobs": runs.jobs,
        **part().pages,
    }
    for path, make in plain.items():
        routes.add_api_route(f"/{path}", _plain(desk, path, make), methods=["GET"], name=path)
    named: dict[str, Callable[[Reading, str], str]] = {
        "service": views.service,
        "crawler": views.crawler,
        "run": runs.run,
        **part().named_pages,
    }
    for path, of in named.items():
        routes.add_api_route(f"/{path}/{{name:path}}", _of_name(desk, path, of), methods=["GET"], name=path)

    if more := part().routes:
        routes.include_router(more(desk))

    @routes.get("/live.js")
    def script() -> Response:
        return Response(_SCRIPT.read_bytes(), media_type="text/javascript", headers=HEADERS)

    return routes


_SCRIPT = Path(__file__).parents[1] / "templates" / "live.js"


def _plain(desk: Desk, path: str, make: Callable[[Reading], str]) -> Callable[..., Response]:
    def plain(request: Request) -> Response:
        return desk.answer(request, path, make)

    return plain


def _of_name(desk: Desk, path: str, make: Callable[[Reading, str], str]) -> Callable[..., Response]:
    def named(name: str, request: Request) -> Response:
        return desk.answer(request, (path, name), lambda reading: make(reading, name))

    return named
