"""The overview of the fleet as `trawl status --json` shows it: names as in the tables, times in ISO 8601."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cli.commands.autoscale import autoscaled_json
from cli.commands.roll import roll_json
from forums.overview import Overview, ServiceView, problems
from redis_components.server.replies import as_text
from workers.state.quarantine import Foreign
from workers.state.registry import CrawlerRecord

from .holds import held_json, sites_json
from .nodes import node_json
from .output import iso

ERRORS_SHOWN = 5


def overview_json(view: Overview) -> dict[str, Any]:
    """All of it."""
    return {
        "at": iso(view.now),
        "problems": [asdict(one) for one in problems(view)],
        "unreadable": dict(view.unreadable),
        "held": [held_json(one) for one in view.held],
        "sites": sites_json(view.sites),
        "another_database": view.another_database,
        "dead_messages": view.dead_messages,
        "redis": [asdict(one) for one in view.server],
        "foreign": [foreign_json(one) for one in view.foreign],
        "services": [_service_json(one) for one in view.services],
        "beat": {**asdict(view.beats), "stalled": view.beats.stalled} if view.beats else None,
        "crawlers": [_crawler_json(one, view.now) for one in view.crawlers],
        "nodes": [node_json(one, view.now) for one in view.nodes],
        "no_room": dict(view.shortages),
        "roll": roll_json(view.roll) if view.roll else None,
        "autoscaled": [autoscaled_json(name, one, view.size_of(name)) for name, one in view.autoscaled.items()],
        "errors": [
            {"at": iso(one.at), "where": one.where, "what": one.what, "times": one.times} for one in view.errors[:ERRORS_SHOWN]
        ],
    }


def foreign_json(one: Foreign) -> dict[str, Any]:
    """One foreign value as `--json` shows it; a field of null: the key itself has another type, or it is an entry of a list."""
    return {
        "key": one.key,
        "field": None if one.field is None else as_text(one.field),
        "value": as_text(one.value)[:200],
        "reason": one.reason,
    }


def _service_json(view: ServiceView) -> dict[str, Any]:
    crawl = view.crawl
    return {
        "service": view.name,
        "desired": view.desired,
        "alive": view.alive,
        "state": view.state or None,
        "fault": view.fault or None,
        "start_tasks": crawl.start_tasks,
        "ready": crawl.ready,
        "leased": crawl.leased,
        "leased_tasks": crawl.leased_tasks,
        "parked": crawl.parked,
        "parked_tasks": crawl.parked_tasks,
        "overflow": crawl.overflow,
        "backlog": crawl.backlog,
        "thread_records": crawl.thread_records,
        "dead": crawl.dead,
        "items_waiting": view.items_waiting,
        "bad_items": view.items_refused,
        "items_counted_for": view.items_of or None,
        "redis": crawl.redis or None,
        "item_bytes": crawl.item_bytes,
        "item_consumer": crawl.consumer or None,
        "items_limit": crawl.max_items or None,
        "items_limit_bytes": crawl.max_item_bytes or None,
        "items_backed_up": crawl.backed_up,
        "pages": view.pages,
        "pages_per_s": view.pages_per_s,
        "items": view.scraped,
        "retried": view.retried,
        "reclaimed": crawl.reclaimed,
    }


def _crawler_json(record: CrawlerRecord, now: float) -> dict[str, Any]:
    fields = asdict(record)
    beat_at, started_at, last_exit_at = fields.pop("beat_at"), fields.pop("started_at"), fields.pop("last_exit_at")
    return {
        "crawler": record.name,
        "alive": record.alive(now),
        **fields,
        "started_at": iso(started_at) if started_at else None,
        "last_exit_at": iso(last_exit_at) if last_exit_at else None,
        "heartbeat_age_s": round(now - beat_at, 1),
    }
