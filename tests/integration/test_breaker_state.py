"""Breakers in a real Redis: opened once, held beside an operator's pauses, probed in time, closed by themselves or by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import redis
from scrapy import Request
from scrapy.http import TextResponse
from scrapy.utils.test import get_crawler

from cli.main import main
from demo.forum.process import ForumProcess
from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forum_reader.reading.page_records import CommentsPage, FieldCount
from forums.breaker.middleware import EMPTY_PAGES, SiteWatch
from forums.breaker.state import after_probe, is_given_up, open_breaker
from forums.overview.boards import Boards, WatchedForum
from forums.overview.model import ForumSites
from forums.spiders.forum_detail import ForumDetailSpider
from forums.state.keys import ForumFleetKeys, ForumState
from monitoring.forums import pages
from monitoring.pages.views import Reading
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind, why_not_seeded
from redis_components.keys import CrawlKeys, keys_in, limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from redis_components.server.untrusted_values import server_time
from tests.support.demo_sites import declare
from tests.support.processes import wait_until
from tests.unit.monitoring.metrics.test_metrics import VIEW
from workers.breaker import close_breaker, probe_sites
from workers.breaker.state import REMEMBERED_S
from workers.breaker.state import pause_of as pause_s
from workers.fleet.holds import HoldTarget, hold, overview, resume
from workers.state.holds import Breaker, Breakers, BreakerState, FleetHolds
from workers.state.keys import FleetKeys
from workers.state.registry import Registry

OPTIONS = BreakerOptions(probe_s=10, probe_max_s=100)
WALL = BlockVerdict(cause=Cause.CHALLENGE, reason="a challenge of Cloudflare", excerpt="Just a moment")
SITE = HoldTarget(site="one")

Trawl = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def forum() -> Iterator[ForumProcess]:
    with ForumProcess(seed=5, forums=4, threads=5, comments=3, rate=0) as server:
        yield server


@pytest.fixture(autouse=True)
def _site(forum: ForumProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    declare(tmp_path, "one", forum.url, "\n[breaker]\nprobe_s = 10\nprobe_max_s = 100\n")
    forum.control(wall="", wall_page="")


@pytest.fixture
def trawl(redis_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


def opened(client: redis.Redis, kind: str = "list", verdict: BlockVerdict = WALL, options: BreakerOptions = OPTIONS) -> bool:
    return open_breaker(client, "one", verdict, options, url="http://forum.test/1", kind=kind, by="a@b")


def test_a_page_without_text_ends_no_error_in_quotes_and_a_closed_one_names_when_it_was_opened(redis_client: redis.Redis) -> None:
    opened(redis_client, verdict=BlockVerdict(cause=Cause.EMPTY, reason="a list without rows", excerpt=""))
    [error] = Registry(redis_client).errors(9)
    assert error.what == "the breaker of site one is open: a list without rows; http://forum.test/1"
    close_breaker(redis_client, "one", "by hand")
    sites = ForumSites(boards=Boards([WatchedForum(site="one", forum="f1", state=ForumState(), due_at=1.0)], 1.0))
    html = pages.site(Reading(client=redis_client, source="redis", view=replace(VIEW, sites=sites)), "one")
    assert re.search(r"<dt>state</dt><dd>closed</dd>.*?<dt>opened</dt>.*?<dt>closed</dt>", html, re.DOTALL)
    assert "<dt>since</dt>" not in html


def is_due(client: redis.Redis) -> None:
    """The next probe's time has come."""
    breakers = Breakers(client)
    known = breakers.get("one")
    assert known is not None
    breakers.put("one", msgspec.structs.replace(known, next_probe_at=0.0))


def probed(client: redis.Redis) -> str:
    is_due(client)
    return probe_sites(client)["one"]


def said(client: redis.Redis) -> list[str]:
    return [f"{one.what}: {one.hold}" for one in overview(client)]


def test_it_opens_once_whoever_noticed_it_first(redis_client: redis.Redis) -> None:
    assert opened(redis_client)
    assert not opened(redis_client, verdict=BlockVerdict(cause=Cause.LOGIN, reason="another"))
    breaker = Breakers(redis_client).open_ones()["one"]
    assert (breaker.cause, breaker.reason, breaker.by, breaker.step) == ("challenge", WALL.reason, "a@b", 0)
    assert 7.5 <= breaker.next_probe_at - breaker.since <= 12.5
    assert said(redis_client) == ["site one: paused by breaker: a challenge of Cloudflare"]
    held = why_not_seeded(redis_client, FleetKeys(), keys_in(redis_client, "forum_list"), "forum_list", ["one", "two"])
    assert str(held["one"]) == f"paused by breaker: {WALL.reason}"


def test_an_operators_pause_and_the_breaker_are_two_things(redis_client: redis.Redis) -> None:
    opened(redis_client)
    hold(redis_client, SITE, HoldKind.PAUSE, by="ops")
    assert sorted(said(redis_client)) == [f"site one: paused by breaker: {WALL.reason}", "site one: paused by ops"]
    resume(redis_client, SITE)
    assert said(redis_client) == [f"site one: paused by breaker: {WALL.reason}"]
    resume(redis_client, HoldTarget(whole=True))
    assert said(redis_client) == [f"site one: paused by breaker: {WALL.reason}"]
    hold(redis_client, SITE, HoldKind.PAUSE, by="ops")
    assert close_breaker(redis_client, "one", "it is well")
    assert said(redis_client) == ["site one: paused by ops"]
    assert not close_breaker(redis_client, "one", "again")


def test_who_opens_and_who_closes_at_once_leave_the_hold_that_the_record_says(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the two changes the record while the other is about to write the hold."""
    change, others = FleetHolds.change, [lambda: close_breaker(redis_client, "one", "by hand")]

    def late(self: FleetHolds, changes: Mapping[str, Hold | None]) -> int:
        if others:
            others.pop()()
        return change(self, changes)

    monkeypatch.setattr(FleetHolds, "change", late)
    assert opened(redis_client)
    assert (said(redis_client), Breakers(redis_client).open_ones()) == ([], {})
    assert opened(redis_client)
    others.append(lambda: opened(redis_client))
    assert close_breaker(redis_client, "one", "by hand")
    assert said(redis_client) == [f"site one: paused by breaker: {WALL.reason}"]
    assert list(Breakers(redis_client).open_ones()) == ["one"]
    assert set(holds.read(redis_client, CrawlKeys.for_spider("forum_list"))) == {"fleet:breaker:one"}


def test_a_process_that_died_between_record_and_hold_is_mended(redis_client: redis.Redis, forum: ForumProcess) -> None:
    opened(redis_client)
    redis_client.delete(FleetKeys().holds())
    assert said(redis_client) == []
    probe_sites(redis_client)
    assert said(redis_client) == [f"site one: paused by breaker: {WALL.reason}"]
    redis_client.delete(ForumFleetKeys().breakers())
    probe_sites(redis_client)
    assert said(redis_client) == []


def test_a_probe_waits_for_the_limits_of_its_site_and_is_no_failed_one(redis_client: redis.Redis, forum: ForumProcess) -> None:
    opened(redis_client)
    limits.change(redis_client, limits_key(), "one", LaneLimits(quiet=((0, 720), (720, 0))))
    before = Breakers(redis_client).open_ones()["one"]
    assert probed(redis_client) == "its limits allow no probe now"
    after = Breakers(redis_client).open_ones()["one"]
    assert (after.probes, after.step, after.last_probe) == (before.probes, before.step, before.last_probe)
    assert after.next_probe_at > server_time(redis_client)
    limits.change(redis_client, limits_key(), "one", None)
    assert probed(redis_client) == "1 of 2 good probes"


def test_probes_close_it_when_they_were_good_often_enough(redis_client: redis.Redis, forum: ForumProcess) -> None:
    forum.control(wall="captcha")
    opened(redis_client)
    assert probe_sites(redis_client) == {}, "not yet"
    assert probed(redis_client) == "open: a challenge: a page with the title 'Just a moment...'"
    forum.control(wall="")
    assert probed(redis_client) == "1 of 2 good probes"
    forum.control(wall="login")
    assert probed(redis_client).startswith("open: a login page")
    forum.control(wall="")
    assert probed(redis_client) == "1 of 2 good probes", "they have to be in a row"
    assert probed(redis_client) == "closed"
    assert Breakers(redis_client).open_ones() == {}
    assert said(redis_client) == []


def test_what_was_the_trouble_is_what_is_probed(redis_client: redis.Redis, forum: ForumProcess) -> None:
    forum.control(wall="login", wall_page="comments")
    opened(redis_client, kind="comments")
    assert probed(redis_client).startswith("open: a login page")
    forum.control(wall="login", wall_page="thread")
    assert probed(redis_client) == "1 of 2 good probes"


def test_a_site_that_an_operator_has_paused_is_not_probed(redis_client: redis.Redis, forum: ForumProcess) -> None:
    opened(redis_client)
    is_due(redis_client)
    hold(redis_client, SITE, HoldKind.PAUSE, by="ops")
    asked = forum.stats()["total"]
    assert probe_sites(redis_client) == {}
    assert forum.stats()["total"] == asked


def test_one_that_does_not_answer_stays_open(redis_client: redis.Redis, tmp_path: Path) -> None:
    declare(tmp_path, "one", "http://127.0.0.1:9")
    opened(redis_client)
    assert "127.0.0.1:9" in probed(redis_client)
    (tmp_path / "one.toml").unlink()
    assert probed(redis_client) == "its site file is gone"
    assert said(redis_client) == []


def test_while_somebody_probes_nobody_else_does(redis_client: redis.Redis) -> None:
    opened(redis_client)
    is_due(redis_client)
    redis_client.set(ForumFleetKeys().probing(), "somebody")
    assert probe_sites(redis_client) == {}


def test_the_pause_between_probes_doubles_to_its_limit_and_goes_on_when_it_opens_again_soon(redis_client: redis.Redis) -> None:
    assert [pause_s(step, OPTIONS, 0.5) for step in (0, 1, 2, 3, 4, 99)] == [10, 20, 40, 80, 100, 100]
    assert (pause_s(0, OPTIONS, 0.0), pause_s(0, OPTIONS, 1.0)) == (7.5, 12.5)
    breaker = Breaker(state=BreakerState.OPEN, cause="x", reason="x", since=0.0)
    for step in (1, 2):
        breaker = after_probe(breaker, "still", OPTIONS, 100.0, 0.5)
        assert (breaker.step, breaker.next_probe_at) == (step, 100 + 10 * 2**step)

    opened(redis_client)
    breakers = Breakers(redis_client)
    known = breakers.get("one")
    assert known is not None
    breakers.put("one", msgspec.structs.replace(known, step=3))
    close_breaker(redis_client, "one", "it is well")
    assert opened(redis_client)
    assert Breakers(redis_client).open_ones()["one"].step == 3
    close_breaker(redis_client, "one", "it is well")
    closed = breakers.get("one")
    assert closed is not None
    breakers.put("one", msgspec.structs.replace(closed, closed_at=server_time(redis_client) - REMEMBERED_S - 1))
    probe_sites(redis_client)
    assert breakers.all() == {}, "a day later it is forgotten"


@pytest.mark.parametrize("date", ["", "Sun, 29 Nov 2026 10:00:00 GMT"])
def test_what_the_site_asks_for_is_waited_for(redis_client: redis.Redis, date: str) -> None:
    asked = "Sun, 29 Nov 2026 10:08:20 GMT" if date else "500"
    opened(redis_client, verdict=BlockVerdict(cause=Cause.BUSY, reason="HTTP 429", retry_after=asked, date=date))
    breaker = Breakers(redis_client).open_ones()["one"]
    assert breaker.next_probe_at - breaker.since == 500


def read_comments(watch: SiteWatch, pages: int, *, empty: int) -> None:
    """Let a crawler have read pages of 20 comments, of which so many have no text."""
    request = Request("http://127.0.0.1/t/1", meta={"site": "one", "page": {"kind": "comments", "number": 1}})
    fields = {"id": FieldCount(rows=20, empty=0), "body": FieldCount(rows=20, empty=empty)}
    for _ in range(pages):
        watch.read(TextResponse(request.url, request=request), CommentsPage(comments=(), fields=fields))


def test_a_needed_field_that_goes_from_the_pages_opens_it(redis_client: redis.Redis, redis_url: str, trawl: Trawl) -> None:
    crawler = get_crawler(ForumDetailSpider, {"REDIS_URL": redis_url})
    crawler.engine = SimpleNamespace()  # one without a scheduler
    watch = SiteWatch(crawler)
    read_comments(watch, EMPTY_PAGES, empty=20)  # not judged: no page had it before
    read_comments(watch, 3 * EMPTY_PAGES, empty=3)
    read_comments(watch, EMPTY_PAGES - 1, empty=20)
    read_comments(watch, 1, empty=19)
    assert not Breakers(redis_client).open_ones()
    read_comments(watch, EMPTY_PAGES, empty=20)
    breakers = Breakers(redis_client)
    wait_until(breakers.open_ones, "it opens", 30)
    assert breakers.open_ones()["one"].cause == "drift"
    assert "comments pages: body is empty on the last 20 pages" in trawl("status")[1]
    assert probed(redis_client) == "1 of 2 good probes"
    assert probed(redis_client) == "closed"
    read_comments(watch, EMPTY_PAGES, empty=20)
    assert not breakers.open_ones(), "what is closed although nothing has changed is not opened again"


def test_an_operator_closes_it(redis_client: redis.Redis, trawl: Trawl, tmp_path: Path) -> None:
    opened(redis_client)
    code, out, _ = trawl("resume", "--site", "one")
    assert code == 0
    assert "still held" in out
    assert "trawl resume --site one --breaker" in out
    assert Breakers(redis_client).open_ones()
    assert trawl("resume", "--site", "one", "--breaker")[:2] == (0, "site one: resumed\n")
    assert said(redis_client) == []
    gone = BlockVerdict(cause=Cause.SITE_FILE, reason="unknown site 'gone'")
    open_breaker(redis_client, "gone", gone, OPTIONS, url="", kind="", by="a@b")
    assert trawl("resume", "--site", "gone", "--breaker")[:2] == (0, "site gone: resumed\n")
    assert is_given_up(Breakers(redis_client).get("gone"))
    assert not open_breaker(redis_client, "gone", gone, OPTIONS, url="", kind="", by="late@b"), "what a crawler began before"
    declare(tmp_path, "gone", "http://127.0.0.1:9")
    probe_sites(redis_client)
    assert not is_given_up(Breakers(redis_client).get("gone")), "its file is there again"
    assert trawl("resume", "forum_list", "--breaker")[0] == 2
