"""Attack: garbage in each key of the fleet. Each value has its own fault: it is named, and everything else goes on."""

from __future__ import annotations

import json
import os
import shlex
import sys
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from cli.main import main as trawl
from forums.state.keys import ForumCrawlKeys, ForumFleetKeys
from redis_components.keys import CrawlKeys
from tests.attacks.spoiling import HASHES, LISTS_OF, STRINGS, cases, furnish
from tests.support import warm_start
from tests.support.redis_server import RedisServer
from workers.state.keys import FleetKeys
from workers.state.quarantine import find
from workers.state.registry import Registry

PARTS = ("exporter", "status", "screen", "forums", "beat", "reconcile")
FREE_TEXT = {ForumFleetKeys().database(), ForumFleetKeys().wrong_sites()}
"""What stands there is any text."""
LISTS = CrawlKeys.for_spider("forum_list")
NOT_LOOKED_AT = {ForumCrawlKeys(LISTS).marks(), LISTS.stats_hash(), LISTS.threads()}
"""By status and exporter: stats are the spiders', of threads there are millions. Their type is."""
NEEDS_TYPE = {FleetKeys().nodes()}
"""Without which nobody knows where to launch."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What each part of the fleet made of each case."""
    folder = tmp_path_factory.mktemp("spoilt")
    (folder / "sites").mkdir()
    with RedisServer() as server:
        environment = {
            **os.environ,
            "TRAWL_REDIS_URL": server.url,
            "TRAWL_DATA_DIR": str(folder / "data"),
            "TRAWL_SITES_DIR": str(folder / "sites"),
            "TRAWL_FLEET": "forum_list=1,forum_detail=1",
        }
        command = [sys.executable, "-m", "tests.attacks.spoiling"]
        told = warm_start.run(command, family="celery", env=environment, capture_output=True, text=True, timeout=500)
        assert told.returncode == 0, told.stderr[-3000:]
        yield [json.loads(line) for line in told.stdout.splitlines()]


@pytest.mark.timeout(600)
def test_every_case_was_tried(outcomes: list[dict[str, Any]]) -> None:
    assert len(outcomes) == len(list(cases()))
    assert {one["key"] for one in outcomes} == {*HASHES.values(), *LISTS_OF.values(), *STRINGS.values()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_the_fleet_fails_because_of_one_value(outcomes: list[dict[str, Any]], part: str) -> None:
    failed = {one["case"]: one[part]["raised"] for one in outcomes if isinstance(one[part], dict) and "raised" in one[part]}
    assert failed == {}
    if part in ("status", "screen", "forums"):
        code = 0 if part == "forums" else 1  # no crawler is alive, and a value is foreign
        assert {one["case"]: one[part] for one in outcomes if one[part][0] != code} == {}


def test_what_is_foreign_is_named_by_status_and_exporter(outcomes: list[dict[str, Any]]) -> None:
    silent = {
        one["case"]
        for one in outcomes
        if (one["type"] or one["key"] not in FREE_TEXT | NOT_LOOKED_AT)
        and not (
            any(one["key"] in said for said in one["exporter"]["foreign"])
            and any(found["key"] == one["key"] for found in json.loads(one["status"][1])["foreign"])
            and one["key"] in one["screen"][1]
        )
    }
    assert silent == set()


def test_the_neighbours_are_launched_and_beat_sends_on(outcomes: list[dict[str, Any]]) -> None:
    launched = "launch forum_list/0 on good@host"
    not_launched = {one["case"] for one in outcomes if launched not in one["reconcile"]}
    assert not_launched == {one["case"] for one in outcomes if one["type"] and one["key"] in NEEDS_TYPE}
    waiting = {one["case"]: one["beat"] for one in outcomes if not one["type"] and len(one["beat"]["sent"]) < 6}
    assert waiting == {}


def test_beat_does_not_take_a_spoilt_key_for_a_redis_that_is_away(outcomes: list[dict[str, Any]]) -> None:
    said = {one["case"]: one["beat"]["said"] for one in outcomes if any("away" in line for line in one["beat"]["said"])}
    assert said == {}
    [fences] = [one for one in outcomes if one["key"] == FleetKeys().fences() and one["case"].endswith(": list")]
    assert any(FleetKeys().fences() in line and "trawl doctor" in line for line in fences["beat"]["said"])


def test_the_screen_shows_no_escape_sequence(outcomes: list[dict[str, Any]]) -> None:
    assert [one["case"] for one in outcomes if "\x1b" in one["screen"][1] + one["forums"][1]] == []


@pytest.fixture
def spoilt(redis_client: redis.Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    """Two fields, an entry of a list, a lock without an end and a key of another type."""
    for name, value in (("TRAWL_REDIS_URL", redis_url), ("TRAWL_DATA_DIR", tmp_path), ("TRAWL_SITES_DIR", tmp_path)):
        monkeypatch.setenv(name, str(value))
    furnish(redis_client)
    redis_client.hset(FleetKeys().desired(), mapping={"forum_detail": "abc", b"\xff": b"\x00\xff"})
    redis_client.hset(CrawlKeys.for_spider("forum_list").threads(), "evil/1", b"\xc1")
    redis_client.lpush(FleetKeys().errors(), "garbage")
    redis_client.set(FleetKeys().slot("forum_detail", 0), "5|nobody")
    redis_client.set(FleetKeys().autoscale(), "garbage")
    return redis_client


def test_doctor_names_what_is_foreign_and_each_command_that_it_prints_removes_it(
    spoilt: redis.Redis, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = FleetKeys()
    assert trawl(["doctor"]) == 1
    said = capfd.readouterr().out
    for named in (f"{keys.desired()}, field forum_detail: 'abc'", keys.autoscale(), "evil/1", keys.errors(), "forum_detail/0"):
        assert named in said
    found = find(spoilt, ["forum_list", "forum_detail"], threads=True)
    assert len(found) == 6
    for one in found:
        program, *words = shlex.split(one.fix)
        assert program == "redis-cli"
        if words[0] == "--quoted-input":
            words = [words[1], words[2], literal_eval(f"b{words[3]}")]
        spoilt.execute_command(*words)
    assert find(spoilt, ["forum_list", "forum_detail"], threads=True) == []
    assert Registry(spoilt).desired() == {"forum_list": 1}, "the neighbour is there"
    trawl(["doctor", "--json"])
    assert not [one for one in json.loads(capfd.readouterr().out) if one["what"] == "data" and one["state"] != "ok"]


def test_doctor_names_each_key_of_another_type_that_a_command_stops_at(
    redis_client: redis.Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TRAWL_REDIS_URL", redis_url), ("TRAWL_DATA_DIR", tmp_path), ("TRAWL_SITES_DIR", tmp_path)):
        monkeypatch.setenv(name, str(value))
    furnish(redis_client)
    fleet = ForumFleetKeys()
    wrong = {
        *(fleet.audit(), fleet.dead_messages(), fleet.output_troubles(), LISTS.all_limits(), LISTS.lanes()),
        *(LISTS.ready(), LISTS.later_requests(), LISTS.overflow(), LISTS.overflow_order(), LISTS.fed_ids(), LISTS.robots()),
        *(LISTS.fed_waiting(), LISTS.notes(), LISTS.validators(), LISTS.older_validators()),
    }
    for key in wrong:
        redis_client.set(key, "garbage")
    redis_client.hset(fleet.desired(), "forum_detail", "abc")
    assert wrong <= {one.key for one in find(redis_client, ["forum_list"])}
