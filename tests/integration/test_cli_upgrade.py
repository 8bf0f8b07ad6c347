"""`trawl upgrade --check`: says what a new version will do, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis

from cli.commands.doctor import LAYOUT, layout, nodes, tables
from redis_components import __version__
from redis_components.keys import CrawlKeys
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.nodes import NodeRecord, Nodes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def _node(name: str, version: str) -> NodeRecord:
    return NodeRecord(name=name, services=("forum_list",), capacity=1, taken=0, version=version)


def test_without_check_it_says_what_to_add(trawl: Trawl) -> None:
    one_line(trawl("upgrade"), 2, "--check", "trawl db upgrade", "trawl roll")


def test_an_older_node_is_a_note_and_another_layout_is_bad(
    redis_client: redis.Redis, trawl: Trawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeRecord, "alive", lambda *_: True)  # also where this machine takes longer than a heartbeat lasts
    Nodes(redis_client).beat(_node("old@a", "0.0.9"))
    redis_client.hset(CrawlKeys.for_spider("forum_list").counters(), "layout", "2")
    before = {key: redis_client.dump(key) for key in redis_client.scan_iter()}
    said = trawl("upgrade", "--check", "--json")
    assert said.code == 1
    found = {(one["what"], one["state"]): one for one in json.loads(said.out)}
    assert "old@a: 0.0.9" in found["nodes", "note"]["finding"]
    assert __version__ in found["nodes", "note"]["fix"]
    assert f"layout 2, this Trawl has {LAYOUT}" in found["queue", "bad"]["finding"]
    assert "has no tables" in found["database", "ok"]["finding"]
    assert {key: redis_client.dump(key) for key in redis_client.scan_iter()} == before


@pytest.mark.parametrize(("stored", "state"), [(None, "ok"), (7, "ok"), (6, "note"), (8, "bad")])
def test_newer_tables_are_refused_and_older_ones_are_told(stored: int | None, state: str) -> None:
    assert tables(stored, 7).state == state


def test_the_layout_is_that_of_the_scripts() -> None:
    assert f"local LAYOUT = '{LAYOUT}'" in (ROOT / "redis_components/lua/frontier/exchange.lua").read_text()
    assert layout("books", LAYOUT).state == layout("books", None).state == "ok"


def test_a_fleet_of_this_version_is_well_and_none_is_too() -> None:
    assert [one.state for one in nodes([_node("a", "1.2")], "1.2")] == ["ok"]
    assert [one.state for one in nodes([], "1.2")] == ["ok"]
    assert "an unknown version" in nodes([_node("a", "")], "1.2")[0].finding
