"""Grafana's dashboards, as JSON: `python -m monitoring.dashboards FOLDER` writes them (`make docs` does).

Three: the fleet (is everything there?), crawls (does work come through?) and sites (is it fresh and welcome?). A panel is a
title, a sentence on how to read it, and queries by the legend that each line gets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIDTH = 24  # columns of Grafana's grid
HEIGHT = 7
SOURCE = {"type": "prometheus", "uid": "trawl"}
"""As deploy/grafana/provisioning/datasources names it."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One chart, or one figure."""

    title: str
    description: str  # how to read it
    queries: Mapping[str, str]  # legend -> PromQL
    unit: str = "short"  # of Grafana's list
    kind: str = "timeseries"  # or "stat"
    width: int = 8
    bad_from: float | None = None  # red from this value on


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """One page of panels, with a choice of values of one label."""

    name: str  # of the file, and in the address
    title: str
    choice: str = ""  # label
    choice_of: str = ""  # metric that has it
    panels: tuple[Panel, ...] = field(default_factory=tuple)


def _stat(title: str, description: str, query: str, *, bad_from: float | None = None, unit: str = "short") -> Panel:
    return Panel(title=title, description=description, queries={"": query}, unit=unit, kind="stat", width=4, bad_from=bad_from)


_STATUS = "collector_downloader_response_status_count"
_SERVICE = 'service=~"$service"'
_SITE = 'site=~"$site"'
_ZERO = f"0 * trawl_forums_stale{{{_SITE}}}"  # a line at 0 for each site: that nothing is wrong is not "no data"

DASHBOARDS = (
    Dashboard(
        name="trawl-fleet",
        title="Trawl: fleet",
        panels=(
            _stat(
                "Redis",
                "1: it answers. While it is away crawlers wait and lose nothing.",
                "min(trawl_redis_up)",
            ),
            _stat(
                "Beat",
                "Seconds since the last task was sent; a healthy one sends each second.",
                "max(trawl_beat_silence_seconds)",
                bad_from=60,
                unit="s",
            ),
            _stat(
                "Crawlers missing",
                "Fewer than desired. Mended within seconds where a node has room.",
                "sum(trawl_crawlers_desired) - sum(trawl_crawlers_up)",
                bad_from=1,
            ),
            _stat(
                "Given up",
                "Slots that are left alone: trawl status has the reason.",
                'sum(trawl_crawlers{state=~"crash-looping|refused"}) or vector(0)',
                bad_from=1,
            ),
            _stat("Dead requests", "Given up, kept with their reasons: trawl dead.", "sum(trawl_dead_requests)", bad_from=1),
            _stat("Messages set aside", "No worker could run them: trawl dead messages.", "max(trawl_dead_messages)", bad_from=1),
            Panel(
                title="Crawlers by state",
                description="All alive: one line for each service, as high as desired.",
                queries={"{{service}} {{state}}": "sum by (service, state) (trawl_crawlers) > 0"},
            ),
            Panel(
                title="Restarts in an hour",
                description="A limit of age or memory makes some; a rising line is a crash.",
                queries={"{{service}}/{{crawler}}": "increase(trawl_crawler_restarts_total[1h])"},
            ),
            Panel(
                title="Nodes: places and crawlers",
                description="Where both lines meet there is no room for more.",
                queries={"{{node}} places": "trawl_node_capacity", "{{node}} crawlers": "trawl_node_crawlers"},
            ),
            Panel(
                title="Memory of crawlers",
                description="Resident memory; a crawler ends gracefully at its limit.",
                queries={"{{service}}/{{crawler}}": "trawl_crawler_resident_memory_bytes"},
                unit="bytes",
            ),
            Panel(
                title="Lag of reactors",
                description="How long an event loop took to answer: high where callbacks compute.",
                queries={"{{service}}/{{crawler}}": "trawl_crawler_reactor_lag_seconds"},
                unit="s",
            ),
            Panel(
                title="Reading Redis for a scrape",
                description="Grows with services, boards and crawlers; 50 ms for 100 services.",
                queries={"seconds": "trawl_scrape_duration_seconds"},
                unit="s",
            ),
        ),
    ),
    Dashboard(
        name="trawl-crawls",
        title="Trawl: crawls",
        choice="service",
        choice_of="trawl_crawlers_desired",
        panels=(
            Panel(
                title="Pages a second",
                description="Requests finished, with their items and links stored.",
                queries={"{{service}}": f"service:trawl_pages:rate5m{{{_SERVICE}}}"},
                unit="reqps",
            ),
            Panel(
                title="Items a second",
                description="None while pages come in: nothing has changed on the sites, or a selector is wrong.",
                queries={"{{service}}": f"service:trawl_items:rate5m{{{_SERVICE}}}"},
            ),
            Panel(
                title="Share of errors",
                description="Of all responses, those with 4xx and 5xx.",
                queries={"{{service}}": f"service:trawl_errors:ratio5m{{{_SERVICE}}}"},
                unit="percentunit",
            ),
            Panel(
                title="Waiting",
                description="Start tasks and requests in the frontier. Swings with each scan; must fall again.",
                queries={
                    "{{service}} tasks": f"collector_task_queue_size{{{_SERVICE}}}",
                    "{{service}} requests": f"collector_request_queue_size{{{_SERVICE}}}",
                },
            ),
            Panel(
                title="Oldest request that waits",
                description="Since it was stored first. Grows where requests of low priority get no turn, or nothing crawls.",
                queries={"{{service}}": f"trawl_oldest_ready_seconds{{{_SERVICE}}}"},
                unit="s",
            ),
            Panel(
                title="Oldest page at work",
                description="Without a sign of life. Grows where a download, a callback or a pipeline never answers.",
                queries={"{{service}}": f"max by (service) (trawl_crawler_oldest_page_seconds{{{_SERVICE}}})"},
                unit="s",
            ),
            Panel(
                title="In the hands of crawlers",
                description="Leased requests, and of these the pages begun and not yet acked.",
                queries={
                    "{{service}} leased": f"trawl_leased_requests{{{_SERVICE}}}",
                    "{{service}} in flight": f"sum by (service) (trawl_crawler_requests_in_flight{{{_SERVICE}}})",
                },
            ),
            Panel(
                title="Leases taken back",
                description="Requests of crawlers that died, crawled by others.",
                queries={"{{service}}": f"increase(trawl_reclaimed_leases_total{{{_SERVICE}}}[5m])"},
            ),
            Panel(
                title="Items that wait, and refused ones",
                description="At the limit crawlers start no page: the consumer is away, or refuses.",
                queries={
                    "{{service}} wait": f"trawl_items_waiting{{{_SERVICE}}}",
                    "{{service}} wait for {{group}}": f"trawl_item_group_waiting{{{_SERVICE}}}",
                    "{{service}} in the hands of {{group}}": f"trawl_item_group_pending{{{_SERVICE}}}",
                    "{{service}} refused": f"trawl_bad_items{{{_SERVICE}}}",
                },
            ),
            Panel(
                title="Responses by status",
                description="200 and 304 are good; 429 and 503 slow the site's lane down.",
                queries={"{{status_code}}": f"sum by (status_code) (rate({_STATUS}{{{_SERVICE}}}[5m]))"},
                unit="reqps",
            ),
            Panel(
                title="Bytes a second",
                description="Bodies of responses, over all crawlers.",
                queries={"{{service}}": f"rate(collector_downloader_response_bytes{{{_SERVICE}}}[5m])"},
                unit="Bps",
            ),
        ),
    ),
    Dashboard(
        name="trawl-sites",
        title="Trawl: sites",
        choice="site",
        choice_of="trawl_forums_stale",
        panels=(
            Panel(
                title="Published until stored, half of them",
                description="The median of the last hour.",
                queries={"{{site}}": f"site:trawl_publish_to_store_seconds:p50_1h{{{_SITE}}}"},
                unit="s",
            ),
            Panel(
                title="Published until stored, 19 of 20",
                description="Over 15 minutes for long: the budget is spent, or the detail service too small.",
                queries={"{{site}}": f"site:trawl_publish_to_store_seconds:p95_1h{{{_SITE}}}"},
                unit="s",
            ),
            Panel(
                title="Posts and comments stored in time, a minute",
                description="Those that were published since the site is watched.",
                queries={"{{site}}": f"sum by (site) (rate(trawl_publish_to_store_seconds_count{{{_SITE}}}[5m])) * 60"},
            ),
            Panel(
                title="Boards that are late",
                description="Due for more than five minutes, although their site is not held.",
                queries={"{{site}}": f"trawl_forums_stale{{{_SITE}}}"},
            ),
            Panel(
                title="The stalest boards",
                description="Time since the last good scan of the list.",
                queries={"{{site}} {{forum}}": f"topk(10, time() - trawl_forum_last_scan_timestamp_seconds{{{_SITE}}})"},
                unit="s",
            ),
            Panel(
                title="Gaps",
                description="A scan did not reach the known threads: some may be missing until a deeper scan is done.",
                queries={"{{site}}": f"trawl_forum_gaps{{{_SITE}}}"},
            ),
            Panel(
                title="Requests in the last hour, and the budget",
                description="By lane; at the budget nothing more is sent.",
                queries={
                    "{{site}} {{lane}}": f"trawl_site_requests_last_hour{{{_SITE}}}",
                    "{{site}} budget": f"trawl_site_budget_requests_per_hour{{{_SITE}}} > 0",
                },
            ),
            Panel(
                title="Open breakers",
                description="The site does not answer with its pages, or its file is wrong. trawl status has the reason.",
                queries={"{{site}} {{cause}}": f"trawl_site_breaker{{{_SITE}}} > 0 or {_ZERO}"},
            ),
            Panel(
                title="Blocked responses",
                description="Walls, refusals, other markup; by kind of page and cause, an hour.",
                queries={"{{site}} {{kind}} {{cause}}": f"increase(trawl_site_blocked_total{{{_SITE}}}[1h]) or {_ZERO}"},
            ),
        ),
    ),
)


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, Any]:
    steps = [{"color": "green", "value": None}]
    if panel.bad_from is not None:
        steps.append({"color": "red", "value": panel.bad_from})  # type: ignore[dict-item]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": {"h": 4 if panel.kind == "stat" else HEIGHT, "w": panel.width, "x": x, "y": y},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def as_json(dashboard: Dashboard) -> dict[str, Any]:
    """Return the dashboard as Grafana imports it (schema 39: Grafana 10 and newer)."""
    panels: list[dict[str, Any]] = []
    x = y = row = 0
    for number, panel in enumerate(dashboard.panels, 1):
        if x + panel.width > WIDTH:
            x, y, row = 0, y + row, 0
        made = _panel(number, panel, x, y)
        x, row = x + panel.width, max(row, made["gridPos"]["h"])
        panels.append(made)
    choices = [] if not dashboard.choice else [_choice(dashboard.choice, dashboard.choice_of)]
    return {
        "uid": dashboard.name,
        "title": dashboard.title,
        "tags": ["trawl"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": choices},
        "links": [{"type": "dashboards", "tags": ["trawl"], "asDropdown": False, "title": "", "keepTime": True}],
        "panels": panels,
    }


def _choice(label: str, metric: str) -> dict[str, Any]:
    return {
        "name": label,
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values({metric}, {label})",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def files() -> dict[str, str]:
    """Name of the file -> its text."""
    return {f"{one.name}.json": json.dumps(as_json(one), indent=1) + "\n" for one in DASHBOARDS}


def main() -> None:
    folder = Path(sys.argv[1])
    for name, text in files().items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
