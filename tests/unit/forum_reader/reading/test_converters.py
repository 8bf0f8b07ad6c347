"""Values as forums write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.dates.post_calendar import check_language
from forum_reader.dates.read_date import DateReader
from forum_reader.reading import found_values
from forum_reader.reading.html_text import text_of

NOW = datetime(2026, 11, 22, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12), ("1,234", 1234), ("1.234", 1234), ("1 234", 1234), ("1\u00a0234 replies", 1234), ("1'234", 1234),
        ("1.2k", 1200), ("1,2K", 1200), ("3.4M views", 3_400_000), ("12 万", 120_000), ("1.2万", 12_000), ("3 members", 3),
        ("1,234,567", 1_234_567), ("Replies: 7", 7), ("-1", -1), ("12.5", 12), ("none", None), ("", None), (None, None),
        ("１．２万", 12_000), ("1٬234", 1234), ("١٫٢ ألف", 1200), ("۱٫۲ هزار", 1200), ("1.2 พัน", 1200), ("3 triệu", 3_000_000),
        ("5 ألفاظ", 5), ("3 พันทิป", 3), ("回复3，120", 3),
        ("10k+", 10_000), ("5 minutes", 5), ("2 bids", 2), ("2.5 тыс.", 2500), ("1.2w", 12_000),
        ("1.2W+", 12_000), ("3 weeks", 3),
        ("12 b", 12_000), ("1,2B", 1200), ("2 mille", 2000), ("1,5 mila", 1500), ("3 tusen", 3000), ("12 χιλ.", 12_000),
        ("5 bilder", 5), ("12 хил.", 12_000), ("4 ezer", 4000), ("2 millets", 2), ("1,2 тис.", 1200),
        ("1,2 tys.", 1200), ("1,2 mln", 1_200_000), ("3 Mio.", 3_000_000), ("2 mil", 2000), ("3 milestones", 3), ("5,3к", 5300),
        ("100万", 1_000_000), ("3千", 3000), ("5万人", 50_000), ("1.2만", 12_000), ("1,23,456", 123_456), ("1.234,56", 1234),
        ("1,234.5", 1234), ("1.234.567", 1_234_567), ("12 345 678", 12_345_678), ("Replies: 3 12 views", 3), ("12 w kolejce", 12),
        ("１２３", 123), ("\u2212" + "4", -4), ("0.5k", 500), ("9.95k views", 9950), ("9" * 30, None),
    ],
)  # fmt: skip
def test_numbers(text: str | None, number: int | None) -> None:
    assert found_values.whole_number(text) == number


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-22T10:00:00Z", "2026-11-22T10:00:00+00:00"),
        ("2026-11-22T10:00:00+0800", "2026-11-22T02:00:00+00:00"),
        ("2026-11-22 10:00", "2026-11-22T09:00:00+00:00"),
        ("1795338000", "2026-11-22T09:00:00+00:00"),
        (1795338000000, "2026-11-22T09:00:00+00:00"),
        ("22. November 2026, 10:00", "2026-11-22T09:00:00+00:00"),
        ("vor 2 Stunden", "2026-11-22T11:30:00+00:00"),
        ("gestern, 14:02", "2026-11-21T13:02:00+00:00"),
        ("gestern um 14:02", "2026-11-21T13:02:00+00:00"),
        ("22.11.26 10h00", "2026-11-22T09:00:00+00:00"),
        ("22.11.26, 10:00 Uhr", "2026-11-22T09:00:00+00:00"),
        ("0", None), (0, None), ("", None), (None, None), (True, None), ("never", None), ("2026-13-45", None), ("9" * 30, None),
    ],
)  # fmt: skip
def test_dates_of_a_german_forum(text: object, moment: str | None) -> None:
    found, _ = DateReader(NOW, language="de", time_zone="Europe/Berlin").read(text, ("%d.%m.%y %Hh%M",))
    assert (found.isoformat() if found else None) == moment


@pytest.mark.parametrize(
    ("language", "text", "moment"),
    [
        ("en", "yesterday, 14:02", "2026-11-21T14:02:00+00:00"),
        ("en", "2 hours ago", "2026-11-22T11:30:00+00:00"),
        ("en", "Nov 3", "2026-11-03T00:00:00+00:00"),
        ("en-GB", "03/04/2026", "2026-04-03T00:00:00+00:00"),
        ("en", "03/04/2026", "2026-03-04T00:00:00+00:00"),
        ("zh", "2小时前", "2026-11-22T11:30:00+00:00"),
        (None, "il y a 3 jours", "2026-11-19T13:30:00+00:00"),
    ],
)
def test_dates_of_other_forums(language: str | None, text: str, moment: str) -> None:
    found, _ = DateReader(NOW, language=language, time_zone="UTC").read(text)
    assert found is not None
    assert found.isoformat() == moment


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("2 hours ago", False), ("yesterday, 14:02", False), ("Nov 3", False),
        ("November 3, 2025", True), ("2026-11-22T10:00:00Z", True), ("1795338000", True),
    ],
)  # fmt: skip
def test_which_dates_mean_the_same_whenever_they_are_read(text: str, fixed: bool) -> None:
    assert DateReader(NOW, language="en", time_zone="UTC").read(text)[1] == fixed


def test_a_language_that_is_spelt_wrong_is_answered_with_those_that_look_like_it() -> None:
    with pytest.raises(ValueError, match=r"did you mean en-GB"):
        check_language("en-gb")


@pytest.mark.parametrize(
    ("link", "absolute"),
    [
        ("/t/1", "http://forum.example/t/1"), ("?page=2", "http://forum.example/b/?page=2"), ("#", None), ("#post3", None),
        ("", None), ("javascript:void(0)", None), ("mailto:a@b.example", None), ("http://[", None),
        (" /a b ", "http://forum.example/a b"),
        ("/t?f=1&sid=abc&p=2#x", "http://forum.example/t?f=1&p=2#x"),
    ],
)  # fmt: skip
def test_links(link: str, absolute: str | None) -> None:
    assert found_values.absolute_url(link, "http://forum.example/b/", ("sid",)) == absolute


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("un<b>believ</b>able &amp; <i>fine</i>, ok", "unbelievable & fine, ok"),
        ("什么有<strong>用</strong>吗", "什么有用吗"),
        ("<p>a<br>b</p>\n<p>c  d\n e</p><ul><li>x</li><li>y</li></ul>z", "a\nb\n\nc d e\n\nx\ny\n\nz"),
        ("<pre>def f():\n    return 1\n</pre>after", "def f():\n    return 1\n\nafter"),
        ("<pre><b>def</b> f():\n    <b>return</b> 1\n</pre>after", "def f():\n    return 1\n\nafter"),
        ("<pre><i>&gt; quoted\n</i>\nanswer</pre>", "> quoted\n\nanswer"),
        ("<p>before</p><pre>\n\nx\n<i>\n</i></pre>after", "before\n\nx\n\nafter"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"),
        ("<blockquote><cite>ann wrote:</cite>Hello</blockquote>Hi", "ann wrote:\nHello\n\nHi"),
        ("t<!-- no --><script>no</script><style>no</style> u", "t u"),
        ("just text &lt;3", "just text <3"), ("<br>", None), ("", None), (None, None),
        ("<b>" * 2000 + "deep", "deep"),
    ],
)  # fmt: skip
def test_html_becomes_the_text_that_a_browser_shows(markup: str | None, text: str | None) -> None:
    assert text_of(markup) == text
