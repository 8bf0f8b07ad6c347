"""Limits as operators and site files set them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import pytest
import redis

from cli.main import main
from forums.sites import load_all
from forums.sites.http.politeness import is_on_trial, is_public_name, write_limits
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords, limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import (
    BY_FILE,
    BY_TRIAL,
    DAY_MS,
    HOUR_MS,
    KnownLimits,
    LaneLimits,
    default_lane,
    needs_suffixes,
    retry_after_s,
)
from redis_components.server.untrusted_values import server_time

Trawl = Callable[..., tuple[int, str, str]]
SITE = 'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = ["a"]\n'


@pytest.fixture
def trawl(redis_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


def test_an_operator_sets_shows_and_removes_the_limits_of_a_site(redis_client: redis.Redis, trawl: Trawl) -> None:
    assert trawl("limit")[1] == "no site is limited\n"
    code, out, _ = trawl("limit", "example.org", "--rate", "3", "--concurrency", "4", "--per-hour", "600", "--json")
    [shown] = json.loads(out)
    assert (code, shown["rate"], shown["concurrency"], shown["per_hour"], shown["per_day"]) == (0, 3, 4, 600, None)
    stored = limits.read(redis_client, limits_key())["example.org"]
    assert (stored.rate, stored.concurrency, stored.quotas) == (3, 4, ((600, HOUR_MS),))
    [shown] = json.loads(trawl("limit", "example.org", "--rate", "3", "--quiet", "23:00-6:00 Europe/Berlin", "--json")[1])
    assert (shown["quiet"], shown["concurrency"]) == ("23:00-06:00 Europe/Berlin", None)
    out = trawl("limit", "example.org")[1]
    assert "3/s, quiet 23:00-06:00 Europe/Berlin" in out
    assert trawl("pause", "--all")[0] == 0
    history = json.loads(trawl("audit", "--act", "limit", "--json")[1])
    assert [act["what"][2:] for act in history] == [
        ["--rate", "3", "--quiet", "23:00-6:00 Europe/Berlin", "--json"],
        ["--rate", "3", "--concurrency", "4", "--per-hour", "600", "--json"],
    ]
    assert len(json.loads(trawl("audit", "--json", "--limit", "1")[1])) == 1
    assert trawl("limit", "example.org", "--remove")[:2] == (0, "no site is limited\n")


def test_what_a_lane_may_do_now_and_why_is_shown(redis_client: redis.Redis, trawl: Trawl) -> None:
    assert trawl("limit")[1] == "no site is limited\n"
    key, keys, now_ms = limits_key(), CrawlKeys.for_spider("forum_list"), server_time(redis_client) * 1000
    CrawlRecords(redis_client).write(CrawlRecord(spider="forum_list", keys=keys))
    states: dict[str, dict[str, float | str]] = {
        "limited": {},
        "slow": {"slowed": 1, "slowed_at": now_ms, "slowed_top": 0.001},
        "robots": {"robots_rate": 0.5, "robots_at": now_ms},
        "refuses": {"until": now_ms + 90_000, "asked": now_ms, "refusals": 12, "refused_since": now_ms - 3_600_000},
        "odd": {"until": "x", "slowed": "y"},
    }
    for lane, state in states.items():
        limits.change(
            redis_client, key, lane, LaneLimits(rate=2, concurrency=3, by="ops@host") if lane != "odd" else LaneLimits()
        )
        for field, value in state.items():
            redis_client.hset(f"{key}:{lane}", field, value)
    redis_client.zadd(keys.lane("slow"), {"a": 0, "b": 0})
    redis_client.zadd(keys.lanes(), {"slow": now_ms + 5000})
    redis_client.zadd(keys.lane_busy("limited"), {"one": now_ms + 10**6, "forgotten": 1})
    shown = {one["site"]: one for one in json.loads(trawl("limit", "--json")[1])}
    assert {name: (one["state"], one["why"]) for name, one in shown.items()} == {
        "limited": ("limited", "ops@host"),
        "slow": ("slowed", "the site answered badly"),
        "robots": ("limited", "robots.txt"),
        "refuses": ("left alone", "refused 12 times in 60 min"),
        "odd": ("free", ""),
    }
    assert (shown["slow"]["waiting"], shown["limited"]["at_work"], shown["robots"]["rate_now"]) == (2, 1, 0.5)
    assert 0 < shown["slow"]["next_s"] <= 5
    code, out, _ = trawl("limit")
    assert (code, out.count("\n")) == (0, 6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "3"], "name a site: trawl limit SITE --rate N"),
        (["a", "--rate", "3", "--remove"], "--remove cannot be combined with limits"),
        (["a", "--burst", "3"], "--burst needs --rate"),
        (["a", "--rate", "0"], "rate = 0 is out of range: from 1e-05 to 10000"),
        (["a", "--quiet", "at night"], "quiet hours 'at night' cannot be read: write"),
        (["a b", "--rate", "1"], "site 'a b': name a site, or a host such as example.com"),
        (["nowhere", "--rate", "1"], "unknown site 'nowhere': "),
    ],
)
def test_wrong_use_is_said_in_one_line(redis_client: redis.Redis, trawl: Trawl, arguments: list[str], said: str) -> None:
    code, out, error = trawl("limit", *arguments)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert said in error
    assert redis_client.exists(limits_key()) == 0


def test_a_site_file_sets_limits_and_an_operator_counts_more(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))

    def told(politeness: str) -> dict[str, LaneLimits]:
        (tmp_path / "one.toml").write_text(SITE + politeness)
        write_limits(redis_client, load_all()[0])
        return limits.read(redis_client, limits_key())

    assert told("") == {}
    found = told("[politeness]\nrate = 3\nper_day = 100\n")
    assert found == {"one": LaneLimits(rate=3, quotas=((100, DAY_MS),), by=BY_FILE)}
    assert write_limits(redis_client, load_all()[0]) == [], "nothing has changed"
    quiet = told('time_zone = "Asia/Tokyo"\n[politeness]\nquiet = "01:00-06:00"\n')["one"]
    assert (quiet.quiet, quiet.zone, quiet.offsets[0][1]) == (((60, 360),), "Asia/Tokyo", 9 * 3600)
    assert write_limits(redis_client, load_all()[0]) == [], "nothing has changed"
    assert told("") == {"one": LaneLimits()}, "without limits; the exchange forgets it"
    limits.change(redis_client, limits_key(), "one", LaneLimits(rate=1, by="ops@host"))
    assert told("[politeness]\nrate = 3\n")["one"].by == "ops@host"


OLD_WORDS = "[schedule]\nrequests_per_hour = 600\n[politeness]\ndelay_s = 0.25\nconcurrency = 2\n"
WORDS = "[politeness]\nper_hour = 600\nrate = 4\nconcurrency = 2\n"


@pytest.mark.parametrize("politeness", [OLD_WORDS, WORDS])
def test_a_rate_a_concurrency_and_an_hour_of_a_file_are_what_the_site_gets(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, politeness: str
) -> None:
    """Three crawlers asked 858 times in two minutes where the first of these was a plan, and limits of one process."""
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "one.toml").write_text(SITE + politeness)
    (site,) = load_all()[0]
    write_limits(redis_client, [site])
    promised = LaneLimits(rate=4, concurrency=2, quotas=((600, HOUR_MS),), by=BY_FILE)
    assert limits.read(redis_client, limits_key()) == {"one": promised}
    assert site.scan_budget_per_hour == 600, "no plan asks for more than the site gives"
    assert (site.politeness.crawler_delay_s, site.politeness.crawler_concurrency) == (0.25, 2), "of a process that is alone"


@pytest.mark.parametrize(
    ("more", "limited"),
    [
        ("", LaneLimits(rate=2, quotas=((1000, DAY_MS),), by=BY_TRIAL)),
        ('[headers]\nUser-Agent = "books/1.0 (+https://books.org)"\n', None),
        ("allow_private = true\n", None),
        (
            "[politeness]\nrate = 2\nburst = 3\nper_day = 5000\n",
            LaneLimits(rate=2, burst=3, quotas=((1000, DAY_MS),), by=BY_TRIAL),
        ),
    ],
)
def test_a_site_that_does_not_learn_whom_it_can_ask_is_crawled_as_a_trial(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, limited: LaneLimits | None
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "books.toml").write_text(SITE.replace("http://127.0.0.1:1", "https://forum.books.org") + more)
    write_limits(redis_client, load_all()[0])
    assert limits.read(redis_client, limits_key()) == ({} if limited is None else {"books": limited})
    (tmp_path / "books.toml").write_text(SITE + '[headers]\nUser-Agent = "books/1.0 (+https://books.org)"\n')
    write_limits(redis_client, load_all()[0])
    assert limits.read(redis_client, limits_key()).get("books", LaneLimits()) == LaneLimits()


def test_a_project_that_names_itself_needs_no_contact_in_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "named_settings.py").write_text('USER_AGENT = "books/1.0 (+https://books.org)"\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "books.toml").write_text(SITE.replace("http://127.0.0.1:1", "https://forum.books.org"))
    assert is_on_trial(load_all()[0][0])
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "named_settings")
    assert not is_on_trial(load_all()[0][0])


@pytest.mark.parametrize("host", ["forum.books.org", "BOOKS.ORG.", "8.8.8.8", "[2606:4700::1111]", "xn--bcher-kva.de"])
def test_a_host_that_may_be_somebodys(host: str) -> None:
    assert is_public_name(host)


@pytest.mark.parametrize(
    "host",
    ["", "forum", "localhost", "127.0.0.1", "192.168.1.7", "[::1]", "a.example", "www.example.org", "x.home.arpa", "web.local"],
)
def test_a_host_that_is_nobodys(host: str) -> None:
    assert not is_public_name(host)


def test_sites_share_a_lane_with_the_lowest_of_their_limits(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "one.toml").write_text(SITE + "[politeness]\nrate = 3\nper_day = 100\nper_hour = 9\n")
    assert write_limits(redis_client, load_all()[0]) == ["one"]
    (tmp_path / "one.toml").write_text(SITE + '[politeness]\nlane = "host"\nrate = 3\nper_day = 100\nper_hour = 9\n')
    (tmp_path / "two.toml").write_text(SITE + '[politeness]\nlane = "host"\nrate = 5\nconcurrency = 2\nper_day = 50\n')
    (tmp_path / "three.toml").write_text(SITE + '[politeness]\nlane = "host"\n')
    assert sorted(write_limits(redis_client, load_all()[0])) == ["host", "one"]
    assert write_limits(redis_client, load_all()[0]) == [], "nothing has changed"
    shared = LaneLimits(rate=3, concurrency=2, quotas=((9, HOUR_MS), (50, DAY_MS)), by=BY_FILE)
    assert limits.read(redis_client, limits_key()) == {"one": LaneLimits(), "host": shared}


@pytest.mark.parametrize(
    ("meta", "url", "lane"),
    [
        ({}, "http://www.example.co.uk/a", "example.co.uk"),
        ({}, "http://127.0.0.1:8080/a", "127.0.0.1:8080"),
        ({}, "http://localhost/a", "localhost"),
        ({"site": "books"}, "http://www.example.co.uk/a", "books"),
        ({"site": "books", "lane": "shared"}, "http://www.example.co.uk/a", "shared"),
        ({"site": "two words"}, "http://www.example.co.uk/a", ""),
        ({}, "data:,nothing", ""),
    ],
)
def test_the_lane_of_a_site_that_has_no_limits_yet(meta: dict[str, str], url: str, lane: str) -> None:
    assert default_lane(meta, url) == lane


def test_the_nearest_name_that_has_limits_is_the_lane() -> None:
    known = KnownLimits()
    assert known.lane_of({}, "http://a.example.org/") == ""
    known.learn({b"example.org": b"{}", b"a.example.org": b"{}", b"books": b"{}", b"version": b"3"})
    assert known.lane_of({}, "http://a.example.org:81/") == "a.example.org"
    assert known.lane_of({}, "http://b.example.org/") == "example.org"
    assert known.lane_of({"site": "books"}, "http://b.example.org/") == "books"
    assert known.lane_of({"site": "others"}, "http://b.example.org/") == "example.org", "whoever limits a domain means all of it"
    assert known.lane_of({"site": "others", "lane": "books"}, "http://b.example.org/") == "books"
    assert known.lane_of({}, "http://example.com/version") == ""


@pytest.mark.parametrize(
    ("header", "date", "seconds"),
    [
        ("5", "", 5),
        ("0", "", 1),
        ("9" * 40, "", 86_400),
        ("", "", None),
        ("soon", "", None),
        ("-5", "", None),
        (formatdate(1000, usegmt=True), formatdate(940, usegmt=True), 60),
        (formatdate(900, usegmt=True), formatdate(940, usegmt=True), 1),
        ("Wed, 99 Nov 2026 25:61:00 GMT", "", None),
    ],
)
def test_retry_after_is_read_in_seconds_or_as_a_date_of_the_sites_clock(header: str, date: str, seconds: float | None) -> None:
    assert retry_after_s(header, date) == seconds


def test_a_date_without_the_sites_clock_is_read_by_ours() -> None:
    found = retry_after_s(formatdate(time.time() + 3600, usegmt=True))
    assert found is not None
    assert 3500 < found <= 3601


def test_a_limit_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="concurrency = 0 is out of range: from 1 to 10000"):
        LaneLimits.of(concurrency=0)


@pytest.mark.parametrize(
    ("meta", "url", "needed"),
    [
        ({}, "http://www.example.co.uk/a", True),
        ({"site": "books"}, "http://www.example.co.uk/a", False),
        ({"lane": "shared"}, "http://www.example.co.uk/a", False),
        ({}, "http://127.0.0.1:8000/", False),
        ({}, "http://[::1]:8000/", False),
        ({}, "http://host[::1]@/", False),
    ],
)
def test_the_list_of_suffixes_is_loaded_where_a_name_has_to_be_looked_up(meta: dict[str, str], url: str, needed: bool) -> None:
    assert needs_suffixes(meta, url) == needed
