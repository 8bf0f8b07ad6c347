"""A worker's events while the broker is away."""

from __future__ import annotations

from celery import Celery

from tests.support.redis_server import RedisServer


def test_an_event_does_not_wait_for_a_broker_that_is_away_and_is_sent_when_it_is_back() -> None:
    with RedisServer() as server:
        app = Celery("test", broker=server.url, events="tasks.refusing_broker:Events")
        app.conf.broker_transport_options = {"socket_connect_timeout": 5}
        with app.connection_for_write() as connection:
            dispatcher = app.events.Dispatcher(connection, hostname="a@test")
            dispatcher.send("worker-online", freq=2)  # it is connected
            server.stop()
            dispatcher.send("worker-heartbeat", retry=True, freq=2)  # as celery.worker.heartbeat does; else it waits for ever
        server.start()
        heard = server.client().pubsub()
        heard.psubscribe("*")
        assert heard.get_message(timeout=30), "it is subscribed"
        with app.connection_for_write() as connection:
            later = app.events.Dispatcher(connection, hostname="a@test")
            later.extend_buffer(dispatcher)  # as the worker does it after a reconnection
            later.flush()
        message = heard.get_message(timeout=30)
        assert message is not None
        assert b"worker.heartbeat" in bytes(message["data"])
