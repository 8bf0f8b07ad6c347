"""The metrics of sites that have limits, asked to be left alone or answered badly.

Their number is bounded: that of the site files, and at most 200 lanes in all (`forums.overview.reader.MOST_LANES`).
"""

from __future__ import annotations

from collections.abc import Callable

from forums.overview import Overview
from redis_components.crawl_admin.lanes import LaneView

from .metric_spec import MetricSpec, Samples


def _of_lanes(figure: Callable[[LaneView], float | None]) -> Callable[[Overview], Samples]:
    def samples(view: Overview) -> Samples:
        found = ((one.lane, figure(one)) for one in view.sites.lanes)
        return [((lane,), value) for lane, value in found if value is not None]

    return samples


LANE_METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        name="trawl_lane_state",
        kind="gauge",
        help="1: what a limited site is now (`left alone`, `quiet`, `spent`, `slowed`, `limited`, `free`).",
        labels=("site", "state"),
        samples=lambda view: [((one.lane, one.condition.value), 1.0) for one in view.sites.lanes],
    ),
    MetricSpec(
        name="trawl_lane_rate",
        kind="gauge",
        help="Requests per second that a site may get now, by its limit, its robots.txt and its complaints.",
        labels=("site",),
        samples=_of_lanes(lambda one: one.rate_now),
    ),
    MetricSpec(
        name="trawl_lane_requests_waiting",
        kind="gauge",
        help="Requests that wait for the limits of their site.",
        labels=("site",),
        samples=_of_lanes(lambda one: float(one.waiting)),
    ),
    MetricSpec(
        name="trawl_lane_oldest_seconds",
        kind="gauge",
        help="Since the oldest request that waits for the limits of its site was stored first; 0: none waits.",
        labels=("site",),
        samples=lambda view: [
            ((one.lane,), max(0.0, view.now - one.oldest_at) if one.oldest_at else 0.0) for one in view.sites.lanes
        ],
    ),
    MetricSpec(
        name="trawl_lane_left_alone_seconds",
        kind="gauge",
        help="For how much longer a site is sent nothing because it asked for that; 0: it did not.",
        labels=("site",),
        samples=_of_lanes(lambda one: one.state.left_alone_s),
    ),
    MetricSpec(
        name="trawl_lane_refusals",
        kind="gauge",
        help="How often a site refused requests, by 429 or 503, without half an hour of peace between.",
        labels=("site",),
        samples=_of_lanes(lambda one: float(one.state.refusals)),
    ),
)
