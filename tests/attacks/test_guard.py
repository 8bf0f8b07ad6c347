"""The guard of messages is in place for every broker, and what it sets aside can be put back."""

from __future__ import annotations

import pytest
import redis
from celery import Celery
from kombu import Connection

from redis_components.errors import TrawlError
from tasks.guard import transport as guarded_transport
from tasks.guard import transport as refused
from tasks.guard import worker
from workers.state.dead_messages import PARTS, DeadMessages


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("redis://:secret@127.0.0.1:1/2", guarded_transport.Transport),
        ("rediss://127.0.0.1:1", guarded_transport.Transport),
        ("redis+socket:///nowhere/redis.sock?virtual_host=0", guarded_transport.Transport),
        ("sentinel://127.0.0.1:1/0;sentinel://127.0.0.1:2/0", guarded_transport.SentinelTransport),
    ],
)
def test_every_form_of_url_of_a_redis_takes_the_guarded_transport(url: str, transport: type) -> None:
    with Celery(broker=url, amqp="tasks.guard.transport:AMQP", set_as_current=False) as app:
        connection = app.connection_for_write()
        assert connection.get_transport_cls() is transport
        assert connection.clone().get_transport_cls() is transport
        assert connection.Pool(1).new().get_transport_cls() is transport
        assert transport.Channel.__mro__[1] is guarded_transport.Guarded


def test_a_message_of_another_broker_is_kept_by_its_parts_and_put_back(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, redis_client: redis.Redis
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    with Connection("memory://") as broker:
        queue = broker.SimpleQueue("odd")
        queue.put([1, {"a": "b"}], headers={"task": "x", "timelimit": ["a", "b"]})
        message = queue.get(timeout=60)
        worker.Consumer._keep(worker.Consumer.__new__(worker.Consumer), message, "has a time limit of text")
        message.reject()
        ((kept,), foreign) = DeadMessages(redis_client).newest(9)
        assert (kept.queue, kept.reason, kept.form, foreign) == ("odd", "has a time limit of text", PARTS, 0)
        refused.replay(kept.form, kept.raw, kept.queue, broker)
        back = queue.get(timeout=60)
        assert (back.payload, back.headers) == ([1, {"a": "b"}], {"task": "x", "timelimit": ["a", "b"]})
        back.ack()
        with pytest.raises(TrawlError, match="does not match its recorded form"):
            refused.replay(PARTS, b"[]", "odd", broker)
        with pytest.raises(TrawlError, match="not the one"):
            refused.replay("raw", b"{", "odd", broker)
