"""`trawl items consume` as a process: killed again and again, it loses no item. Judged by the file and the table alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa

from fleet_operations.consumers.consume import Item, Sink, consume
from fleet_operations.consumers.files import JsonLines
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from tests.support import warm_start
from tests.support.processes import heard_out, wait_until
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.services import ServiceRecord, Services

KEYS = CrawlKeys.for_spider("books")
LIVES, EACH = 2, 4_000
MANY = LIVES * EACH


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Trawl]:
    run = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    return run


@contextmanager
def consumer(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    process = warm_start.Popen([sys.executable, "-m", "cli.main", "items", "consume", "books", *options], env=dict(os.environ))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def push(client: redis.Redis, first: int, number: int) -> None:
    for begin in range(first, first + number, 100):
        client.rpush("books:items", *(json.dumps({"url": f"http://x/{n}", "n": n}) for n in range(begin, begin + 100)))


def test_a_consumer_that_is_killed_loses_no_item(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    path, database = tmp_path / "books.jsonl", tmp_path / "books.sqlite"
    targets = [
        ["--to", f"jsonl:{path}", "--max-mb", "0.05"],
        ["--to", f"sqlite:///{database}", "--key", "url"],
    ]
    for to in targets:
        for life in range(LIVES):
            push(redis_client, life * EACH, EACH // 2)
            with consumer(*to) as process:
                wait_until(lambda: redis_client.llen("books:items") < EACH // 2, "it takes items", 60, every_s=0.001)
                push(redis_client, life * EACH + EACH // 2, EACH // 2)
                with heard_out(redis_client, process.pid):
                    process.kill()
                    process.wait()
            redis_client.delete(KEYS.writer())  # else the next one waits until the lock of the dead one has run out
        said = trawl("items", "consume", "books", *to, "--once")
        assert said.code == 0
        assert redis_client.llen("books:items") == 0
    files = sorted(tmp_path.glob("books*.jsonl"))
    assert len(files) > 1
    lines = [json.loads(line)["n"] for file in files for line in file.read_bytes().splitlines()]
    assert set(lines) == set(range(MANY))
    assert len(lines) <= MANY + LIVES * Sink.batch, "at most one batch comes again for each death"
    with sa.create_engine(f"sqlite:///{database}", poolclass=sa.NullPool).connect() as connection:
        assert [row.n for row in connection.execute(sa.text("select n from books order by n"))] == list(range(MANY))
    assert not redis_client.exists("books:items:dead")


class Dies(JsonLines):
    """Dies when it has written a batch, and before the batch left Redis."""

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        super().write(items)
        raise SystemExit


def test_a_death_between_writing_and_removing_writes_the_batch_again(redis_client: redis.Redis, tmp_path: Path) -> None:
    push(redis_client, 0, 100)
    path = tmp_path / "books.jsonl"
    with pytest.raises(SystemExit):
        consume(ItemStream(redis_client, KEYS), Dies(path), stopped=lambda: False)
    assert redis_client.llen("books:items") == 100
    done = consume(ItemStream(redis_client, KEYS), JsonLines(path), stopped=lambda: False, once=True)
    assert (done.items, done.refused, redis_client.llen("books:items")) == (100, 0, 0)
    assert [json.loads(line)["n"] for line in path.read_bytes().splitlines()] == [*range(100), *range(100)]


def test_a_second_consumer_waits_and_what_cannot_be_kept_is_refused(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path
) -> None:
    to = ["--to", f"jsonl:{tmp_path}/books.jsonl"]
    redis_client.set(KEYS.writer(), "another|0", px=600_000)
    redis_client.rpush("books:items", '{"n":1}', "no json", "2")
    with consumer(*to) as waiting:
        wait_until(lambda: (tmp_path / "books.jsonl").exists(), "it has begun", 60)
        redis_client.delete(KEYS.writer())
        wait_until(lambda: not redis_client.llen("books:items"), "it takes over", 60)
        waiting.terminate()
        assert waiting.wait(60) == 0
    assert (tmp_path / "books.jsonl").read_text() == '{"n":1}\n2\n'
    assert "it is not JSON" in trawl("dead", "items", "books").out


def test_what_cannot_be_consumed_is_one_line(trawl: Trawl, redis_client: redis.Redis) -> None:
    one_line(trawl("items", "consume", "boks", "--to", "jsonl:x"), 2, "did you mean 'books'?")
    one_line(trawl("items", "consume", "books"), 2, "declares no consumer: name its target with --to jsonl:PATH")
    one_line(trawl("items", "consume", "books", "--to", "jsnl:x"), 2, "did you mean 'jsonl'?")
    one_line(trawl("items", "consume", "books", "--to", "jsonl:/dev/null/x"), 2, "cannot be opened")
    one_line(trawl("items", "consume", "books", "--to", "jsonl:x", "--key", "url"), 2, "--key is for databases")
    Services(redis_client).declare("books", ServiceRecord(consumer="jsonl:../elsewhere.jsonl"))
    one_line(trawl("items", "consume", "books", "--once"), 2, "outside of the data folder")
    CrawlRecords(redis_client).write(CrawlRecord(spider="books", keys=KEYS, consumer="forum_writer"))
    one_line(trawl("items", "consume", "books", "--to", "jsonl:x"), 2, "are taken by forum_writer")
