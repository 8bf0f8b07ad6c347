"""What sites say of their own limits, in the forms that are in use."""

from __future__ import annotations

import pytest
from scrapy.http import Headers

from redis_components.scrapy_glue.retry_after import SitePulse, used_up_s

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "7"}, 7),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 90)}, 90),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) - 90)}, 1),
        ({"X-RateLimit-Remaining": "0"}, None),
        ({"X-Rate-Limit-Remaining": "0", "X-Rate-Limit-Reset": "0.5"}, 1),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "999999"}, 86_400),
        ({"X-RateLimit-Remaining": "none", "X-RateLimit-Reset": "soon"}, None),
        ({"X-RateLimit-Remaining": "-1", "X-RateLimit-Reset": "-5"}, None),
        ({"X-RateLimit-Remaining": "0.0", "X-RateLimit-Reset": str(int(NOW + 90) * 1000)}, 90),
        (
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW)), "Date": "Fri, 15 Jan 2027 07:59:00 GMT"},
            60,
        ),
    ],
)
def test_nothing_is_left_for_so_long(headers: dict[str, str | list[str]], seconds: float | None) -> None:
    assert used_up_s(Headers(headers), NOW) == seconds


def test_a_site_that_takes_far_longer_than_before_is_slow_until_that_is_usual() -> None:
    pulse = SitePulse()
    assert not any(pulse.answered(n, 0.4) for n in range(50))
    said = [pulse.answered(50 + n, 4.0) for n in range(200)]
    assert True in said[:10]
    assert not said[-1]


def test_a_site_whose_first_answers_are_slow_is_not() -> None:
    pulse = SitePulse()
    assert not any(pulse.answered(n, 9.0 if n < 5 else 2.0) for n in range(50))


def test_the_rate_is_that_of_the_last_requests() -> None:
    pulse = SitePulse()
    for n in range(500):
        pulse.answered(n / 20, 0.1)
    assert 18 < pulse.rate(25) < 22
    pulse.ended(25)
    assert SitePulse().rate(0) == 0.1


def test_a_site_that_was_asked_little_lately_counts_by_what_it_took_before() -> None:
    pulse = SitePulse()
    for n in range(500):
        pulse.answered(n / 20, 0.1)
    for n in range(5):
        pulse.ended(40.0 + 5 * n)
    assert 12 < pulse.rate(60) < 18
    assert pulse.rate(3600) < 2
