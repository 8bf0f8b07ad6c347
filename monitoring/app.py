"""The exporter's HTTP routes."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response

from .api.access import NO_TOKENS, Tokens
from .client_limits import LOOPBACK, HostCheck
from .metrics.exposition import CONTENT_TYPE, text_of
from .pages.action_routes import action_routes, login_routes
from .pages.login import Login
from .pages.routes import Desk, page_routes
from .source import CachedOverview, Source, readiness


def create_app(source: Source, *, hosts: Collection[str] = LOOPBACK, tokens: Tokens = NO_TOKENS) -> FastAPI:
    """Create the application: `/metrics` for Prometheus, `/livez` for orchestrators, `/readyz` for monitoring, the
    pages for people; `tokens` open them to clients from other machines, and allow acts.

    Only for requests that name one of `hosts`. The routes are plain functions, so each runs in a thread. Redis is read once a
    second at most, at any rate of requests.
    """
    app = FastAPI(title="Trawl", openapi_url=None)  # without it there are no documentation pages, which load foreign scripts
    app.add_middleware(HostCheck, allowed=hosts)
    look = CachedOverview(source.look)

    @app.get("/metrics")
    def metrics() -> Response:
        """Answer 200 also when Redis is away: `trawl_redis_up 0` shows that; a failed scrape would mean that the exporter is
        down.
        """
        return Response(text_of(look()), headers={"Content-Type": CONTENT_TYPE})

    @app.get("/livez")
    async def live() -> PlainTextResponse:
        """Answer 200 `ok`, from the event loop itself and without Redis: for a health check, which may restart this process."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz")
    def ready() -> PlainTextResponse:
        """Answer 200 `ok` while the fleet works, or 503 and a line for each fault, with the next step."""
        return readiness(look())

    desk = Desk(look, source.client, source.name, source.url, Login(tokens))
    app.include_router(login_routes(desk))
    app.include_router(action_routes(desk))
    app.include_router(page_routes(desk))
    return app
