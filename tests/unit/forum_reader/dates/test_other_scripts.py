"""Dates of other calendars and scripts: the reader of any page finds them, and the reader by a site file reads the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.dates.dates_in_text import spotted
from forum_reader.dates.post_calendar import Calendar
from forum_reader.dates.read_date import DateReader
from forum_reader.page.records import PageKind
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
WORDS = "hinge sundial marrow birch trowel anvil moss cider lichen raven scythe plum pier gasket kiln tin loom ferry".split()  # noqa: SIM905
NAMES = ("ann", "bob", "cyd", "dov")


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("th", "พ.ย. 20, 2569 09:05 ก่อนเที่ยง", "2026-11-20T09:05"), ("th", "พ.ย. 21, 2569 06:40 หลังเที่ยง", "2026-11-21T18:40"),
        ("th", "๒๐/๑๑/๒๕๖๙ ๐๙:๐๕", "2026-11-20T09:05"), ("th", "20 พฤศจิกายน 2569, 09:05:00 น.", "2026-11-20T09:05"),
        ("en", "20/11/2569 09:05", "2026-11-20T09:05"), ("fa", "۲۹ آبان ۱۴۰۵، ۰۹:۰۵", "2026-11-20T09:05"),
        ("fa", "۱۴۰۵/۰۸/۲۹ ۰۹:۰۵", "2026-11-20T09:05"), ("ar", "20 تشرين الثاني 2026 09:05", "2026-11-20T09:05"),
        ("ar", "20 شباط 2026", "2026-02-20T00:00"), ("ar", "\u200f20\u200f/11\u200f/2026 \u200f09:05\u200f", "2026-11-20T09:05"),
        ("en", "20\u200e/11\u200e/2026 09:05", "2026-11-20T09:05"), ("he", "20 בנובמבר 2026, 09:05", "2026-11-20T09:05"),
        ("hi", "20 नवंबर 2026 09:05", "2026-11-20T09:05"), ("hi", "२० नवम्बर २०२६, ०९:०५", "2026-11-20T09:05"),
        ("bn", "২০ নভেম্বর ২০২৬ ০৯:০৫", "2026-11-20T09:05"), ("ta", "20 நவம்பர் 2026", "2026-11-20T00:00"),
        ("ka", "20 ნოემბერი 2026, 09:05", "2026-11-20T09:05"), ("ka", "2026 წლის 20 ნოემბერი", "2026-11-20T00:00"),
        ("hy", "20 նոյեմբերի 2026", "2026-11-20T00:00"), ("am", "20 ኖቬምበር 2026", "2026-11-20T00:00"),
        ("km", "20 វិច្ឆិកា 2026", "2026-11-20T00:00"), ("vi", "20 tháng 11, 2026", "2026-11-20T00:00"),
        ("vi", "Ngày 20 tháng 11 năm 2026 lúc 09:05", "2026-11-20T09:05"), ("vi", "Thg 11 20, 2026", "2026-11-20T00:00"),
        ("eu", "2026(e)ko azaroaren 20a", "2026-11-20T00:00"), ("eu", "2026ko azaroak 20, 09:05", "2026-11-20T09:05"),
        ("lv", "2026. gada 20. novembris", "2026-11-20T00:00"), ("lt", "2026 m. lapkričio 20 d.", "2026-11-20T00:00"),
        ("hi", "3 घंटे पहले", "2026-11-28T09:00"), ("ka", "3 საათის წინ", "2026-11-28T09:00"),
        ("he", "לפני 3 שעות", "2026-11-28T09:00"),
        ("bn", "3 ঘন্টা আগে", "2026-11-28T09:00"), ("fa", "3 ساعت پیش", "2026-11-28T09:00"),
        ("ar", "منذ 3 ساعات", "2026-11-28T09:00"),
        ("th", "3 ชั่วโมงที่แล้ว", "2026-11-28T09:00"), ("th", "2 ชม.ที่แล้ว", "2026-11-28T10:00"),
        ("ar", "منذ ساعتين", "2026-11-28T10:00"), ("fa", "3 ساعت قبل", "2026-11-28T09:00"),
        ("ne", "३ घण्टा अघि", "2026-11-28T09:00"), ("km", "3 ម៉ោងមុន", "2026-11-28T09:00"),
        ("my", "3 နာရီ အကြာက", "2026-11-28T09:00"), ("am", "ከ3 ሰዓት በፊት", "2026-11-28T09:00"),
        ("eu", "orain dela 3 ordu", "2026-11-28T09:00"), ("lv", "pirms 3 stundām", "2026-11-28T09:00"),
        ("lt", "prieš 3 valandas", "2026-11-28T09:00"), ("et", "3 tundi tagasi", "2026-11-28T09:00"),
        ("hu", "3 órája", "2026-11-28T09:00"), ("hu", "3 órával ezelőtt", "2026-11-28T09:00"),
        ("sl", "pred 3 urami", "2026-11-28T09:00"), ("hr", "prije 3 sata", "2026-11-28T09:00"),
        ("sr", "пре 3 сата", "2026-11-28T09:00"), ("mk", "пред 3 часа", "2026-11-28T09:00"),
        ("be", "3 гадзіны таму", "2026-11-28T09:00"), ("kk", "3 сағат бұрын", "2026-11-28T09:00"),
        ("ky", "3 саат мурун", "2026-11-28T09:00"), ("az", "3 saat əvvəl", "2026-11-28T09:00"),
        ("uz", "3 soat oldin", "2026-11-28T09:00"), ("sq", "3 orë më parë", "2026-11-28T09:00"),
        ("is", "fyrir 3 klukkustundum", "2026-11-28T09:00"), ("ga", "3 uair an chloig ó shin", "2026-11-28T09:00"),
        ("cy", "3 awr yn ôl", "2026-11-28T09:00"), ("ca", "fa 3 hores", "2026-11-28T09:00"),
        ("gl", "hai 3 horas", "2026-11-28T09:00"), ("el", "πριν από 3 ώρες", "2026-11-28T09:00"),
        ("tl", "3 oras ang nakalipas", "2026-11-28T09:00"), ("af", "3 uur gelede", "2026-11-28T09:00"),
        ("mn", "3 цагийн өмнө", "2026-11-28T09:00"), ("th", "เมื่อวานนี้ เวลา 09:05", "2026-11-27T09:05"),
        ("hi", "कल 09:05", "2026-11-27T09:05"), ("eu", "atzo 09:05", "2026-11-27T09:05"),
        ("is", "í gær kl. 09:05", "2026-11-27T09:05"), ("el", "χθες στις 09:05", "2026-11-27T09:05"),
        ("ca", "ahir a les 09:05", "2026-11-27T09:05"), ("ms", "semalam 09:05", "2026-11-27T09:05"),
        ("tl", "kahapon 09:05", "2026-11-27T09:05"), ("kk", "20 қараша 2026", "2026-11-20T00:00"),
        ("az", "20 noyabr 2026", "2026-11-20T00:00"), ("uz", "2026 yil 20-noyabr", "2026-11-20T00:00"),
        ("sq", "20 nëntor 2026", "2026-11-20T00:00"), ("be", "20 лістапада 2026", "2026-11-20T00:00"),
        ("ga", "20 Samhain 2026", "2026-11-20T00:00"), ("cy", "20 Tachwedd 2026", "2026-11-20T00:00"),
        ("fil", "Nobyembre 20, 2026", "2026-11-20T00:00"), ("sw", "20 Novemba 2026", "2026-11-20T00:00"),
        ("ar", "20 نونبر 2026", "2026-11-20T00:00"), ("ja", "R8.11.20", "2026-11-20T00:00"),
        ("zh", "115年11月20日", "2026-11-20T00:00"),
        ("uk", "3 години тому", "2026-11-28T09:00"),
    ],
)  # fmt: skip
def test_both_readers_read_the_same(language: str, text: str, moment: str) -> None:
    wanted = datetime.fromisoformat(f"{moment}:00+00:00")
    assert Calendar(NOW, language).read([spotted(text)]) == [wanted]
    assert DateReader(NOW, language=language, time_zone="UTC").read(text)[0] == wanted


@pytest.mark.parametrize(("text", "days"), [("преди 3 години", 1095.75), ("пред 2 години", 730.5), ("3 години тому", 0.125)])
def test_a_word_of_two_languages_is_read_by_the_word_before_it(text: str, days: float) -> None:
    found = spotted(text)
    assert found is not None
    assert found.back is not None
    assert found.back.total_seconds() == days * 86400


@pytest.mark.parametrize(
    "text",
    [
        "20 posts",
        "1448/05/09",
        "3 ชั่วโมง",
        "3 sata",
        "2569",
        "1405/99/99",
        "Posts: 1400/12",
        "ko 20",
        "3 m. tall",
        "31 มกราคม",
        "20 नमक 2026",
    ],
)
def test_other_texts_are_no_dates_of_a_year(text: str) -> None:
    found = spotted(text)
    assert found is None or found.precision < 3


def page(dates: list[str], language: str, name: str = "when", tag: str = "div") -> str:
    posts = "".join(
        f'<div class="msg" id="m{n + 11}"><div class="who"><a href="/u/{n}">{NAMES[n]}</a></div>'
        f'<{tag} class="{name}">{date}</{tag}>'
        f'<div class="what">{" ".join(WORDS[n:] + WORDS[:n])}</div></div>'
        for n, date in enumerate(dates)
    )
    return (
        f'<!doctype html><html lang="{language}"><head><title>A door</title></head><body><div id="top"><a href="/">Home</a></div>'
        f'<h1>A door</h1>{posts}<div id="foot">about this board</div></body></html>'
    )


@pytest.mark.parametrize(
    ("language", "form"),
    [
        ("th", "พ.ย. {}, 2569 09:05 ก่อนเที่ยง"), ("th", "{} พฤศจิกายน 2569, 09:05:00 น."),
        ("ar", "\u200f{}\u200f/11\u200f/2026 \u200f09:05"),
        ("hi", "{} नवंबर 2026, 09:05"), ("bn", "{} নভেম্বর ২০২৬ ০৯:০৫"), ("ka", "{} ნოემბერი, 2026, 09:05"),
        ("vi", "{} tháng 11, 2026 09:05"),
        ("eu", "2026ko azaroak {}, 09:05"), ("ar", "{} تشرين الثاني 2026 09:05"),
    ],
)  # fmt: skip
def test_the_posts_of_a_page_have_their_dates(language: str, form: str) -> None:
    seen = read_page(page([form.format(day) for day in (20, 21, 22, 24)], language), "https://forum.example/t/1", now=NOW)
    assert seen.kind is PageKind.THREAD
    assert [post.published for post in seen.posts] == [datetime(2026, 11, day, 9, 5, tzinfo=UTC) for day in (20, 21, 22, 24)]
    assert [post.author for post in seen.posts] == list(NAMES)


def test_ages_without_ago_are_dates_where_their_element_is_one() -> None:
    ages = ["3 days", "2 days", "5 hours", "10 minutes"]
    seen = read_page(page(ages, "en", "age"), "https://forum.example/t/1", now=NOW)
    assert [(NOW - post.published).total_seconds() if post.published else 0 for post in seen.posts] == [
        259200,
        172800,
        18000,
        600,
    ]
    other = read_page(page(ages, "en", "level"), "https://forum.example/t/1", now=NOW)
    assert all(post.published is None for post in other.posts)


def test_strings_that_may_be_dates_are_reported() -> None:
    seen = read_page(page([f"Qz{n}-11/{n}47~2026" for n in (1, 2, 3, 4)], "en"), "https://forum.example/t/1", now=NOW)
    assert [post.author for post in seen.posts] == list(NAMES)
    assert any("4 of 4 posts have no date; these may be dates: 'Qz1-11/147~2026'" in note for note in seen.notes), seen.notes
