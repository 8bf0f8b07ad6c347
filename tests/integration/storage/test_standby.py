"""PostgreSQL with a standby that commits wait for: where the primary is lost and the standby promoted, no item is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest
import redis

from forums.storage import Database, StorageError
from forums.writer.store import Outcome, drain
from redis_components.items.stream import ItemStream
from tests.integration.storage.test_writer_faults import KEYS, assert_complete, fill, stored
from tests.support.postgres_server import PostgresServer, StandbyServer, binaries
from tests.support.processes import wait_until

ITEMS = 600


@pytest.fixture
def standby() -> Iterator[StandbyServer]:
    found = binaries()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    with PostgresServer(found) as primary, StandbyServer(primary) as following:
        following.is_waited_for()
        yield following


def test_what_the_standby_has_not_got_is_still_in_redis(standby: StandbyServer, redis_client: redis.Redis) -> None:
    """Some batches are in both servers; one is committed in the primary alone, which nobody hears of again."""
    good = fill(redis_client, ITEMS)
    stream = ItemStream(redis_client, KEYS)
    with Database.from_url(standby.url_of_both("postgres")) as database:
        drain(stream, database, batch=100, budget_s=0)
        first = stored(database)
        assert first == good[:90], "a tenth of them is bad"
        standby.stop()
        failed: list[Exception] = []

        def drain_on() -> None:
            with contextlib.suppress(StorageError):
                drain(stream, database, batch=100)
                failed.append(AssertionError("it was settled, and only the lost primary had it"))

        writer = threading.Thread(target=drain_on)
        writer.start()
        wait_until(lambda: standby.primary.waiting_for("SyncRep"), "the commit waits for the standby")
        assert len(stream) == ITEMS + 1 - 100
        standby.primary.crash()
        writer.join(60)
        assert (writer.is_alive(), failed) == (False, [])
        standby.start()
        with pytest.raises(StorageError, match=r"read-only|read-write"):
            drain(stream, database)
        assert len(stream) == ITEMS + 1 - 100
        standby.promote()
        assert stored(database) == first
        assert drain(stream, database, batch=100).outcome is Outcome.EMPTY
        assert_complete(redis_client, database, ITEMS, good)
