"""The time zone of a site by its pages: the one that they name, or that of their language."""

from __future__ import annotations

import pytest

from forum_reader.draft.wrapper import zone_of


@pytest.mark.parametrize(
    ("html", "language", "zone"),
    [
        ("<p>All times are UTC+02:00</p>", "en", "Etc/GMT-2"),
        ("<p>All times are UTC</p>", "de", "UTC"),
        ('<p>All times are <span title="Europe/Madrid">UTC+1</span></p>', "en", "Europe/Madrid"),
        ("<p>所有显示的时间均为 UTC+08:00</p>", "zh", "Etc/GMT-8"),
        ("<p>GMT+8, 2026-11-22 20:50 , Processed in 0.03 second(s)</p>", None, "Etc/GMT-8"),
        ("<p>Words.</p>", "en", None),
        ("<p>Words.</p>", "de", None),
        ("<p>Words.</p>", "ja", "Asia/Tokyo"),
        ("<p>Words.</p>", "zh-TW", "Asia/Taipei"),
        ("<p>Words.</p>", "ko-KR", "Asia/Seoul"),
    ],
)
def test_the_zone_of_a_page(html: str, language: str | None, zone: str | None) -> None:
    assert zone_of(html, language) == zone
