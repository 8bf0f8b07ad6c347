"""One server process: what it promises to the keeper and to the tests."""

from __future__ import annotations

import redis

from tests.support.redis_server import RedisServer


def test_the_fixture_is_an_empty_server_with_a_password(redis_client: redis.Redis, redis_url: str) -> None:
    assert redis_client.ping()
    assert redis_client.dbsize() == 0
    assert ":@" not in redis_url


def test_a_server_with_aof_keeps_its_data_over_a_kill() -> None:
    with RedisServer(aof=True) as server:
        server.client().set("a", 1)
        server.client().waitaof(1, 0, 3000) if hasattr(server.client(), "waitaof") else None
        server.kill()
        server.start()
        assert server.client().get("a") == b"1"
