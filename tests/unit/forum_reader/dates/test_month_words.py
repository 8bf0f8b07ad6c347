"""A form that was learned in January is that of the other months."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from forum_reader.dates import read_date
from forum_reader.dates.language import Form, Other, learn_shape
from forum_reader.dates.read_date import DateReader
from forum_reader.dates.words import in_january

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("shape", "language"),
    [
        ("Nov 00, 0000", "en"),
        ("Tue Sept 00, 0000 00:00", "en"),
        ("00 May", "en"),
        ("Mittwoch, 00. Oktober 0000, 00:00", "de"),
        ("00 févr. 0000", "fr"),
        ("00 июня 0000, 00:00", "ru"),
    ],
)
def test_the_form_is_what_asking_for_the_month_finds(shape: str, language: str) -> None:
    changed, month = in_january(shape, language) or ("", 0)
    known, asked = learn_shape(changed, language), learn_shape(shape, language)
    assert isinstance(known, Form)
    assert isinstance(asked, Form)
    assert replace(known, base=known.base.replace(month=month, year=asked.base.year)) == asked


def test_all_months_and_days_of_the_week_are_learned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_date, "_known", {})
    asked: list[str] = []

    def learning(text: str, language: str | None, **_: object) -> Form | Other:
        asked.append(text)
        return learn_shape(text, language)

    monkeypatch.setattr(read_date, "learn_shape", learning)
    dates = DateReader(NOW, language="en", time_zone="UTC")
    given = [("Sat Nov 21, 2026 9:05 am", 11, 21), ("Fri Feb 27, 2026 8:15 am", 2, 27), ("Sun Mar 1, 2026 7:00 am", 3, 1)]
    for text, month, day in given:
        found, fixed = dates.read(text)
        assert (found and (found.month, found.day), fixed) == ((month, day), True)
    assert asked == ["mon jan 00, 0000 00:00", "mon jan 0, 0000 00:00"]


@pytest.mark.parametrize("text", ["jan 00, 0000", "00.00.0000", "Monday 00:00", "from Mar 00 to Apr 00", "on 00:00", "может 00"])
def test_what_names_no_other_month_is_left_alone(text: str) -> None:
    assert in_january(text, "en") is None
    assert in_january(text, None) is None
