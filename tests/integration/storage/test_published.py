"""How late new posts and comments were stored: each counted once, by site, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import redis

from forums.records.stored import Item
from forums.state.database_state import BOUNDS_S, PublicationDelays
from forums.state.keys import ForumFleetKeys
from forums.storage import Database
from forums.writer.store import Lateness, drain
from monitoring.metrics.exposition import text_of
from monitoring.source import Source
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from tests.support.items import START, at, comment, post, scan, wire

KEYS = CrawlKeys.for_spider("forum_detail")
STORED_AT = START + timedelta(minutes=10)


def stored(client: redis.Redis, database: Database, *items: dict[str, object]) -> None:
    """Drain these items as the writer does, at `STORED_AT`."""
    late = Lateness(database)

    def arrived(new: Sequence[Item]) -> None:
        late.count(client, new, STORED_AT)

    client.rpush(KEYS.item_stream(), *map(wire, items))
    drain(ItemStream(client, KEYS), database, arrived=arrived)


def test_what_is_new_is_counted_once_by_its_delay(redis_client: redis.Redis, database: Database) -> None:
    stored(redis_client, database, scan(started_at=at(-60)))
    new = (post("p1", created_at=at(9.95)), comment("c1", created_at=at(9)), comment("c2", created_at=at(11)))
    stored(redis_client, database, *new, post("p1", created_at=at(9.95), fetched_at=at(12)))
    stored(redis_client, database, *new)
    (found,) = PublicationDelays(redis_client).read().values()
    assert dict(zip((*BOUNDS_S, None), found.counts, strict=True)) == {
        **dict.fromkeys((*BOUNDS_S, None), 0),
        5: 2,  # p1, and c2, whose clock is ahead
        60: 1,
    }
    assert found.sum_s == 63.0


def test_what_nobody_could_have_seen_in_time_is_not_counted(redis_client: redis.Redis, database: Database) -> None:
    stored(redis_client, database, post("p1", created_at=at(9)))
    assert PublicationDelays(redis_client).read() == {}, "its site was not scanned yet"
    stored(redis_client, database, scan(started_at=at(-20_000)), scan(site="new", started_at=at(5)))
    stored(redis_client, database, post("p2", site="new", created_at=at(4)), post("p3", created_at=at(-10_081)))
    assert PublicationDelays(redis_client).read() == {}


def test_the_exporter_shows_it_and_leaves_out_what_somebody_else_wrote(
    redis_client: redis.Redis, redis_url: str, database: Database
) -> None:
    stored(redis_client, database, scan(started_at=at(-60)))
    stored(redis_client, database, post("p1", created_at=at(0)))
    redis_client.hset(ForumFleetKeys().delays(), mapping={"evil|60": "many", "evil": "1", "|60": "1"})
    source = Source(redis_url, {"forum_detail": 1})
    lines = text_of(source.look()).decode().splitlines()
    assert 'trawl_publish_to_store_seconds_bucket{le="300.0",site="demo"} 0.0' in lines
    assert 'trawl_publish_to_store_seconds_bucket{le="900.0",site="demo"} 1.0' in lines
    assert 'trawl_publish_to_store_seconds_bucket{le="+Inf",site="demo"} 1.0' in lines
    assert 'trawl_publish_to_store_seconds_sum{site="demo"} 600.0' in lines
    assert not [line for line in lines if "evil" in line]
    assert {one.field for one in source.look().foreign} == {b"evil|60", b"evil", b"|60"}
