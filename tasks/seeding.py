"""Tasks that queue start tasks for the crawlers of any service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis_components.connection import connect
from redis_components.errors import ConfigError

from .app import app


@app.task(name="trawl.seed_urls", ignore_result=False)
def seed_urls(service: str, urls: Sequence[str | dict[str, Any]], unique: bool = False) -> dict[str, Any]:
    """Queue URLs for the crawlers of any service: `["https://…", {"url": "https://…", "meta": {"page": 1}}]`, in this order.

    The fields are those of a start task (docs/start-tasks.md). `unique`: fetch nothing that the crawl's dupefilter
    knows; it does not know what was queued without `unique`, and all are counted as queued. Returns
    `{"queued": 2, "waiting": 17, "refused": {"3": "it is neither a URL …"}}`, where positions begin at 1. Raises ConfigError
    for an unknown service and for `urls` that are not a list, OnHold where the service is being drained.
    """
    from workers.fleet import seed_urls as seeding

    if not isinstance(urls, (list, tuple)):
        raise ConfigError(f'urls = {urls!r:.100}: must be a list of URLs or objects, as in ["https://example.org/"]')
    queued, waiting, refused = 0, 0, {}
    for done in seeding.seed_urls(connect(), service, urls, unique=unique):
        queued, waiting, refused = done.queued, done.waiting, done.refused
    return {"queued": queued, "waiting": waiting, "refused": {str(place): reason for place, reason in refused.items()}}
