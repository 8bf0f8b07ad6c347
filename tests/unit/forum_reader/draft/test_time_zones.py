"""The time zone of a site by its pages: what they say, their clocks, and the language they are in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.draft.wrapper import zone_of

MADE = datetime(2026, 11, 22, 12, 50, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("html", "language", "zone"),
    [
        ("<p>All times are UTC+02:00</p>", "en", "Etc/GMT-2"),
        ("<p>All times are UTC</p>", "de", "UTC"),
        ('<p>All times are <span title="Europe/Madrid">UTC+1</span></p>', "en", "Europe/Madrid"),
        ("<p>所有显示的时间均为 UTC+08:00</p>", "zh", "Etc/GMT-8"),
        ("<p>GMT+8, 2026-11-22 20:50 , Processed in 0.03 second(s)</p>", None, "Etc/GMT-8"),
        ("<p><strong>Current time:</strong> 11-22-2026, 03:50 PM</p>", "en", "Etc/GMT-3"),
        ("<p>It is currently Sun Nov 22, 2026 7:50 am</p>", "en", "Etc/GMT+5"),
        ("<p>The time now is 01:50 PM.</p>", "en", "Etc/GMT-1"),
        ("<p>Aktuelle Zeit: So 22. Nov 2026, 13:51</p>", "de", "Europe/Berlin"),
        ("<p>当前时间 2026-11-22 20:50:29</p>", "zh-CN", "Asia/Shanghai"),
        ("<p>Current time: 22 Nov 2026 18:20</p>", "en-GB", "Asia/Kolkata"),
        ("<p>Current time: 22 Nov 2026 12:50</p>", "en", "UTC"),
        ("<p>Current time: 21 Nov 2019 13:50</p>", "en", None),
        ("<p>Current time: 13:52</p>", "en", "Etc/GMT-1"),
        ("<p>Current time: 13:41</p>", "en", None),
        ("<p>Words.</p>", "en", None),
        ("<p>Words.</p>", "de", None),
        ("<p>Words.</p>", "ja", "Asia/Tokyo"),
        ("<p>Words.</p>", "zh-TW", "Asia/Taipei"),
        ("<p>Words.</p>", "ko-KR", "Asia/Seoul"),
    ],
)
def test_the_zone_of_a_page(html: str, language: str | None, zone: str | None) -> None:
    found = zone_of(html, MADE, language)
    assert (found.name if found else None) == zone
