"""What Trawl assumes of the installed Scrapy's engine, each assumption by itself: this file fails first when Scrapy changes."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any
from unittest.mock import Mock

import pytest
import scrapy
from scrapy.core.downloader import Downloader
from scrapy.core.downloader import Slot as DownloaderSlot
from scrapy.core.engine import _Slot
from scrapy.core.scraper import Scraper
from scrapy.exceptions import IgnoreRequest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from redis_components.engine import InProgress, NotNow, take_back, watch_finished
from redis_components.errors import IncompatibleEngine


def engine_with(slot: object, scraper: object = None) -> Any:
    """The attributes of a crawler that the hook looks at; the rest of these tests is real Scrapy."""
    return Mock(engine=Mock(_slot=slot, scraper=scraper or Mock()))


def test_a_finished_request_leaves_the_slots_set_of_requests_in_progress() -> None:
    begun: list[scrapy.Request] = []
    finished: list[scrapy.Request] = []

    async def in_the_loop() -> None:
        slot = _Slot(False, Mock(), Mock())
        wake = watch_finished(engine_with(slot), finished.append, begun=begun.append)
        request = scrapy.Request("http://127.0.0.1/")
        slot.add_request(request)
        assert (begun, finished) == ([request], [])
        slot.remove_request(request)
        assert finished == [request]
        assert wake == slot.nextcall.schedule
        assert isinstance(slot.inprogress, InProgress)

    asyncio.run(in_the_loop())


@pytest.mark.parametrize("slot", [None, object(), Mock(inprogress=[]), Mock(inprogress={scrapy.Request("http://127.0.0.1/")})])
def test_an_engine_without_that_point_is_refused_with_the_fix(slot: object) -> None:
    with pytest.raises(IncompatibleEngine, match=r"has no known point .* install the Scrapy version that"):
        watch_finished(engine_with(slot), lambda request: None)


def test_a_scraper_that_handles_errors_elsewhere_is_refused() -> None:
    async def in_the_loop() -> None:
        with pytest.raises(IncompatibleEngine, match=r"engine\.scraper\.handle_spider_error"):
            watch_finished(engine_with(_Slot(False, Mock(), Mock()), scraper=object()), lambda request: None)

    asyncio.run(in_the_loop())


def test_the_scraper_looks_its_error_handler_up_on_itself_each_time() -> None:
    for method in (Scraper._scrape, Scraper.handle_spider_output_async):
        assert "self.handle_spider_error" in inspect.getsource(method)


def test_requests_are_compared_by_identity_so_that_a_copy_never_acks_the_original() -> None:
    request = scrapy.Request("http://127.0.0.1/")
    assert len({request, request.copy()}) == 2


def test_the_scheduler_is_reachable_while_a_spider_runs() -> None:
    assert isinstance(scrapy.core.engine.ExecutionEngine.scheduler, property)


def test_a_request_that_waits_in_the_downloader_stands_in_its_slots_queue_with_the_deferred_that_lets_it_go_on() -> None:
    waits, other = scrapy.Request("http://127.0.0.1/1"), scrapy.Request("http://127.0.0.1/2")
    waits.errback = other.errback = lambda failure: None
    slot = DownloaderSlot(concurrency=1, delay=0)
    turns: list[Deferred[Any]] = [Deferred(), Deferred()]
    slot.queue.extend(zip((waits, other), turns, strict=True))
    ended: list[Failure] = []
    turns[0].addErrback(ended.append)
    take_back(Mock(engine=Mock(downloader=Mock(slots={"127.0.0.1": slot}))), lambda request: request is waits)
    assert [type(failure.value) for failure in ended] == [NotNow]
    assert (waits.errback, list(slot.queue)) == (None, [(other, turns[1])])
    assert "slot.queue.append((request, d))" in inspect.getsource(Downloader._enqueue_request)
    assert "request, queue_dfd = slot.queue.popleft()" in inspect.getsource(Downloader._process_queue)
    assert issubclass(NotNow, IgnoreRequest), "which Scrapy neither retries nor logs"
