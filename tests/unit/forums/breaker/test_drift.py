"""What pages usually have is learnt, and a change that lasts is noticed, not a few odd pages."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from forums.breaker.state import ACCEPTED, KNOWN, LOT, ROWS, STATS, baseline, broken, counted, forgiven, observe
from forums.state.site_faults import Drift, Totals, drift_sentence


class Site:
    """Counts pages as crawlers do."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.drift = Drift()

    def lots(self, number: int, *, rows: int = 20, body: float = 0.0, views: float = 0.3) -> list[bool]:
        """So many lots of pages with so many rows and such shares of empty fields; whether the body had drifted after each."""
        said = []
        for _ in range(number):
            added = rows * LOT
            empty = {"body": self._of("body", added * body), "views": self._of("views", added * views)}
            self.totals = Totals(pages=self.totals.pages + LOT, rows=self.totals.rows + added, empty=empty)
            self.drift = observe(self.drift, self.totals)
            said.append("body" in self.drift.drifted)
        return said

    def _of(self, name: str, more: float) -> int:
        return self.totals.empty.get(name, 0) + round(more)


def test_a_field_that_is_suddenly_empty_is_noticed_after_two_lots() -> None:
    site = Site()
    assert not any(site.lots(10))
    assert site.lots(3, body=1.0) == [False, True, True]
    assert broken(site.drift, ("body",)) == "body is empty in 100 % of the rows, usually in 0 %"
    assert site.lots(2) == [False, False]
    assert broken(site.drift, ("body",)) is None


def test_nothing_is_judged_before_something_was_learnt() -> None:
    site = Site()
    site.lots(1)
    assert not any(site.lots(10, body=1.0)), "it was so from the beginning"


def test_between_the_two_thresholds_nothing_changes() -> None:
    site = Site()
    site.lots(10)
    assert not any(site.lots(5, body=0.4))
    site = Site()
    site.lots(10)
    site.lots(2, body=0.9)
    assert site.lots(3, body=0.4) == [True] * 3
    assert site.lots(1, body=0.1) == [False]


def test_a_field_that_is_often_empty_is_not_expected() -> None:
    site = Site()
    site.lots(10, views=0.9)
    site.lots(5, views=1.0)
    assert site.drift.drifted == {}


def test_one_odd_lot_does_not_matter_and_does_not_change_what_is_normal() -> None:
    site = Site()
    site.lots(10)
    for _ in range(10):
        assert site.lots(1, body=1.0) == [False]
        assert site.lots(1) == [False]
    assert baseline(site.drift)["body"] == 0.0


def test_pages_without_rows_are_noticed() -> None:
    site = Site()
    site.lots(10)
    site.lots(2, rows=0)
    assert broken(site.drift, (ROWS,)) == "0.0 rows a page, usually 20.0"
    site.lots(1, rows=15)
    assert site.drift.drifted == {}


def test_fewer_rows_are_said_but_break_nothing() -> None:
    site = Site()
    site.lots(10)
    site.lots(2, rows=2)
    assert drift_sentence(ROWS, *site.drift.drifted[ROWS]) == "2.0 rows a page, usually 20.0"
    assert broken(site.drift, (ROWS,)) is None


def test_what_stays_is_the_new_normal() -> None:
    site = Site()
    site.lots(10)
    said = site.lots(ACCEPTED + 5, body=1.0)
    assert said[1]
    assert not said[-1]
    assert baseline(site.drift)["body"] == 1.0


def test_it_remembers_a_bounded_number_of_lots() -> None:
    site = Site()
    site.lots(100)
    assert len(site.drift.lots) == KNOWN
    assert len(msgspec.json.encode(site.drift)) < 3000


def test_less_than_a_lot_is_waited_for() -> None:
    before = Drift(counted=Totals(pages=100, rows=2000))
    assert observe(before, Totals(pages=100 + LOT - 1, rows=0)) is before


def test_counters_that_went_back_begin_anew() -> None:
    known: Iterable[dict[str, float]] = ({ROWS: 20.0},) * 5
    before = Drift(counted=Totals(pages=1000, rows=20_000), lots=tuple(known))
    after = observe(before, Totals(pages=3, rows=60))
    assert (after.counted.pages, after.lots, after.drifted) == (3, before.lots, {})


def test_what_was_seen_to_be_well_is_forgiven_and_what_is_normal_stays() -> None:
    site = Site()
    site.lots(10)
    site.lots(2, body=1.0)
    site.drift = forgiven(site.drift)
    assert site.drift.drifted == {}
    assert site.lots(2, body=1.0) == [False, True]


@pytest.mark.parametrize("figure", ["²", "-1", "1.5", "9" * 5000])
def test_a_figure_in_redis_that_is_no_number_is_left_out(figure: str) -> None:
    found = counted([{f"{STATS}a/threads/pages": figure, f"{STATS}a/threads/rows": "7"}])
    assert [(one.pages, one.rows) for one in found.values()] == [(0, 7)]
