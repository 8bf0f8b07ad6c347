"""The metrics of sites and forums: how fresh, how much they are asked, what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from redis_components.spending import Purpose

from .metric_spec import MetricSpec, Samples, number, of_crawl, stat
from .reading import Reading


def _by_site(reading: Reading, sites: Iterable[str]) -> Samples:
    """How often each site is named; 0 for the others that are watched."""
    counts = Counter(sites)
    return [((site,), counts[site]) for site in sorted({one.site for one in reading.forums})]


def _blocked(reading: Reading) -> Samples:
    counts: Counter[tuple[str, str, str]] = Counter()
    for crawl in reading.crawls:
        for name, text in crawl.stats.items():
            parts = name.split("/")
            if len(parts) == 5 and (parts[0], parts[3]) == ("sites", "blocked") and (value := number(text)) is not None:
                counts[parts[1], parts[2], parts[4]] += int(value)
    return sorted(counts.items())


SITE_METRICS: tuple[MetricSpec, ...] = (
    # The forums.
    MetricSpec(
        name="trawl_forum_scan_age_seconds",
        kind="gauge",
        help="Time since the last scan of the forum's list that did not fail began.",
        labels=("site", "forum"),
        samples=lambda reading: [
            ((one.site, one.forum), max(0.0, reading.now - one.state.scanned_at))
            for one in reading.forums
            if one.state.scanned_at is not None
        ],
    ),
    MetricSpec(
        name="trawl_forum_overdue_seconds",
        kind="gauge",
        help="How long the forum's next scan is due; 0: not yet. It grows while nobody seeds, too.",
        labels=("site", "forum"),
        samples=lambda reading: [((one.site, one.forum), one.overdue_s(reading.now)) for one in reading.forums],
    ),
    MetricSpec(
        name="trawl_forums_stale",
        kind="gauge",
        help="Forums that are overdue for 5 min, and for longer than they were to wait, although nobody holds their site.",
        labels=("site",),
        samples=lambda reading: _by_site(reading, [one.site for one in reading.stale]),
    ),
    MetricSpec(
        name="trawl_forum_gaps",
        kind="gauge",
        help="Forums of which a scan did not come to what was known: threads may be missing until a deeper one has been.",
        labels=("site",),
        samples=lambda reading: _by_site(reading, [one.site for one in reading.forums if one.state.gap_at is not None]),
    ),
    MetricSpec(
        name="trawl_forums_failing",
        kind="gauge",
        help="Forums whose last scan failed.",
        labels=("site",),
        samples=lambda reading: _by_site(reading, [one.site for one in reading.forums if one.state.errors]),
    ),
    MetricSpec(
        name="trawl_site_requests_last_hour",
        kind="gauge",
        help="Requests that the site was sent in the last hour (lane: scan, detail, check, backfill).",
        labels=("site", "lane"),
        samples=lambda reading: [
            ((site, str(purpose)), spent.on(purpose)) for site, spent in sorted(reading.spent.items()) for purpose in Purpose
        ],
    ),
    MetricSpec(
        name="trawl_site_budget_requests_per_hour",
        kind="gauge",
        help="Requests that the site may be sent in an hour (`schedule.requests_per_hour`).",
        labels=("site",),
        samples=lambda reading: [((site,), budget) for site, budget in sorted(reading.budgets.items())],
    ),
    # The sites.
    MetricSpec(
        name="trawl_site_breaker",
        kind="gauge",
        help="1 while the breaker of a site is open: it does not answer with its pages, or its file is wrong; not crawled.",
        labels=("site", "cause"),
        samples=lambda reading: [((site, one.cause), 1.0) for site, one in reading.breakers.items()],
    ),
    MetricSpec(
        name="trawl_site_breaker_seconds",
        kind="gauge",
        help="How long the breaker of a site has been open.",
        labels=("site", "cause"),
        samples=lambda reading: [
            ((site, one.cause), max(0.0, reading.now - one.since)) for site, one in reading.breakers.items()
        ],
    ),
    MetricSpec(
        name="trawl_site_blocked_total",
        kind="counter",
        help="Answers that were no pages of the site, by kind of page and cause.",
        labels=("site", "kind", "cause"),
        samples=_blocked,
    ),
    MetricSpec(
        name="trawl_site_drift",
        kind="gauge",
        help="What has drifted: share of rows in which a field is empty, or `rows` per page; only while it is not as usual.",
        labels=("site", "kind", "figure"),
        samples=lambda reading: [(names, now) for names, (now, _) in reading.drifts.items()],
    ),
    of_crawl("trawl_raw_pages_total", "counter", "Raw pages kept on disk.", lambda c: stat(c, "raw/kept")),
    of_crawl("trawl_raw_bytes_total", "counter", "Bytes of raw pages kept on disk, compressed.", lambda c: stat(c, "raw/bytes")),
    of_crawl(
        "trawl_raw_pages_dropped_total",
        "counter",
        "Raw pages that should have been kept and were not: the disk is full, broken or too slow.",
        lambda c: stat(c, "raw/dropped"),
    ),
)
