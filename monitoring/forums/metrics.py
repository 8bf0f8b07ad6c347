"""The metrics of the forum crawl: freshness of boards, request rates, the writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from forums.overview import forum_sites
from forums.overview.model import BoardTally
from forums.state.forum_states import Purpose, WatchedForum
from forums.state.writer_state import WriterFigures
from monitoring.metrics.figures import MetricSpec, Samples, gauge, number, of_fleet
from workers.overview import Overview

MOST_BOARDS = 10_000
"""Boards of which each has its series; the figures of sites count all."""


def shown_boards(view: Overview) -> list[WatchedForum]:
    """Return the shown boards, by id, so that the same boards are shown each time."""
    return list(forum_sites(view).boards.watched[:MOST_BOARDS])


def _board(name: str, help: str, figure: Callable[[WatchedForum], float | None]) -> MetricSpec:
    """Define a figure of each board, of those that have it."""

    def samples(view: Overview) -> Samples:
        figures = ((one, figure(one)) for one in shown_boards(view))
        return [((one.site, one.forum), value) for one, value in figures if value is not None]

    return gauge(name, help, ("site", "forum"), samples)


def _tally(name: str, help: str, value: Callable[[BoardTally], int]) -> MetricSpec:
    """Define a count of the boards of each site."""
    return gauge(
        name, help, ("site",), lambda view: [((site,), float(value(one))) for site, one in forum_sites(view).tallies.items()]
    )


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


def _lag(view: Overview) -> float | None:
    lag_s = forum_sites(view).writer_lag_s
    return None if lag_s is None else round(lag_s, 3)


def _writer(name: str, help: str, figure: Callable[[WriterFigures], float]) -> MetricSpec:
    """Define a figure of all writers together; none before the first batch."""
    return MetricSpec(
        name=name,
        kind="counter",
        help=help,
        labels=(),
        samples=lambda view: [((), figure(forum_sites(view).writer))] if forum_sites(view).writer.batches else [],
    )


FORUM_METRICS: tuple[MetricSpec, ...] = (
    # The forums.
    _board(
        "trawl_forum_last_scan_timestamp_seconds",
        "When the last scan of the forum's list that did not fail began; `time()` minus this is its age.",
        lambda one: one.state.scanned_at,
    ),
    _board(
        "trawl_forum_due_timestamp_seconds",
        "When the forum's next scan is due; `time()` minus this is how long it is overdue, while nothing seeds, too.",
        lambda one: one.waits_from,
    ),
    _tally(
        "trawl_forums",
        "Forums that are watched. The age and the delay of single ones are shown of 10,000 in all.",
        lambda one: one.boards,
    ),
    _tally(
        "trawl_forums_stale",
        "Forums overdue for 5 min and for longer than their interval, although their site is not held.",
        lambda one: one.stale,
    ),
    _tally(
        "trawl_forum_gaps",
        "Forums whose scan did not reach known threads: some may be missing until a deeper scan.",
        lambda one: one.with_gap,
    ),
    _tally("trawl_forums_failing", "Forums whose last scan failed.", lambda one: one.failing),
    gauge(
        "trawl_site_requests_last_hour",
        "Requests that the site was sent in the last hour (lane: scan, detail, check, backfill).",
        ("site", "lane"),
        _spent,
    ),
    gauge(
        "trawl_site_budget_requests_per_hour",
        "Requests in an hour for which scans and checks are planned (`schedule.scan_budget_per_hour`).",
        ("site",),
        lambda view: [((site,), budget) for site, budget in sorted(forum_sites(view).budgets.items())],
    ),
    MetricSpec(
        name="trawl_publish_to_store_seconds",
        kind="histogram",
        help="From a post's or comment's publication to its commit; of what was published since its site is watched.",
        labels=("site",),
        histograms=lambda view: [((site,), one.buckets, one.sum_s) for site, one in forum_sites(view).delays.items()],
    ),
    MetricSpec(
        name="trawl_stored_total",
        kind="counter",
        help="What the writer found in posts and comments (change: new, edited, corrected, deleted, restored, moved).",
        labels=("site", "row", "change"),
        samples=lambda view: forum_sites(view).writer.changes.items(),
    ),
    _writer("trawl_writer_batches_total", "Transactions of the writer.", lambda one: one.batches),
    _writer("trawl_writer_items_total", "Items that the writer took, refused ones too.", lambda one: one.items),
    _writer("trawl_writer_busy_seconds_total", "Time that the writer has taken for its batches.", lambda one: one.seconds),
    of_fleet("trawl_writer_lag_seconds", "Since the oldest item that waits for the writer was fetched; 0: none waits.", _lag),
    MetricSpec(
        name="trawl_site_blocked_total",
        kind="counter",
        help="Responses that were not pages of the site, by kind of page and cause.",
        labels=("site", "kind", "cause"),
        samples=_blocked,
    ),
    gauge(
        "trawl_site_drift",
        "Unusual figures alone: share of rows in which a field is empty, or `rows` per page.",
        ("site", "kind", "figure"),
        lambda view: [(names, now) for names, (now, _) in forum_sites(view).drifts.items()],
    ),
)
