"""A service that declares a consumer gets it, and it is started again when it dies; several are one process's children."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import redis

from cli.processes.consumers import Consumers
from tests.support.processes import wait_until
from workers.fleet.sizes import declared_targets
from workers.state.services import ServiceRecord, Services


@pytest.mark.usefixtures("no_process_left")
def test_a_declared_consumer_runs_restarts_and_ends_with_its_declaration(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRAWL_FLEET", "books=0")
    out, lines, services = tmp_path / "data/books.jsonl", list[str](), Services(redis_client)
    services.declare("books", ServiceRecord(consumer=f"jsonl:{out}"))
    services.declare("quiet", ServiceRecord(consumer="none"))
    services.declare("shelf", ServiceRecord(groups={"files": "csv:data/shelf.csv", "search": ""}))
    assert declared_targets(redis_client) == {"books": f"jsonl:{out}", "shelf/files": "csv:data/shelf.csv"}
    services.remove("shelf")
    consumers = Consumers(lambda: declared_targets(redis_client), lambda name, line: lines.append(f"{name}: {line}"))

    def taken(number: int) -> bool:
        consumers.tend()
        return out.exists() and len(out.read_text().splitlines()) >= number and not redis_client.llen("books:items")

    try:
        redis_client.rpush("books:items", '{"n":1}')
        wait_until(lambda: taken(1), lambda: str(lines), 60)
        assert set(consumers.pids()) == {"books"}
        os.kill(consumers.pids()["books"], signal.SIGKILL)
        redis_client.delete("books:items:writer")  # its lock, which would run out after 30 s
        redis_client.rpush("books:items", '{"n":2}')
        wait_until(lambda: taken(2), lambda: str(lines), 60)
        assert any("consume books ended (SIGKILL); starting it again" in line for line in lines)
        services.remove("books")
        wait_until(lambda: consumers.tend() or not consumers.pids(), lambda: str(lines), 60)
    finally:
        consumers.stop(hurry=lambda: True)
