"""`trawl sites check --live`: dates that cannot be right are named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forums.sites.check import doubtful

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (["2026-11-01", "2011-11-21", "2026-11-20"], "the date of c1 is 2011-11-21, years away"),
        (["2026-11-01", "2011-11-21", "2026-11-05", "2011-11-21", "2026-11-20"], "and 1 more"),
        (["2026-11-01", "2026-12-21"], "the date of c1 is 2026-12-21, in the future"),
        (["2026-11-01", None, "2026-11-23"], None),
        (["2015-01-01", "2015-02-01", "2026-11-20", "2026-11-21"], None),
        (["2011-11-21"], None),
        ([], None),
    ],
)
def test_dates_years_away_from_their_neighbours(days: list[str | None], said: str | None) -> None:
    dates = [(f"c{at}", datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None) for at, day in enumerate(days)]
    found = doubtful(dates, NOW)
    assert (found is None) if said is None else said in (found or "")
