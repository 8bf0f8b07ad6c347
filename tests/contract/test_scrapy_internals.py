"""What Trawl assumes of the installed Scrapy's internals, each assumption by name: this file fails first when Scrapy changes."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from scrapy import Request
from scrapy.core import scraper
from scrapy.core.downloader import Downloader
from scrapy.core.downloader import Slot as DownloaderSlot
from scrapy.core.engine import ExecutionEngine, _Slot
from scrapy.core.scraper import Scraper
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess, CrawlerRunner
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response
from scrapy.settings import Settings
from scrapy.spiders import Spider
from scrapy.statscollectors import MemoryStatsCollector, StatsCollector
from scrapy.utils.asyncio import AsyncioLoopingCall
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from forums.sites.http import politeness as of_forums
from redis_components.errors import IncompatibleEngine
from redis_components.scrapy_glue.internals import (
    InProgress,
    NotNow,
    check_when_sent,
    running_scheduler,
    send_at_once,
    take_back,
    watch_finished,
)
from tests.contract.assumptions import ASSERTED, DECLARED, asserts
from workers.crawler import scrapy_internals as of_workers

ROOT = Path(__file__).parents[2]
PRIVATE_IMPORT = re.compile(r"^from scrapy\S*\._\w+ import .*|^from scrapy\S* import .*\b_\w+", re.MULTILINE)


def source(of: Any) -> str:
    """Its text with single spaces."""
    return " ".join(inspect.getsource(of).split())


def crawler() -> Crawler:
    """Of Scrapy, not started."""
    return Crawler(Spider, Settings())


def engine_with(slot: object, scraper: object = None) -> Any:
    """The attributes of a crawler that the hook looks at; the rest of these tests is real Scrapy."""
    return Mock(engine=Mock(_slot=slot, scraper=scraper or Mock()))


@asserts("scrapy", "_Slot.inprogress", "_Slot.nextcall")
def test_a_finished_request_leaves_the_slots_set_of_requests_in_progress() -> None:
    begun: list[Request] = []
    finished: list[Request] = []

    async def in_the_loop() -> None:
        slot = _Slot(False, Mock(), Mock())
        wake = watch_finished(engine_with(slot), finished.append, begun=begun.append)
        request = Request("http://127.0.0.1/")
        slot.add_request(request)
        assert (begun, finished) == ([request], [])
        slot.remove_request(request)
        assert finished == [request]
        assert wake == slot.nextcall.schedule
        assert isinstance(slot.inprogress, InProgress)

    asyncio.run(in_the_loop())


@pytest.mark.parametrize("slot", [None, object(), Mock(inprogress=[]), Mock(inprogress={Request("http://127.0.0.1/")})])
def test_an_engine_without_that_point_is_refused_with_the_fix(slot: object) -> None:
    with pytest.raises(IncompatibleEngine, match=r"has no known point .* install the Scrapy version that"):
        watch_finished(engine_with(slot), lambda request: None)


def test_a_scraper_that_handles_errors_elsewhere_is_refused() -> None:
    async def in_the_loop() -> None:
        with pytest.raises(IncompatibleEngine, match=r"engine\.scraper\.handle_spider_error"):
            watch_finished(engine_with(_Slot(False, Mock(), Mock()), scraper=object()), lambda request: None)

    asyncio.run(in_the_loop())


@asserts("scrapy", "Scraper.handle_spider_error")
def test_the_scraper_looks_its_error_handler_up_on_itself_each_time() -> None:
    for method in (Scraper._scrape, Scraper.handle_spider_output_async):
        assert "self.handle_spider_error" in inspect.getsource(method)


@asserts("scrapy", "Request.__hash__")
def test_requests_are_compared_by_identity_so_that_a_copy_never_acks_the_original() -> None:
    request = Request("http://127.0.0.1/")
    assert len({request, request.copy()}) == 2


@asserts("scrapy", "_Slot.scheduler")
def test_the_scheduler_is_reachable_while_a_spider_runs() -> None:
    assert "self.scheduler: BaseScheduler = scheduler" in source(_Slot.__init__)
    scheduler = object()
    assert running_scheduler(Mock(engine=Mock(_slot=Mock(scheduler=scheduler)))) is scheduler
    assert running_scheduler(Mock(engine=Mock(_slot=None))) is None, "as before a spider was opened"


@asserts("scrapy", "Slot.queue")
def test_a_request_that_waits_in_the_downloader_stands_in_its_slots_queue_with_the_deferred_that_lets_it_go_on() -> None:
    waits, other = Request("http://127.0.0.1/1"), Request("http://127.0.0.1/2")
    waits.errback = other.errback = lambda failure: None
    slot = DownloaderSlot(1, 0, 0.0)
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


@asserts("scrapy", "DownloadHandlers.download_request_async")
def test_a_request_that_is_late_is_not_sent_when_the_downloader_comes_to_it() -> None:
    late, other = Request("http://127.0.0.1/1"), Request("http://127.0.0.1/2")
    late.errback = other.errback = lambda failure: None
    sent: list[Request] = []

    async def download(request: Request) -> None:
        sent.append(request)

    handlers = Mock(download_request_async=download)
    ended: list[str] = []
    watched = Mock(engine=Mock(downloader=Mock(handlers=handlers)))
    check_when_sent(watched, lambda request: request is late, lambda: ended.append("one"), lambda _: None)
    asyncio.run(handlers.download_request_async(other))
    with pytest.raises(NotNow):
        asyncio.run(handlers.download_request_async(late))
    assert (sent, late.errback, ended) == ([other], None, ["one"])
    assert "await self.handlers.download_request_async(request)" in inspect.getsource(Downloader._download)


@asserts("scrapy", "Slot.lastseen", "Slot.active", "Downloader._enqueue_request")
@pytest.mark.parametrize(
    ("since_s", "others", "wait_s", "rest_s"),
    [(0.25, 0, 0.75, 0), (1.0, 0, 0, 1.0), (9.0, 1, 0, math.inf), (9.0, 2, math.inf, 0)],
    ids=["in the delay", "in its random part", "the last place", "no place"],
)
def test_a_paced_request_is_sent_at_once_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, since_s: float, others: int, wait_s: float, rest_s: float
) -> None:
    slot = DownloaderSlot(2, 1.0, 0.5)
    slot.active.update(Request(f"http://127.0.0.1/{number}") for number in range(others))
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)
    slot.lastseen, slot.latercall = 1000 - since_s, Mock()
    downloader, pacing, request = Mock(), Mock(), Request("http://127.0.0.1/1")
    downloader._get_slot.return_value = "127.0.0.1", slot
    downloader._wait_for_download = Mock()
    turns: list[Request] = []

    async def enqueue(request: Request) -> None:
        slot.queue.append((request, Deferred()))
        monkeypatch.setattr("scrapy.core.downloader._schedule_coro", turns.append)
        Downloader._process_queue(downloader, slot)

    downloader._enqueue_request = enqueue
    send_at_once(Mock(engine=Mock(downloader=downloader)), pacing)
    if wait_s:
        with pytest.raises(NotNow):
            asyncio.run(downloader._enqueue_request(request))
        pacing.put_back.assert_called_once_with(request, wait_s)
    else:
        asyncio.run(downloader._enqueue_request(request))
        pacing.rest_after.assert_called_once_with(request, "127.0.0.1", rest_s)
    assert (len(turns), len(slot.queue)) == (not wait_s, 0), "the first request of a slot waits for no delay"
    text = source(Downloader._enqueue_request)
    assert "key, slot = self._get_slot(request)" in text
    assert "slot.active.add(request)" in text
    assert "self.middleware.download_async(self._enqueue_request, request)" in source(Downloader.fetch)


@asserts("scrapy", "Request.__slots__")
def test_the_codec_sets_every_field_of_a_request() -> None:
    from redis_components.codec.requests import RequestCodec

    codec = RequestCodec(Spider("a"))
    made = codec.decode(codec.encode(Request("http://127.0.0.1/")))
    fields = [name for name in Request.__slots__ if name != "__weakref__"]
    assert {name for name in fields if not hasattr(made, name)} == set()
    assert not hasattr(made, "__dict__")


@asserts("scrapy", "ExecutionEngine.start_time")
def test_an_engine_that_has_not_started_has_no_start_time() -> None:
    assert "self.start_time: float | None = None" in source(ExecutionEngine.__init__)
    assert "self.start_time = time()" in source(ExecutionEngine.start_async)


@asserts("scrapy", "Downloader._process_queue", "Downloader.total_concurrency")
def test_a_slot_sends_all_that_reach_it_in_one_turn_of_the_loop_as_long_as_the_downloader_takes_some() -> None:
    assert source(Downloader.needs_backout).endswith("return 0 < self.total_concurrency <= len(self.active)")
    text = source(Downloader._process_queue)
    assert "while slot.queue and slot.free_transfer_slots() > 0" in text
    assert "_schedule_coro(self._wait_for_download(slot, request, queue_dfd))" in text
    assert "slot.transferring.add(request)" in source(Downloader._download), "not before the task runs"


@asserts("scrapy", "StatsCollector.__getattribute__", "MemoryStatsCollector._stats")
def test_the_stats_collector_wraps_its_methods_for_a_warning_only() -> None:
    text = source(StatsCollector.__getattribute__)
    assert "wrapped = _warn_spider_arg(original_attr)" in text
    assert text.endswith("return original_attr")
    collector = MemoryStatsCollector(crawler())
    collector.set_value("a", 1)
    assert collector._stats == collector.get_stats() == {"a": 1}


@asserts("scrapy", "BaseDupeFilter.log")
def test_the_base_dupefilters_log_only_warns() -> None:
    assert BaseDupeFilter.log.__qualname__ == "BaseDupeFilter.log"
    assert "warn(" in source(BaseDupeFilter.log)


@asserts("scrapy", "Crawler._engine", "Crawler._stats")
def test_a_crawler_has_no_engine_and_no_stats_before_it_is_open() -> None:
    assert (of_workers.engine_of(crawler()), of_workers.stats_of(crawler())) == (None, {})
    with pytest.raises(RuntimeError):
        _ = crawler().engine


@asserts(
    "scrapy",
    "DownloaderMiddlewareManager.download_async",
    "Scraper._scrape",
    "Scraper.start_itemproc_async",
    "Scraper.handle_spider_output_async",
)
def test_downloads_callbacks_and_items_are_awaited_where_they_can_be_ended() -> None:
    """What is ended there is in `tests/faults/test_page_age.py`."""
    assert "self.middleware.download_async(self._enqueue_request, request)" in source(Downloader.fetch)
    assert "await self._scrape(result, request)" in source(Scraper._wait_for_processing)
    text = source(Scraper._scrape)
    assert text.count("await self.handle_spider_output_async(output, request, result)") == 2
    assert "await self.start_itemproc_async(output, response=response)" in source(Scraper._process_spidermw_output_async)
    assert "finally: self.slot.itemproc_size -= 1" in source(Scraper.start_itemproc_async)


@asserts("scrapy", "Crawler.stop_async")
def test_a_crawler_is_stopped_by_its_engine_when_that_runs() -> None:
    text = source(Crawler.stop_async)
    assert text.endswith("if self.crawling: self.crawling = False if self.engine.running: await self.engine.stop_async()")
    assert of_workers.stop(crawler()) is None


@asserts("scrapy", "CrawlerProcess")
def test_a_crawler_process_tunes_the_reactor_and_a_runner_does_not() -> None:
    module = inspect.getsource(inspect.getmodule(CrawlerProcess))  # type: ignore[arg-type]
    for of in ("TWISTED_DNS_RESOLVER", "adjustPoolsize", "REACTOR_THREADPOOL_MAXSIZE", "install_on_reactor"):
        assert of in module
        assert of not in inspect.getsource(CrawlerRunner)
    assert issubclass(AsyncCrawlerProcess, CrawlerProcess.__bases__[0])


@asserts("scrapy", "AiohttpDownloadHandler", "_ClientResponse", "AiohttpDownloadHandler._extract_headers")
def test_the_handler_on_aiohttp_makes_its_session_of_these() -> None:
    pytest.importorskip("scrapy.core.downloader.handlers._aiohttp", reason="of Scrapy 2.19; the frontier does without it")
    from workers.http import client

    text = source(client.AiohttpDownloadHandler.__init__)
    for part in (
        "local_addr=self._bind_address",
        "limit=self._pool_size_total",
        "limit_per_host=self._pool_size_per_host",
        "self._session: aiohttp.ClientSession = aiohttp.ClientSession(",
        "cookie_jar=aiohttp.DummyCookieJar()",
        "auto_decompress=False",
        "response_class=_ClientResponse",
    ):
        assert part in text
    assert "self._session" in source(client.AiohttpDownloadHandler)
    assert list(inspect.signature(client.AiohttpDownloadHandler._extract_headers).parameters) == ["response"]


@asserts("scrapy", "RedirectMiddleware.from_crawler", "RedirectMiddleware._build_redirect_request")
def test_every_redirect_is_built_in_one_place_and_the_search_for_referers_is_at_the_start() -> None:
    text = inspect.getsource(inspect.getmodule(RedirectMiddleware))  # type: ignore[arg-type]
    assert len(re.findall(r"\.replace\(\s*url=", text)) == 1
    assert "o.crawler = crawler" in source(RedirectMiddleware.from_crawler)
    middleware = RedirectMiddleware(Settings())
    redirected = middleware._build_redirect_request(Request("http://a/"), Response("http://a/"), url="http://b/")
    assert redirected.url == "http://b/"


@asserts("scrapy", "Downloader.per_slot_settings", "Downloader.slots")
def test_a_download_slot_takes_its_pace_from_the_settings_of_its_key() -> None:
    text = source(Downloader._get_slot)
    assert "slot_settings = self.per_slot_settings.get(key, {})" in text
    for setting in ("concurrency", "delay"):
        assert f'"{setting}"' in text.replace("'", '"')
    slot = DownloaderSlot(1, 0, 0.0)
    downloader = Mock(per_slot_settings={}, slots={"site:a": slot})
    of_forums.set_pace(Mock(engine=Mock(downloader=downloader)), "site:a", concurrency=3, delay_s=0.5)
    assert downloader.per_slot_settings == {"site:a": {"concurrency": 3, "delay": 0.5}}
    assert (slot.concurrency, slot.delay, slot.free_transfer_slots()) == (3, 0.5, 3)


@asserts(
    "scrapy",
    "RobotsTxtMiddleware.process_request_2",
    "RobotsTxtMiddleware._parserimpl",
    "RobotsTxtMiddleware._stats",
    "RobotsTxtMiddleware._robotstxt_useragent",
    "RobotsTxtMiddleware._default_useragent",
)
def test_the_rules_of_a_robots_txt_are_applied_to_a_request_by_its_user_agent() -> None:
    made = Crawler(Spider, Settings({"ROBOTSTXT_OBEY": True, "USER_AGENT": "mine"}))
    made.stats = MemoryStatsCollector(made)
    middleware = RobotsTxtMiddleware(made)
    assert (middleware._default_useragent, middleware._robotstxt_useragent) == ("mine", None)
    assert middleware._stats is made.stats
    rules = middleware._parserimpl.from_crawler(made, b"User-agent: mine\nDisallow: /no\nCrawl-delay: 3\nRequest-rate: 1/5\n")
    assert (rules.crawl_delay("mine"), rules.rp.request_rate("mine")[:2]) == (3.0, (1, 5))
    middleware.process_request_2(None, Request("http://a/no"))
    middleware.process_request_2(rules, Request("http://a/no", headers={"User-Agent": "other"}))
    with pytest.raises(IgnoreRequest):
        middleware.process_request_2(rules, Request("http://a/no"))


@asserts("scrapy", "CookiesMiddleware")
def test_the_jar_of_a_request_is_named_in_its_meta() -> None:
    middleware = CookiesMiddleware()
    request = Request("http://a/", meta={"cookiejar": "mine"})
    response = Response("http://a/", headers=Headers({"Set-Cookie": "a=1"}))
    middleware.process_response(request, response)
    for jar, cookie in (("mine", b"a=1"), ("other", None)):
        middleware.process_request(later := Request("http://a/", meta={"cookiejar": jar}))
        assert later.headers.get("Cookie") == cookie


@asserts("scrapy", "AsyncioLoopingCall._to_sleep")
@pytest.mark.parametrize(
    ("now", "scrapys", "ours"),
    [(100.0, 60.0, 60.0), (130.0, 30.0, 30.0), (159.9996, 0.0004, 60.0004), (160.0003, 59.9997, 59.9997)],
    ids=["the start", "between", "woken 0.4 ms early", "woken late"],
)
def test_a_periodic_call_that_is_woken_early_is_not_made_twice(
    monkeypatch: pytest.MonkeyPatch, now: float, scrapys: float, ours: float
) -> None:
    monkeypatch.setattr(AsyncioLoopingCall, "_to_sleep", AsyncioLoopingCall._to_sleep)  # is put back
    call = AsyncioLoopingCall(Mock())
    call.interval, call._start_time = 60.0, 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert call._to_sleep() == pytest.approx(scrapys)
    of_workers.call_once_an_interval()
    assert call._to_sleep() == pytest.approx(ours)


@asserts("scrapy", "_parallel_asyncio")
@pytest.mark.parametrize("parallel", [scraper._parallel_asyncio, of_workers._parallel], ids=["scrapys", "ours"])
def test_objects_of_a_callback_are_handled_in_their_order_and_so_many_at_a_time(parallel: Any) -> None:
    begun, at_work, most, asking = [], 0, 0, set()

    async def handle(number: int, more: str) -> None:
        nonlocal at_work, most
        begun.append((number, more))
        at_work += 1
        most = max(most, at_work)
        for _ in range(10 - number):
            await asyncio.sleep(0)
        at_work -= 1

    async def found() -> AsyncIterator[int]:
        for number in range(10):
            asking.add(asyncio.current_task())
            yield number

    for objects in (range(10), found()):
        begun.clear()
        asyncio.run(asyncio.wait_for(parallel(objects, 3, handle, more="x"), 10))
        assert begun == [(number, "x") for number in range(10)]
    assert (most, at_work, len(asking)) == (3, 0, 1)


def test_every_declared_assumption_is_asserted_and_no_other() -> None:
    assert ASSERTED["scrapy"] == DECLARED["scrapy"].keys()


def test_private_modules_and_attributes_of_scrapy_are_used_in_the_declaring_files_only() -> None:
    declaring = {"redis_components/scrapy_glue/internals.py", "workers/crawler/scrapy_internals.py", "workers/http/client.py"}
    declared = " ".join(DECLARED["scrapy"])
    known = set(re.findall(r"_\w+", declared)) | set(Request.__slots__)
    found = []
    for package in ("redis_components", "workers", "fleet_operations", "forum_reader", "forums"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            if str(path.relative_to(ROOT)) in declaring or "scrapy" not in text:
                continue
            found += [f"{path.name}: {line}" for line in PRIVATE_IMPORT.findall(text)]
            private = re.findall(r"\b(?:crawler|engine|slot|scraper|downloader|request|spider|stats)\.(_[a-z]\w*)", text)
            found += [f"{path.name}: {name}" for name in private if name not in known]
    assert found == []
