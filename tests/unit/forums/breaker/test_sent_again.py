"""A page that is asked for once more: as before it was sent, and not before a hold can have reached its crawler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scrapy import Request

from forum_reader.definition.site import BreakerOptions
from forums.breaker.missing import MissingPages
from workers.breaker.hosts import BLOCKED, SETTLING_S, WAIT_S, sent_again


def test_it_is_the_request_as_it_was_before_it_was_sent() -> None:
    sent = Request(
        "http://b.example/wall", meta={"redirect_urls": ["http://a.example/1"], "retry_times": 2, "page": {"kind": "x"}}
    )
    again = sent_again(sent, 3)
    assert (again.url, again.meta, again.priority) == ("http://a.example/1", {"page": {"kind": "x"}, BLOCKED: 3}, -1)


def test_it_waits_where_its_site_is_held_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.breaker.hosts.shared_clock", SimpleNamespace(time=lambda: 1000.0))
    assert sent_again(Request("http://a.example/1"), 1, waits=True).meta["not_before"] == 1000.0 + WAIT_S
    assert "not_before" not in sent_again(Request("http://a.example/1"), 1).meta


def test_what_opened_the_breaker_is_settling_until_the_hold_is_everywhere() -> None:
    pages, options = MissingPages(), BreakerOptions(in_a_row=1)
    for url in ("/1", "/2"):
        pages.step(url, 0, "v1", options, goods=0, is_check=False, held=False, now=100.0)
    assert (pages.is_settling(100.0), pages.is_settling(100.0 + SETTLING_S)) == (True, False)
