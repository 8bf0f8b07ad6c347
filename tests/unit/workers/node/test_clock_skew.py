"""Whether a machine's clock agrees with Redis's."""

from __future__ import annotations

import pytest

from workers.node.heartbeat import complaint, off_by


@pytest.mark.parametrize(
    ("redis_s", "asked_s", "answered_s", "off_s"),
    [
        (100.0, 100.0, 100.1, 0.0),
        (100.0, 102.9, 103.0, 0.0),
        (100.0, 90.0, 110.0, 0.0),  # Redis hung: nobody knows when in between it looked at its clock
        (100.0, 160.0, 160.1, 60.0),
        (100.0, 40.0, 40.5, -59.5),
    ],
)
def test_seconds_ahead_or_behind(redis_s: float, asked_s: float, answered_s: float, off_s: float) -> None:
    assert off_by(redis_s, asked_s, answered_s) == off_s


def test_the_complaint_says_which_way() -> None:
    assert "60 s ahead" in complaint(60.2)
    assert "60 s behind" in complaint(-60.2)
