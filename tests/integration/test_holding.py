"""Holding a fleet or a part of it: what commands and tasks write, what crawls, the seeder and the reconciler make of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from cli.main import main
from forums.scheduling.rechecking import refresh
from forums.scheduling.seeding import seed, sentences
from redis_components.errors import ConfigError, OnHold
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.keys import CrawlKeys
from workers.fleet.holds import HoldTarget, hold, overview, resume, stopped_slots
from workers.state.holds import FleetHolds, word_of
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

LIST, DETAIL = CrawlKeys.for_spider("forum_list"), CrawlKeys.for_spider("forum_detail")
EVERYTHING = HoldTarget(whole=True)
PAUSE, DRAIN, STOP = HoldKind.PAUSE, HoldKind.DRAIN, HoldKind.STOP
SITE = 'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = ["a"]\n'

Trawl = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.delenv("TRAWL_FLEET", raising=False)
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(SITE)


@pytest.fixture
def trawl(redis_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


def obeyed(client: redis.Redis, keys: CrawlKeys) -> dict[str, str]:
    """What the crawlers of one crawl read."""
    return {name: entry.word.value for name, entry in holds.read(client, keys).items()}


def said(client: redis.Redis) -> list[str]:
    return [f"{one.what}: {one.hold}" for one in overview(client)]


def test_a_service_is_held_in_its_own_crawl(redis_client: redis.Redis) -> None:
    hold(redis_client, HoldTarget(services=("forum_detail",)), PAUSE, reason="the  database\nis moved", by="ops@host")
    assert (obeyed(redis_client, LIST), obeyed(redis_client, DETAIL)) == ({}, {"spider": "pause"})
    assert said(redis_client) == ["forum_detail: paused by ops@host: the database is moved"]
    hold(redis_client, HoldTarget(services=("forum_detail",)), DRAIN, by="ops@host")
    assert said(redis_client) == ["forum_detail: draining by ops@host"], "a service is held in one way"
    assert resume(redis_client, HoldTarget(services=("forum_detail",))) == []
    assert obeyed(redis_client, DETAIL) == {}


def test_a_site_is_held_everywhere_or_in_one_service(redis_client: redis.Redis) -> None:
    hold(redis_client, HoldTarget(site="one"), PAUSE, by="ops")
    hold(redis_client, HoldTarget(site="www.example.com", services=("forum_detail",)), DRAIN, by="ops")
    assert obeyed(redis_client, LIST) == {"fleet:site:one": "pause"}
    assert obeyed(redis_client, DETAIL) == {"fleet:site:one": "pause", "site:www.example.com": "drain"}
    assert said(redis_client) == ["site one: paused by ops", "site www.example.com in forum_detail: draining by ops"]
    hold(redis_client, HoldTarget(site="one", services=("forum_list",)), PAUSE)
    resume(redis_client, HoldTarget(site="one"))
    assert (obeyed(redis_client, LIST), obeyed(redis_client, DETAIL)) == ({}, {"site:www.example.com": "drain"})
    resume(redis_client, EVERYTHING)
    assert said(redis_client) == []
    assert obeyed(redis_client, DETAIL) == {}


@pytest.mark.parametrize(("typed", "known"), [("Example.COM", "example.com"), ("Bücher.example", "xn--bcher-kva.example")])
def test_a_host_is_held_as_urls_have_it(redis_client: redis.Redis, typed: str, known: str) -> None:
    hold(redis_client, HoldTarget(site=typed), PAUSE)
    assert obeyed(redis_client, LIST) == {f"fleet:site:{known}": "pause"}
    assert resume(redis_client, HoldTarget(site=typed)) == []


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (HoldTarget(services=("forum_detail",)), ["forum_list/0"]),
        (EVERYTHING, []),
        (HoldTarget(site="one"), ["forum_detail/0", "forum_detail/1", "forum_list/0"]),
    ],
)
def test_who_resumes_has_slots_that_were_given_up_tried_again(
    redis_client: redis.Redis, target: HoldTarget, left: list[str]
) -> None:
    registry = Registry(redis_client)
    for spider, number in (("forum_detail", 0), ("forum_detail", 1), ("forum_list", 0)):
        slot = registry.acquire(spider, number, "a@test")
        assert slot
        state = CrawlerState.CRASH_LOOPING if number else CrawlerState.REFUSED
        registry.release(slot, CrawlerRecord(spider=spider, number=number, pid=0, node="a@test", token=slot.token, state=state))
    resume(redis_client, target)
    assert sorted(one.name for one in registry.crawlers()) == left


def test_what_is_held_can_be_resumed_also_when_its_site_file_or_service_is_gone(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(redis_client, HoldTarget(site="one"), PAUSE)
    hold(redis_client, HoldTarget(services=("forum_detail",)), STOP)
    (tmp_path / "one.toml").unlink()
    monkeypatch.setenv("TRAWL_FLEET", "forum_list=1")
    resume(redis_client, HoldTarget(site="one"))
    assert resume(redis_client, HoldTarget(services=("forum_detail",))) == []


def test_what_holds_for_the_fleet_reaches_a_service_that_comes_later_and_leaves_one_that_has_let_go(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(redis_client, EVERYTHING, PAUSE)
    fleet, late = FleetHolds(redis_client), CrawlKeys.for_spider("late")
    assert obeyed(redis_client, late) == {}
    assert fleet.spread(["forum_list", "forum_detail", "late"]) == ["late"]
    assert obeyed(redis_client, late) == {"fleet": "pause"}
    resume(redis_client, EVERYTHING)  # by somebody whose TRAWL_FLEET does not name it
    assert obeyed(redis_client, late) == {"fleet": "pause"}
    assert fleet.spread(["forum_list", "forum_detail", "late"]) == ["late"]
    assert obeyed(redis_client, late) == {}
    assert fleet.spread(["forum_list", "forum_detail", "late"]) == []


def test_resuming_a_service_does_not_end_what_holds_for_the_fleet_and_says_so(redis_client: redis.Redis) -> None:
    hold(redis_client, EVERYTHING, PAUSE, by="ops")
    hold(redis_client, HoldTarget(services=("forum_list",)), STOP, by="ops")
    left = resume(redis_client, HoldTarget(services=("forum_list",)))
    assert [one.what for one in left] == ["the fleet"]
    assert word_of("forum_list", left) is PAUSE
    assert obeyed(redis_client, LIST) == {"fleet": "pause"}


def test_a_stop_empties_slots_and_keeps_the_size(redis_client: redis.Redis) -> None:
    desired = {"forum_list": 1, "forum_detail": 3}

    def stopped() -> set[tuple[str, int]]:
        return set(stopped_slots(FleetHolds(redis_client).fields(), desired))

    hold(redis_client, HoldTarget(services=("forum_list",)), STOP)
    assert stopped() == {("forum_list", 0)}
    hold(redis_client, EVERYTHING, STOP)
    assert stopped() == {("forum_list", 0), *(("forum_detail", n) for n in range(3))}
    assert obeyed(redis_client, DETAIL) == {}, "crawlers started by hand go on"
    resume(redis_client, EVERYTHING)
    assert stopped() == set()


@pytest.mark.parametrize("given", [EVERYTHING, HoldTarget(services=("forum_detail",)), HoldTarget(services=("forum_detail/1",))])
def test_a_stop_of_one_slot_by_a_command_of_49295b45_holds_until_it_is_resumed(
    redis_client: redis.Redis, given: HoldTarget
) -> None:
    fleet, stop = FleetHolds(redis_client), Hold(word=STOP, at=1000.0, by="ops")
    fleet.change({"slot:forum_detail/1": stop})
    assert stopped_slots(fleet.fields(), {"forum_list": 1, "forum_detail": 3}) == {("forum_detail", 1): stop}
    assert [one.what for one in overview(redis_client)] == ["forum_detail/1"]
    assert resume(redis_client, given) == []
    assert fleet.fields() == {}


@pytest.mark.parametrize(
    ("target", "word", "state"),
    [
        (EVERYTHING, PAUSE, "paused"),
        (EVERYTHING, STOP, "stopped"),
        (HoldTarget(services=("forum_list",)), DRAIN, "draining"),
        (HoldTarget(services=("forum_list",)), STOP, "stopped"),
        (HoldTarget(site="one"), PAUSE, "paused"),
        (HoldTarget(site="one", services=("forum_list",)), DRAIN, "draining"),
    ],
)
def test_what_is_held_is_not_seeded_and_the_seeder_says_why(
    redis_client: redis.Redis, target: HoldTarget, word: HoldKind, state: str
) -> None:
    hold(redis_client, target, word, by="ops", reason="why")
    report = sentences(seed(redis_client, force=True))
    assert report["one/a"] == f"{state} by ops: why"
    assert report["two/a"] == ("seeded" if target.site else f"{state} by ops: why")
    resume(redis_client, target)
    assert sentences(seed(redis_client))["one/a"] == "seeded"


def test_posts_are_not_let_in_while_their_service_or_site_is_being_drained(redis_client: redis.Redis) -> None:
    hold(redis_client, HoldTarget(site="one"), DRAIN, by="ops")
    with pytest.raises(OnHold, match=r"forum_detail, site one: draining by ops; trawl resume"):
        refresh(redis_client, ["p1"], "one")
    assert refresh(redis_client, ["p1"], "two") == 1
    hold(redis_client, HoldTarget(site="one"), PAUSE)
    assert refresh(redis_client, ["p1"], "one") == 2, "in a pause they wait"


@pytest.mark.parametrize(
    ("target", "word", "message"),
    [
        (HoldTarget(services=("nosuch",)), PAUSE, r"unknown service 'nosuch': TRAWL_FLEET names forum_detail, forum_list"),
        (HoldTarget(services=("forum_list/0",)), STOP, r"unknown service 'forum_list/0'|forum_list/0"),
        (
            HoldTarget(site="onee"),
            PAUSE,
            r"unknown site 'onee': sites in .* are one, two; a host such as example.com is one, too",
        ),
        (HoldTarget(site="a b"), PAUSE, r"no URL, no spaces"),
        (HoldTarget(site="https://example.com/"), PAUSE, r"no URL, no spaces"),
        (HoldTarget(site="one"), STOP, r"a site cannot be stopped: pause or drain it"),
    ],
)
def test_what_does_not_exist_or_cannot_be_held_so_is_refused(
    redis_client: redis.Redis, target: HoldTarget, word: HoldKind, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        hold(redis_client, target, word)
    assert said(redis_client) == []


@pytest.mark.parametrize(
    "arguments",
    [{}, {"whole": True, "services": ("forum_list",)}],
    ids=["nothing", "all and one"],
)
def test_a_target_names_one_thing(arguments: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        HoldTarget(**arguments)  # type: ignore[arg-type]


def test_a_crawl_outside_of_the_fleet_can_be_paused_and_with_it_any_site(redis_client: redis.Redis) -> None:
    keys = CrawlKeys.for_spider("alone")
    redis_client.hset(keys.counters(), "layout", "1")
    assert [one.what for one in hold(redis_client, HoldTarget(services=("alone",)), PAUSE)] == ["alone"]
    hold(redis_client, HoldTarget(services=("alone",), site="shop"), PAUSE)
    assert obeyed(redis_client, keys) == {"spider": "pause", "site:shop": "pause"}
    with pytest.raises(ConfigError, match="not a service of this fleet"):
        hold(redis_client, HoldTarget(services=("alone",)), STOP)


def test_the_commands_say_what_they_did_and_how_to_end_it(trawl: Trawl, redis_client: redis.Redis) -> None:
    assert trawl("pause", "--site", "one", "--reason", "they asked")[:2] == (
        0,
        "site one: paused, until trawl resume\n",
    )
    code, out, _ = trawl("stop", "forum_detail", "--now", "--json")
    assert code == 0
    held = {(one["service"], one["site"], one["state"], one["reason"]) for one in json.loads(out)["held"]}
    assert held == {(None, "one", "paused", "they asked"), ("forum_detail", None, "stopped", "")}
    assert [one.hold.at_once for one in overview(redis_client)] == [False, True]
    code, out, _ = trawl("resume", "forum_detail")
    assert (code, out.splitlines()[:2]) == (0, ["forum_detail: resumed", "still held:"])
    assert trawl("resume", "--all")[:2] == (0, "the whole fleet: resumed\n")


def test_a_command_that_names_nothing_does_not_hit_the_whole_fleet(trawl: Trawl, redis_client: redis.Redis) -> None:
    for command in ("pause", "drain", "stop", "resume"):
        code, _, err = trawl(command)
        assert code == 2
        assert err.startswith(f"trawl: trawl {command} did nothing, because nothing was named: ")
    assert said(redis_client) == []


def test_a_node_is_drained_and_let_in_again_by_its_name(trawl: Trawl, redis_client: redis.Redis) -> None:
    Nodes(redis_client).beat(NodeRecord(name="celery@a"))
    Nodes(redis_client).beat(NodeRecord(name="celery@b"))
    assert trawl("drain", "--node", "celery@a")[:2] == (0, "celery@a: draining; go on with: trawl resume --node celery@a\n")
    assert Nodes(redis_client).is_draining("celery@a")
    assert trawl("resume", "--node", "celery@a", "--json")[:2] == (0, '{"node": "celery@a", "draining": false}\n')
    assert not Nodes(redis_client).is_draining("celery@a")
    assert "unknown node 'x': there are celery@a, celery@b" in trawl("drain", "--node", "x")[2]
    assert "--node cannot be combined with" in trawl("drain", "--node", "celery@a", "--all")[2]
