"""The guard of messages is in place for every form of broker."""

from __future__ import annotations

import pytest
from celery import Celery

from tasks.guard import transport as guarded_transport


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
