"""The verdict on a member, from the stats of its crawl and its last runs."""

from __future__ import annotations

from typing import Any

import pytest

from fleet_operations.jobs.verdict import CrawlEvidence, find
from workers.state.group_runs import Bounds, GroupRun, Member, Verdict
from workers.state.jobs import JobFigures, JobState

EXCEPTION = "downloader/exception_type_count/"


def crawl(
    items: int = 0, *, reason: str = "finished", state: JobState = JobState.FINISHED, seconds: float = 5, **stats: Any
) -> Any:
    named = {name.replace("__", "/"): str(value) for name, value in stats.items()}
    return CrawlEvidence(state=state, reason=reason, figures=JobFigures(items=items), seconds=seconds, stats=named)


def night(items: int = 100, *, verdict: Verdict = Verdict.FINE, seconds: float = 100, **fields: float) -> Member:
    return Member(spider="one", verdict=verdict, items=items, pages=100, seconds=seconds, fields=fields)


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (crawl(10, run__pages__200=10), Verdict.FINE, ""),
        (crawl(), Verdict.NOTHING_DUE, "no page"),
        (crawl(run__pages__304=7), Verdict.NOTHING_DUE, "7 pages are unchanged"),
        (crawl(robotstxt__forbidden=3, **{f"{EXCEPTION}scrapy.exceptions.IgnoreRequest": 3}), Verdict.ROBOTS, "3 pages"),
        (crawl(**{f"{EXCEPTION}scrapy.exceptions.CannotResolveHostError": 5}), Verdict.UNRESOLVED, "no such host"),
        (crawl(**{f"{EXCEPTION}scrapy.exceptions.DownloadConnectionRefusedError": 5}), Verdict.UNREACHABLE, "connection refused"),
        (crawl(**{f"{EXCEPTION}twisted.internet.error.DNSLookupError": 5}), Verdict.UNRESOLVED, ""),
        (crawl(log_count__ERROR=1), Verdict.CRASHED, "its log"),
        (crawl(run__pages__403=1), Verdict.REFUSED, "1 x 403"),
        (crawl(run__pages__429=6, run__pages__200=4, items=2), Verdict.REFUSED, "6 of 10"),
        (crawl(run__pages__429=4, run__pages__200=6, items=2), Verdict.FINE, ""),
        (crawl(run__pages__404=1, run__url__404="http://a.example/x"), Verdict.MOVED, "404"),
        (crawl(run__pages__404=90, run__pages__200=10, items=9), Verdict.MOVED, "90 of 100"),
        (crawl(run__pages__200=2, run__elsewhere=2), Verdict.MOVED, "another host"),
        (crawl(downloader__response_status_count__302=2, offsite__filtered=2), Verdict.MOVED, "the spider leaves out"),
        (crawl(downloader__response_status_count__302=2), Verdict.NOTHING_DUE, ""),
        (crawl(run__pages__503=3), Verdict.UNREACHABLE, "3 x 503"),
        (crawl(run__pages__200=3, run__walls=2, run__wall="Cloudflare asks"), Verdict.WALL, "Cloudflare"),
        (crawl(run__pages__403=3, run__walls=3, run__wall="Cloudflare asks"), Verdict.WALL, "Cloudflare"),
        (crawl(run__pages__200=3), Verdict.NO_ITEMS, "3 pages and no item"),
        (crawl(run__pages__200=3, robotstxt__forbidden=2), Verdict.NO_ITEMS, "3 pages and no item"),
        (crawl(run__pages__200=1, robotstxt__forbidden=1), Verdict.ROBOTS, "forbids 1 pages, and the 1 others have no item"),
        (crawl(run__pages__200=3, run__raised=3, run__error="Traceback\nKeyError: 'x'"), Verdict.CRASHED, "KeyError: 'x'"),
        (crawl(5, run__pages__200=9, run__raised=1), Verdict.FINE, ""),
        (crawl(run__pages__200=3, run__lost_items=9, run__error="KeyError: 'x'"), Verdict.CRASHED, "9 of 9 items: KeyError: 'x'"),
        (crawl(4, run__pages__200=3, run__lost_items=5), Verdict.CRASHED, "5 of 9 items"),
        (crawl(5, run__pages__200=3, run__lost_items=5), Verdict.FINE, ""),
        (crawl(5, run__pages__200=9, reason="closespider_timeout"), Verdict.OWN_LIMIT, "closespider_timeout"),
        (crawl(state=JobState.FAILED, reason="crash-looping: exit code 1"), Verdict.CRASHED, "crash-looping"),
    ],
)
def test_each_end_has_its_verdict(found: CrawlEvidence, verdict: Verdict, words: str) -> None:
    outcome = find(found)
    assert outcome.verdict is verdict
    assert words in outcome.reason


def test_a_page_that_shows_the_fault_is_named() -> None:
    assert find(crawl(run__pages__404=1, run__url__404="http://a.example/x")).url == "http://a.example/x"
    assert find(crawl(run__pages__200=1, run__url__page="http://a.example/y")).url == "http://a.example/y"


@pytest.mark.parametrize(
    ("found", "before", "verdict", "words"),
    [
        (crawl(49, run__pages__200=9), [night(100), night(110)], Verdict.FEWER_ITEMS, "49 items, at least 100"),
        (crawl(51, run__pages__200=9), [night(100), night(110)], Verdict.FINE, ""),
        (crawl(51, run__pages__200=9), [night(1000), night(110), night(100)], Verdict.FINE, "the lowest counts"),
        (
            crawl(90, run__pages__200=9, run__fields__price=10),
            [night(price=1.0), night(price=0.9)],
            Verdict.FIELD_GONE,
            "price: 11%",
        ),
        (crawl(90, run__pages__200=9, run__fields__price=60), [night(price=1.0), night(price=0.9)], Verdict.FINE, ""),
        (crawl(90, run__pages__200=9), [night(rare=0.1)], Verdict.FINE, ""),
        (crawl(90, run__pages__200=9, run__fields__new=90), [night()], Verdict.FINE, ""),
        (crawl(100, run__pages__200=100, seconds=400), [night()], Verdict.SLOWER, "3.4 s a page"),
        (crawl(100, run__pages__200=1, seconds=72), [night(seconds=1000)], Verdict.FINE, ""),  # 12 s were the start's
        (crawl(10, run__pages__200=9), [night(100, verdict=Verdict.FEWER_ITEMS)], Verdict.FINE, ""),
    ],
)
def test_a_member_is_compared_with_its_own_last_runs(
    found: CrawlEvidence, before: list[Member], verdict: Verdict, words: str
) -> None:
    outcome = find(found, before)
    assert outcome.verdict is verdict
    assert words in outcome.reason or verdict is Verdict.FINE


@pytest.mark.parametrize(
    ("bounds", "found", "verdict", "words"),
    [
        (Bounds(items=50), crawl(49, run__pages__200=9), Verdict.FEWER_ITEMS, "49 items, the bound is 50"),
        (Bounds(items=5), crawl(6, run__pages__200=9), Verdict.FINE, ""),  # a sixteenth of the last run
        (Bounds(items=0), crawl(run__pages__200=9), Verdict.FINE, ""),
        (Bounds(seconds=60), crawl(100, run__pages__200=100, seconds=61), Verdict.SLOWER, "61 s, the bound is 60 s"),
        (Bounds(seconds=9000), crawl(100, run__pages__200=100, seconds=8000), Verdict.FINE, ""),
        (Bounds(fields={"price": 0.9}), crawl(100, run__pages__200=9, run__fields__price=80), Verdict.FIELD_GONE, "80%"),
        (Bounds(fields={"price": 0.0}), crawl(100, run__pages__200=9), Verdict.FINE, ""),
    ],
)
def test_bounds_of_a_person_take_the_place_of_a_comparison(
    bounds: Bounds, found: CrawlEvidence, verdict: Verdict, words: str
) -> None:
    outcome = find(found, [night(100, **({"price": 1.0} if bounds.fields else {}))], bounds)
    assert outcome.verdict is verdict
    assert words in outcome.reason


def test_the_bounds_of_a_name_come_before_those_of_a_pattern() -> None:
    run = GroupRun(id="g-1", group="g", bounds={"b*": Bounds(items=1), "books": Bounds(items=2)})
    assert [run.bounds_of(name).items for name in ("books", "boats", "cars")] == [2, 1, None]
