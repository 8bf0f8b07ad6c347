"""Dates by their form, and by the order of the posts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.dates.dates_in_text import machine_date, spotted
from forum_reader.dates.post_calendar import Calendar

NOW = datetime(2026, 11, 22, 12, 50, tzinfo=UTC)  # a Sunday


def read(*texts: str, language: str | None = None) -> list[str | None]:
    dates = Calendar(NOW, language).read([spotted(text) for text in texts])
    return [date.strftime("%Y-%m-%d %H:%M") if date else None for date in dates]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-20T08:15:01Z", "2026-11-20 08:15"),
        ("2026-11-20T08:15:01+02:00", "2026-11-20 06:15"),
        ("发表于 2026-11-20 08:15:01", "2026-11-20 08:15"),
        ("Nov-20-26, 08:15 AM", "2026-11-20 08:15"),
        ("Date: 2026-11-20.08:15:01", "2026-11-20 08:15"),
        ("Sat, Jun 18 '05, 10:24 AM", "2005-06-18 10:24"),
        ("4 December 2016 at 12:11AM", "2016-12-04 00:11"),
        ("25-February-2012 21:46", "2012-02-25 21:46"),
        ("14. Juni 2020 10:23", "2020-06-14 10:23"),
        ("Le 12 févr. 2020 à 10h35", "2020-02-12 10:35"),
        ("20 ноя 2026 в 08:15", "2026-11-20 08:15"),
        ("Thu 21-Nov-19 10:53:49", "2019-11-21 10:53"),
        ("2020.03.12 13:17", "2020-03-12 13:17"),
        ("2026年11月20日 下午3:05", "2026-11-20 15:05"),
        ("11月20日 08:15", "2026-11-20 08:15"),
        ("11-20 08:15", "2026-11-20 08:15"),
        ("12-24 08:15", "2025-12-24 08:15"),
        ("11:43pm On Apr 23", "2026-04-23 23:43"),
        ("昨天 12:11", "2026-11-21 12:11"),
        ("昨晚 20:11", "2026-11-21 20:11"),
        ("前天 09:00", "2026-11-20 09:00"),
        ("gestern, 14:02", "2026-11-21 14:02"),
        ("вчера в 12:30", "2026-11-21 12:30"),
        ("Today, 09:01 AM", "2026-11-22 09:01"),
        ("3天前", "2026-11-19 12:50"),
        ("3分鐘前", "2026-11-22 12:47"),
        ("半小时前", "2026-11-22 12:20"),
        ("24 mins ago", "2026-11-22 12:26"),
        ("2\xa0hours, 10\xa0minutes ago", "2026-11-22 10:40"),
        ("vor 1 Tag und 2 Stunden", "2026-11-21 10:50"),
        ("vor 3 Stunden", "2026-11-22 09:50"),
        ("3 Stunden her", "2026-11-22 09:50"),
        ("1 Stunde 51 Minuten her", "2026-11-22 10:59"),
        ("2 Tage zuvor", "2026-11-20 12:50"),
        ("il y a 3 jours", "2026-11-19 12:50"),
        ("5h", "2026-11-22 07:50"),
        ("только что", "2026-11-22 12:50"),
    ],
)
def test_forms_of_many_languages(text: str, at: str) -> None:
    assert read(text) == [at]


@pytest.mark.parametrize(
    "text", ["#12", "Posts: 1,234", "Page 3 of 12", "v1.2.3", "2 hours", "192.168.1.1", "Read more here", ""]
)
def test_what_is_no_date(text: str) -> None:
    date = spotted(text)
    assert date is None or date.precision < 2


def test_an_order_of_day_and_month_is_that_in_which_all_are_possible() -> None:
    assert read("10-04-2017, 11:00", "10-31-2017, 01:56") == ["2017-10-04 11:00", "2017-10-31 01:56"]
    assert read("04/10/2017", "31/10/2017") == ["2017-10-04 00:00", "2017-10-31 00:00"]


def test_where_both_are_possible_it_is_that_of_posts_that_are_close() -> None:
    dates = read("01/12/2019 10:00", "02/12/2019 11:00", "05/12/2019 09:00")
    assert dates == ["2019-12-01 10:00", "2019-12-02 11:00", "2019-12-05 09:00"]


def test_the_weekday_says_whether_the_year_is_first() -> None:
    assert read("26/08/20(Thu)16:10:15", "26/08/21(Fri)01:02:03") == ["2026-08-20 16:10", "2026-08-21 01:02"]
    assert read("20-08-26 (Thu) 16:10", "21-08-26 (Fri) 01:02") == ["2026-08-20 16:10", "2026-08-21 01:02"]
    assert read("08/20/26 (Thu) 16:10") == ["2026-08-20 16:10"]


def test_a_date_without_a_year_is_the_latest_with_its_weekday() -> None:
    assert read("Friday 23rd April") == ["2021-04-23 00:00"]


def test_a_date_that_is_ahead_is_none() -> None:
    assert read("2031-01-01 10:00") == [None]


def test_seconds_and_milliseconds_since_1970() -> None:
    for value in ("1770000000", "1770000000000"):
        date = machine_date(value)
        assert date is not None
        assert Calendar(NOW).read([date]) == [datetime(2026, 2, 2, 2, 40, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("08-03-2023, 10:07 مساءً", 22),
        ("08-03-2023, 10:07 م", 22),
        ("08-03-2023, 12:07 صباحاً", 0),
        ("8/3/2023, 10:07 μ.μ.", 22),
        ("8/3/2023 10:07 ب.ظ", 22),
        ("08.03.2023, 10:07 ÖS", 22),
        ("08-03-2023, 10:07 CH", 22),
        ("08-03-2023, 10:07 مدير", 10),
        ("2023-03-08 10:07 PM", 22),
        ("2023-03-08, 10:07 PM", 22),
        ("2023-03-08 下午 10:07", 22),
        ("2023-03-08 at 22:07", 22),
        ("2023-03-08 (3 replies, the last at 22:07)", None),
    ],
)
def test_the_half_of_a_day_in_the_words_of_its_language(text: str, hour: int | None) -> None:
    date = spotted(text)
    assert date is not None
    assert (date.hour, date.minute) == (hour, 7 if hour is not None else 0)


def test_a_year_of_two_digits_may_stand_first() -> None:
    now = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
    dates = [spotted(text) for text in ("26-04-01 10:00", "26-04-02 08:30", "26-05-02 09:00")]
    for language in ("ko", "en"):
        assert [one and one.isoformat()[:10] for one in Calendar(now, language).read(dates)] == [
            "2026-04-01", "2026-04-02", "2026-05-02",
        ]  # fmt: skip
    assert [one and one.date().isoformat() for one in Calendar(now, "ko").read(dates[:1])] == ["2026-04-01"]
    mixed = [spotted(text) for text in ("26-11-05 03:18", "2026-11-05 08:35", "2026-11-06 13:52")]  # a post, its comments
    assert [one and one.day for one in Calendar(now).read(mixed)] == [5, 5, 6]
    american = [spotted(text) for text in ("04-05-26 10:00", "04-06-26 10:00")]
    assert [one and one.date().isoformat() for one in Calendar(now, "en-us").read(american)] == ["2026-04-05", "2026-04-06"]
