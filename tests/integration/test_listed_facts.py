"""What only the list and the site file know of threads and boards is stored: author, dates, reply counts, names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from demo.forum.process import ForumProcess
from forums.scheduling.seeding import SEEDED, seed
from forums.state.keys import ForumStates
from forums.storage import Database, posts
from forums.storage.schema.tables import forums
from forums.writer.store import store
from tests.support import warm_start
from tests.support.demo_sites import declare
from tests.support.fleet import ROOT
from tests.support.scrapy_command import crawl_command

NAMES = '\n[names]\nf1 = "News"\nf2 = "帮助"\n'


def test_what_only_the_list_knows_is_in_the_database(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    with ForumProcess(seed=3, forums=4, threads=6, comments=2, rate=0) as forum:
        path = declare(tmp_path, "site", forum.url)
        before, _, thread = path.read_text().partition("[pages.thread.fields]")
        for name in ("author", "created_at", "reply_count", "last_activity"):
            line = next(line for line in thread.splitlines() if line.startswith(f"{name} = "))
            thread = thread.replace(f"{line}\n", "", 1)
        path.write_text(f"{before}[pages.thread.fields]{thread}{NAMES}")
        assert set(seed(redis_client, site="site").values()) == {SEEDED}
        for spider in ("forum_list", "forum_detail"):
            command = crawl_command(spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1")
            environment = {**os.environ, "TRAWL_REDIS_URL": redis_url}
            done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
    store(redis_client, ("forum_list", "forum_detail"))
    facts = (posts.c.author, posts.c.created_at, posts.c.reply_count, posts.c.last_reply_at)
    with Database.from_url().open() as database:
        stored = list(database.stream(select(*facts)))
        named = {row.id: row.name for row in database.stream(select(forums.c.id, forums.c.name))}
    assert len(stored) == 24
    assert [row for row in stored if None in tuple(row)] == []
    assert {id_: name for id_, name in named.items() if name} == {"f1": "News", "f2": "帮助"}
    states = ForumStates(redis_client).read(["site/f1", "site/f2", "site/f3"])
    assert [state.name for state in states.values()] == ["News", "帮助", None], "`trawl forums` shows them"
