"""What the exporter says of the writer, against what was really stored and queued."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
import redis

from forums.overview.model import writer_lag
from forums.state.database_state import WriterCounts
from forums.state.keys import ForumFleetKeys
from forums.storage import default_url
from forums.writer.store import forget, store
from redis_components.keys import CrawlKeys
from tests.support.items import START, at, comment, post, wire

KEYS = CrawlKeys.for_spider("forum_detail")


@pytest.fixture(autouse=True)
def its_own_database(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/figures.sqlite")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "workers.settings")
    yield
    forget(default_url())


def stored(client: redis.Redis, *items: dict[str, object]) -> None:
    client.rpush(KEYS.item_stream(), *map(wire, items))
    store(client, ["forum_detail"])


def test_what_happened_is_counted_once_by_site_and_kind(redis_client: redis.Redis) -> None:
    first = (post("p1"), comment("c1"), comment("c2"))
    stored(redis_client, *first)
    stored(redis_client, *first)
    stored(redis_client, comment("c1", body="another", fetched_at=at(90)), comment("c2", deleted=True, fetched_at=at(90)))
    redis_client.hset(ForumFleetKeys().writer_figures(), mapping={"demo|comment|stolen": 3, "demo|post|new|x": 3, "items2": "x"})
    figures = WriterCounts(redis_client).read()
    assert figures.changes == {
        ("demo", "post", "new"): 1,
        ("demo", "comment", "new"): 2,
        ("demo", "comment", "edited"): 1,
        ("demo", "comment", "deleted"): 1,
    }
    assert (figures.batches, figures.items) == (3, 8)
    assert figures.seconds > 0


def test_the_lag_is_the_age_of_the_oldest_item_that_waits(redis_client: redis.Redis) -> None:
    now = (START + timedelta(minutes=30)).timestamp()
    other = CrawlKeys.for_spider("forum_list")
    assert writer_lag(redis_client, [KEYS, other], now) == 0.0
    redis_client.rpush(KEYS.item_stream(), wire(comment("c1", fetched_at=at(20))), wire(comment("c2", fetched_at=at(25))))
    assert writer_lag(redis_client, [KEYS, other], now) == 600.0
    redis_client.rpush(other.item_stream(), b"\xff[[", b"{}")
    assert writer_lag(redis_client, [KEYS, other], now) == 600.0, "what cannot be read has no age"
    redis_client.lpush(other.item_stream(), json.dumps({"kind": "scan", "finished_at": "2026-01-02T03:04:05"}).encode())
    assert writer_lag(redis_client, [KEYS, other], now) == 600.0, "a time without a zone says nothing"
