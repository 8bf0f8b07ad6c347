"""Every way to connect to one server, by URL and by REDIS_PARAMS, for both clients; and how many connections that makes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from scrapy.settings import Settings

from redis_components import connection
from redis_components.connection import connect, explain
from redis_components.server import scripts
from redis_components.server.scripts import script
from tests.support.celery_broker import works_with
from tests.support.certificates import Certificates
from tests.support.crawl import crawl
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_groups import PASSWORD, Node
from tests.support.redis_server import RedisServer
from workers.node.worker_setup import broker_of

LEAST_RIGHTS = "resetchannels ~job42:* -@all +@connection +@read +@write +@transaction +eval +evalsha +time -@dangerous +info"
"""As in docs/deployment.md."""


def both_answer(**settings: Any) -> None:
    """The synchronous client and that of the event loop run a script."""
    keys, args = {"owners": "s:owners"}, {"owner": "nobody", "ttl_ms": 1}
    made = Settings(settings)
    assert script("heartbeat")(connection.from_settings(made), keys, args) == 0

    async def on_the_loop() -> int:
        client = connection.asyncio_client(made)
        assert client is not None
        try:
            return int(await script("heartbeat").run(client, keys, args))
        finally:
            await client.aclose()

    assert asyncio.run(on_the_loop()) == 0


def test_tls_with_an_own_authority_and_a_client_certificate(redis_server: RedisServer, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with Proxy(redis_server.port, tls=certificates.for_a_server()) as proxy:
        url = f"rediss://:{redis_server.password}@127.0.0.1:{proxy.port}/0"
        both_answer(REDIS_URL=f"{url}?{certificates.options()}")
        files = {"ssl_ca_certs": certificates.ca, "ssl_certfile": certificates.client, "ssl_keyfile": certificates.client_key}
        both_answer(
            REDIS_HOST="127.0.0.1",
            REDIS_PORT=proxy.port,
            REDIS_PARAMS={"ssl": True, "password": redis_server.password, **files},
        )
        assert connect(f"{url}?{certificates.options()}").ping()
        works_with(broker_of(f"{url}?{certificates.options()}"))
        for wrong in (url, f"{url}?ssl_ca_certs={certificates.ca}"):  # nobody vouches for the server; no certificate of ours
            with pytest.raises(redis.ConnectionError) as caught:
                connect(wrong).ping()
            assert redis_server.password not in str(explain(caught.value, wrong))


def test_a_unix_socket(tmp_path: Path) -> None:
    node = Node(tmp_path, f"requirepass {PASSWORD}", f"unixsocket {tmp_path}/redis.sock")
    try:
        node.start().wait("it answers", lambda client: client.ping())
        both_answer(REDIS_URL=f"unix://:{PASSWORD}@{tmp_path}/redis.sock?db=1")
        both_answer(REDIS_PARAMS={"unix_socket_path": f"{tmp_path}/redis.sock", "password": PASSWORD})
        assert connect(f"unix://:{PASSWORD}@{tmp_path}/redis.sock").ping()
        works_with(broker_of(f"unix://:{PASSWORD}@{tmp_path}/redis.sock?db=1"))
    finally:
        node.kill()


def test_a_crawl_over_tls_by_a_user_with_the_least_rights_has_few_connections(
    redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path
) -> None:
    redis_client.execute_command("ACL SETUSER", "crawler", "reset", "on", ">p@ss/word", *LEAST_RIGHTS.split())
    redis_client.acl_log_reset()
    certificates = Certificates(tmp_path)

    def connections() -> int:
        return sum(client["user"] == "crawler" for client in redis_client.client_list())

    try:
        with (
            Proxy(redis_server.port, tls=certificates.for_a_server()) as proxy,
            crawl(redis_server.url, tmp_path, pages=60, latency_s=0.05, namespace="job42") as run,
        ):
            run.seed()
            run.redis_url = f"rediss://crawler:{quote('p@ss/word', safe='')}@127.0.0.1:{proxy.port}/0?{certificates.options()}"
            process = run.start(SCHEDULER_PERSIST=False, SCHEDULER_FLUSH_ON_START=True, SCHEDULER_OWNER_TTL=0.8)
            run.redis_url = redis_server.url
            seen = {0}
            wait_until(lambda: seen.add(connections()) or process.poll() is not None, lambda: f"it ends\n{run.log()}", 60)  # type: ignore[func-returns-value]
            assert run.missing() == ([], []), run.log()
        assert 2 in seen, "that of the event loop, and one for the heart's thread and all else"
        assert max(seen) <= 3, "a third only where the heart beats just as the main thread asks something"
        assert redis_client.acl_log() == [], "nothing was refused"
        assert not redis_client.exists("job42:links:dupefilter"), "it could remove what it leaves"
    finally:
        redis_client.acl_deluser("crawler")


def test_a_refusal_within_a_pipeline_is_the_servers_state_as_it_is_alone() -> None:
    with RedisServer() as server:
        client = server.client()
        client.config_set("min-replicas-to-write", 1)
        for in_transaction in (False, True):
            with client.pipeline(in_transaction) as pipe, pytest.raises(redis.RedisError) as refused:
                pipe.lrem("key", 1, "value").execute()
            assert scripts.is_servers_state(refused.value), refused.value
            assert "too few replicas follow it" in str(explain(refused.value, server.url))
        with pytest.raises(redis.ResponseError) as wrong:
            client.pipeline().get("a").execute_command("NO COMMAND").execute()
        assert not scripts.is_servers_state(wrong.value)
