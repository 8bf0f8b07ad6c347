"""The exporter's HTTP routes."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry

from .exposition import CONTENT_TYPE, FleetCollector, exposition
from .page import page
from .reading import Source

# Nothing is loaded from anywhere, no script runs: what somebody managed to write to Redis stays text.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


def create_app(source: Source) -> FastAPI:
    """`/metrics` for Prometheus, `/healthz` for whoever restarts things, `/` for people.

    The routes are plain functions, so each runs in a thread: one that waits for Redis does not hold up the others.
    """
    app = FastAPI(title="Trawl", openapi_url=None)  # without it there are no documentation pages, which load foreign scripts
    registry = CollectorRegistry()
    registry.register(FleetCollector(source.look))

    @app.get("/metrics")
    def metrics() -> Response:
        """200 also when Redis is away: `trawl_redis_up 0` says so, a failed scrape would say that the exporter is down."""
        return Response(exposition(registry), headers={"Content-Type": CONTENT_TYPE})

    @app.get("/healthz")
    def health() -> PlainTextResponse:
        """200 `ok`, or 503 and a line that says why."""
        trouble = source.check()
        return PlainTextResponse(f"{trouble or 'ok'}\n", status_code=503 if trouble else 200)

    @app.get("/")
    def status() -> HTMLResponse:
        return HTMLResponse(page(source.look(), source.name), headers=_PAGE_HEADERS)

    return app
