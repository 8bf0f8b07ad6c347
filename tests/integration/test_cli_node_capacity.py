"""`trawl up` makes room for what was asked for, and says where the machine has none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from cli.commands import up
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from tests.support.trawl_command import Trawl, commands
from workers.environment.machine import cores, memory_bytes, places
from workers.state.nodes import Nodes
from workers.state.services import Autoscaling, Policy

BOTH = ("forum_list", "forum_detail")


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    monkeypatch.delenv("TRAWL_NODE_CRAWLERS", raising=False)
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def test_up_sizes_its_node_for_the_fleet_and_for_what_it_may_grow_to(
    trawl: Trawl, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def places_after(fleet: str | None, given: str | None = None) -> int:
        monkeypatch.delenv("TRAWL_NODE_CRAWLERS", raising=False)
        if given:
            monkeypatch.setenv("TRAWL_NODE_CRAWLERS", given)
        up._resize(redis_client, fleet)
        return int(os.environ["TRAWL_NODE_CRAWLERS"])

    spare = places(cores(), memory_bytes())
    assert places_after(None) == spare
    assert places_after("forum_detail=30") == 31
    assert places_after(None) == 31, "what was scaled before"
    Autoscaling(redis_client).set("forum_list", Policy(min=1, max=20))
    assert places_after(None) == 50
    capfd.readouterr()
    assert places_after(None, given="3") == 3
    assert "TRAWL_NODE_CRAWLERS=3: this node has no room for 47 of 50 crawlers" in capfd.readouterr().err


@pytest.mark.usefixtures("no_process_left")
def test_four_crawlers_of_a_service_start_where_four_were_asked_for(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("TRAWL_NODE_CRAWLERS", "TRAWL_FLEET")}
    environment |= {"TRAWL_REDIS_URL": redis_url, "TRAWL_DATA_DIR": str(tmp_path / "data")}
    with (tmp_path / "up.log").open("wb") as log:
        command = [sys.executable, "-m", "cli.main", "up", "--port-flower=0", "--port-exporter=0", "--fleet=forum_detail=4"]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until(
            lambda: sum(node.capacity for node in Nodes(redis_client).all()) >= 5,
            lambda: f"the node has a place for each:\n{(tmp_path / 'up.log').read_text()}",
            60,
        )
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
