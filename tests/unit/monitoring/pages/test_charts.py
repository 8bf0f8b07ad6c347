"""Charts: what a line says, where it breaks, and what cannot be drawn."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

from fleet_operations.overview import Overview
from fleet_operations.overview.samples import History, Sample, until_now
from monitoring.pages.charts import MOST_POINTS, Window, chart, fleet_charts
from tests.unit.monitoring.metrics.test_metrics import NOW, VIEW

DAY = Window(now=86_400.0, length_s=86_400.0, step_s=60.0)


def line(html: str) -> str:
    found = re.search(r'class="line" d="([^"]*)"', html)
    assert found is not None
    return found[1]


def test_a_chart_says_its_last_and_highest_value_and_its_bounds() -> None:
    html = chart("Posts", "a minute", [(86_280.0, 3.0), (86_340.0, 170.0), (86_400.0, 12.5)], DAY)
    assert 'aria-label="Posts: now 12.5, highest 170 a minute"' in html
    assert "0 to 200" in html
    ET.fromstring(f"<div>{html}</div>")


def test_a_line_is_broken_where_samples_are_missing_and_where_a_count_began_again() -> None:
    steady = [(60.0 * number, 1.0) for number in range(100)]
    assert line(chart("x", "", steady, DAY)).count("M") == 1
    assert line(chart("x", "", steady[:20] + steady[60:], DAY)).count("M") == 2
    assert line(chart("x", "", [*steady[:20], (1200.0, None), *steady[21:]], DAY)).count("M") == 2


def test_many_points_are_thinned_without_losing_the_peak() -> None:
    points = [(60.0 * number, 900.0 if number == 777 else 1.0) for number in range(1440)]
    html = chart("x", "", points, DAY)
    assert "highest 900" in html
    assert len(re.findall("[ML]", line(html))) <= MOST_POINTS


def test_hostile_titles_and_values_are_no_markup() -> None:
    html = chart("<script>", '"><b>', [(86_400.0, 1.0), (86_400.0, math.inf), (86_400.0, math.nan)], DAY)
    assert "<script>" not in html
    assert "<b>" not in html
    assert "nan" not in line(html)
    for nothing in ([], [(1.0, None)], [(-5.0, 1.0)]):
        assert "no sample yet" in chart("x", "", nothing, DAY)


def test_a_young_fleet_fills_its_charts_and_an_old_one_shows_a_day() -> None:
    now = 90_000_000.0
    for minutes, shown in ((1, 15), (60, 60), (1440, 1440), (1500, 1440)):
        history = History(day=tuple(Sample(at=now - 60.0 * number, waiting=7) for number in range(minutes - 1, -1, -1)))
        waiting = fleet_charts(history, now)[2]
        begins = datetime.fromtimestamp(now - shown * 60, UTC)
        assert f"<span>{begins:{'%d %b %H:%M' if shown == 1440 else '%H:%M'}}</span>" in waiting, minutes
        assert "now 7" in waiting


def test_what_a_dead_fleet_did_last_is_not_what_it_does_now() -> None:
    now = 90_000_000.0
    for silent_s, word in ((30.0, "now"), (170.0, "now"), (200.0, "last"), (9_000.0, "last")):
        samples = tuple(Sample(at=now - silent_s - 60.0 * n, stored=600 - 60 * n, waiting=7) for n in range(5, -1, -1))
        history = History(day=samples)
        assert f"{word} 7, highest 7" in fleet_charts(history, now)[2], silent_s


def test_the_present_stands_at_the_end_of_day_and_month_also_in_the_first_hour() -> None:
    hour = Sample(at=NOW - 600.0, alive=0)
    for age_s, alive in ((20.0, len([one for one in VIEW.crawlers if one.alive(NOW)])), (5.0, 1)):
        found = until_now(History(day=(hour, Sample(at=NOW - age_s, alive=1)), month=(hour,)), VIEW)
        assert [one.alive for one in found.month] == [0, alive], "of five seconds the minute's sample is the present"
        assert found.day[-1].at == found.month[-1].at == (NOW if age_s > 15 else NOW - age_s)
    away = History(day=(hour,), month=(hour,))
    assert until_now(away, Overview(failure="away")).day == (hour,)
