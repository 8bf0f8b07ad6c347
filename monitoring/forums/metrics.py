"""The metrics of the forum crawl: freshness of boards, request rates, the writer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fleet_operations.overview import Overview
from forums.overview import forum_sites
from forums.overview.boards import WatchedForum
from forums.state.keys import Purpose
from monitoring.metrics.figures import MetricSpec, Samples, Value, number, single, specs

MOST_BOARDS = 10_000
"""Boards of which each has its series; the figures of sites count all."""


def shown_boards(view: Overview) -> list[WatchedForum]:
    """Return the shown boards, by id, so that the same boards are shown each time."""
    return list(forum_sites(view).boards.watched[:MOST_BOARDS])


def _boards(view: Overview, value: Value) -> Samples:
    """Return a figure of each board, of those that have it."""
    return [((one.site, one.forum), figure) for one in shown_boards(view) if (figure := value(one)) is not None]


def _tallies(view: Overview, value: Value) -> Samples:
    """Return a count of the boards of each site."""
    return [((site,), value(tally) or 0.0) for site, tally in forum_sites(view).tallies.items()]


def _blocked(view: Overview) -> Samples:
    counts: Counter[tuple[str, str, str]] = Counter()
    for service in view.services:
        stats = service.crawl.stats
        for name in [one for one in stats if one.startswith("sites/")]:
            parts = name.split("/")
            if len(parts) == 5 and parts[3] == "blocked" and (value := number(stats[name])) is not None:
                counts[parts[1], parts[2], parts[4]] += int(value)
    return sorted(counts.items())


def _spent(view: Overview) -> Samples:
    spent = sorted(forum_sites(view).spent.items())
    return [((site, str(purpose)), one.on(purpose)) for site, one in spent for purpose in Purpose]


def _lag(view: Overview) -> Samples:
    lag_s = forum_sites(view).writer_lag_s
    return single(None if lag_s is None else round(lag_s, 3))


FORUM_METRICS: tuple[MetricSpec, ...] = specs(
    Path(__file__).with_name("metrics.toml"),
    {
        "trawl_site_requests_last_hour": _spent,
        "trawl_site_budget_requests_per_hour": lambda view: [
            ((site,), budget) for site, budget in sorted(forum_sites(view).budgets.items())
        ],
        "trawl_publish_to_store_seconds": lambda view: [
            ((site,), delay.buckets, delay.sum_s) for site, delay in forum_sites(view).delays.items()
        ],
        "trawl_writer_lag_seconds": _lag,
        "trawl_site_blocked_total": _blocked,
    },
    {"board": (("site", "forum"), _boards), "tally": (("site",), _tallies)},
)
