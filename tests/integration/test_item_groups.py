"""Consumers of groups as processes, killed while they hold items: the ready-made one, and the program that the docs print."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest
import redis

from redis_components.items.groups import tend
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.processes import wait_until
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.services import ServiceRecord, Services

KEYS = CrawlKeys.for_spider("books", item_groups=["files", "search"])
DOCS = Path(__file__).parents[2] / "docs/services.md"
MANY = 3_000
_PIPE_BYTES = 4096


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Trawl]:
    run = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    return run


@contextmanager
def process(*command: str, stdout: Path) -> Iterator[subprocess.Popen[bytes]]:
    with stdout.open("ab") as out:
        running = warm_start.Popen([sys.executable, *command], env=dict(os.environ), stdout=out)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def printed_program(folder: Path) -> str:
    """The consumer that the documentation prints, claiming at once: its dead one is not waited for."""
    text = DOCS.read_text()
    begin = text.index("    import json, os, socket")
    path = folder / "search.py"
    program = dedent(text[begin : text.index("\n\nAny number of them", begin)])
    assert "min_idle_time=30_000" in program
    path.write_text(program.replace("min_idle_time=30_000", "min_idle_time=1"))
    return str(path)


def numbers(path: Path) -> list[int]:
    return [int(line.rpartition(b"/")[2].strip(b'"}')) for line in path.read_bytes().splitlines()]


def test_consumers_of_groups_that_are_killed_lose_no_item(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    out = tmp_path / "books.jsonl"
    Services(redis_client).declare("books", ServiceRecord(groups={"files": f"jsonl:{out}", "search": ""}))
    tend(redis_client, KEYS)
    with redis_client.pipeline() as pipe:
        for n in range(MANY):
            pipe.xadd("books:items", {"item": json.dumps({"url": f"http://x/{n}"})})
        pipe.execute()
    one_line(trawl("items", "consume", "books", "--to", f"jsonl:{out}"), 2, "has the consumer groups files, search: name one")
    one_line(trawl("items", "consume", "books", "--group", "serch", "--to", f"jsonl:{out}"), 2, "did you mean 'search'?")
    one_line(trawl("items", "consume", "books", "--group", "search"), 2, "declares no consumer for search: name its target")

    ready_made, printed = (
        ("-m", "cli.main", "items", "consume", "books", "--group", "files", "--to", f"jsonl:{out}"),
        tmp_path / "printed",
    )
    redis_client.xreadgroup("files", "dead", {"books:items": ">"}, count=5)
    with process(*ready_made, stdout=tmp_path / "log") as running:
        wait_until(lambda: out.exists() and out.stat().st_size, "it writes items", 60, every_s=0.001)
        running.kill()
    redis_client.delete(KEYS.writer("files"))  # else the next one waits until the lock of the dead one has run out
    redis_client.xclaim("books:items", "files", "dead", 0, _pending(redis_client, "dead"), idle=120_000)
    assert trawl("items", "consume", "books", "--group", "files", "--to", f"jsonl:{out}", "--once").code == 0

    shown = json.loads(trawl("items", "books", "--json").out)[0]
    files, search = shown["groups"]
    assert (shown["waiting"], files["waiting"], files["pending"], search["waiting"]) == (MANY, 0, 0, MANY)
    assert set(numbers(out)) == set(range(MANY))
    assert len(numbers(out)) <= MANY + 500, "at most one batch comes again"

    program = printed_program(tmp_path)
    printed.write_bytes(_printed_until_nobody_reads(program))
    assert redis_client.xpending("books:items", "search")["pending"], "it died between reading and acknowledging"
    assert "search" in trawl("items", "books").out
    with process(program, stdout=printed):
        wait_until(lambda: set(numbers(printed)) == set(range(MANY)), "the next one prints the rest", 60)
        wait_until(lambda: not redis_client.xpending("books:items", "search")["pending"], "and acknowledges it", 60)
    assert json.loads(trawl("items", "books", "--json").out)[0]["waiting"] == 0
    tend(redis_client, KEYS)
    assert redis_client.xlen("books:items") == 0


def _printed_until_nobody_reads(program: str) -> bytes:
    """What it printed when it was killed: in the midst of a batch, since its pipe was full at the 320th item."""
    end, start = os.pipe()
    fcntl.fcntl(start, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    running = subprocess.Popen([sys.executable, program], env=dict(os.environ), stdout=start)
    os.close(start)
    try:
        wait_until(lambda: _held(end) > _PIPE_BYTES - 100, "it prints items", 60)
    finally:
        running.kill()
        running.wait()
    with os.fdopen(end, "rb") as pipe:
        return pipe.read()


def _held(pipe: int) -> int:
    """The bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def _pending(client: redis.Redis, consumer: str) -> list[bytes]:
    return [one["message_id"] for one in client.xpending_range("books:items", "files", "-", "+", 500, consumer)]
