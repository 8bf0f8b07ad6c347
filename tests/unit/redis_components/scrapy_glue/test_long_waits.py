"""Requests that wait long for their site make room for those of others."""

from __future__ import annotations

import pytest
from scrapy import Request

from redis_components.scrapy_glue.internals import LONG_S, LongWaits
from tests.support.owner import HandClock


class Downloader:
    """As far as it is looked at."""

    def __init__(self, most: int) -> None:
        self.total_concurrency = most
        self.active: set[Request] = set()
        self.clock = HandClock()
        self.woken = 0
        self.waits = LongWaits(self, self._woken, self.clock.now, self.clock.call_later)

    def _woken(self) -> None:
        self.woken += 1

    def start(self, number: int) -> list[Request]:
        """So many more, as long as there is room."""
        begun: list[Request] = []
        while len(begun) < number and len(self.active) < self.total_concurrency:
            self.waits.begin()
            begun.append(Request("http://127.0.0.1/"))
            self.active.add(begun[-1])
        return begun


@pytest.fixture
def downloader() -> Downloader:
    return Downloader(8)


def test_places_of_requests_that_wait_long_are_given_to_others_within_a_second(downloader: Downloader) -> None:
    assert len(downloader.start(20)) == 8
    downloader.clock.advance(0.7)
    assert (len(downloader.start(1)), downloader.woken) == (0, 0)
    downloader.clock.advance(0.3)
    assert downloader.woken, "the engine asks for requests"
    assert len(downloader.start(3)) == 3


def test_in_all_at_most_twice_as_many_are_at_work(downloader: Downloader) -> None:
    for _ in range(9):
        downloader.start(20)
        downloader.clock.advance(2)
    assert len(downloader.active) == 16


def test_those_that_are_answered_count_as_before(downloader: Downloader) -> None:
    for _ in range(20):
        downloader.start(8)
        downloader.clock.advance(LONG_S - 0.3)
        assert downloader.total_concurrency == 8
        downloader.active.clear()
    downloader.start(8)
    downloader.clock.advance(2)
    assert downloader.total_concurrency == 16
    downloader.active.clear()
    downloader.clock.advance(1)
    assert downloader.total_concurrency == 8, "and nobody looks any more"
    assert downloader.clock._calls == []


def test_nobody_looks_while_half_of_the_places_are_free(downloader: Downloader) -> None:
    downloader.start(4)
    downloader.clock.advance(9)
    assert (downloader.total_concurrency, downloader.clock._calls) == (8, [])
