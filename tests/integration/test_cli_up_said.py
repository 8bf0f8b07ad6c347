"""What `trawl up` says before it starts anything."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
import redis

from cli.commands import up
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.nodes import NodeRecord, Nodes


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def test_a_second_one_is_told_that_the_fleet_may_run_here(trawl: Trawl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for option, other in (("--port-flower", "--port-exporter"), ("--port-exporter", "--port-flower")):
            port = taken.getsockname()[1]
            said = ("in use by another program", "this fleet runs here already", "trawl up --port-flower 0 --port-exporter 0")
            one_line(trawl("up", f"{option}={port}", f"{other}=0"), 1, f"port {port} is", *said)


def test_a_second_one_on_other_ports_is_said_to_be_a_node(
    redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    ended = subprocess.Popen(["true"])
    ended.wait()
    for name in ("up-1@elsewhere.example", f"up-{ended.pid}@{socket.gethostname()}"):
        Nodes(redis_client).beat(NodeRecord(name=name, capacity=4))
    assert up.runs_here() is None, "one on another machine, and one that was killed a moment ago"
    Nodes(redis_client).beat(NodeRecord(name=f"up-{os.getpid()}@{socket.gethostname()}", capacity=4))
    assert up.runs_here() == f"up-{os.getpid()}@{socket.gethostname()}"


def test_an_empty_sites_folder_is_said(trawl: Trawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sites" / "example.toml").unlink()
    command = ("up", "--port-flower=0", "--port-exporter=0", "--fleet", "nope=1")  # which ends it before it starts
    said = trawl(*command)
    assert (
        f"no site file in {tmp_path / 'sites'}: nothing will be crawled until `trawl sites new URL` has written one" in said.err
    )
    monkeypatch.setattr(up, "project_spiders", lambda: {"books"})
    assert "no site file" not in trawl(*command).err, "a project of spiders needs none"
    monkeypatch.setattr(up, "project_spiders", set)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    assert "no site file" not in trawl(*command).err, "a fleet of other spiders needs none"
