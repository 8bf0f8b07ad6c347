"""Whether Celery can work with a broker: a message goes there and back, and the result backend answers."""

from __future__ import annotations

from typing import Any

from celery import Celery
from kombu import Connection

from workers.node.worker_setup import Broker


def works_with(broker: Broker) -> None:
    """With Celery's own parts, made as by celeryconfig.py."""
    with Connection(broker.url, ssl=broker.tls or False, transport_options=broker.options) as connection:
        queue = connection.SimpleQueue("trawl-test")
        queue.put("there and back")
        message = queue.get(timeout=60)
        assert message.payload == "there and back"
        message.ack()
        queue.close()
    settings: dict[str, Any] = {
        "result_backend_transport_options": dict(broker.options),
        "redis_backend_use_ssl": broker.tls or {},
        "redis_socket_keepalive": not broker.is_socket,
    }
    with Celery(broker=broker.url, backend=broker.url, set_as_current=False) as app:
        app.conf.update(settings)
        assert app.backend.client.ping()  # not a result: Celery stores those by a command that redis-py warns of
        app.backend.client.close()
