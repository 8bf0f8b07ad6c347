"""Seeding: what is due by the policy and not pending, most overdue first, within budget and threshold; and what is said of it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from forums.scheduling import seeding
from forums.scheduling.rechecking import refresh
from forums.scheduling.seeding import OutcomeKind, sentences
from forums.sites import SiteError
from forums.state.keys import ForumState, ForumStates, Ledger, Purpose, Spending
from redis_components.errors import ConfigError
from redis_components.frontier.holds import HoldKind
from redis_components.keys import CrawlKeys
from redis_components.start_tasks.seeding import Seed, seed
from workers.fleet.holds import HoldTarget, hold

LISTS = CrawlKeys.for_spider("forum_list")


@pytest.fixture(autouse=True)
def _sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    for site, forums in (("one", ["a", "b"]), ("two", ["b", "c"])):
        (tmp_path / f"{site}.toml").write_text(
            f'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = {json.dumps(forums)}\n'
        )


def known(client: redis.Redis, name: str, state: ForumState) -> None:
    ForumStates(client).write({name: state})


def waiting(client: redis.Redis) -> list[dict[str, str]]:
    return [json.loads(task) for task in client.lrange(LISTS.start_tasks(), 0, 99)]


def seed_forums(client: redis.Redis, *arguments: Any, **named: Any) -> dict[str, str]:
    """What people read of it."""
    return sentences(seeding.seed(client, *arguments, **named))


def rescan(client: redis.Redis, *arguments: Any, **named: Any) -> dict[str, str]:
    """The same of a rescan."""
    return sentences(seeding.rescan(client, *arguments, **named))


def test_without_names_everything_that_is_due_is_seeded_once(redis_client: redis.Redis) -> None:
    first = seed_forums(redis_client)
    assert first == dict.fromkeys(("one/a", "one/b", "two/b", "two/c"), "seeded")
    assert all(outcome.startswith("pending since") for outcome in seed_forums(redis_client).values())
    assert waiting(redis_client) == [{"site": s, "forum": f} for s, f in (("one", "a"), ("one", "b"), ("two", "b"), ("two", "c"))]


def test_a_forum_that_was_seeded_just_now_is_not_seeded_again_by_a_beat_that_looked_before(redis_client: redis.Redis) -> None:
    seed_forums(redis_client, ["a"])
    redis_client.delete(LISTS.start_tasks())
    redis_client.hdel(LISTS.pending(), "one/a")
    assert seed_forums(redis_client, site="one")["one/a"].startswith("not due until")
    assert seed_forums(redis_client, ["a"]) == {"one/a": "seeded"}, "by name it is seeded all the same"


def test_a_pending_mark_of_a_lost_scan_is_forgotten_in_the_end(redis_client: redis.Redis) -> None:
    seed_forums(redis_client, ["a"])
    redis_client.hincrby(LISTS.pending(), "one/a", -3_600_001)
    assert seed_forums(redis_client, ["a"]) == {"one/a": "seeded"}


def test_seeds_are_taken_in_their_order_and_never_more_than_the_threshold(redis_client: redis.Redis) -> None:
    seeds = [Seed(id=name, data=name.encode(), wait_s=60) for name in ("older", "old", "new")]
    outcomes = seed(redis_client, LISTS, seeds, max_pending=2)
    assert [outcome.outcome for outcome in outcomes] == ["seeded", "seeded", "full"]
    assert redis_client.lrange(LISTS.start_tasks(), 0, 9) == [b"older", b"old"]


def test_the_most_overdue_forum_comes_first(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_MAX_PENDING", "1")
    now = time.time()
    known(redis_client, "one/a", ForumState(scanned_at=now - 90_000, tried_at=now - 90_000, events=5, exposure=1e6))
    known(redis_client, "one/b", ForumState(scanned_at=now - 190_000, tried_at=now - 190_000, events=5, exposure=1e6))
    report = seed_forums(redis_client, site="one")
    assert report == {"one/a": "over the limit of 1 pending forums", "one/b": "seeded"}


def test_a_forum_is_due_by_its_rate_and_the_time_is_told(redis_client: redis.Redis) -> None:
    now = redis_client.time()[0]
    for forum, changes in (("a", 5000.0), ("b", 0.0)):
        state = ForumState(scanned_at=now - 40, tried_at=now - 40, deep_at=now, events=changes, exposure=86_400.0)
        known(redis_client, f"one/{forum}", state)
    report = seed_forums(redis_client, site="one")
    assert report["one/a"] == "seeded"
    assert report["one/b"].startswith("not due until")
    dues = {name: float(raw) for name, raw in ForumStates(redis_client).raw_dues("one").items()}
    assert dues[b"one/a"] < now < dues[b"one/b"] < now + 86_400


def test_a_site_over_its_budget_waits_and_says_so_but_what_is_named_is_seeded(redis_client: redis.Redis) -> None:
    spent = [
        Spending(site="one", name=one, purpose=one, ended_at=time.time(), requests=900) for one in (Purpose.SCAN, Purpose.DETAIL)
    ]
    Ledger(redis_client).add(spent)
    assert set(seed_forums(redis_client, site="one").values()) == {"over budget: 1800 of 1200 requests in the last hour"}
    assert seed_forums(redis_client, ["a"]) == {"one/a": "seeded"}


def test_scans_leave_what_may_wait_its_share(redis_client: redis.Redis, tmp_path: Path) -> None:
    now = time.time()
    Ledger(redis_client).add([Spending(site="one", name="x", purpose=Purpose.SCAN, ended_at=now, requests=960)])
    said = "over budget: 960 of 1200 requests in the last hour, 240 are kept for checks and history"
    assert set(seed_forums(redis_client, site="one").values()) == {said}
    with (tmp_path / "one.toml").open("a") as file:
        file.write("[schedule]\nrecheck_days = 0\n")
    assert set(seed_forums(redis_client, site="one").values()) == {"seeded"}, "nothing waits"


def test_threads_to_fetch_never_keep_a_site_from_being_watched(redis_client: redis.Redis) -> None:
    Ledger(redis_client).add([Spending(site="one", name="x", purpose=Purpose.DETAIL, ended_at=time.time(), requests=9000)])
    assert seed_forums(redis_client, site="one") == {"one/a": "seeded", "one/b": "seeded"}


def test_a_gap_is_scanned_deep_as_soon_as_may_be(redis_client: redis.Redis) -> None:
    at = time.time() - 31
    known(redis_client, "one/a", ForumState(scanned_at=at, tried_at=at, deep_at=at, gap_at=at, gap_from=at - 600, gap_scans=1))
    assert seed_forums(redis_client, site="one")["one/a"] == "seeded"
    assert {"site": "one", "forum": "a", "mode": "deep"} in waiting(redis_client)


def test_a_paused_site_says_who_paused_it(redis_client: redis.Redis) -> None:
    hold(redis_client, HoldTarget(site="one", whole=True), HoldKind.PAUSE, by="ops@host", reason="a quarrel")
    assert set(seed_forums(redis_client, site="one", force=True).values()) == {"paused by ops@host: a quarrel"}


def test_forums_that_the_index_named_are_watched_as_the_site_file_wants(redis_client: redis.Redis, tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(
        'profile = "generic"\nbase_url = "http://127.0.0.1:1"\n[discover]\nexclude = ["*trade*"]\n'
        '[pages.index]\nurl = "/"\nrows = "a"\n[pages.index.fields]\nid = "::attr(href)"\nname = "::text"\n'
    )
    assert seed_forums(redis_client, site="three") == {"three/*": "seeded"}
    assert waiting(redis_client) == [{"site": "three", "forum": "*", "mode": "index"}]
    for forum, name in (("7", "News"), ("8", "trade and offers")):
        known(redis_client, f"three/{forum}", ForumState(name=name, found_at=time.time()))
    report = seed_forums(redis_client, site="three")
    assert report["three/7"] == "seeded"
    assert "three/8" not in report


def test_a_forum_is_scanned_again_as_deep_as_somebody_wants(redis_client: redis.Redis) -> None:
    assert rescan(redis_client, ["a", "nope"], "one", depth=7) == {"one/nope": "unknown forum: one has a, b", "one/a": "seeded"}
    assert waiting(redis_client) == [{"site": "one", "forum": "a", "mode": "deep", "pages": 7}]
    with pytest.raises(ConfigError, match="depth = 0"):
        rescan(redis_client, ["a"], "one", depth=0)


def test_the_threshold_comes_from_the_environment(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_MAX_PENDING", "1")
    assert sorted(seed_forums(redis_client).values()) == ["over the limit of 1 pending forums"] * 3 + ["seeded"]
    monkeypatch.setenv("TRAWL_MAX_PENDING", "many")
    with pytest.raises(ConfigError, match="TRAWL_MAX_PENDING='many': must be a whole number"):
        seed_forums(redis_client)


def test_two_beats_at_once_seed_each_forum_once(redis_client: redis.Redis, redis_url: str) -> None:
    def beat() -> None:
        with redis.Redis.from_url(redis_url) as client:
            seed_forums(client)

    beats = [threading.Thread(target=beat) for _ in range(8)]
    for one in beats:
        one.start()
    for one in beats:
        one.join()
    assert len(waiting(redis_client)) == 4


def test_what_is_unknown_or_unclear_is_said_and_the_rest_is_seeded(redis_client: redis.Redis) -> None:
    assert seed_forums(redis_client, ["b", "nope", "c"]) == {
        "?/b": "several sites have it (one, two): name the site",
        "?/nope": "unknown forum: one has a, b; two has b, c",
        "two/c": "seeded",
    }
    assert waiting(redis_client) == [{"site": "two", "forum": "c"}]


def test_a_site_file_that_is_wrong_is_named_where_its_folder_is_relative_too(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "three.toml").write_text("forums = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAWL_SITES_DIR", ".")
    outcomes = seeding.seed(redis_client)
    assert {name for name, outcome in outcomes.items() if outcome.kind.is_refused} == {"three/?"}
    assert outcomes["three/?"].kind is OutcomeKind.BROKEN_FILE
    hold(redis_client, HoldTarget(site="three"), HoldKind.PAUSE)  # its name is enough to leave it alone


def test_bad_arguments_are_refused_with_the_right_form(redis_client: redis.Redis) -> None:
    with pytest.raises(SiteError, match="unknown site 'three'"):
        seed_forums(redis_client, ["a"], "three")
    with pytest.raises(ConfigError, match="must be a list of names"):
        seed_forums(redis_client, "a")
    with pytest.raises(ConfigError, match="must be a list of post ids"):
        refresh(redis_client, [], "one")
    assert not redis_client.keys("*")


def test_single_posts_become_start_tasks_of_the_detail_service(redis_client: redis.Redis) -> None:
    assert refresh(redis_client, ["p1", "p2"], "one") == 2
    many = [f"p{number}" for number in range(20_000)]
    assert [refresh(redis_client, many, "one") for _ in range(2)] == [20_000, 20_000], "each waits once"
    assert json.loads(redis_client.lpop("forum_detail:start_urls") or b"") == {"site": "one", "post": "p1"}
