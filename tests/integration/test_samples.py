"""The history that the fleet keeps: one sample a minute, bounded, whatever else stands there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import redis

from fleet_operations.overview.model import SiteSample
from fleet_operations.overview.samples import Sample, Samples, rates, sample
from forums.state.database_state import DelayHistogram
from monitoring.forums import pages
from monitoring.pages import views
from monitoring.pages.views import Reading, overview
from tests.unit.monitoring.metrics.test_metrics import NOW, SITES, VIEW
from workers.state.keys import FleetKeys

MINUTES, HOURS = FleetKeys().samples("minute"), FleetKeys().samples("hour")


def test_the_first_of_a_minute_stays_and_the_oldest_go(redis_client: redis.Redis) -> None:
    samples, first = Samples(redis_client), sample(VIEW)
    minute = int(NOW) // 60
    old = {str(minute - age): msgspec.json.encode(replace_at(first, NOW - 60 * age, dead=age)) for age in range(1, 1500)}
    redis_client.hset(MINUTES, mapping=old)
    samples.add(replace_at(first, NOW, dead=0))
    samples.add(replace_at(first, NOW, dead=9999))
    history = samples.read()
    assert [one.dead for one in history.day] == list(range(1439, -1, -1))
    assert redis_client.hlen(MINUTES) == 1440
    assert [one.dead for one in history.month] == [0]
    samples.add(replace_at(first, NOW + 60 * 100_000))
    assert redis_client.hlen(MINUTES) == 1, "after a long absence what is old goes, too"


def replace_at(one: Sample, at: float, **values: Any) -> Sample:
    return msgspec.structs.replace(one, at=at, **values)


def test_a_sample_has_the_figures_of_fleet_and_sites() -> None:
    counted = replace(SITES, delays={"demo": DelayHistogram(counts=(1, 2, 3, 0, 0, 0, 0, 0, 0), sum_s=1.0)})
    one = sample(replace(VIEW, sites=counted))
    assert (one.at, one.stored, one.alive) == (NOW, 6, 1)
    assert one.sites["demo"].stored == 6
    assert one.sites["shop"] == SiteSample(stored=0, stale_s=one.sites["shop"].stale_s)


def test_a_count_that_began_again_is_a_hole_and_not_a_rate() -> None:
    assert rates([(0, 10), (60, 40), (180, None), (240, 160), (300, 5), (360, 6)], 60) == [
        (60, 30.0),
        (240, 40.0),
        (300, None),
        (360, 1.0),
    ]
    assert rates([(5, 1), (5, 2)], 60) == []


def test_what_somebody_else_wrote_there_is_left_out_and_the_pages_have_charts(redis_client: redis.Redis) -> None:
    samples, first = Samples(redis_client), sample(VIEW)
    for number in range(3):
        samples.add(replace_at(first, NOW + 60 * number, stored=1000 + 60 * number))
    redis_client.hset(MINUTES, mapping={"x": "1", "5": '{"at": "<script>"}', "1": "[" * 5000})
    redis_client.delete(HOURS)
    redis_client.set(HOURS, "another type")
    history = samples.read()
    assert (len(history.day), history.month) == (3, ())
    assert "highest 60 a minute" in overview(
        Reading(client=redis_client, source="redis", view=replace(VIEW, now=NOW + 120), history=lambda: history)
    )
    reading = Reading(client=redis_client, source="redis", view=VIEW, history=samples.read)
    for html in (views.history(reading), pages.site(reading, "demo")):
        assert 'class="line"' in html
        assert "<script>" not in html
