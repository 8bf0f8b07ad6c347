"""A worker serves the services whose queues it consumes; with `crawlers` among them also what is declared later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import redis

from tasks.node import served
from workers.state.services import ServiceRecord, Services


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        (("control", "crawlers", "crawlers.films"), ("books", "films")),  # without -Q
        (("crawlers",), ("books", "films")),
        (("crawlers.films", "node.a"), ("films",)),
        (("crawlers.films", "crawlers"), ("books", "films")),
        (("control",), ()),
    ],
)
def test_what_is_declared_later_is_served_unless_queues_limit_it(
    queues: tuple[str, ...], expected: tuple[str, ...], redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.node.connect", lambda: redis_client)
    monkeypatch.setenv("TRAWL_FLEET", "films=1")
    Services(redis_client).declare("books", ServiceRecord(size=1))
    worker = SimpleNamespace(
        app=SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues))))
    )
    assert served(worker) == expected
