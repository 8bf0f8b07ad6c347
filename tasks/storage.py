"""Tasks that store scraped items in the database."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from redis_components.connection import connect
from workers.fleet.sizes import declared_fleet

from .app import app


@app.task(name="trawl.store_items")
def store_items() -> dict[str, dict[str, Any]]:
    """Move the items of services whose consumer is the forum writer into the database; returns what was written, by service.

    One at a time: a second one finds it busy.
    """
    from forums.writer.store import store

    client = connect()
    return {service: asdict(report) for service, report in store(client, declared_fleet(client)).items()}
