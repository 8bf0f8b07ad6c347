"""`trawl seed-urls --unless-in` and its task against each kind of database: what has a row is not fetched again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
import redis

from fleet_operations.consumers.consume import Item
from fleet_operations.consumers.database_rows import DatabaseRows
from redis_components.errors import ConfigError
from redis_components.start_tasks.seeding import CHUNK
from tasks.jobs import seed_urls as seed_urls_task
from tests.support.trawl_command import commands, one_line


def test_what_has_a_row_in_the_database_is_not_queued_again(
    database_url: str,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    trawl = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    file, url = tmp_path / "urls.txt", database_url
    file.write_text("".join(f"http://a.example/{n}\n" for n in range(CHUNK + 10)))
    trawl("seed-urls", "books", str(file), "--unless-in", url, "--no-wait")
    assert redis_client.llen("books:start_urls") == CHUNK + 10, "nothing is stored"
    assert not list(tmp_path.glob("*.sqlite"))
    with closing(DatabaseRows(url, "books", "url")) as rows:
        rows.write([Item(n, {"url": f"http://a.example/{n}", "id": n}) for n in range(0, CHUNK + 10, 2)])
    redis_client.delete("books:start_urls")
    said = trawl("seed-urls", "books", str(file), "--unless-in", url)
    assert (said.code, said.out) == (0, f"{CHUNK // 2 + 5} URLs queued for books; {CHUNK // 2 + 5} are stored already\n")
    odd = [f"http://a.example/{n}".encode() for n in range(1, CHUNK + 10, 2)]
    assert redis_client.lrange("books:start_urls", 0, -1) == odd
    redis_client.delete("books:start_urls")
    file.write_text('2\n3\n{"id": 4}\nSTOP\n')
    assert trawl("seed-urls", "books", str(file), "--raw", "--unless-in", url, "--key", "id").code == 0
    assert redis_client.lrange("books:start_urls", 0, -1) == [b"3", b"STOP"]
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    urls = ["http://a.example/8", {"url": "http://a.example/new", "meta": {"id": 8}}, {"url": "http://a.example/1"}]
    assert seed_urls_task("books", urls, unless_in=url)["known"] == 1
    assert seed_urls_task("books", urls, unless_in=url, key="id")["known"] == 1, "a number in meta, and URLs that are none"
    with pytest.raises(ConfigError, match="outside of the data folder"):
        seed_urls_task("books", urls, unless_in="sqlite:////etc/books.sqlite")
    file.write_text("http://a.example/1\n")
    one_line(trawl("seed-urls", "books", str(file), "--unless-in", url, "--key", "isbn"), 2, "no column 'isbn', only url, id")
    one_line(trawl("seed-urls", "books", str(file), "--unless-in", f"jsonl:{file}"), 2, "name a database")
    one_line(trawl("seed-urls", "books", str(file), "--unless-in", "postgresql://u:secret@127.0.0.1:1/x"), 1, "u:***@")
