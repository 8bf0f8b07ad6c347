"""The lag of the writer, as the exporter has it, against what is really queued."""

from __future__ import annotations

import json
from datetime import timedelta

import redis

from forums.overview.model import writer_lag
from redis_components.keys import CrawlKeys
from tests.support.items import START, at, comment, wire

KEYS = CrawlKeys.for_spider("forum_detail")


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
