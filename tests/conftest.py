"""Fixtures of every test.

- `redis_server`  the session's own server (`tests.support.redis_server.RedisServer`); do not stop it: make your own for faults
- `redis_client`  a `redis.Redis` on it, empty at the start of each test
- `redis_url`     the URL of the same empty server, for processes and for `connect(url)`
- `no_process_left`  fails the test when a process started in it outlives it
- for all tests: TRAWL_DATA_DIR is a temporary folder, and the variables that name a Redis, a broker, a namespace or a database
  are unset, so that none touches the developer's own data; a test that needs other values uses `monkeypatch.setenv` or the
  `env` of its process
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from hypothesis import settings

from tests.support.processes import none_left
from tests.support.redis_server import RedisServer

# The same examples in each run: a failure that comes and goes would be a flaky test. What was found once is pinned by @example.
settings.register_profile("deterministic", derandomize=True)
settings.load_profile("deterministic")


@pytest.fixture(scope="session", autouse=True)
def _nobody_elses_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRAWL_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        for name in ("TRAWL_REDIS_URL", "TRAWL_BROKER_URL", "TRAWL_NAMESPACE", "TRAWL_DATABASE_URL"):
            environment.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """The session's server, without persistence. For tests that stop, kill or freeze it: `with RedisServer(...) as server`."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """A client of the session's server, which is empty now. FLUSHALL is right here only because the server is our own."""
    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    client.script_flush()
    yield client
    client.close()


@pytest.fixture
def redis_url(redis_server: RedisServer, redis_client: redis.Redis) -> str:
    """URL (with password) of the session's server, which is empty now."""
    return redis_server.url


@pytest.fixture
def no_process_left() -> Iterator[None]:
    """Every process that the test starts must be gone 10 s after it; ask for it before fixtures that start processes."""
    with none_left():
        yield
