"""`adopt.lua`: a record gets a row's token and count only where nobody has written it since it was read."""

from __future__ import annotations

import msgspec
import redis

from forums.state.database_state import ThreadRecord, adopt, keep, look_up
from redis_components.keys import CrawlKeys

KEYS = CrawlKeys.for_spider("forum_detail")
TOLD = ThreadRecord(token="old", comments=5, last_comment="c5", listed=5, told_at=1_000, hour=7)


def test_a_record_that_covers_a_row_gets_its_token_and_count(redis_client: redis.Redis) -> None:
    keep(redis_client, KEYS, {"s/t1": TOLD, "s/t2": TOLD})
    later = msgspec.structs.replace(TOLD, token="newer", comments=6)
    keep(redis_client, KEYS, {"s/t2": later})  # a reading was stored meanwhile
    seen = look_up(redis_client, KEYS, ["s/t1"])["s/t1"]
    assert seen is not None
    adopt(redis_client, KEYS, {"s/t1": (seen, "row", 5), "s/t2": (seen, "row", 5), "s/t3": (seen, "row", 5)})
    adopted = msgspec.structs.replace(TOLD, token="row", told_at=None)
    assert look_up(redis_client, KEYS, ["s/t1", "s/t2", "s/t3"]) == {"s/t1": adopted, "s/t2": later, "s/t3": None}


def test_nothing_is_asked_of_redis_for_no_rows(redis_client: redis.Redis) -> None:
    adopt(redis_client, KEYS, {})
    assert redis_client.exists(KEYS.threads()) == 0
