"""Dates without a year, in the words of boards, with words around them: what a person reads is what is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from scrapy.http import HtmlResponse

from forum_reader.dates.post_calendar import known_language
from forum_reader.dates.read_date import DateReader, check_form
from forum_reader.reading.parse_body import read_at
from forum_reader.reading.read_page import read_comments
from forums.sites import SiteError, load_site

NOW = datetime(2026, 11, 22, 12, 50, tzinfo=UTC)  # a Sunday
DAY = "2026-11-21T08:03:00+00:00"


def read(text: str, language: str | None, *, now: datetime = NOW, zone: str = "UTC", formats: tuple[str, ...] = ()) -> str | None:
    found, _ = DateReader(now, language=language, time_zone=zone).read(text, formats)
    return found.isoformat() if found else None


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("zh", "11-21 08:03", DAY), ("ja", "11-21 08:03", DAY), ("ko", "11-21 08:03", DAY), (None, "11-21 08:03", DAY),
        ("en", "11/21 08:03", DAY), ("en-GB", "21/11 08:03", DAY), ("de", "21.11. 08:03", DAY), ("de", "21.11. um 08:03", DAY),
        ("ru", "21.11 08:03", DAY), ("hu", "11.21. 08:03", DAY), ("sv", "11-21 08:03", DAY), (None, "21.11. 08:03", DAY),
        ("en", "11/21 8:03 am", DAY), ("zh", "11-21 08:03:00", DAY), ("zh", "11月21日 08:03", DAY),
        ("ja", "11月21日(土) 08:03", DAY),
        ("ja", "11月21日 8時3分", DAY), ("ko", "11월 21일 08:03", DAY), ("sv", "21 nov 08:03", DAY), ("ru", "21 ноя, 08:03", DAY),
        ("en", "21 Nov, 08:03", DAY), ("en", "Nov 21, 8:03am", DAY), ("fr", "21 nov. à 08:03", DAY), ("cs", "21. lis 08:03", DAY),
        ("zh", "12-05 10:00", "2025-12-05T10:00:00+00:00"), ("ja", "12/05 10:00", "2025-12-05T10:00:00+00:00"),
        ("de", "05.12. 10:00", "2025-12-05T10:00:00+00:00"), ("en-GB", "05/12 10:00", "2025-12-05T10:00:00+00:00"),
        ("zh", "11-22 12:50", "2026-11-22T12:50:00+00:00"), ("zh", "11-22 12:51", "2025-11-22T12:51:00+00:00"),
        ("zh", "02-29 10:00", "2024-02-29T10:00:00+00:00"), ("en", "Feb 29, 10:00", "2024-02-29T10:00:00+00:00"),
        ("zh", "13-40 10:00", None), ("de", "21.11.", "2026-11-21T00:00:00+00:00"), ("zh", "11-21", "2026-11-21T00:00:00+00:00"),
    ],
)  # fmt: skip
def test_a_date_without_a_year_is_the_latest_one_that_is_not_in_the_future(language: str, text: str, moment: str | None) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("zh", "昨晚 20:11", "2026-11-21T20:11:00+00:00"), ("zh", "昨晚8:11", "2026-11-21T20:11:00+00:00"),
        ("zh", "3分鐘前", "2026-11-22T12:47:00+00:00"), ("zh", "3小時前", "2026-11-22T09:50:00+00:00"),
        ("zh", "2個月前", "2026-09-22T12:50:00+00:00"), ("zh", "兩天前", "2026-11-20T12:50:00+00:00"),
        ("zh", "两个半小时前", "2026-11-22T10:20:00+00:00"), ("zh", "十五分钟前", "2026-11-22T12:35:00+00:00"),
        ("zh", "剛剛", "2026-11-22T12:50:00+00:00"), ("zh", "半小时前", "2026-11-22T12:20:00+00:00"),
        ("zh", "昨天 下午3:15", "2026-11-21T15:15:00+00:00"), ("zh", "週三 08:00", "2026-11-18T08:00:00+00:00"),
        ("zh", "上午 08:15", "2026-11-22T08:15:00+00:00"), ("zh", "下午 11:15", "2026-11-21T23:15:00+00:00"),
        ("zh", "发表于 昨天 12:11", "2026-11-21T12:11:00+00:00"), ("zh", "最后回复于3 天前", "2026-11-19T12:50:00+00:00"),
        ("zh", "发表于 2026-11-20 08:15:01", "2026-11-20T08:15:01+00:00"), ("zh", "發表於 11-21 08:03", DAY),
        ("zh", "发布于 2026年11月21日 08:03 来自手机", DAY), (None, "发表于 昨天 12:11", "2026-11-21T12:11:00+00:00"),
        ("ja", "昨日 08:00", "2026-11-21T08:00:00+00:00"), ("ja", "3時間前", "2026-11-22T09:50:00+00:00"),
        ("ja", "たった今", "2026-11-22T12:50:00+00:00"), ("ja", "3ヶ月前", "2026-08-22T12:50:00+00:00"),
        ("ja", "２０２６年１１月２１日 ０８：０３", DAY), ("ko", "방금 전", "2026-11-22T12:50:00+00:00"),
        ("ko", "어제 08:00", "2026-11-21T08:00:00+00:00"), ("ko", "오후 3:15", "2026-11-21T15:15:00+00:00"),
        ("ko", "2026.11.20. 08:15", "2026-11-20T08:15:00+00:00"),
    ],
)  # fmt: skip
def test_dates_in_the_words_of_eastern_boards(language: str, text: str, moment: str) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("en", "Posted on Nov 21, 2026 8:03 am", DAY), ("en", "Posted by ann77 on Nov 21, 2026 at 08:03", DAY),
        ("en", "edited 3 hours ago", "2026-11-22T09:50:00+00:00"), ("en", "« Reply #1 on: November 21, 2026, 08:03:00 am »", DAY),
        ("en", "written 3 days ago by ann", "2026-11-19T12:50:00+00:00"), ("en", "Posted yesterday, 08:03", DAY),
        ("en", "Nov 21, 2026 8:03 am, 14 replies", DAY), ("de", "geschrieben am 21.11.2026 08:03", DAY),
        ("de", "Verfasst am: Sa Nov 21, 2026 8:03 am", DAY), ("ru", "Добавлено: 21 ноя 2026 08:03", DAY),
        ("ru", "Сообщение ann » 21 ноя 2026, 08:03", DAY), ("fr", "Posté le 21/11/2026 à 08:03", DAY),
        ("es", "Publicado el 21 de noviembre de 2026 08:03", DAY), ("pl", "Napisano 21 listopada 2026 - 08:03", DAY),
        ("it", "Inviato 21 novembre 2026 08:03", DAY), ("nl", "Geplaatst op 21 november 2026 08:03", DAY),
        ("pt", "Postado em 21/11/2026 08:03", DAY), (None, "geschrieben am 21.11.2026 08:03", DAY),
        (None, "Posted on Nov 21, 2026 8:03 am", DAY), (None, "Добавлено: 21 ноя 2026 08:03", DAY),
    ],
)  # fmt: skip
def test_words_around_a_date_do_not_hide_it(language: str | None, text: str, moment: str) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ru", "только что"), (None, "только что"), ("ru", "Отправлено только что"), ("de", "gerade eben"), ("fr", "à l'instant"),
        ("es", "hace un momento"), ("pl", "przed chwilą"), ("nl", "zojuist"), ("sv", "just nu"), ("tr", "az önce"),
        ("uk", "щойно"),
        ("pt", "agora mesmo"), ("it", "poco fa"), ("vi", "vừa xong"), ("en", "a few seconds ago"), ("en", "Posted just now"),
        ("en", "a moment ago"),
    ],
)  # fmt: skip
def test_just_now(language: str | None, text: str) -> None:
    assert read(text, language) == NOW.isoformat()
    assert not DateReader(NOW, language=language, time_zone="UTC").read(text)[1], "another moment each time"


@pytest.mark.parametrize(
    ("language", "text", "days"),
    [
        ("en", "2.87 years ago", 2.87 * 365), ("en", "1.5 hours ago", 1.5 / 24), (None, "2.87 years ago", 2.87 * 365),
        ("de", "vor 2,5 Stunden", 2.5 / 24), ("ru", "2,5 года назад", 2.5 * 365), ("pl", "godzinę temu", 1 / 24),
        ("en", "half an hour ago", 0.5 / 24), ("zh", "2.87 years ago", 2.87 * 365), ("ru", "1.5 hours ago", 1.5 / 24),
        ("zh", "3 hours ago", 3 / 24),
    ],
)  # fmt: skip
def test_parts_of_years_and_hours_ago(language: str | None, text: str, days: float) -> None:
    found = datetime.fromisoformat(read(text, language) or "")
    assert abs((NOW - found) / timedelta(days=1) - days) < days * 0.003


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("fi", "eilen klo 14.05", "2026-11-21T14:05:00+00:00"), ("id", "kemarin 14.05", "2026-11-21T14:05:00+00:00"),
        ("id", "Kemarin jam 14:05", "2026-11-21T14:05:00+00:00"), ("tr", "Dün saat 14:05", "2026-11-21T14:05:00+00:00"),
        ("sv", "5 mars 2024 kl. 14:05", "2024-03-05T14:05:00+00:00"), ("pt", "05/03/2024 14h05", "2024-03-05T14:05:00+00:00"),
        ("pt", "ontem às 14h05", "2026-11-21T14:05:00+00:00"), ("fi", "5.3.2024 klo 14.05", "2024-03-05T14:05:00+00:00"),
        ("fi", "toissapäivänä 14:05", "2026-11-20T14:05:00+00:00"), ("sv", "I förrgår 14:05", "2026-11-20T14:05:00+00:00"),
        ("fa", "پریروز ۱۴:۰۵", "2026-11-20T14:05:00+00:00"), ("el", "προχθές 14:05", "2026-11-20T14:05:00+00:00"),
        ("nl", "een uur geleden", "2026-11-22T11:50:00+00:00"), ("nl", "een jaar geleden", "2025-11-22T12:50:00+00:00"),
        ("it", "un anno fa", "2025-11-22T12:50:00+00:00"), ("vi", "một giờ trước", "2026-11-22T11:50:00+00:00"),
        ("id", "sejam yang lalu", "2026-11-22T11:50:00+00:00"), ("th", "3 ชั่วโมงที่แล้ว", "2026-11-22T09:50:00+00:00"),
        ("he", "לפני שעה", "2026-11-22T11:50:00+00:00"), ("he", "לפני שעתיים", "2026-11-22T10:50:00+00:00"),
        ("ar", "منذ ساعة", "2026-11-22T11:50:00+00:00"), ("ar", "منذ 3 أشهر", "2026-08-22T12:50:00+00:00"),
        ("ar", "منذ أسبوعين", "2026-11-08T12:50:00+00:00"), ("fa", "دو روز پیش", "2026-11-20T12:50:00+00:00"),
        ("ko", "한 시간 전", "2026-11-22T11:50:00+00:00"), ("ko", "하루 전", "2026-11-21T12:50:00+00:00"),
        ("th", "5 มี.ค. 67", "2024-03-05T00:00:00+00:00"), ("th", "5 มี.ค. 14:05", "2026-03-05T14:05:00+00:00"),
        ("he", "הרגע", "2026-11-22T12:50:00+00:00"), ("fa", "لحظاتی پیش", "2026-11-22T12:50:00+00:00"),
        (None, "05.03.2024 14:05", "2024-03-05T14:05:00+00:00"), (None, "05/03/2024 14:05", "2024-05-03T14:05:00+00:00"),
    ],
)  # fmt: skip
def test_words_and_signs_of_many_languages(language: str | None, text: str, moment: str) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00", "9999-12-31T23:59:59", "9999-12-31T23:59:59-12:00", "1970-01-01", "31 Dec 9999 -1200", "never",
        "10:15.3.4",
        "5 replies", "by ann", "...", "»", "Re: Re:", "1.2.3.4", "99-99 99:99", "99月99日", "25:61",
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", ["en", "zh", "de"])
def test_what_says_never_or_is_no_date(text: str, language: str) -> None:
    assert read(text, language) is None


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/Los_Angeles"])
@pytest.mark.parametrize(
    ("language", "form"),
    [
        ("zh", "%m-%d %H:%M"), ("zh", "%m月%d日 %H:%M"), ("ja", "%m/%d %H:%M"), ("de", "%d.%m. %H:%M"), ("en", "%b %d, %H:%M"),
        ("en-GB", "%d/%m %H:%M"), ("sv", "%m-%d %H:%M"),
    ],
)  # fmt: skip
def test_each_day_of_the_last_year_is_read_as_itself(language: str, form: str, zone: str) -> None:
    """At the end of a year, at its beginning, on a leap day and behind one, on the clock of the board."""
    for now in (
        NOW,
        datetime(2026, 1, 1, 0, 30, tzinfo=UTC),
        datetime(2024, 2, 29, 6, tzinfo=UTC),
        datetime(2025, 2, 28, 23, tzinfo=UTC),
    ):
        reader = DateReader(now, language=language, time_zone=zone)
        here = now.astimezone(ZoneInfo(zone)).replace(second=0)
        for days in (*range(0, 365, 7), 1, 363, 364):
            day = (here.replace(tzinfo=None) - timedelta(days=days, minutes=11)).replace(tzinfo=ZoneInfo(zone))
            assert reader.read(day.strftime(form)) == (day.astimezone(UTC), False), (now, day)


@pytest.mark.parametrize("form", ["%m-%d %H:%M", "%d.%m. %H:%M", "%d %b %H:%M"])
def test_a_form_without_a_year_gets_the_latest_that_is_not_in_the_future(form: str) -> None:
    for day, expected in (
        (datetime(2026, 11, 21, 8, 3), 2026),
        (datetime(2026, 12, 5, 8, 3), 2025),
        (datetime(2024, 2, 29, 8), 2024),
    ):
        found = read(day.strftime(form), "en", formats=(form,))
        assert found == day.replace(year=expected, tzinfo=UTC).isoformat()
    assert read("13:00", "en", formats=("%H:%M",)) == "2026-11-21T13:00:00+00:00"
    assert read("12:00", "en", formats=("%H:%M",)) == "2026-11-22T12:00:00+00:00"
    assert read("29.02.", "en", formats=("%d.%m.",)) == "2024-02-29T00:00:00+00:00"


@pytest.mark.parametrize(("form", "part"), [("%d %H:%M", "without a month"), ("%Q", "cannot be read"), ("today", "no letters")])
def test_a_form_that_dates_cannot_be_read_by_is_refused(
    form: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=part):
        check_form(form)
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "s.toml").write_text(
        'profile = "phpbb"\nbase_url = "https://f.example"\nforums = ["1"]\n'
        f'[pages.comments.fields]\ncreated_at = {{ select = "time", formats = ["{form}"] }}\n'
    )
    with pytest.raises(SiteError, match=part):
        load_site("s")


@pytest.mark.parametrize("form", ["%m-%d %H:%M", "%Y-%m-%d", "%d.%m.%y %Hh%M", "%H:%M", "%j/%Y", "%A, %d %B %Y %I:%M %p", "%c"])
def test_forms_that_dates_can_be_read_by(form: str) -> None:
    assert check_form(form) == form


@pytest.mark.parametrize("header", ["Fri, 31 Dec 9999 23:59:59 -1200", "31 Dec 9999 -1200", "x", ""])
def test_a_clock_of_no_calendar_does_not_kill_the_page(header: str) -> None:
    moment = read_at(HtmlResponse("http://f.example", headers={"Date": header}))
    assert abs(moment - datetime.now(UTC)) < timedelta(minutes=1)
    assert DateReader(moment, language="en", time_zone="Pacific/Kiritimati").read("yesterday")[0]


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("Nov. 21, 2026, noon", 12),
        ("Nov. 21, 2026, midnight", 0),
        ("PM 8:03, 21 Nov 2026", 20),
        ("Nov. 21, 2026, 4 p.m.", 16),
        ("Nov 21, 2026, 12 AM", 0),
        ("Nov. 21, 2026, 11 p.m.)", 23),
    ],
)
def test_hours_in_words(text: str, hour: int) -> None:
    assert read(text, None) == f"2026-11-21T{hour:02}:{'03' if ':' in text else '00'}:00+00:00"


def test_a_small_word_before_a_date_is_no_half_of_a_day() -> None:
    assert read("am 21.11.2026 um 8:03", "de") == DAY


@pytest.mark.parametrize(
    ("lang", "language"),
    [("pt-br", "pt"), ("zh-CN", "zh"), ("de", "de"), ("en_gb", "en-GB"), ("xx", None), ("", None), ("x" * 50, None)],
)
def test_the_language_of_a_page(lang: str, language: str | None) -> None:
    assert known_language(lang) == language


def test_a_date_in_another_language_than_the_site_s_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "s.toml").write_text('profile = "phpbb"\nbase_url = "https://f.example"\nforums = ["1"]\n')
    date = "lundi 20 févr. 2017 13:00"
    assert read(date, "en") == "2017-02-20T13:00:00+00:00"
    post = f'<div id="p1" class="post"><p class="author">par <b>Ann</b> » {date}</p><div class="content">x</div></div>'
    html = f'<html lang="fr-FR"><body class="section-viewtopic">{post}</body></html>'
    page = read_comments(load_site("s"), HtmlResponse("https://f.example/t", body=html.encode(), encoding="utf-8"), "1")
    assert page.post is not None
    assert page.post.created_at == datetime(2017, 2, 20, 13, tzinfo=UTC)


@pytest.mark.parametrize("language", ["en", None])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Nov. 20, 2026, 2:31 p.m.", "2026-11-20T14:31:00+00:00"), ("November 20, 2026, 2:31 P.M.", "2026-11-20T14:31:00+00:00"),
        ("Nov 20, 2026 2:31 p. m.", "2026-11-20T14:31:00+00:00"),
        ("Posted Nov 20, 2026, 2:31 p.m. by ann", "2026-11-20T14:31:00+00:00"),
        ("Nov. 20, 2026, 12:05 a.m.", "2026-11-20T00:05:00+00:00"), ("Nov. 20, 2026, 12:05 p.m.", "2026-11-20T12:05:00+00:00"),
    ],
)  # fmt: skip
def test_the_half_of_a_day_with_full_stops_is_no_lost_word(language: str | None, text: str, moment: str) -> None:
    found, _ = DateReader(datetime(2026, 11, 22, 12, 0, tzinfo=UTC), language=language, time_zone="UTC").read(text)
    assert found == datetime.fromisoformat(moment)


def test_a_month_in_another_language_is_not_the_month_of_reading() -> None:
    assert read("20 ноября 2026, 14:31", "es", now=NOW) == "2026-11-20T14:31:00+00:00"
    assert read("20. Wintermonat 2026", "es", now=NOW) is None


@pytest.mark.parametrize("language", ["ar", "el", "fi", "fr", "ja", "sv", "tr", "uk", "vi", "zh"])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("13-03-2023, 09:14 PM", "2023-03-13T21:14:00+00:00"),
        ("Mar 13, 2023 12:05 AM", "2023-03-13T00:05:00+00:00"),
        ("Monday, 13th March 2023 at 9:14 pm", "2023-03-13T21:14:00+00:00"),
        ("昨天 20:11", "2026-11-21T20:11:00+00:00"),
    ],
)
def test_untranslated_dates_are_read_on_boards_of_any_language(language: str, text: str, moment: str) -> None:
    found, _ = DateReader(datetime(2026, 11, 22, 12, 0, tzinfo=UTC), language=language, time_zone="UTC").read(text)
    assert found == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("11-21 08:03", "2026-11-21T08:03:00+00:00"),
        ("半小时前", "2026-11-22T11:30:00+00:00"),
        ("3分鐘前", "2026-11-22T11:57:00+00:00"),
    ],
)
@pytest.mark.parametrize("language", ["en", "ru"])
def test_chinese_dates_are_read_on_boards_of_other_languages(language: str, text: str, moment: str) -> None:
    found, _ = DateReader(datetime(2026, 11, 22, 12, 0, tzinfo=UTC), language=language, time_zone="UTC").read(text)
    assert found == datetime.fromisoformat(moment)


@pytest.mark.parametrize("language", ["ar", None])
@pytest.mark.parametrize("text", ["21 تشرين الثاني 2026 08:03", "السبت ٢١ تشرين ثاني ٢٠٢٦ - ٠٨:٠٣ ص", "21 نوفمبر 2026 08:03"])
def test_arabic_months_by_their_names_in_each_country(language: str | None, text: str) -> None:
    assert read(text, language) == DAY
    assert read("4 جويلية 2026", language) == read("4 تموز 2026", language) == "2026-07-04T00:00:00+00:00"


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja", "fa", "th", None])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("令和8年11月21日 08:03", DAY), ("令和元年5月1日", "2019-05-01T00:00:00+00:00"),
        ("平成30年4月1日 12:00", "2018-04-01T12:00:00+00:00"), ("民國115年11月21日 08:03", DAY),
        ("21 พ.ย. 2569 08:03", DAY), ("วันเสาร์ที่ ๒๑ พฤศจิกายน ๒๕๖๙ เวลา 08:03 น.", DAY),
        ("۳۰ آبان ۱۴۰۵ ساعت ۰۸:۰۳", DAY), ("شنبه 30 آبان 1405، 08:03", DAY), ("30 اسفند 1403", "2025-03-20T00:00:00+00:00"),
    ],
)  # fmt: skip
def test_years_of_other_calendars(language: str | None, text: str, moment: str) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("ja", "R8.11.21", "2026-11-21T00:00:00+00:00"), ("ja", "S63.1.2", "1988-01-02T00:00:00+00:00"),
        ("th", "21/11/2569 08:03", DAY), ("fa", "1405/08/30", "2026-11-21T00:00:00+00:00"), ("fa", "۱۴۰۵/۰۸/۳۰ ۰۸:۰۳", DAY),
        ("fa", "30 Aban", None), ("fa", "1405/13/30", None), ("fa", "2026-11-21 08:03", DAY), ("th", "21/11/2026 08:03", DAY),
    ],
)  # fmt: skip
def test_numbers_of_other_calendars_in_their_languages(language: str, text: str, moment: str | None) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize("language", ["ru", "zh", "fa", "de", "fr"])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Sat, 21 Nov 2026 09:03:00 +0100", DAY), ("21 Nov 2026 08:03:00 GMT", DAY), ("Saturday at 8:03 AM", DAY),
        ("last Saturday at 08:03", DAY), ("Fri 15:04", "2026-11-20T15:04:00+00:00"),
        ("3 d", "2026-11-19T12:50:00+00:00"), ("2h ago", "2026-11-22T10:50:00+00:00"),
        ("1 day, 3 hours ago", "2026-11-21T09:50:00+00:00"), ("an hour ago", "2026-11-22T11:50:00+00:00"),
    ],
)  # fmt: skip
def test_english_of_feeds_and_plugins_on_boards_of_other_languages(language: str, text: str, moment: str) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("cs", "so 08:03", DAY), ("da", "Lørdag kl. 08:03", DAY), ("tr", "21 Ka 2026 08:03", DAY),
        ("hu", "2026. XI. 21. 08:03", DAY),
        ("en", "last week", "2026-11-15T12:50:00+00:00"), ("fr", "il y a 3 j", "2026-11-19T12:50:00+00:00"),
        ("uk", "3 год тому", "2026-11-22T09:50:00+00:00"), ("hr", "21. lis 2026. 08:03", "2026-10-21T08:03:00+00:00"),
        ("sv", "21/11/2026", "2026-11-21T00:00:00+00:00"), ("de", "#12", None),
    ],
)  # fmt: skip
def test_the_words_of_the_given_language_count_where_others_give_no_day(language: str, text: str, moment: str | None) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("text", "language", "moment"),
    [
        ("vor 3 Stunden", "en", "2026-11-22T09:50:00+00:00"), ("3 дня назад", "en", "2026-11-19T12:50:00+00:00"),
        ("hace 3 semanas", "ru", "2026-11-01T12:50:00+00:00"), ("منذ 3 ساعات", "en", "2026-11-22T09:50:00+00:00"),
        ("2 tuần trước", "en", "2026-11-08T12:50:00+00:00"), ("3 dni temu", "de", "2026-11-19T12:50:00+00:00"),
        ("5. listopad 2020", "cs", "2020-11-05T00:00:00+00:00"), ("5. listopad 2020", "hr", "2020-10-05T00:00:00+00:00"),
        ("3 posts", "de", None), ("3 m", "ru", "2026-11-22T12:47:00+00:00"), ("Ann 3", "ru", None),
        ("3 days ago 14 replies", "en", "2026-11-19T12:50:00+00:00"), ("3 days ago 3", "it", "2026-11-19T12:50:00+00:00"),
    ],
)  # fmt: skip
def test_elapsed_time_is_read_in_any_language_and_a_month_in_its_own(text: str, language: str, moment: str | None) -> None:
    assert read(text, language) == moment


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "by John D. on November 21, 2026 at 08:03"), ("de", "von Heidi W. am 21. November 2026 um 08:03"),
        ("de", "von Heidi W. am 21.11.2026 08:03"), ("fr", "par Marc D. le 21 novembre 2026 à 08:03"),
        ("en", "Ben K 2026-11-21 08:03 | parent | link"), ("en", "Posted Saturday at 8:03"), ("en", "by ida on Saturday 8:03 am"),
        ("de", "Verfasst: Samstag, 8:03 Uhr"), ("fr", "Posté samedi à 8:03"), ("es", "Publicado el sábado a las 8:03"),
        ("pt", "por Inês M. em 21 de novembro de 2026 às 08:03"), ("da", "af Ida M. d. 21. november 2026 kl. 08:03"),
    ],
)  # fmt: skip
def test_other_words_and_the_initial_of_a_name_are_no_part_of_a_date(language: str, text: str) -> None:
    assert read(text, language) == DAY
